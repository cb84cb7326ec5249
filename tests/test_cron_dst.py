"""Days on which the clocks change: public bug reports of other schedulers, each with the right answer."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tenure.scheduler.cron import CronExpression, Dst, Planned

BOTH: tuple[Dst, ...] = ("standard", "skip")


def at(text: str, tz: str = "UTC") -> datetime:
    """`2020-03-28T12:00`, a reading of `tz`."""
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(tz))


def fires(cron: CronExpression, after: datetime, count: int) -> list[str]:
    found: list[str] = []
    while len(found) < count and (later := cron.next(after)):
        found.append(utc(later))
        after = later
    return found


def utc(moment: datetime | None) -> str:
    assert moment is not None
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M")


def plan(cron: CronExpression, start: str, end: str) -> list[tuple[str, str | None]]:
    return [(utc(it.at), it.skipped) for it in cron.planned(at(start), at(end))]


@pytest.mark.parametrize(
    "asked", ["2020-03-28T12:00", "2020-03-29T00:30", "2020-03-29T01:58:55", "2020-03-29T01:59:55"]
)
def test_the_fire_after_a_gap_does_not_depend_on_how_near_one_asks(asked: str) -> None:
    tz = "Europe/Berlin"
    standard, skip = CronExpression("1 2 * * *", tz), CronExpression("1 2 * * *", tz, "skip")

    assert fires(standard, at(asked, tz), 2) == ["2020-03-29T01:00", "2020-03-30T00:01"]
    assert fires(skip, at(asked, tz), 1) == ["2020-03-30T00:01"]


def test_a_shifted_fire_shows_its_nominal_time_and_a_skipped_one_its_reason() -> None:
    day = at("2020-03-29T00:00", "Europe/Berlin"), at("2020-03-30T00:00", "Europe/Berlin")

    (shifted,) = CronExpression("1 2 * * *", "Europe/Berlin").planned(*day)
    (skipped,) = CronExpression("1 2 * * *", "Europe/Berlin", "skip").planned(*day)

    three = datetime(2020, 3, 29, 3, tzinfo=ZoneInfo("Europe/Berlin"))
    assert shifted == Planned(three, datetime(2020, 3, 29, 2, 1), "gap", None)
    assert skipped == Planned(three, datetime(2020, 3, 29, 2, 1), "gap", "dst_gap")


@pytest.mark.parametrize("dst", BOTH)
def test_the_second_day_after_a_change_runs_at_the_same_wall_time(dst: Dst) -> None:
    cron = CronExpression("0 20 * * *", "Europe/Paris", dst)

    found = fires(cron, at("2022-10-30T00:00", "Europe/Paris"), 3)

    assert found == ["2022-10-30T19:00", "2022-10-31T19:00", "2022-11-01T19:00"]


@pytest.mark.parametrize("dst", BOTH)
def test_a_day_of_23_hours_does_not_lose_the_next_day(dst: Dst) -> None:
    cron = CronExpression("0 0 * * mon-fri", "US/Central", dst)

    found = fires(cron, at("2021-03-12T00:00:00.000001", "US/Central"), 2)

    assert found == ["2021-03-15T05:00", "2021-03-16T05:00"]


def test_a_two_hourly_rhythm_passes_an_overlap_in_no_time() -> None:
    cron = CronExpression("0 */2 * * *", "Europe/London")
    fires(cron, at("2024-10-26T23:30"), 1)

    began = time.perf_counter()
    found = fires(cron, at("2024-10-26T23:30"), 4)

    assert time.perf_counter() - began < 0.005
    assert found == ["2024-10-27T02:00", "2024-10-27T04:00", "2024-10-27T06:00", "2024-10-27T08:00"]


def test_a_time_that_does_not_exist_is_never_given() -> None:
    asked = at("2013-03-10T05:00")

    shifted = CronExpression("0 2 * * *", "US/Eastern").next(asked)
    skipped = CronExpression("0 2 * * *", "US/Eastern", "skip").next(asked)

    assert shifted is not None
    assert shifted.isoformat() == "2013-03-10T03:00:00-04:00"
    assert utc(skipped) == "2013-03-11T06:00"


def test_a_four_hourly_rhythm_through_a_gap_stays_on_the_wall_clock() -> None:
    cron = CronExpression("20 */4 * * *", "US/Pacific")
    minute = at("2023-03-12T08:00")

    seen = set[str]()
    while minute < at("2023-03-12T12:00"):
        seen.add(utc(cron.next(minute)))
        minute += timedelta(minutes=1)

    assert sorted(seen) == ["2023-03-12T08:20", "2023-03-12T11:20", "2023-03-12T15:20"]


def test_the_previous_fire_at_a_gap_is_earlier_and_none_is_lost() -> None:
    cron = CronExpression("0 2 * * *", "America/New_York")
    asked = at("2024-03-10T07:30")

    previous = cron.prev(asked)

    assert previous is not None
    assert [utc(previous), utc(cron.prev(previous))] == ["2024-03-10T07:00", "2024-03-09T07:00"]
    assert utc(cron.next(asked)) == "2024-03-11T06:00"


@pytest.mark.parametrize("dst", BOTH)
@pytest.mark.parametrize("text", ["0 2 * * *", "30 1 * * *", "*/7 * * * *", "0 0/20 1-3 ? * SUN"])
@pytest.mark.parametrize("week", ["2024-03-07T00:00", "2024-10-31T00:00"])
def test_previous_of_next_encloses_every_minute_of_a_week(text: str, week: str, dst: Dst) -> None:
    cron = CronExpression(text, "America/New_York", dst)
    start = int(at(week).timestamp() * 1000)

    for now in range(start, start + 7 * 86_400_000, 60_000):
        later = cron.next_ms(now)
        assert later is not None
        before = cron.prev_ms(later)
        assert before is not None
        assert before <= now < later


@pytest.mark.parametrize("dst", BOTH)
def test_a_weekly_noon_runs_once_after_a_change(dst: Dst) -> None:
    cron = CronExpression("0 12 * * 1", "Europe/Amsterdam", dst)

    found = list(cron.between(at("2013-10-21T10:00:01"), at("2013-11-01T00:00")))

    assert [utc(it) for it in found] == ["2013-10-28T11:00"]


@pytest.mark.parametrize("dst", BOTH)
def test_a_fixed_time_that_happens_twice_fires_at_the_first_pass_only(dst: Dst) -> None:
    cron = CronExpression("0 2 * * *", "Europe/Berlin", dst)

    assert plan(cron, "2023-10-27T23:00", "2023-10-31T12:00") == [
        ("2023-10-28T00:00", None),
        ("2023-10-29T00:00", None),
        ("2023-10-29T01:00", "dst_overlap"),
        ("2023-10-30T01:00", None),
        ("2023-10-31T01:00", None),
    ]


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system cannot change a process's zone")
@pytest.mark.parametrize("host", ["Europe/London", "Asia/Tokyo", None])
def test_the_zone_of_the_host_does_not_matter(host: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TZ", raising=False) if host is None else monkeypatch.setitem(os.environ, "TZ", host)
    time.tzset()
    try:
        found = list(
            CronExpression("30 1 * * *", "UTC").between(at("2022-10-30T00:00"), at("2022-10-31T00:00"))
        )
    finally:
        monkeypatch.undo()
        time.tzset()

    assert [it.isoformat() for it in found] == ["2022-10-30T01:30:00+00:00"]


@pytest.mark.parametrize("dst", ["standard", "skip", "quartz"])
def test_next_is_strictly_later_than_asked(dst: Dst) -> None:
    vilnius = CronExpression("30 14 * * *", "Europe/Vilnius", dst)
    chicago = CronExpression("30 4 * * *", "America/Chicago", dst)

    assert vilnius.next_ms(1585398600_000) == 1585481400_000
    assert fires(chicago, at("2022-03-12T10:30"), 1) == ["2022-03-13T09:30"]


@pytest.mark.parametrize(("text", "count"), [("*/15 * * * * ?", 480), ("* * * * *", 120)])
@pytest.mark.parametrize("dst", BOTH)
def test_a_rhythm_is_not_silent_in_the_repeated_hour(text: str, count: int, dst: Dst) -> None:
    cron = CronExpression(text, "Europe/London", dst)

    assert len(list(cron.between(at("2025-10-26T00:00"), at("2025-10-26T02:00")))) == count


def test_a_gap_at_midnight_starts_the_day_at_one() -> None:
    sao_paulo = CronExpression("5 0 * * *", "America/Sao_Paulo")
    beirut = CronExpression("0 0 * * *", "Asia/Beirut")

    assert fires(sao_paulo, at("2018-11-03T00:00"), 3) == [
        "2018-11-03T03:05",
        "2018-11-04T03:00",
        "2018-11-05T02:05",
    ]
    assert fires(beirut, at("2022-03-25T12:00"), 3) == [
        "2022-03-25T22:00",
        "2022-03-26T22:00",
        "2022-03-27T21:00",
    ]


def test_a_whole_day_left_out_has_exactly_one_plan() -> None:
    span = "2011-12-28T12:00", "2012-01-01T00:00"
    standard = CronExpression("0 9 * * *", "Pacific/Apia")
    skip = CronExpression("0 9 * * *", "Pacific/Apia", "skip")

    real = ["2011-12-28T19:00", "2011-12-29T19:00", "2011-12-30T19:00", "2011-12-31T19:00"]
    assert plan(standard, *span) == [(it, None) for it in sorted([*real, "2011-12-30T10:00"])]
    assert plan(skip, *span) == sorted([*((it, None) for it in real), ("2011-12-30T10:00", "dst_gap")])


@pytest.mark.parametrize(("dst", "nominal"), [("standard", 2), ("skip", 3)])
def test_a_missing_time_and_the_next_real_one_share_one_fire(dst: Dst, nominal: int) -> None:
    cron = CronExpression("0 2,3 * * *", "Europe/Berlin", dst)

    (planned,) = cron.planned(at("2020-03-29T00:00"), at("2020-03-29T12:00"))

    assert (utc(planned.at), planned.nominal.hour, planned.mark, planned.skipped) == (
        "2020-03-29T01:00",
        nominal,
        "gap",
        None,
    )


def test_only_the_odd_days_can_be_asked_for() -> None:
    cron = CronExpression("30 2 * * *", "Europe/Berlin")

    odd = list(cron.planned(at("2025-01-01T00:00"), at("2026-01-01T00:00"), only_odd=True))

    assert [(utc(it.at), it.mark, it.skipped) for it in odd] == [
        ("2025-03-30T01:00", "gap", None),
        ("2025-10-26T00:30", "overlap", None),
        ("2025-10-26T01:30", "overlap", "dst_overlap"),
    ]


def test_quartz_is_silent_in_the_first_pass_and_skips_the_gap() -> None:
    cron = CronExpression("0 30 1,2 * * ?", "America/New_York", "quartz")

    assert plan(cron, "2024-11-03T04:00", "2024-11-03T12:00") == [
        ("2024-11-03T05:30", "dst_overlap"),
        ("2024-11-03T06:30", None),
        ("2024-11-03T07:30", None),
    ]
    assert plan(cron, "2024-03-10T05:00", "2024-03-10T12:00") == [
        ("2024-03-10T06:30", None),
        ("2024-03-10T07:00", "dst_gap"),
    ]


def test_in_an_hour_that_comes_twice_the_plan_of_quartz_goes_on_with_the_second() -> None:
    """`next` answers as Quartz does, which forgets that fire when it is asked from in between; a scheduler must not."""
    cron = CronExpression("0 30 2 * * ?", "Europe/Berlin", "quartz")
    first_pass = at("2026-10-25T00:30")
    ms = round(first_pass.timestamp() * 1000)

    assert cron.next(first_pass) == at("2026-10-26T01:30")
    assert cron.next_ms(ms) == round(at("2026-10-25T01:30").timestamp() * 1000)
    assert cron.next_ms(ms) == next(cron.between_ms(ms + 1, ms + 86_400_000))
