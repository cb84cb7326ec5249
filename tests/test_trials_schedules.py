"""Faults that users of other schedulers have reported, tried here; the numbers are those of the trials.

Each schedule is lived through: it is stored, a scheduler comes by whenever something is due, and all of its records are
read. 054, 056 and 058 are in `test_switch.py` and `test_misfires.py`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from starlette.testclient import TestClient

from tenure import Tenure
from tenure.lease.ledgers import Ledgers
from tenure.lease.tasks import Task
from tenure.scheduler.cron import CronExpression, Dst
from tenure.scheduler.job_key import JobKey
from tenure.scheduler.plan import month
from tenure.scheduler.scheduler import Scheduler
from tenure.scheduler.schedules import Fire, Schedules
from tenure.scheduler.trigger import Trigger
from tenure.scripts.errors import StoreUnreachable
from tenure.testing import Faults

from .cli.conftest import cli
from .cli.terminal import Cli
from .test_api.conftest import local, pointers, refused

__all__ = ["cli"]

KEY = "trial"
TASK = Task("work", lambda: None)
SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
BOTH: tuple[Dst, ...] = ("standard", "skip")


class Life:
    """Schedules of one tenant, and a scheduler that comes by when the test says so."""

    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers

    def schedules(self, now: int) -> Schedules:
        return Schedules(self._at(now).of("acme"))

    def round(self, now: int) -> None:
        """One round of a scheduler that has just started."""
        Scheduler(self._at(now), "one").round()

    def put(self, now: int, *triggers: Trigger, key: str = KEY, **options: Any) -> None:
        self.schedules(now).put(key, TASK, triggers, **options)

    def until(self, now: int, end: int) -> None:
        """A scheduler comes by at each instant that is due, and at no other time."""
        while now < end:
            due = self.schedules(now).stored(JobKey.parse(KEY)).instants("next").values()
            now = min([max(now, at) for at in due], default=end)
            if now < end:
                self.round(now)

    def records(self, start: int, end: int, key: str = KEY) -> list[Fire]:
        months = sorted({month(at) for at in (*range(start, end, 20 * DAY), end)})
        found: list[Fire] = []
        for name in months:
            found += self.schedules(start).fires(key, month=name, limit=10_000)[0][::-1]
        return found

    def jobs(self) -> int:
        return sum(self.schedules(1 << 41).ledger.counts().values())

    def _at(self, now: int) -> Ledgers:
        return Ledgers(self._ledgers.scripts.at(now), self._ledgers.namespace)


@pytest.fixture
def life(ledgers: Ledgers) -> Life:
    return Life(ledgers)


def ms(text: str, tz: str = "UTC") -> int:
    moment = datetime.fromisoformat(text)
    return round((moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(tz))).timestamp() * 1000)


def said(records: Sequence[Fire]) -> list[str]:
    """`2020-03-29T01:00` for a fire, with the reason behind it for what did not fire, `moved` for what a gap moved."""
    times = (datetime.fromtimestamp(one.fire_time / 1000, UTC) for one in records)
    return [
        f"{at:%Y-%m-%dT%H:%M}{f':{at:%S}' if at.second else ''}{_mark(one)}"
        for at, one in zip(times, records, strict=True)
    ]


def _mark(one: Fire) -> str:
    if one.job_id:
        return " moved" if (one.outcome, one.reason) == ("fired", "dst_gap") else ""
    return f" {one.reason}"


# -- DST and CAL: each planned instant has one record, at the right time -----------------------------------------------

GAP_P = ["2020-03-29T01:00 moved", "2020-03-30T00:01"]
GAP_S = ["2020-03-29T01:00 dst_gap", "2020-03-30T00:01"]
BERLIN_GAP = "1 2 * * *", "Europe/Berlin"
TWICE = ["2023-10-28T00:00", "2023-10-29T00:00", "2023-10-29T01:00 dst_overlap", "2023-10-30T01:00"]
APIA = ["2011-12-28T19:00", "2011-12-29T19:00"]
FRIDAYS = [f"2023-05-{day:02}T16:00" for day in (1, 2, 3, 5, 12, 19, 26)]
SUMMERS = [f"2023-06-{day:02}T16:00" for day in (1, 2, 3)]
THIRTY_FIRSTS = [f"2017-{name}-31T08:00" for name in ("05", "07", "08", "10", "12")]

LIVES: list[tuple[str, str, str, tuple[Dst, ...], str, str, list[str]]] = [
    *(
        ("002", *BERLIN_GAP, (dst,), start, "2020-03-30T12:00", expected)
        for start in (
            *("2020-03-28T12:00+01:00", "2020-03-29T00:30+01:00"),
            *("2020-03-29T01:58:55+01:00", "2020-03-29T01:59:55+01:00"),
        )
        for dst, expected in zip(BOTH, (GAP_P, GAP_S), strict=True)
    ),
    ("004", "0 20 * * *", "Europe/Paris", BOTH, "2022-10-30T00:00+02:00", "2022-11-02",
     ["2022-10-30T19:00", "2022-10-31T19:00", "2022-11-01T19:00"]),
    ("006", "0 0 * * mon-fri", "US/Central", BOTH, "2021-03-12T06:00:00.001Z", "2021-03-16T12:00",
     ["2021-03-15T05:00", "2021-03-16T05:00"]),
    ("008", "0 */2 * * *", "Europe/London", BOTH, "2024-10-26T23:30", "2024-10-27T09:00",
     [f"2024-10-27T0{hour}:00" for hour in (2, 4, 6, 8)]),
    ("010 P", "0 2 * * *", "US/Eastern", ("standard",), "2013-03-10T05:00", "2013-03-11T12:00",
     ["2013-03-10T07:00 moved", "2013-03-11T06:00"]),
    ("010 S", "0 2 * * *", "US/Eastern", ("skip",), "2013-03-10T05:00", "2013-03-11T12:00",
     ["2013-03-10T07:00 dst_gap", "2013-03-11T06:00"]),
    ("012", "20 */4 * * *", "US/Pacific", BOTH, "2023-03-12T08:00", "2023-03-12T16:00",
     ["2023-03-12T08:20", "2023-03-12T11:20", "2023-03-12T15:20"]),
    ("014", "0 2 * * *", "America/New_York", ("standard",), "2024-03-09T00:00", "2024-03-11T12:00",
     ["2024-03-09T07:00", "2024-03-10T07:00 moved", "2024-03-11T06:00"]),
    ("016", "0 12 * * 1", "Europe/Amsterdam", BOTH, "2013-10-21T10:00", "2013-10-31", ["2013-10-28T11:00"]),
    ("018", "0 2 * * *", "Europe/Berlin", BOTH, "2023-10-27T12:00", "2023-10-30T12:00", TWICE),
    ("018 Q", "0 0 2 * * ?", "Europe/Berlin", ("quartz",), "2023-10-28T12:00", "2023-10-30T12:00",
     ["2023-10-29T00:00 dst_overlap", "2023-10-29T01:00", "2023-10-30T01:00"]),
    ("018 Q", "0 0 2 * * ?", "Europe/Berlin", ("quartz",), "2023-10-29T00:20", "2023-10-29T12:00",
     ["2023-10-29T01:00"]),
    ("010 Q", "0 0 2 * * ?", "US/Eastern", ("quartz",), "2013-03-10T05:00", "2013-03-11T12:00",
     ["2013-03-10T07:00 dst_gap", "2013-03-11T06:00"]),
    ("022", "30 14 * * *", "Europe/Vilnius", BOTH, "2020-03-28T12:30", "2020-03-29T12:00", ["2020-03-29T11:30"]),
    ("022", "30 4 * * *", "America/Chicago", BOTH, "2022-03-12T10:30", "2022-03-13T12:00", ["2022-03-13T09:30"]),
    ("026 P", "5 0 * * *", "America/Sao_Paulo", ("standard",), "2018-11-03T00:00", "2018-11-06T00:00",
     ["2018-11-03T03:05", "2018-11-04T03:00 moved", "2018-11-05T02:05"]),
    ("026 S", "5 0 * * *", "America/Sao_Paulo", ("skip",), "2018-11-03T00:00", "2018-11-06T00:00",
     ["2018-11-03T03:05", "2018-11-04T03:00 dst_gap", "2018-11-05T02:05"]),
    ("026 P", "0 0 * * *", "Asia/Beirut", ("standard",), "2022-03-25T12:00", "2022-03-28T12:00",
     ["2022-03-25T22:00", "2022-03-26T22:00 moved", "2022-03-27T21:00"]),
    ("026", "0 0 * * *", "Asia/Beirut", ("skip",), "2022-03-25T12:00", "2022-03-28T12:00",
     ["2022-03-25T22:00", "2022-03-26T22:00 dst_gap", "2022-03-27T21:00"]),
    ("028 P", "0 9 * * *", "Pacific/Apia", ("standard",), "2011-12-28T00:00", "2012-01-01T12:00",
     [*APIA, "2011-12-30T10:00 moved", "2011-12-30T19:00", "2011-12-31T19:00"]),
    ("028 S", "0 9 * * *", "Pacific/Apia", ("skip",), "2011-12-28T00:00", "2012-01-01T12:00",
     [*APIA, "2011-12-30T10:00 dst_gap", "2011-12-30T19:00", "2011-12-31T19:00"]),
    ("030", "0 13 8 1,4,7,10 wed", "UTC", BOTH, "2020-09-24", "2020-10-15",
     ["2020-10-07T13:00", "2020-10-08T13:00", "2020-10-14T13:00"]),
    ("032", "0 16 1,2,3 * FRI", "UTC", BOTH, "2023-05-01", "2023-06-03T17:00",
     [*FRIDAYS, "2023-06-01T16:00", "2023-06-02T16:00", "2023-06-03T16:00"]),
    ("034", "0 0 1 1 0", "UTC", BOTH, "2011-06-15T23:08", "2012-01-02", ["2012-01-01T00:00"]),
    ("034", "0 0 1 * 0", "UTC", BOTH, "2011-06-15T23:08", "2011-06-20", ["2011-06-19T00:00"]),
    ("036", "0 0 11 L * ?", "UTC", BOTH, "2017-02-28T05:00", "2017-03-01", ["2017-02-28T11:00"]),
    ("038", "0 0 23 L * ?", "Asia/Shanghai", BOTH, "2025-08-31T15:00", "2025-10-01", ["2025-09-30T15:00"]),
    ("040", "0 0 8 31 * ?", "UTC", BOTH, "2017-04-10", "2018-01-01", THIRTY_FIRSTS),
    ("042", "4 23-37 0-3 ? * 6 2079-2097", "UTC", BOTH, "2026-01-01", "2079-01-06T00:23:30", ["2079-01-06T00:23:04"]),
    ("048", "0-59/59 10 * * *", "UTC", BOTH, "2020-08-20", "2020-08-22",
     [f"2020-08-{day}T10:{minute}" for day in (20, 21) for minute in ("00", "59")]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("cron", "tz", "dst", "start", "end", "expected"),
    [
        pytest.param(cron, tz, dst, start, end, expected, id=f"{number} {dst} {start}")
        for number, cron, tz, policies, start, end, expected in LIVES
        for dst in policies
    ],
)
def test_a_life_has_these_records(
    life: Life, cron: str, tz: str, dst: Dst, start: str, end: str, expected: list[str]
) -> None:
    """002 to 018, 022, 026 to 042, 048: by the clock on the wall, through gaps, overlaps and short months."""
    begin = ms(start)
    life.put(begin, Trigger("default", cron, tz, dst))

    life.until(begin, ms(end))

    assert said(life.records(begin, ms(end))) == expected


def test_an_outage_over_a_clock_change_says_what_the_change_took_out(life: Life) -> None:
    """018, with no scheduler on the days around: the pass that does not count has its own record all the same."""
    start, end = ms("2023-10-27T12:00"), ms("2023-10-31T12:00")
    life.put(start, Trigger("default", "0 2 * * *", "Europe/Berlin"))

    life.round(end)

    found = life.records(start, end)
    assert [(one.reason, one.count) for one in found] == [
        ("coalesced", 2),
        ("dst_overlap", 1),
        ("coalesced", 1),
        ("fire_once", 1),
    ]


MOVED: list[tuple[dict[str, Any], str]] = [
    ({"cron": "30 2 * * *"}, "fired dst_gap"),
    ({"cron": "0 30 2,3 * * ?"}, "fired dst_gap"),
    ({"cron": "0 0 2,3 * * ?"}, "fired dst_gap"),
    ({"cron": "0 0 3 * * ?"}, "fired None"),
    ({"cron": "30 * * * *"}, "no record"),
    ({"cron": "0 */2 * * *"}, "no record"),
    ({"cron": "0 0 2,3 * * ?", "dst": "skip"}, "fired None"),
    ({"cron": "0 0 2,3 * * ?", "dst": "quartz"}, "fired None"),
    ({"cron": "30 2 * * *", "calendar": {"dates": ["2020-03-28"]}}, "fired dst_gap"),
    ({"cron": "30 2 * * *", "end": "2020-03-30T00:00:00Z"}, "fired dst_gap"),
    ({"calendar_interval": "1 day", "start": "2020-03-28T02:30:00+01:00"}, "fired dst_gap"),
    ({"daily_interval": {"every": "7m", "from": "02:10", "to": "04:00"}}, "fired dst_gap"),
    ({"every": "1h", "start": "2020-03-28T01:00:00Z"}, "fired None"),
]


@pytest.mark.parametrize(("given", "expected"), MOVED, ids=[str(given) for given, _ in MOVED])
@pytest.mark.parametrize("policy", ["fire_once", "skip", "fire_all"])
def test_the_record_of_a_fire_says_that_a_gap_moved_it(
    life: Life, given: dict[str, Any], expected: str, policy: str
) -> None:
    """The clocks of Berlin go from 02:00 to 03:00, which is one o'clock in UTC."""
    start, moved = ms("2020-03-28T12:00"), ms("2020-03-29T01:00")
    life.put(start, Trigger("default", tz="Europe/Berlin", **given), misfire=policy)

    life.until(start, moved + HOUR)

    there = [f"{one.outcome} {one.reason}" for one in life.records(start, moved) if one.fire_time == moved]
    assert (there or ["no record"]) == [expected]


@pytest.mark.parametrize("policy", ["fire_once", "fire_all"])
def test_a_moved_fire_that_comes_too_late_has_misfired(life: Life, policy: str) -> None:
    start, moved = ms("2020-03-28T12:00"), ms("2020-03-29T01:00")
    life.put(start, Trigger("default", "30 2 * * *", "Europe/Berlin"), misfire=policy)

    life.round(moved + 2 * MINUTE)

    assert [(one.outcome, one.reason) for one in life.records(start, moved)] == [("misfired", policy)]


def test_previous_and_next_enclose_every_minute_of_the_week_of_a_gap() -> None:
    """014"""
    cron, at = CronExpression("0 2 * * *", "America/New_York"), datetime(2024, 3, 7, tzinfo=UTC)
    for _ in range(7 * 24 * 60):
        at += timedelta(minutes=1)
        later = cron.next(at)
        assert later is not None
        before = cron.prev(later)
        assert before is not None
        assert before.astimezone(UTC) <= at < later.astimezone(UTC)


@pytest.mark.parametrize("host", ["Europe/London", "Asia/Tokyo", None])
def test_the_zone_of_the_host_does_not_matter(
    life: Life, monkeypatch: pytest.MonkeyPatch, host: str | None
) -> None:
    """020"""
    if host:
        monkeypatch.setenv("TZ", host)
    else:
        monkeypatch.delenv("TZ", raising=False)
    time.tzset()
    start, end = ms("2022-10-29T12:00Z"), ms("2022-10-30T12:00Z")
    life.put(start, Trigger("default", "30 1 * * *"))

    life.until(start, end)

    assert said(life.records(start, end)) == ["2022-10-30T01:30"]
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(("cron", "many"), [("* * * * *", 120), ("0/15 * * * * ?", 480)])
def test_a_rhythm_is_not_silent_in_the_repeated_hour(life: Life, cron: str, many: int) -> None:
    """024"""
    start, end = ms("2025-10-26T00:00") - 1, ms("2025-10-26T02:00")
    life.put(start, Trigger("default", cron, "Europe/London"))

    life.until(start, end)

    assert [one.outcome for one in life.records(start, end)] == ["fired"] * many


def test_weekdays_are_told_in_words(client: TestClient) -> None:
    """042: 6 is Friday in Quartz's dialect, and Saturday in crontab's."""
    triggers = [{"cron": "4 23-37 0-3 ? * 6 2079-2097"}, {"name": "b", "cron": "4 0 * * 6"}]

    quartz, crontab = client.post("/schedules/preview", json={"triggers": triggers}).json()["items"]

    assert "Friday" in quartz["description"]["en"]
    assert "Saturday" in crontab["description"]["en"]


def test_a_daily_schedule_has_one_record_a_day_however_near_the_scheduler_comes_by(life: Life) -> None:
    """044"""
    start, three = ms("2025-01-01T12:00"), ms("2025-01-02T03:00")
    life.put(start, Trigger("default", "0 3 * * *"))

    for now in (three - 1, three, three + 400, three + MINUTE, three + MINUTE + 400):
        life.round(now)
        life.round(now)

    assert said(life.records(start, three)) == ["2025-01-02T03:00"]
    assert life.schedules(three).get(KEY).next_fires == {"default": three + DAY}


# -- PARSE ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def client(app: Tenure) -> Any:
    @app.task("work")
    def work() -> None: ...

    with local(app.api()) as client:
        yield client


@pytest.mark.parametrize("cron", ["0 0 31 2 *", "* * * 31 4 *"])
def test_what_never_fires_is_refused_everywhere(client: TestClient, cli: Cli, cron: str) -> None:
    """046"""
    body = {"task": "work", "triggers": [{"cron": cron}]}

    problem = refused(client.put("/schedules/x", json=body), 400, "BAD_CRON")

    assert pointers(problem) == ["/triggers/0/cron"]
    assert cli("cron", "explain", cron).code == 2
    assert client.get("/schedules/x").status_code == 404


def test_a_hundred_that_never_fire_are_all_named_at_once(client: TestClient) -> None:
    """046"""
    triggers = [{"name": f"t{nth}", "cron": "0 0 31 2 *"} for nth in range(100)]

    problem = refused(
        client.put("/schedules/x", json={"task": "work", "triggers": triggers}), 400, "BAD_CRON"
    )

    assert pointers(problem) == [f"/triggers/{nth}/cron" for nth in range(100)]


@pytest.mark.parametrize(
    "cron",
    [
        "0-99999999/1 * * * *",
        ",".join("1" * 32_000) + " * * * *",
        "*/1/1/1 * * * *",
        "77 * * * *",
        "-1 * * * *",
    ],
    ids=["050 a range", "050 a list of 64 KB", "050 steps of steps", "052 over", "052 under"],
)
def test_what_is_out_of_range_is_refused_in_few_words(client: TestClient, cron: str) -> None:
    """050 and 052: the range is checked before it is gone through, and no answer repeats 64 KB."""
    answer = client.put("/schedules/x", json={"task": "work", "triggers": [{"cron": cron}]})

    refused(answer, 400, "BAD_CRON")
    assert len(answer.content) < 2_000


def test_a_date_or_a_weekday_is_accepted_together(client: TestClient) -> None:
    """052"""
    triggers = [{"cron": "* * 13 * Fri"}]

    assert client.put("/schedules/x", json={"task": "work", "triggers": triggers}).status_code == 201


# -- MISF: misfire, catch-up ------------------------------------------------------------------------------------------


def test_a_schedule_that_is_added_runs_no_other_again(life: Life) -> None:
    """060"""
    eleven = ms("2025-01-01T11:00")
    half_past = eleven + 30 * MINUTE
    for key, minute in (("a", 1), ("b", 2)):
        life.put(eleven, Trigger("default", f"{minute} 11 * * *"), key=key)
        life.round(half_past)
    life.round(half_past)

    life.put(half_past, Trigger("default", "0 12 * * *"), key="c")
    life.round(half_past)

    assert [len(life.records(eleven, half_past, key)) for key in ("a", "b")] == [1, 1]
    assert life.jobs() == 2


def test_after_a_loss_of_the_connection_the_next_fires_are_in_time(life: Life, faults: Faults) -> None:
    """062"""
    start = ms("2025-01-01T12:10:01")
    life.put(start, Trigger("default", "*/5 * * * *"))
    for second in range(10):
        faults.lose_reply("index_take")
        with pytest.raises(StoreUnreachable):
            life.round(start + 3 * MINUTE + second * SECOND)

    life.until(start + 4 * MINUTE, start + 11 * MINUTE)

    found = life.records(start, start + 11 * MINUTE)
    assert said(found) == ["2025-01-01T12:15", "2025-01-01T12:20"]
    assert [one.at - one.fire_time for one in found] == [0, 0]


def test_a_long_period_outlives_many_restarts(life: Life) -> None:
    """064: a scheduler that starts anew every hour of 15 days."""
    start = ms("2025-01-01T00:00")
    life.put(start, Trigger("default", every="7d"))

    for hour in range(15 * 24 + 1):
        life.round(start + hour * HOUR)

    assert [one.fire_time for one in life.records(start, start + 15 * DAY)] == [
        start + 7 * DAY,
        start + 14 * DAY,
    ]


@pytest.mark.parametrize(("late", "outcome"), [(50 * SECOND, "fired"), (61 * SECOND, "misfired")])
def test_a_slow_store_drops_no_daily_job(life: Life, late: int, outcome: str) -> None:
    """066: fired late, or by the misfire policy, with one record."""
    start, due = ms("2025-01-01T12:00"), ms("2025-01-02T03:00")
    life.put(start, Trigger("default", "0 3 * * *"))

    life.round(due + late)
    life.round(due + late)

    assert [(one.fire_time, one.outcome) for one in life.records(start, due)] == [(due, outcome)]
    assert life.jobs() == 1


@pytest.mark.parametrize(("policy", "jobs"), [("fire_once", 1), ("skip", 0), ("fire_all", 1)])
def test_what_was_due_while_the_scheduler_was_down_follows_the_policy(
    life: Life, policy: str, jobs: int
) -> None:
    """068: stopped at :50, started at :10."""
    start, hour = ms("2025-01-01T11:30"), ms("2025-01-01T12:00")
    life.put(start, Trigger("default", "0 * * * *"), misfire=policy)
    life.round(hour - 10 * MINUTE)

    life.round(hour + 10 * MINUTE)

    assert [one.fire_time for one in life.records(start, hour)] == [hour]
    assert life.jobs() == jobs
    assert life.schedules(hour).get(KEY).next_fires == {"default": hour + HOUR}
