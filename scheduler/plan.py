"""Decide what a due trigger does now. Pure: the times come in, the decision goes out, and neither takes longer the more
instants were missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from .misfire import THRESHOLD_MS, Misfire
from .skips import DST_GAP, UNOBSERVED, ZONE_UNAVAILABLE
from .times import Times
from .zones import EPOCH

DAY_MS = 86_400_000

BATCH = 20
"""How many instants of one trigger fire in one call under `fire_all`."""
SINGLE = 100
"""How many instants of a gap have records of their own when a disabled tenant is observed; older ones share one."""


class Passed(NamedTuple):
    """Planned instants that do not fire: `many` of them from `first` to `last`, all in one UTC month (YYYYMM)."""

    month: str
    first: int
    last: int
    many: int


@dataclass(frozen=True, slots=True)
class Skip:
    """Stretches of instants that are passed over for one reason, oldest first."""

    reason: str
    stretches: tuple[Passed, ...]


@dataclass(frozen=True, slots=True)
class Fire:
    """An instant that fires: in time (`fired`; the reason `dst_gap` says that it was moved out of a gap), or under a
    misfire policy, which is then the reason. One of several that are spread has a `delay_ms`: how much later than the
    first of them it is due.
    """

    instant: int
    outcome: str = "fired"
    reason: str = ""
    delay_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens to the due instants, in their order, and the next planned one; None: there is none."""

    steps: tuple[Skip | Fire, ...]
    following: int | None

    @property
    def fires(self) -> list[Fire]:
        return [step for step in self.steps if isinstance(step, Fire)]


def plan(
    times: Times,
    planned: int,
    now: int,
    misfire: Misfire,
    batch: int = BATCH,
    unread: int | None = None,
) -> Plan:
    """What becomes of a trigger whose next instant `planned` is due at `now` (epoch ms); the first `batch` fires.

    From `unread` on no scheduler could read its zone until now: what does not fire of that time says so.
    """
    newest = times.prev_ms(now + 1)
    if newest is None or newest < planned:  # excluded since, or left out by a clock change
        return pass_over(times, planned, now, "misfire")
    late = now - newest > THRESHOLD_MS
    if misfire.policy == "fire_all":
        return _fire_all(times, planned, newest, now, misfire, batch, unread)
    if misfire.policy == "skip":
        if late:
            return pass_over(times, planned, now, "misfire", unread)
        before, fire = _late(times, planned, newest, "misfire", unread), _in_time(times, newest)
    else:
        before = _late(times, planned, newest, "coalesced", unread)
        fire = Fire(newest, "misfired", "fire_once") if late else _in_time(times, newest)
    rest = pass_over(times, newest + 1, now, "")
    return Plan((*before, fire, *rest.steps), rest.following)


def pass_over(times: Times, planned: int, until: int, reason: str, unread: int | None = None) -> Plan:
    """Nothing fires of what is planned from `planned` up to `until`, both included; what is before has its record."""
    skips = _late(times, planned, until + 1, reason, unread)
    return Plan(tuple(skips), following(times, max(until, planned - 1)))


def following(times: Times, after: int) -> int | None:
    """The next instant that has to be visited: a fire, or one before it that a clock change takes out."""
    fire = times.next_ms(after)
    if fire is None:
        return None
    return next((odd.at for odd in times.odd_ms(after + 1, fire, only="skipped")), fire)


def resume(
    times: Times,
    planned: int,
    observed: int,
    resumed: int,
    now: int,
    misfire: Misfire,
    batch: int = BATCH,
    unread: int | None = None,
) -> Plan:
    """`plan` for a trigger of a tenant whose scheduling was disabled until `resumed`: nothing fires of that time. What
    was not `observed` (before that instant all has its record) is passed over as such.
    """
    if resumed < planned:
        return plan(times, planned, now, misfire, batch, unread)
    unseen = pass_over(times, max(planned, observed), min(resumed, now), UNOBSERVED)
    after = following(times, max(min(resumed, now), observed - 1))  # the clock may have stepped back since
    if after is None or after > now:
        return Plan(unseen.steps, after)
    rest = plan(times, after, now, misfire, batch, unread)
    return Plan((*unseen.steps, *rest.steps), rest.following)


def observe(times: Times, observed: int, now: int, reason: str) -> Plan:
    """What is passed over of a trigger that may not move: each instant by itself, those of seconds as ranges, and of a
    long gap the newest.
    """
    many = times.count_ms(observed, now + 1)
    newest = times.prev_ms(now + 1)
    if newest is None or newest < observed or (newest - observed) < THRESHOLD_MS * (many - 1):
        return pass_over(times, observed, now, reason)
    first = newest
    for _ in range(min(many, SINGLE) - 1):
        first = times.prev_ms(first) or first
    steps = list(_skips(times, observed, first, reason))
    at: int | None = first
    while at is not None and at <= now:
        after = times.next_ms(at)
        until = now + 1 if after is None else min(after, now + 1)
        steps += _skips(times, at, until, reason)
        at = after
    return Plan(tuple(steps), following(times, now))


def _in_time(times: Times, instant: int) -> Fire:
    """An instant that fires in time, and says so if it is only there because the clocks left out another."""
    moved = next(times.odd_ms(instant, instant + 1, only="moved"), None)
    return Fire(instant, reason=DST_GAP if moved else "")


def _fire_all(
    times: Times, planned: int, newest: int, now: int, misfire: Misfire, batch: int, unread: int | None
) -> Plan:
    first = _first_in_budget(times, planned, newest, now, misfire)
    before = _late(times, planned, newest + 1 if first is None else first, "misfire", unread)
    steps: list[Skip | Fire] = [*before]
    at, delay = first, 0
    for _ in range(batch):
        if at is None or at > newest:
            break
        in_time = at == newest and now - at <= THRESHOLD_MS
        steps.append(_in_time(times, at) if in_time else Fire(at, "misfired", "fire_all", delay))
        after, delay = times.next_ms(at), delay + misfire.pace_ms
        steps += _skips(times, at + 1, now + 1 if after is None else min(after, now + 1), "")
        at = after
    if first is None:
        steps += _skips(times, newest + 1, now + 1, "")
    return Plan(tuple(steps), at if at is not None and at <= newest else following(times, now))


def _first_in_budget(times: Times, planned: int, newest: int, now: int, misfire: Misfire) -> int | None:
    """The oldest due instant that may still fire; None if none may."""
    oldest = planned if misfire.within_ms is None else max(planned, now - misfire.within_ms)
    at: int | None = newest
    first = None
    for _ in range(misfire.most):
        if at is None or at < oldest:
            break
        first = at
        at = times.prev_ms(at)
    return first


def _late(times: Times, start: int, end: int, reason: str, unread: int | None) -> Sequence[Skip]:
    """The planned instants from `start` up to before `end`, passed over; those from `unread` on for their zone."""
    turn = end if unread is None else min(max(start, unread), end)
    return [*_skips(times, start, turn, reason), *_skips(times, turn, end, ZONE_UNAVAILABLE)]


def _skips(times: Times, start: int, end: int, reason: str) -> Sequence[Skip]:
    """The planned instants from `start` up to before `end`, passed over; those that clock changes take out, as that."""
    steps: list[Skip] = []
    at = start
    for why, first, last, many in _taken_out(times, start, end):
        steps += _plain(times, at, first, reason)
        steps.append(Skip(why, (Passed(month(first), first, last, many),)))
        at = last + 1
    return [*steps, *_plain(times, at, end, reason)]


def _taken_out(times: Times, start: int, end: int) -> Iterator[tuple[str, int, int, int]]:
    """What clock changes take out, as (why, first, last, how many); neighbours with no fire between them as one."""
    group: tuple[str, int, int, int] | None = None
    for at, _, _, _, why in times.odd_ms(start, end, only="skipped"):
        assert why
        if group and group[0] == why and month(group[1]) == month(at) and not times.count_ms(group[2], at):
            group = (why, group[1], at, group[3] + 1)
            continue
        if group:
            yield group
        group = (why, at, at, 1)
    if group:
        yield group


def _plain(times: Times, start: int, end: int, reason: str) -> Sequence[Skip]:
    stretches = tuple(by_month(times, start, end))
    return (Skip(reason, stretches),) if stretches else ()


def by_month(times: Times, start: int, end: int) -> Iterator[Passed]:
    """The planned instants from `start` up to before `end`, as one stretch for each UTC month that has any."""
    first = times.next_ms(start - 1)
    while first is not None and first < end:
        turn = _next_month(first)
        stop = min(end, turn)
        last = times.prev_ms(stop)
        assert last is not None
        yield Passed(month(first), first, last, times.count_ms(first, stop))
        first = times.next_ms(stop - 1)


def month(instant_ms: int) -> str:
    """YYYYMM of an instant in UTC: fire records are kept by month."""
    return _month_of_day(instant_ms // DAY_MS)


@lru_cache(maxsize=512)
def _month_of_day(day: int) -> str:
    moment = EPOCH + timedelta(days=day)
    return f"{moment.year}{moment.month:02}"


def _next_month(instant_ms: int) -> int:
    """The instant at which the next UTC month begins."""
    moment = datetime.fromtimestamp(instant_ms / 1000, UTC)
    months = moment.year * 12 + moment.month
    return round(datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC).timestamp() * 1000)
