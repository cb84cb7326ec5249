"""Calendar arithmetic: public bug reports of other schedulers, each with the right answer."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from croniter import croniter

from tenure.scheduler.cron import CronExpression


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def fires(text: str, after: str, count: int, tz: str = "UTC") -> list[str]:
    cron, moment, found = CronExpression(text, tz), at(after), list[str]()
    while len(found) < count and (later := cron.next(moment)):
        moment = later.astimezone(UTC)
        found.append(moment.strftime("%Y-%m-%dT%H:%M"))
    return found


CASES = [
    ("either day", "0 13 8 1,4,7,10 wed", "2020-09-24", ["2020-10-07T13:00", "2020-10-08T13:00", "2020-10-14T13:00"]),
    ("first of January or Sunday in it", "0 0 1 1 0", "2011-06-15T23:08", ["2012-01-01T00:00"]),
    ("the 1st or a Sunday", "0 0 1 * 0", "2011-06-15T23:08", ["2011-06-19T00:00"]),
    ("a step counts as restricted", "0 0 */10 * MON", "2026-05-01", ["2026-05-04T00:00", "2026-05-11T00:00"]),
    ("last day of February", "0 0 11 L * ?", "2017-02-28T05:00", ["2017-02-28T11:00"]),
    ("last days of any length", "0 0 0 L * ?", "2024-01-31", ["2024-02-29T00:00", "2024-03-31T00:00"]),
    ("third day before the last", "0 0 0 L-3 * ?", "2023-02-01", ["2023-02-25T00:00", "2023-03-28T00:00"]),
    ("last weekday", "0 0 0 LW * ?", "2026-05-01", ["2026-05-29T00:00", "2026-06-30T00:00"]),
    ("nearest weekday stays in its month", "0 0 0 1W * ?", "2026-07-02", ["2026-08-03T00:00", "2026-09-01T00:00"]),
    ("last Friday, Quartz", "0 0 0 ? * 6L", "2026-05-01", ["2026-05-29T00:00"]),
    ("last Friday, crontab", "0 0 * * 5L", "2026-05-01", ["2026-05-29T00:00"]),
    ("last Friday, croniter's spelling", "0 0 * * L5", "2026-05-01", ["2026-05-29T00:00"]),
    ("fifth Friday", "0 0 * * FRI#5", "2026-05-01", ["2026-05-29T00:00", "2026-07-31T00:00"]),
    ("first or third Monday", "0 0 * * MON#1,MON#3", "2026-05-05", ["2026-05-18T00:00", "2026-06-01T00:00"]),
    ("wrapping", "0 22-1 * * *", "2026-05-01T20:00", ["2026-05-01T22:00", "2026-05-01T23:00", "2026-05-02T00:00"]),
    ("7 is Sunday in crontab", "0 0 * * 7", "2026-05-01", ["2026-05-03T00:00"]),
    ("5 to 7 ends on Sunday", "0 0 * * 5-7", "2026-05-04", ["2026-05-08T00:00", "2026-05-09T00:00"]),
    ("@weekly", "@weekly", "2026-05-01", ["2026-05-03T00:00"]),
    ("range with a step of its length", "0-59/59 10 * * *", "2020-08-20", ["2020-08-20T10:00", "2020-08-20T10:59"]),
    ("day 31", "0 0 8 31 * ?", "2017-04-10", [f"2017-{month}-31T08:00" for month in ("05", "07", "08", "10", "12")]),
    ("1 = Sunday in Quartz", "4 23-37 0-3 ? * 6 2079-2097", "2026-01-01", ["2079-01-06T00:23"]),
    ("29 February on a Monday", "0 0 0 ? 2 2#5", "2026-01-01", ["2044-02-29T00:00", "2072-02-29T00:00"]),
    ("years", "0 0 0 1 1 ? 2030,2028", "2026-01-01", ["2028-01-01T00:00", "2030-01-01T00:00"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "after", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_calendar(text: str, after: str, expected: list[str]) -> None:
    assert fires(text, after, len(expected)) == expected


def test_either_day_gives_the_list_and_each_friday() -> None:
    found = fires("0 16 1,2,3 * FRI", "2023-05-01", 10)

    days = ["05-01", "05-02", "05-03", "05-05", "05-12", "05-19", "05-26", "06-01", "06-02", "06-03"]
    assert found == [f"2023-{day}T16:00" for day in days]


def test_the_last_day_of_september_is_not_skipped() -> None:
    assert fires("0 0 23 L * ?", "2025-08-31T15:00", 1, "Asia/Shanghai") == ["2025-09-30T15:00"]


@pytest.mark.parametrize(
    ("asked", "day"), [("03:00:00.000", 2), ("03:00:00.400", 2), ("02:59:59.999", 1), ("02:59:59.999999", 1)]
)
def test_a_start_inside_a_second_finds_one_fire_a_day(asked: str, day: int) -> None:
    assert fires("0 3 * * *", f"2026-05-01T{asked}", 1) == [f"2026-05-0{day}T03:00"]


def test_previous_is_strictly_earlier() -> None:
    cron = CronExpression("0 3 * * *")

    assert cron.prev(at("2026-05-02T03:00")) == at("2026-05-01T03:00")
    assert cron.prev(at("2026-05-02T03:00:00.000001")) == at("2026-05-02T03:00")


def test_an_exhausted_expression_has_no_next_but_a_previous() -> None:
    cron = CronExpression("0 0 20 19 8 ? 2019", "Asia/Shanghai")

    assert cron.next(at("2026-01-01")) is None
    assert cron.next_ms(1_800_000_000_000) is None
    assert cron.prev(at("2026-01-01")) == at("2019-08-19T12:00")
    assert cron.prev(at("2019-01-01")) is None
    assert list(cron.between(at("2026-01-01"), at("2027-01-01"))) == []


def test_the_ends_of_datetime_are_no_trouble() -> None:
    cron = CronExpression("0 0 * * *", "Asia/Tokyo")

    assert cron.next(datetime.min.replace(tzinfo=UTC)) == at("1969-12-31T15:00")
    assert cron.next(datetime.max.replace(tzinfo=UTC)) is None
    assert cron.prev(datetime.min.replace(tzinfo=UTC)) is None
    assert list(cron.between(datetime.min.replace(tzinfo=UTC), at("1970-01-01"))) == [at("1969-12-31T15:00")]
    assert cron.prev(datetime.max.replace(tzinfo=UTC)) == at("2125-12-30T15:00")


def test_a_window_holds_its_start_and_not_its_end() -> None:
    cron = CronExpression("0 0 * * *")

    found = list(cron.between(at("2026-05-01"), at("2026-05-03")))

    assert found == [at("2026-05-01"), at("2026-05-02")]
    assert list(
        cron.between_ms(*(int(it.timestamp() * 1000) for it in (at("2026-05-01"), at("2026-05-03"))))
    ) == [int(it.timestamp() * 1000) for it in found]


@pytest.mark.parametrize(
    "text", ["0 0 0 ? 2 2#5", "0 0 0 29 2 ? 2096", "59 59 23 31 12 ? 2125", "* * * * * ? 2125"]
)
def test_the_worst_searches_are_short(text: str) -> None:
    began = time.perf_counter()
    found = CronExpression(text, "Europe/Berlin").next(at("1970-01-01"))

    assert found is not None
    assert time.perf_counter() - began < 0.05  # meant to be below 5 ms; a loaded machine may take its time


def test_croniter_agrees_where_both_mean_the_same() -> None:
    random = Random(7)
    for _ in range(300):
        fields = [
            _random_field(random, low, high) for low, high in ((0, 59), (0, 23), (1, 28), (1, 12), (0, 6))
        ]
        text = " ".join(fields)
        moment = at("2020-01-01") + timedelta(minutes=random.randint(0, 5_000_000))
        theirs, ours = croniter(text, moment), CronExpression(text)
        for _ in range(3):
            found = ours.next(moment)
            assert found == theirs.get_next(datetime), f"{text} after {moment}"
            assert found is not None
            moment = found


def _random_field(random: Random, low: int, high: int) -> str:
    first = random.randint(low, high - 1)
    last = random.randint(first + 1, high)  # croniter reads `23-23` in the hour as midnight
    # croniter takes `*/2` in a day field for unrestricted, so no such steps there.
    steps = [f"*/{random.randint(2, 20)}"] if high in (59, 23) else []
    return random.choice(["*", "*", str(first), f"{first}-{last}", f"{low},{first}", *steps])
