"""A dry run of a misfire policy says what the scheduler then does, instant by instant, and changes nothing."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from tenure.lease.ledger import Ledger
from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import Fail, Succeed
from tenure.lease.tasks import Task
from tenure.scheduler import pausing
from tenure.scheduler.definition import OVERLAPS
from tenure.scheduler.dry_run import Decision, DryRun, dry_run, of_outage
from tenure.scheduler.fire_record import Fire
from tenure.scheduler.misfire import Misfire, read_misfire
from tenure.scheduler.plan import month
from tenure.scheduler.scheduler import Scheduler
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.switch import Scheduling
from tenure.scheduler.trigger import Trigger
from tenure.scripts.errors import BadInput, NotFound
from tenure.testing import START

from .given import Store

MINUTE, HOUR = 60_000, 3_600_000
FIRST = START + 40_000
KEY = "reports.daily"
TASK = Task(KEY, lambda: None)
EVERY_MINUTE = Trigger("default", "0 * * * * ?")
ALL: dict[str, Any] = {"policy": "fire_all", "max": 3, "rate": 2, "priority": 8}


def at(ledgers: Ledgers, now: int) -> Ledgers:
    return Ledgers(ledgers.scripts.at(now), ledgers.namespace)


def schedules_at(ledgers: Ledgers, now: int) -> Schedules:
    return Schedules(at(ledgers, now).of("acme"))


def happened(schedules: Schedules) -> list[tuple[Any, ...]]:
    """What was decided, as records and jobs tell it."""
    found: list[Fire] = []
    for name in dict.fromkeys([month(START), month(START + 20 * 86_400_000)]):
        found += schedules.fires(KEY, month=name, limit=10_000)[0][::-1]
    jobs = {one.job_id: schedules.ledger.get(one.job_id) for one in found if one.job_id}
    return [
        (
            one.fire_time,
            one.until,
            one.count,
            one.outcome,
            one.reason or "",
            jobs[one.job_id].run_at if one.job_id else None,
            jobs[one.job_id].priority if one.job_id else 5,
        )
        for one in found
    ]


def foretold(run: DryRun) -> list[tuple[Any, ...]]:
    return [
        (
            one.fire_time,
            one.until,
            one.count,
            one.outcome,
            one.reason,
            one.due_at,
            5 if one.priority is None else one.priority,
        )
        for one in run.decisions
    ]


@pytest.mark.parametrize("seed", range(12))
def test_what_is_foretold_happens(ledgers: Ledgers, store: Store, seed: int) -> None:
    chance = random.Random(seed)
    policy: Any = chance.choice(
        ["fire_once", "skip", {"policy": "fire_all", "max": chance.randint(1, 60), "rate": chance.randint(1, 200)},
         {"policy": "fire_all", "within": "20m", "priority": chance.randint(0, 9)}]
    )  # fmt: skip
    trigger = Trigger(
        "default",
        chance.choice(["0 * * * * ?", "*/7 * * * * ?", "0 0/30 * * * ?"]),
        jitter=chance.choice([None, "9s"]),
    )
    schedules_at(ledgers, START).put(KEY, TASK, [trigger], misfire=policy)
    now = (
        START + chance.choice([45_000, 20 * MINUTE, 90 * MINUTE, 2 * 86_400_000]) + chance.randint(0, 50_000)
    )

    with store.unchanged():
        (due,) = dry_run(schedules_at(ledgers, now), KEY)
        (outage,) = dry_run(schedules_at(ledgers, now), KEY, start=START + 1, end=now)
    while (schedules_at(ledgers, now).get(KEY).next_fires.get("default") or now + 1) <= now:
        Scheduler(at(ledgers, now), "one").round()

    found = schedules_at(ledgers, now)
    assert due == outage
    assert happened(found) == foretold(due)
    assert found.get(KEY).next_fires == {"default": due.following}


TWO = [EVERY_MINUTE, Trigger("half", "30 * * * * ?")]
OLD = START + 10_000
"""When the first of two triggers fires."""


def waits(ledger: Ledger) -> None:
    """As it was made."""


def begun(ledger: Ledger) -> None:
    ledger.claim("advance", "one")


def tried_once(ledger: Ledger) -> None:
    (lease,) = ledger.claim("advance", "one").leases
    ledger.settle(lease, Fail("no luck", delay_ms=HOUR))


def ended(ledger: Ledger) -> None:
    (lease,) = ledger.claim("advance", "one").leases
    ledger.settle(lease, Succeed(b""))


@pytest.mark.parametrize("policy", ["fire_once", "skip", {"policy": "fire_all", "max": 30}])
@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("stands", [waits, begun, tried_once, ended])
def test_what_finds_the_job_of_the_last_fire_in_its_way_is_foretold(
    ledgers: Ledgers, store: Store, policy: Any, overlap: str, stands: Callable[[Ledger], None]
) -> None:
    schedules_at(ledgers, START).put(KEY, TASK, TWO, misfire=policy, overlap=overlap)
    Scheduler(at(ledgers, OLD), "one").round()
    stands(at(ledgers, OLD).of("acme"))
    now = FIRST + 25 * MINUTE + 40_000

    with store.unchanged():
        due = dry_run(schedules_at(ledgers, now), KEY)
        outage = dry_run(schedules_at(ledgers, now), KEY, start=OLD + 1, end=now)
    while min(schedules_at(ledgers, now).get(KEY).next_fires.values()) <= now:
        Scheduler(at(ledgers, now), "one").round()

    assert due == outage
    assert [run.trigger for run in due] == ["default", "half"]
    told = sorted(one for run in due for one in foretold(run))
    assert told == sorted(one for one in happened(schedules_at(ledgers, now)) if one[0] > OLD)


@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize(("stands", "status"), [(begun, "running"), (tried_once, "pending"), (ended, None)])
def test_the_job_of_the_last_fire_is_named_while_it_has_not_ended(
    ledgers: Ledgers, overlap: str, stands: Callable[[Ledger], None], status: str | None
) -> None:
    schedules_at(ledgers, START).put(KEY, TASK, TWO, overlap=overlap)
    Scheduler(at(ledgers, OLD), "one").round()
    ledger = at(ledgers, OLD).of("acme")
    stands(ledger)

    runs = dry_run(schedules_at(ledgers, FIRST), KEY)

    (job,) = ledger.list().items
    expected = f"overlap {overlap!r}: job {job.id} of the last fire is {status}"
    assert [run.note for run in runs] == [expected if status and overlap != "allow" else None] * 2


def test_the_budget_spreads_what_it_lets_fire() -> None:
    run = of_outage(EVERY_MINUTE, EVERY_MINUTE.times(0), FIRST, FIRST + 9 * MINUTE + 1, read_misfire(ALL))

    end = FIRST + 9 * MINUTE + 1
    assert run.decisions == (
        Decision(FIRST, FIRST + 6 * MINUTE, 7, "skipped", "misfire"),
        Decision(FIRST + 7 * MINUTE, None, 1, "misfired", "fire_all", end, 8),
        Decision(FIRST + 8 * MINUTE, None, 1, "misfired", "fire_all", end + 500, 8),
        Decision(FIRST + 9 * MINUTE, None, 1, "fired", "", end),
    )
    assert run.following == FIRST + 10 * MINUTE


def test_an_outage_between_two_instants_is_none() -> None:
    run = of_outage(EVERY_MINUTE, EVERY_MINUTE.times(0), FIRST + 1, FIRST + 2, Misfire())

    assert (run.decisions, run.following) == ((), FIRST + MINUTE)


def test_another_policy_may_be_tried(ledgers: Ledgers) -> None:
    schedules_at(ledgers, START).put(KEY, TASK, [EVERY_MINUTE], misfire="skip")
    late = schedules_at(ledgers, FIRST + 2 * MINUTE + 1)

    own, other = (dry_run(late, KEY, misfire=one)[0].decisions for one in (None, Misfire()))

    assert [(one.count, one.reason, one.outcome) for one in own] == [
        (2, "misfire", "skipped"),
        (1, "", "fired"),
    ]
    assert [(one.count, one.reason) for one in other] == [(2, "coalesced"), (1, "")]


def test_nothing_is_due_of_what_is_paused_or_disabled_and_what_was_disabled_is_unobserved(
    ledgers: Ledgers,
) -> None:
    late = schedules_at(ledgers, FIRST + 3 * MINUTE)
    schedules_at(ledgers, START).put(KEY, TASK, [EVERY_MINUTE])
    Scheduling(at(ledgers, START + 1).of("acme")).set(enabled=False)
    assert dry_run(late, KEY)[0].decisions == ()

    Scheduling(at(ledgers, FIRST + MINUTE + 1).of("acme")).set(enabled=True)
    assert [(one.count, one.reason) for one in dry_run(late, KEY)[0].decisions] == [
        (2, "unobserved"),
        (1, "coalesced"),
        (1, ""),
    ]

    pausing.pause(schedules_at(ledgers, FIRST + MINUTE + 2), KEY)
    assert dry_run(late, KEY)[0].decisions == ()


def test_what_makes_no_sense_is_refused(ledgers: Ledgers) -> None:
    with pytest.raises(NotFound):
        dry_run(schedules_at(ledgers, START), KEY)
    schedules_at(ledgers, START).put(KEY, TASK, [EVERY_MINUTE])

    with pytest.raises(BadInput, match="has no length"):
        dry_run(schedules_at(ledgers, START), KEY, start=START, end=START)
