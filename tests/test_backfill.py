"""Backfill: planned instants of the past that did not run get their jobs, once, by the revision of their time."""

from __future__ import annotations

import pytest

from tenure.lease.ledger import Ledger
from tenure.lease.ledgers import Ledgers
from tenure.lease.payload import unpack_args
from tenure.lease.tasks import Task
from tenure.scheduler.backfill import backfill, backfill_plan
from tenure.scheduler.scheduler import Scheduler
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.switch import Scheduling
from tenure.scheduler.trigger import Trigger
from tenure.scripts.errors import BadInput, NotFound, SchedulingDisabled
from tenure.testing import START

from .given import Store

MINUTE = 60_000
FIRST = START + 40_000


def report(day: str = "today") -> None:
    """The task of these schedules."""


TASK = Task("reports.daily", report)
KEY = "reports.daily"


@pytest.fixture
def later(ledgers: Ledgers) -> Schedules:
    """An hour on: minutes 0 to 9 were coalesced, 10 fired; from minute 20 on another revision, at half minutes."""
    at = lambda now: Ledgers(ledgers.scripts.at(now), ledgers.namespace)  # noqa: E731
    Schedules(at(START).of("acme")).put(KEY, TASK, [Trigger("default", "0 * * * * ?")], args=["old"])
    Scheduler(at(FIRST + 10 * MINUTE), "one").round()
    changed = Schedules(at(FIRST + 20 * MINUTE + 1).of("acme"))
    changed.put(KEY, TASK, [Trigger("default", "30 * * * * ?")], args=["new"])
    return Schedules(at(FIRST + 25 * MINUTE).of("acme"))


def jobs(ledger: Ledger) -> list[tuple[int | None, str]]:
    found = ledger.list(limit=100).items
    return sorted((job.fire_time, unpack_args(job.args)[0][0]) for job in found if job.source == "cron")


def test_the_plan_is_what_did_not_run_by_the_revision_of_its_time(later: Schedules, store: Store) -> None:
    with store.unchanged():
        plan = backfill_plan(later, KEY, FIRST + 8 * MINUTE, FIRST + 23 * MINUTE)

    minutes = [(one.instant - FIRST) / MINUTE for one in plan]
    assert minutes == [8, 9, *range(11, 21), 20.5, 21.5, 22.5]
    assert [one.outcome for one in plan[:3]] == ["skipped(coalesced)"] * 2 + ["skipped(superseded)"]
    assert [one.revision for one in plan] == [1] * 12 + [2] * 3


def test_each_instant_gets_its_job_once_however_often_it_is_asked_for(later: Schedules) -> None:
    first = backfill(later, KEY, FIRST + 18 * MINUTE, FIRST + 22 * MINUTE, rate=2)
    again = backfill(later, KEY, FIRST + 18 * MINUTE, FIRST + 22 * MINUTE, rate=2)

    assert first == again
    made = [later.ledger.get(job_id) for job_id in first]
    assert [(job.fire_time, unpack_args(job.args)[0]) for job in made] == [
        *[(FIRST + minute * MINUTE, ["old"]) for minute in (18, 19, 20)],
        *[(FIRST + minute * MINUTE + 30_000, ["new"]) for minute in (20, 21)],
    ]
    assert [job.run_at - job.created_at for job in made] == [0, 500, 1000, 1500, 2000]
    assert {job.priority for job in made} == {9}
    assert len(jobs(later.ledger)) == 6, "five, and the one that fired"


def test_a_range_that_is_not_past_or_too_long_is_refused(later: Schedules, store: Store) -> None:
    with store.unchanged():
        with pytest.raises(BadInput, match="not a stretch of the past"):
            backfill(later, KEY, FIRST, FIRST + 60 * MINUTE)
        with pytest.raises(BadInput, match="1 to 200"):
            backfill(later, KEY, FIRST, FIRST + MINUTE, rate=0)
        with pytest.raises(NotFound):
            backfill(later, "reports.weekly", FIRST, FIRST + MINUTE)


def test_a_disabled_tenant_is_not_backfilled(later: Schedules, store: Store) -> None:
    Scheduling(later.ledger).set(enabled=False)

    with store.unchanged(), pytest.raises(SchedulingDisabled):
        backfill(later, KEY, FIRST, FIRST + 3 * MINUTE)
