"""When triggers fire, worked out without the engine: by plain arithmetic, or by walking over every half hour of a year
and asking the zone's clock. Each comes with the trigger that should mean the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any

from tenure.scheduler.trigger import Trigger
from tenure.testing import START

from ..cron_brute import Meaning, Walk

SECOND, MINUTE, DAY = 1_000, 60_000, 86_400_000
YEAR = 366 * DAY
ALL_HOURS, ALL_MONTHS = frozenset(range(24)), frozenset(range(1, 13))

Instants = Callable[[int, int], Sequence[int]]
"""Those after one instant, up to and with another."""
TakenOut = Callable[[int, int], Sequence[tuple[int, str]]]
"""So too: what is planned and does not fire because the clocks change, and why."""


@dataclass(frozen=True)
class Kind:
    """What a trigger is given, when it fires, and what clock changes take out of that."""

    given: Mapping[str, Any]
    instants: Instants
    taken_out: TakenOut = lambda after, until: ()
    moved: Instants = lambda after, until: ()
    """Those of its instants that fire for what a gap left out."""

    def trigger(self, name: str) -> Trigger:
        return Trigger(name, **self.given)


def every(step: int, first: int = 0) -> Instants:
    def instants(after: int, until: int) -> Sequence[int]:
        nth = max(0, (after - first) // step + 1)
        return range(first + nth * step, until + 1, step)

    return instants


def once(at: int) -> Instants:
    return lambda after, until: [at] if after < at <= until else []


def walked(tz: str, meaning: Meaning, dst: str, left_out: Callable[[date], bool]) -> Instants:
    @cache
    def year() -> list[int]:
        fires, _ = walk(tz).plan(meaning, dst)
        zone = walk(tz).zone
        return [ms(at) for at in fires if not left_out(at.astimezone(zone).date())]

    return lambda after, until: year()[bisect_right(year(), after) : bisect_right(year(), until)]


def walked_out(tz: str, meaning: Meaning, dst: str, left_out: Callable[[date], bool]) -> TakenOut:
    @cache
    def year() -> list[tuple[int, str]]:
        _, skipped = walk(tz).plan(meaning, dst)
        zone = walk(tz).zone
        there = [at.astimezone(zone) for at in skipped if not left_out(at.astimezone(zone).date())]
        return [(ms(at), "dst_gap" if _after_gap(at) else "dst_overlap") for at in there]

    return lambda after, until: [(at, why) for at, why in year() if after < at <= until]


def moved(tz: str, meaning: Meaning, dst: str, left_out: Callable[[date], bool]) -> Instants:
    @cache
    def year() -> list[int]:
        zone = walk(tz).zone
        return [ms(at) for at in walk(tz).moved(meaning, dst) if not left_out(at.astimezone(zone).date())]

    return lambda after, until: [at for at in year() if after < at <= until]


def _after_gap(at: datetime) -> bool:
    """Whether the clocks have just gone forward."""
    before = (at.astimezone(UTC) - timedelta(seconds=1)).astimezone(at.tzinfo)
    return (at.utcoffset() or timedelta()) > (before.utcoffset() or timedelta())


@cache
def walk(tz: str) -> Walk:
    start = datetime.fromtimestamp(START // DAY * DAY / 1000, UTC)
    return Walk(tz, start, start + timedelta(days=400), unit=1_800, margin=timedelta(hours=3))


def ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def at_half_hours(
    expression: str,
    minutes: set[int],
    hours: set[int] | frozenset[int] = ALL_HOURS,
    day: Callable[[date], bool] = lambda _: True,
    *,
    fixed: bool = True,
    tz: str = "UTC",
    dst: str = "standard",
    calendar: Mapping[str, Any] | None = None,
    left_out: Callable[[date], bool] = lambda _: False,
) -> Kind:
    meaning = Meaning(
        expression, frozenset({0}), frozenset(minutes), frozenset(hours), ALL_MONTHS, day, fixed=fixed
    )
    given: dict[str, Any] = {"cron": expression, "tz": tz, "dst": dst}
    if calendar is not None:
        given["calendar"] = calendar
    how = (tz, meaning, dst, left_out)
    return Kind(given, walked(*how), walked_out(*how), moved(*how))


def _weekday(day: date) -> bool:
    return day.isoweekday() <= 5


def _last_of_month(day: date) -> bool:
    return (day + timedelta(days=1)).day == 1


_ONCE = START + 200 * DAY
_FIRST = START + 7 * MINUTE + 123

KINDS: Sequence[Kind] = (
    Kind({"cron": "0/10 * * * * ?"}, every(10 * SECOND)),
    Kind({"cron": "0 * * * * ?"}, every(MINUTE)),
    Kind({"cron": "30 * * * * ?"}, every(MINUTE, 30 * SECOND)),
    Kind({"cron": "* * * * *", "dst": "quartz"}, every(MINUTE)),
    Kind({"every": "7m", "start": datetime.fromtimestamp(_FIRST / 1000, UTC)}, every(7 * MINUTE, _FIRST)),
    Kind({"at": datetime.fromtimestamp(_ONCE / 1000, UTC)}, once(_ONCE)),
    at_half_hours("0 30 * * * ?", {30}, fixed=False),
    at_half_hours("0 0/30 * * * ?", {0, 30}, fixed=False, tz="Australia/Lord_Howe"),
    *(
        at_half_hours("0 30 2 * * ?", {30}, {2}, tz="Europe/Berlin", dst=dst)
        for dst in ("standard", "skip", "quartz")
    ),
    at_half_hours("0 30 1,2 * * ?", {30}, {1, 2}, tz="America/New_York"),
    at_half_hours("0 0 2 * * ?", {0}, {2}, tz="Australia/Lord_Howe", dst="quartz"),
    at_half_hours("0 0 9 ? * MON-FRI", {0}, {9}, _weekday, tz="America/New_York"),
    at_half_hours("0 0 12 L * ?", {0}, {12}, _last_of_month, tz="Europe/Berlin"),
    at_half_hours(
        "0 0 3 * * ?",
        {0},
        {3},
        tz="Europe/Berlin",
        calendar={"weekdays": ["SAT", "SUN"], "dates": ["2026-12-24"]},
        left_out=lambda day: not _weekday(day) or day == date(2026, 12, 24),
    ),
)


def kind_of(trigger: Trigger) -> Kind:
    """The kind that a stored trigger is of."""
    return _by_values()[_values(trigger)]


@cache
def _by_values() -> Mapping[str, Kind]:
    return {_values(kind.trigger("any")): kind for kind in KINDS}


def _values(trigger: Trigger) -> str:
    return repr(sorted((name, value) for name, value in trigger.stored().items() if name != "name"))
