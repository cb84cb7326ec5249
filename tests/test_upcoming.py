"""What comes next of a trigger, each odd day marked, for every kind that reads a clock."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tenure.scheduler.trigger import Trigger
from tenure.scheduler.upcoming import clock_changes, upcoming

BERLIN = "Europe/Berlin"
MARCH, OCTOBER = "2025-03-30", "2025-10-26"


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def utc(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat()[:16]


NEW_YEAR = ms("2025-01-01")
NIGHTLY = {"from": "02:30", "to": "04:00", "every": "1h"}
GAP = f"{MARCH}T01:00 the clocks leave out 02:30:00: fires at this time"
GAP_SKIPPED = f"{MARCH}T01:00 the clocks leave out 02:30:00: not at this time"
FIRST = f"{OCTOBER}T00:30 02:30:00 comes twice: fires at this time"
SECOND = f"{OCTOBER}T01:30 02:30:00 comes twice: not at this time"


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        (Trigger("a", "30 2 * * *", BERLIN), [GAP, FIRST, SECOND]),
        (Trigger("a", "30 2 * * *", BERLIN, "skip"), [GAP_SKIPPED, FIRST, SECOND]),
        (
            Trigger("a", "0 30 2 * * ?", BERLIN, "quartz"),
            [
                GAP_SKIPPED,
                FIRST.replace("fires at this time", "not at this time"),
                SECOND.replace("not at this time", "fires at this time"),
            ],
        ),
        (
            Trigger("a", "0 0 2,3 * * ?", BERLIN),
            [
                f"{MARCH}T01:00 the clocks leave out 02:00:00: fires at this time",
                f"{OCTOBER}T00:00 02:00:00 comes twice: fires at this time",
                f"{OCTOBER}T01:00 02:00:00 comes twice: not at this time",
            ],
        ),
        (
            Trigger("a", "0 0 2,3 * * ?", BERLIN, "skip"),
            [
                f"{MARCH}T01:00 right after the clocks go forward: fires",
                f"{OCTOBER}T00:00 02:00:00 comes twice: fires at this time",
                f"{OCTOBER}T01:00 02:00:00 comes twice: not at this time",
            ],
        ),
        (
            Trigger("a", "*/30 * * * *", BERLIN),
            [
                f"{OCTOBER}T00:00 02:00:00 to 02:30:00 (2 times) comes twice: fires at this time",
                f"{OCTOBER}T01:00 02:00:00 to 02:30:00 (2 times) comes twice: fires at this time",
            ],
        ),
        (
            Trigger("a", calendar_interval="1 day", start="2025-01-01T02:30:00.250+01:00", tz=BERLIN),
            [GAP, FIRST, SECOND],
        ),
        (
            Trigger("a", daily_interval=NIGHTLY, tz=BERLIN),
            [
                GAP,
                f"{OCTOBER}T00:30 02:30:00 comes twice: fires at this time",
                f"{OCTOBER}T01:30 02:30:00 comes twice: fires at this time",
            ],
        ),
        (Trigger("a", daily_interval={**NIGHTLY, "days": ["MON"]}, tz=BERLIN), []),
        (Trigger("a", "30 2 * * *", BERLIN, calendar={"dates": [MARCH]}), [FIRST, SECOND]),
        (Trigger("a", "30 2 * * *", BERLIN, start=f"{MARCH}T12:00:00Z"), [FIRST, SECOND]),
        (Trigger("a", "30 2 * * *", BERLIN, end=f"{MARCH}T12:00:00Z"), [GAP]),
        (Trigger("a", "30 2 * * *"), []),
        (Trigger("a", every="1h", start="2025-01-01T00:30:00Z", tz=BERLIN), []),
        (Trigger("a", repeat="R300/2025-01-01T02:30:00+01:00/P1D", tz=BERLIN), [GAP, FIRST, SECOND]),
        (Trigger("a", repeat="R299/2025-01-01T02:30:00+01:00/P1D", tz=BERLIN), [GAP, FIRST]),
        (Trigger("a", repeat="R298/2025-01-01T02:30:00+01:00/P1D", tz=BERLIN), [GAP]),
    ],
)
def test_what_changes_of_the_clocks_do_is_told_in_words(trigger: Trigger, expected: list[str]) -> None:
    changes = clock_changes("a", trigger.times(NEW_YEAR), NEW_YEAR)

    assert [f"{utc(one.first.at)} {one.text}" for one in changes] == expected


@pytest.mark.parametrize(
    "trigger",
    [
        Trigger("a", "0/10 * 1-3 * * ?", BERLIN, "skip"),
        Trigger("a", "*/7 2 * * *", BERLIN),
        Trigger("a", "0 */7 1,2 * * ?", BERLIN, "quartz"),
        Trigger("a", daily_interval={"from": "01:10", "to": "03:30", "every": "7m"}, tz=BERLIN),
        Trigger("a", calendar_interval="1 day", start="2025-01-01T02:30:00+01:00", tz=BERLIN),
    ],
)
def test_what_is_marked_and_fires_is_what_fires(trigger: Trigger) -> None:
    """The marks are made beside the plan: they may name no fire that is none, and leave out none of a doubled hour."""
    times = trigger.times(NEW_YEAR)
    for start, end in (("2025-03-30", "2025-03-31"), ("2025-10-26", "2025-10-27")):
        odd = list(times.odd_ms(ms(start), ms(end)))
        moved = [one for one in odd if one.mark == "gap" and not one.skipped and one.nominal != one.shown]
        assert list(times.odd_ms(ms(start), ms(end), only="moved")) == moved
        assert list(times.odd_ms(ms(start), ms(end), only="skipped")) == [one for one in odd if one.skipped]
        fires = {one.at for one in odd if not one.skipped}
        doubled = range(ms("2025-10-26T00:00"), ms("2025-10-26T02:00"))

        assert all(times.next_ms(at - 1) == at for at in fires)
        assert all(times.next_ms(one.at - 1) != one.at for one in odd if one.skipped == "dst_overlap")
        assert [one.at for one in odd] == sorted(one.at for one in odd)
        at = times.next_ms(ms(start) - 1)
        while at is not None and at < ms(end):
            assert (at in fires) or at not in doubled
            at = times.next_ms(at)


def test_a_fire_names_the_reading_that_it_is_planned_by() -> None:
    times = Trigger("a", "30 2 * * SUN", BERLIN).times(0)

    fires = upcoming("a", times, ms("2025-03-20"))
    before, moved, after = (next(fires) for _ in range(3))

    assert (before.odd, after.odd) == (None, None)
    assert moved.odd is not None
    assert (utc(moved.fire_time), utc(moved.odd.nominal), moved.odd.mark) == (
        f"{MARCH}T01:00",
        f"{MARCH}T02:30",
        "gap",
    )
