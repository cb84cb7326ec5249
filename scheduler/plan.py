"""Decide what a due trigger does now. Pure: the times come in, the decision goes out, and neither takes longer the more
instants were missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from .misfire import THRESHOLD_MS, Misfire
from .skips import UNOBSERVED
from .times import Times

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
    """An instant that fires: in time (`fired`), or under a misfire policy, which is then the reason. One of several
    that are spread has a `delay_ms`: how much later than the first of them it is due.
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


def plan(times: Times, planned: int, now: int, misfire: Misfire, batch: int = BATCH) -> Plan:
    """What becomes of a trigger whose next fire `planned` is due at `now` (epoch ms); the first `batch` fires of it."""
    newest = times.prev_ms(now + 1)
    if newest is None or newest < planned:  # it is excluded since: no planned instant any more
        return Plan((), times.next_ms(now))
    following = times.next_ms(newest)
    late = now - newest > THRESHOLD_MS
    if misfire.policy == "fire_all":
        return _fire_all(times, planned, newest, now, misfire, following, batch)
    if misfire.policy == "skip":
        if late:
            return Plan(_skips(times, planned, newest + 1, "misfire"), following)
        return Plan((*_skips(times, planned, newest, "misfire"), Fire(newest)), following)
    fire = Fire(newest, "misfired", "fire_once") if late else Fire(newest)
    return Plan((*_skips(times, planned, newest, "coalesced"), fire), following)


def pass_over(times: Times, planned: int, until: int, reason: str) -> Plan:
    """Nothing fires of what is planned from `planned` up to `until`, both included; what is before has its record."""
    return Plan(_skips(times, planned, until + 1, reason), times.next_ms(max(until, planned - 1)))


def resume(
    times: Times,
    planned: int,
    observed: int,
    resumed: int,
    now: int,
    misfire: Misfire,
    batch: int = BATCH,
) -> Plan:
    """`plan` for a trigger of a tenant whose scheduling was disabled until `resumed`: nothing fires of that time. What
    was not `observed` (before that instant all has its record) is passed over as such.
    """
    if resumed < planned:
        return plan(times, planned, now, misfire, batch)
    unseen = pass_over(times, max(planned, observed), min(resumed, now), UNOBSERVED)
    following = times.next_ms(max(min(resumed, now), observed - 1))  # the clock may have stepped back since
    if following is None or following > now:
        return Plan(unseen.steps, following)
    rest = plan(times, following, now, misfire, batch)
    return Plan((*unseen.steps, *rest.steps), rest.following)


def observe(times: Times, observed: int, now: int, reason: str) -> Plan:
    """What is passed over of a trigger that may not move: each instant by itself, those of seconds as ranges, and of a
    long gap the newest.
    """
    many = times.count_ms(observed, now + 1)
    newest = times.prev_ms(now + 1)
    if newest is None or newest < observed:
        return Plan((), times.next_ms(now))
    if many > 1 and (newest - observed) < THRESHOLD_MS * (many - 1):
        return pass_over(times, observed, now, reason)
    first = newest
    for _ in range(min(many, SINGLE) - 1):
        first = times.prev_ms(first) or first
    steps = list(_skips(times, observed, first, reason))
    at: int | None = first
    while at is not None and at <= now:
        steps.append(Skip(reason, (Passed(month(at), at, at, 1),)))
        at = times.next_ms(at)
    return Plan(tuple(steps), at)


def _fire_all(
    times: Times,
    planned: int,
    newest: int,
    now: int,
    misfire: Misfire,
    following: int | None,
    batch: int,
) -> Plan:
    first = _first_in_budget(times, planned, newest, now, misfire)
    skips = _skips(times, planned, newest + 1 if first is None else first, "misfire")
    fires: list[Fire] = []
    at = first
    while at is not None and at <= newest and len(fires) < batch:
        in_time = at == newest and now - at <= THRESHOLD_MS
        delay = len(fires) * misfire.pace_ms
        fires.append(Fire(at) if in_time else Fire(at, "misfired", "fire_all", delay))
        at = times.next_ms(at)
    return Plan((*skips, *fires), following if at is None or at > newest else at)


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


def _skips(times: Times, start: int, end: int, reason: str) -> tuple[Skip, ...]:
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
    return f"{datetime.fromtimestamp(instant_ms / 1000, UTC):%Y%m}"


def _next_month(instant_ms: int) -> int:
    """The instant at which the next UTC month begins."""
    moment = datetime.fromtimestamp(instant_ms / 1000, UTC)
    months = moment.year * 12 + moment.month
    return round(datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC).timestamp() * 1000)
