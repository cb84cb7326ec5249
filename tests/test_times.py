"""Each kind of times answers its three questions as a walk over all of them would."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.scheduler.times import Times
from tenure.scheduler.trigger import BadTrigger, Trigger
from tenure.scripts.errors import BadInput

ANCHOR = 1_790_000_000_000  # 2026-09-21T14:13:20Z
DAY = 86_400_000
HOUR = DAY // 24

TRIGGERS: dict[str, dict[str, Any]] = {
    "every": {"every": "37m"},
    "every from a start to an end": {
        "every": "7s",
        "start": "2026-09-22T00:00:00.250Z",
        "end": "2026-09-22T00:10:00.250Z",
    },
    "three times": {"repeat": "R3/PT5H"},
    "once": {"at": "2026-10-25T02:30:00", "tz": "Europe/Berlin"},
    "once, so long after": {"repeat": "P2D"},
    "each month's last day": {"calendar_interval": "1 month", "start": "2026-08-31T09:00:00Z"},
    "each third day over a clock change": {
        "calendar_interval": "3 days",
        "start": "2026-10-01T02:30:00",
        "tz": "Europe/Berlin",
    },
    "five months": {"repeat": "R5/P1M"},
    "in working hours": {
        "daily_interval": {"every": "45m", "from": "08:00", "to": "17:00", "days": ["MON", "TUE", "FRI"]},
        "tz": "America/New_York",
    },
    "in the night of a clock change": {
        "daily_interval": {"every": "20m", "from": "00:30", "to": "04:00"},
        "tz": "Europe/Berlin",
    },
    "cron": {"cron": "0 0/20 1-3 * * ?", "tz": "Europe/Berlin", "end": "2026-11-20T02:00:00Z"},
    "cron but for weekends and holidays": {
        "cron": "0 0 9,12 * * ?",
        "calendar": {"weekdays": ["SAT", "SUN"], "dates": ["2026-10-05", "2026-10-06"]},
    },
    "every, but not by night": {
        "every": "97m",
        "calendar": {"window": {"from": "22:00", "to": "06:00"}, "tz": "Asia/Tokyo"},
    },
    "every, in working hours only": {
        "every": "83m",
        "calendar": {"window": {"from": "09:00", "to": "17:30", "outside": True}, "weekdays": ["SUN"]},
    },
    "every, but for what cron says": {
        "every": "3m17s",
        "end": "2026-09-23T00:00:00Z",
        "calendar": {"cron": ["* 0-29 * * * ?", "* * * 23 9 ?"]},
    },
}


def walk(times: Times, start: int, end: int) -> list[int]:
    found: list[int] = []
    at: int | None = start - 1
    while at is not None and (at := times.next_ms(at)) is not None and at < end:
        found.append(at)
    return found


@pytest.mark.parametrize("name", TRIGGERS)
def test_counting_and_going_back_agree_with_a_walk(name: str) -> None:
    times = Trigger("t", **TRIGGERS[name]).times(ANCHOR)
    start, end = ANCHOR - 3 * DAY, ANCHOR + 40 * DAY
    everything = walk(times, start, end)
    assert everything, "the walk found nothing to compare"

    @settings(max_examples=40, deadline=None)
    @given(st.integers(start, end), st.integers(start, end), st.sampled_from([-1, 0, 1]))
    def check(one: int, other: int, near: int) -> None:
        for moment in (one, everything[one % len(everything)] + near):
            before = bisect_left(everything, moment)
            assert times.prev_ms(moment) == (everything[before - 1] if before else times.prev_ms(start))
            after = bisect_right(everything, moment)
            assert times.next_ms(moment) == (
                everything[after] if after < len(everything) else times.next_ms(end - 1)
            )
            low, high = sorted((moment, other))
            assert times.count_ms(low, high) == bisect_left(everything, high) - bisect_left(everything, low)

    check()


def shown(times: Times, many: int) -> list[str]:
    return [
        datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M")
        for ms in walk(times, 0, ANCHOR + 4000 * DAY)[:many]
    ]


def test_the_31st_comes_back_after_february() -> None:
    monthly = Trigger("t", calendar_interval="1 month", start="2028-01-31T06:00:00Z").times(0)

    assert shown(monthly, 4) == [
        "2028-01-31T06:00",
        "2028-02-29T06:00",
        "2028-03-31T06:00",
        "2028-04-30T06:00",
    ]


def test_r3_fires_three_times_and_a_start_is_the_first() -> None:
    counted = Trigger("t", repeat="R3/PT5M").times(ANCHOR)
    started = Trigger("t", repeat="R3/2026-09-21T15:00:00Z/PT5M").times(ANCHOR)

    assert walk(counted, 0, ANCHOR + DAY) == [ANCHOR + 300_000 * k for k in (1, 2, 3)]
    assert shown(started, 9) == ["2026-09-21T15:00", "2026-09-21T15:05", "2026-09-21T15:10"]


def test_every_does_not_drift_and_is_anchored_where_it_was_stored() -> None:
    times = Trigger("t", every="90s").times(ANCHOR + 7)

    assert times.next_ms(ANCHOR + 7) == ANCHOR + 7 + 90_000
    assert times.next_ms(ANCHOR + 7 + 90_000 * 1_000_000) == ANCHOR + 7 + 90_000 * 1_000_001


def test_a_month_of_seconds_is_counted() -> None:
    for options in ({"every": "1s"}, {"cron": "* * * * * ?"}):
        times = Trigger("t", **options).times(ANCHOR)

        assert times.count_ms(ANCHOR + 1000, ANCHOR + 30 * DAY) == 30 * 86_400 - 1
        assert times.prev_ms(ANCHOR + 30 * DAY) == ANCHOR + 30 * DAY - 1000


def test_a_calendar_that_leaves_nothing_ends_the_search() -> None:
    noon = Trigger("t", cron="0 0 12 * * ?", calendar={"window": {"from": "11:00", "to": "13:00"}})

    assert noon.times(0).next_ms(ANCHOR) is None


@pytest.mark.parametrize("name", TRIGGERS)
def test_a_trigger_is_what_it_is_stored_as(name: str) -> None:
    trigger = Trigger("t", **TRIGGERS[name])

    assert Trigger(**trigger.stored()) == trigger


def test_two_spellings_are_one_trigger() -> None:
    assert Trigger("t", every="90s", start="2026-09-21T16:13:20+02:00") == Trigger(
        "t", every="1m30s", start=datetime(2026, 9, 21, 14, 13, 20, tzinfo=UTC)
    )


BAD: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing": ({}, ["cron"]),
    "two kinds": ({"cron": "0 0 2 * * ?", "every": "5m"}, ["every"]),
    "all at once": (
        {"cron": "0 0 25 * * ?", "end": "soon", "jitter": "-3s", "priority": 12, "dst": "never"},
        ["dst", "cron", "end", "jitter", "priority"],
    ),
    "an unknown zone": (
        {"cron": "nonsense", "tz": "Europe/Berlim", "end": "soon", "dst": "never"},
        ["tz", "dst", "cron", "end"],
    ),
    "too short": ({"every": "500ms"}, ["every"]),
    "R0": ({"repeat": "R0/PT5M"}, ["repeat"]),
    "a duration of nothing": ({"repeat": "PT0S"}, ["repeat"]),
    "months and hours": ({"repeat": "R/P1MT3H"}, ["repeat"]),
    "two starts": ({"repeat": "R3/2026-01-01T00:00:00Z/PT5M", "start": "2026-01-01T00:00:00Z"}, ["start"]),
    "the end first": (
        {"every": "5m", "start": "2026-02-01T00:00:00Z", "end": "2026-01-01T00:00:00Z"},
        ["end"],
    ),
    "no calendar interval": ({"calendar_interval": "0 months"}, ["calendar_interval"]),
    "no interval of a day": (
        {"daily_interval": {"every": "5m", "from": "25:00", "to": "26:00"}},
        ["daily_interval"],
    ),
    "over midnight": (
        {"daily_interval": {"every": "5m", "from": "22:00", "to": "02:00"}},
        ["daily_interval"],
    ),
    "no weekday": (
        {"daily_interval": {"every": "5m", "from": "08:00", "to": "09:00", "days": ["MO"]}},
        ["daily_interval"],
    ),
    "a calendar of everything": (
        {"every": "5m", "calendar": {"weekdays": ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]}},
        ["calendar"],
    ),
    "a calendar of nothing": ({"every": "5m", "calendar": {"tz": "UTC"}}, ["calendar"]),
    "a part no calendar has": ({"every": "5m", "calendar": {"holidays": ["2026-12-25"]}}, ["calendar"]),
    "a day that is none": ({"every": "5m", "calendar": {"dates": ["2026-02-30"]}}, ["calendar"]),
}


@pytest.mark.parametrize("name", BAD)
def test_every_wrong_field_is_named_at_once(name: str) -> None:
    options, wrong = BAD[name]

    with pytest.raises(BadTrigger) as refused:
        Trigger("t", **options)

    assert [field for field, _ in refused.value.errors] == wrong
    assert refused.value.hint


def test_a_zone_that_is_misspelt_is_told_the_nearest() -> None:
    with pytest.raises(BadInput, match="did you mean 'Europe/Berlin'"):
        Trigger("t", cron="0 0 2 * * ?", tz="Europe/Berlim")


@pytest.mark.parametrize("dst", ["standard", "skip", "quartz"])
def test_a_count_that_ends_within_a_changing_night_agrees_with_a_walk(dst: str) -> None:
    times = Trigger("t", cron="0 0/20 1-3 * * ?", tz="Europe/Berlin", dst=dst).times(ANCHOR)
    for change in ("2026-03-29T01:00:00", "2026-10-25T01:00:00"):
        start = int(datetime.fromisoformat(change + "+00:00").timestamp() * 1000) - 4 * HOUR
        everything = walk(times, start, start + 8 * HOUR)
        for end in range(start, start + 8 * HOUR, HOUR // 6 + 1):
            assert times.count_ms(start, end) == bisect_left(everything, end), end
