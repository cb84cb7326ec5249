"""What becomes of instants that are found too late, by policy; and triggers that count from when they were stored."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.lease.ledger import Ledger
from tenure.lease.ledgers import Ledgers
from tenure.lease.tasks import Task
from tenure.scheduler.fire_record import Fire
from tenure.scheduler.misfire import Misfire, read_misfire
from tenure.scheduler.plan import month
from tenure.scheduler.scheduler import Scheduler
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.trigger import Trigger
from tenure.scripts.errors import BadInput
from tenure.testing import START, Server

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
HOURLY = [Trigger("default", "0 0 * * * ?")]
FIRST = 1_790_002_800_000  # 15:00, the first full hour after START
TASK = Task("reports.daily", lambda: None)


@pytest.fixture
def schedules(ledger: Ledger) -> Schedules:
    return Schedules(ledger)


def round_at(ledgers: Ledgers, now: int) -> None:
    Scheduler(Ledgers(ledgers.scripts.at(now), ledgers.namespace), "one").round()


def records(schedules: Schedules, *months: str) -> list[Fire]:
    """All fire records of the months, oldest first."""
    found: list[Fire] = []
    for name in months or (month(START),):
        page, more = schedules.fires("reports.daily", month=name, limit=10_000)
        assert more is None
        found += page[::-1]
    return found


def said(found: list[Fire]) -> list[tuple[str, str | None, int]]:
    return [(one.outcome, one.reason, one.count) for one in found]


@pytest.mark.parametrize(
    ("policy", "late", "expected"),
    [
        ("skip", 10 * MINUTE, [("skipped", "misfire", 24)]),
        ("skip", 30 * SECOND, [("skipped", "misfire", 23), ("fired", None, 1)]),
        ("fire_once", 10 * MINUTE, [("skipped", "coalesced", 23), ("misfired", "fire_once", 1)]),
        ("fire_once", 30 * SECOND, [("skipped", "coalesced", 23), ("fired", None, 1)]),
    ],
)
def test_a_day_without_a_scheduler_is_one_record_or_two(
    schedules: Schedules, ledgers: Ledgers, policy: str, late: int, expected: list[Any]
) -> None:
    """Trial 058: 24 hourly instants are all accounted for, and at most one job is made."""
    schedules.put("reports.daily", TASK, HOURLY, misfire=policy)

    round_at(ledgers, FIRST + 23 * HOUR + late)

    found = records(schedules)
    assert said(found) == expected
    assert sum(one.count for one in found) == 24
    assert schedules.get("reports.daily").next_fires == {"default": FIRST + 24 * HOUR}


def test_fire_all_runs_each_missed_instant_paced_and_after_live_work(
    schedules: Schedules, ledgers: Ledgers
) -> None:
    schedules.put("reports.daily", TASK, HOURLY, misfire={"policy": "fire_all", "rate": 2})
    now = FIRST + 23 * HOUR + 10 * MINUTE

    round_at(ledgers, now)
    round_at(ledgers, now + SECOND)

    assert said(records(schedules)) == [("misfired", "fire_all", 1)] * 24
    jobs = sorted(schedules.ledger.list(limit=100).items, key=lambda job: job.fire_time or 0)
    assert [job.fire_time for job in jobs] == [FIRST + n * HOUR for n in range(24)]
    assert [job.run_at - now for job in jobs] == [500 * n for n in range(24)]
    assert {job.priority for job in jobs} == {9}


def test_fire_all_keeps_to_its_budget(schedules: Schedules, ledgers: Ledgers) -> None:
    budget = {"policy": "fire_all", "max": 10, "within": "5h", "priority": 7}
    schedules.put("reports.daily", TASK, HOURLY, misfire=budget)

    round_at(ledgers, FIRST + 23 * HOUR + 30 * SECOND)

    assert said(records(schedules)) == [
        ("skipped", "misfire", 19),
        *[("misfired", "fire_all", 1)] * 4,
        ("fired", None, 1),
    ]


def test_a_month_of_seconds_without_a_scheduler_is_two_ranges_and_a_fire(
    schedules: Schedules, ledgers: Ledgers
) -> None:
    schedules.put("reports.daily", TASK, [Trigger("default", "* * * * * ?")])
    now = START + 30 * DAY

    round_at(ledgers, now)

    found = records(schedules, "202609", "202610")
    assert [one.outcome for one in found] == ["skipped", "skipped", "fired"]
    assert sum(one.count for one in found) == 30 * 86_400
    assert schedules.get("reports.daily").next_fires == {"default": now + SECOND}


def test_every_counts_from_when_it_was_stored_and_goes_on_counting_when_the_rest_is_edited(
    schedules: Schedules, ledgers: Ledgers
) -> None:
    schedules.put("reports.daily", TASK, [Trigger("default", every="7m")])
    edited = Schedules(ledgers.of("acme").at(START + 3 * MINUTE))

    edited.put("reports.daily", TASK, [Trigger("default", every="7m")], overlap="skip")

    assert edited.get("reports.daily").revision == 2
    assert [one.fire_time for one in edited.next("reports.daily", 3)] == [
        START + n * 7 * MINUTE for n in (1, 2, 3)
    ]
    edited.put("reports.daily", TASK, [Trigger("default", every="8m")])
    assert [one.fire_time for one in edited.next("reports.daily", 1)] == [START + 11 * MINUTE]


def test_three_times_is_three_times(schedules: Schedules, ledgers: Ledgers) -> None:
    schedules.put("reports.daily", TASK, [Trigger("default", repeat="R3/PT5M")])

    for minute in range(40):
        round_at(ledgers, START + minute * MINUTE)

    assert [one.fire_time for one in records(schedules)] == [START + n * 5 * MINUTE for n in (1, 2, 3)]
    assert schedules.get("reports.daily").exhausted


def test_jitter_delays_the_jobs_of_a_schedule_alike_and_leaves_the_plan(
    schedules: Schedules, ledgers: Ledgers
) -> None:
    schedules.put("reports.daily", TASK, [Trigger("default", "0 0 * * * ?", jitter="5m")])

    for hour in (0, 1):
        round_at(ledgers, FIRST + hour * HOUR)

    first, second = sorted(schedules.ledger.list().items, key=lambda job: job.created_at)
    assert (first.fire_time, second.fire_time) == (FIRST, FIRST + HOUR)
    assert first.run_at - first.created_at == second.run_at - second.created_at
    assert 0 < first.run_at - first.created_at <= 5 * MINUTE


@pytest.mark.parametrize(
    ("value", "policy"),
    [
        ("MISFIRE_INSTRUCTION_DO_NOTHING", "skip"),
        ("fire_once_now", "fire_once"),
        ("IGNORE_MISFIRE_POLICY", "fire_all"),
        ("smart_policy", "fire_once"),
    ],
)
def test_the_names_that_quartz_has_are_understood(value: str, policy: str) -> None:
    assert read_misfire(value).policy == policy


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("sometimes", "is not a policy"),
        ({"policy": "skip", "max": 3}, "takes no budget"),
        ({"policy": "fire_all", "max": 0}, "1 to 1000"),
        ({"policy": "fire_all", "rate": 1000}, "1 to 200"),
        ({"policy": "fire_all", "within": "soon"}, "not a duration"),
        ({"policy": "fire_all", "often": 3}, "no part 'often'"),
        (7, "is not a policy"),
    ],
)
def test_a_policy_that_is_none_is_refused(value: object, rule: str) -> None:
    with pytest.raises(BadInput, match=rule):
        read_misfire(value)


def test_a_policy_is_what_it_is_stored_as() -> None:
    for policy in (Misfire(), Misfire("skip"), Misfire("fire_all", 7, 90_000, 3, 8)):
        assert read_misfire(policy.stored()) == policy


# -- overlap: the last fire's job has not ended -------------------------------------------------------------------


def test_overlap_skip_passes_over_an_instant_while_the_last_job_goes_on(
    schedules: Schedules, ledgers: Ledgers
) -> None:
    schedules.put("reports.daily", TASK, HOURLY, overlap="skip")
    for hour in range(2):
        round_at(ledgers, FIRST + hour * HOUR)
    (job,) = schedules.ledger.list().items
    schedules.ledger.at(FIRST + HOUR + MINUTE).cancel(job.id)

    round_at(ledgers, FIRST + 2 * HOUR)

    assert said(records(schedules)) == [("fired", None, 1), ("skipped", "overlap", 1), ("fired", None, 1)]


def test_overlap_cancel_running_ends_the_last_job_and_fires(schedules: Schedules, ledgers: Ledgers) -> None:
    schedules.put("reports.daily", TASK, HOURLY, overlap="cancel_running")
    round_at(ledgers, FIRST)
    ledger = schedules.ledger.at(FIRST + HOUR - 1)
    (lease,) = ledger.claim("advance", "one").leases

    round_at(ledgers, FIRST + HOUR)

    assert said(records(schedules)) == [("fired", None, 1)] * 2
    before = ledger.get(lease.id)
    assert (before.status, before.reason) == ("canceled", "its next fire is due")
    assert [job.status for job in ledger.list().items if job.id != lease.id] == ["pending"]


def test_overlap_queue_lets_one_wait_and_skips_the_next(schedules: Schedules, ledgers: Ledgers) -> None:
    schedules.put("reports.daily", TASK, HOURLY, overlap="queue")
    ledger = schedules.ledger
    round_at(ledgers, FIRST)
    (first,) = ledger.at(FIRST).claim("advance", "one").leases
    for hour in (1, 2):
        round_at(ledgers, FIRST + hour * HOUR)
    now = ledger.at(FIRST + 2 * HOUR)
    assert now.claim("advance", "one").leases == [], "the second waits for the first"

    now.cancel(first.id)
    now.at(first.expires_at + 1).reap()
    (second,) = now.claim("advance", "one").leases

    assert second.fire_time == FIRST + HOUR
    assert said(records(schedules)) == [("fired", None, 1), ("fired", None, 1), ("skipped", "queue_full", 1)]


# -- how long records are kept ----------------------------------------------------------------------------------------


def test_records_of_a_month_go_when_one_thirteen_months_later_is_written(
    schedules: Schedules, ledgers: Ledgers
) -> None:
    schedules.put("reports.daily", TASK, [Trigger("default", "0 0 12 1 * ?")])
    first = schedules.get("reports.daily").next_fires["default"]
    for _ in range(15):
        round_at(ledgers, schedules.get("reports.daily").next_fires["default"])

    months = [month(first)] + [f"{2026 + n // 12}{n % 12 + 1:02d}" for n in range(10, 24)]
    kept = [name for name in months if schedules.fires("reports.daily", month=name)[0]]

    assert month(first) == "202610"
    assert kept == months[2:]


def test_records_of_a_deleted_schedule_go_by_themselves(
    schedules: Schedules, ledgers: Ledgers, tenure_server: Server
) -> None:
    schedules.put("reports.daily", TASK, HOURLY)
    round_at(ledgers, FIRST)
    later = Schedules(schedules.ledger.at(FIRST + MINUTE))

    later.delete("reports.daily")

    key = schedules.ledger.keys("fires", month=month(FIRST), trigger="default", job_key="reports.daily")
    assert 399 * 86_400 < int(tenure_server.redis.ttl(key)) <= 400 * 86_400
    assert said(records(later)) == [("fired", None, 1)]
