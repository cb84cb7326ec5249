"""Backfill: planned instants of the past that did not run get their jobs, once, by the revision of their time."""

from __future__ import annotations

from functools import partial

import pytest

from tenure.lease.ledger import Ledger
from tenure.lease.ledgers import Ledgers
from tenure.lease.payload import unpack_args
from tenure.lease.tasks import Task
from tenure.scheduler.backfill import backfill, backfill_plan
from tenure.scheduler.pausing import pause, resume
from tenure.scheduler.scheduler import Scheduler
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.skips import DISABLED
from tenure.scheduler.switch import Scheduling
from tenure.scheduler.trigger import Trigger
from tenure.scheduler.why import why
from tenure.scripts.errors import BadInput, NotFound, SchedulingDisabled, StalePlan
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
    """An hour on: minutes 0 to 9 were coalesced, 10 fired; from minute 20 on another revision, at half minutes: all
    but the last of them were coalesced.
    """
    at = partial(moved, ledgers)
    Schedules(at(START).of("acme")).put(KEY, TASK, [Trigger("default", "0 * * * * ?")], args=["old"])
    Scheduler(at(FIRST + 10 * MINUTE), "one").round()
    changed = Schedules(at(FIRST + 20 * MINUTE + 1).of("acme"))
    changed.put(KEY, TASK, [Trigger("default", "30 * * * * ?")], args=["new"])
    Scheduler(at(FIRST + 25 * MINUTE), "one").round()
    return Schedules(at(FIRST + 25 * MINUTE).of("acme"))


def moved(ledgers: Ledgers, now: int) -> Ledgers:
    return Ledgers(ledgers.scripts.at(now), ledgers.namespace)


def jobs(ledger: Ledger) -> list[tuple[int | None, str]]:
    found = ledger.list(limit=100).items
    return sorted((job.fire_time, unpack_args(job.args)[0][0]) for job in found if job.source == "cron")


def test_the_plan_is_what_did_not_run_by_the_revision_of_its_time(later: Schedules, store: Store) -> None:
    with store.unchanged():
        plan = backfill_plan(later, KEY, FIRST + 8 * MINUTE, FIRST + 23 * MINUTE).missed

    minutes = [(one.instant - FIRST) / MINUTE for one in plan]
    assert minutes == [8, 9, *range(11, 21), 20.5, 21.5, 22.5]
    assert [one.outcome for one in plan[:3]] == ["skipped(coalesced)"] * 2 + ["skipped(superseded)"]
    assert [one.revision for one in plan] == [1] * 12 + [2] * 3


def test_each_instant_gets_its_job_once_however_often_it_is_asked_for(later: Schedules) -> None:
    first = backfill(later, KEY, FIRST + 18 * MINUTE, FIRST + 22 * MINUTE, rate=2)
    again = backfill(later, KEY, FIRST + 18 * MINUTE, FIRST + 22 * MINUTE, rate=2)

    assert (list(first.there), list(again.made)) == ([], [])
    assert first.made == again.there
    made = [later.ledger.get(job_id) for job_id in first.made]
    assert [(job.fire_time, unpack_args(job.args)[0]) for job in made] == [
        *[(FIRST + minute * MINUTE, ["old"]) for minute in (18, 19, 20)],
        *[(FIRST + minute * MINUTE + 30_000, ["new"]) for minute in (20, 21)],
    ]
    assert [job.run_at - job.created_at for job in made] == [0, 500, 1000, 1500, 2000]
    assert {job.priority for job in made} == {9}
    assert len(jobs(later.ledger)) == 7, "five, and the two that fired"


def test_the_plan_leaves_out_what_a_backfill_has_made_up_for(later: Schedules) -> None:
    low, middle, high = FIRST + 11 * MINUTE, FIRST + 14 * MINUTE, FIRST + 16 * MINUTE
    some = backfill(later, KEY, low, middle)

    plan = backfill_plan(later, KEY, low, high).missed
    rest = backfill(later, KEY, low, high, rate=1)

    assert [one.instant for one in plan] == [FIRST + minute * MINUTE for minute in (14, 15)]
    assert list(rest.there) == list(some.made)
    made = [later.ledger.get(job_id) for job_id in rest.made]
    assert [job.fire_time for job in made] == [one.instant for one in plan]
    assert [job.run_at - job.created_at for job in made] == [0, 1000], "those that were there take no turn"
    assert backfill_plan(later, KEY, low, high).missed == []


def test_what_another_backfill_makes_meanwhile_was_there(
    later: Schedules, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tenure.scheduler.backfill as module

    low, high = FIRST + 11 * MINUTE, FIRST + 14 * MINUTE
    other = backfill(later, KEY, low, high)
    monkeypatch.setattr(module, "_there", lambda *_: set())  # it looked before the other one made them

    late = backfill(later, KEY, low, high)

    assert (list(late.made), list(late.there)) == ([], list(other.made))


def test_why_says_that_an_instant_was_backfilled_and_by_which_job(later: Schedules) -> None:
    superseded, of_another_plan, left = (FIRST + minute * MINUTE for minute in (11, 20, 12))
    for at in (superseded, of_another_plan):
        backfill(later, KEY, at, at + 1)

    for at, verdict in ((superseded, "skipped_superseded"), (of_another_plan, "skipped_superseded")):
        found = why(later, KEY, at=at)
        (job_id,) = (job.id for job in later.ledger.list(limit=100).items if job.fire_time == at)
        assert found.verdict == verdict
        assert f"It was backfilled: job {job_id} is pending." in found.text
        assert found.do == (f"tenure jobs show {job_id} --tenant acme", f"tenure why {job_id} --tenant acme")
        assert found.checks[-1].name == "backfilled"
    assert "backfilled" not in why(later, KEY, at=left).text
    assert any("cron run" in command for command in why(later, KEY, at=left).do)


@pytest.mark.parametrize("misfire", [{"policy": "fire_all"}, "fire_once", "skip"])
def test_a_backfill_in_an_outage_leaves_to_the_scheduler_what_it_owes(
    ledgers: Ledgers, store: Store, misfire: object
) -> None:
    down, noon = FIRST + 3 * MINUTE, FIRST + 8 * MINUTE
    Schedules(moved(ledgers, START).of("acme")).put(
        KEY, TASK, [Trigger("default", "0 * * * * ?")], args=["old"], misfire=misfire
    )
    for minute in range(3):
        Scheduler(moved(ledgers, FIRST + minute * MINUTE), "one").round()
    schedules = Schedules(moved(ledgers, noon).of("acme"))

    with store.unchanged():
        plan = backfill_plan(schedules, KEY, START, noon)
        done = backfill(schedules, KEY, START, noon)
    Scheduler(moved(ledgers, noon), "two").round()
    after = backfill(schedules, KEY, START, noon)

    assert (plan.missed, done.made, done.there) == ([], [], [])
    assert [one.instant for one in plan.owed] == list(range(down, noon, MINUTE))
    assert plan.owed == done.owed
    assert {one.outcome for one in plan.owed} == {"owed"}
    assert after.owed == []
    ran = [at for at, _ in jobs(schedules.ledger) if at is not None and at < noon]
    assert ran == list(range(FIRST, noon, MINUTE)), "each has one job, of a fire or of the backfill"


def test_what_is_owed_again_is_refused_by_the_script(
    ledgers: Ledgers, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tenure.scheduler.backfill as module

    Schedules(moved(ledgers, START).of("acme")).put(
        KEY, TASK, [Trigger("default", "0 * * * * ?")], args=["old"]
    )
    schedules = Schedules(moved(ledgers, FIRST + MINUTE).of("acme"))
    owed = module.Missed("default", FIRST, 1, "no_record")
    monkeypatch.setattr(module, "_planned", lambda *_: module.BackfillPlan([owed], []))

    with store.unchanged(), pytest.raises(StalePlan, match=f"instant {FIRST} of trigger default .* is owed"):
        backfill(schedules, KEY, FIRST, FIRST + 1)


def test_what_a_disabled_tenant_has_not_observed_yet_is_owed(ledgers: Ledgers) -> None:
    Schedules(moved(ledgers, START).of("acme")).put(
        KEY, TASK, [Trigger("default", "0 * * * * ?")], args=["old"]
    )
    Scheduling(moved(ledgers, START + 1).of("acme")).set(enabled=False)
    for now in (START + 2, FIRST + 3 * MINUTE):
        Scheduler(moved(ledgers, now), "one").round()
    end = FIRST + 6 * MINUTE
    off = backfill_plan(Schedules(moved(ledgers, end).of("acme")), KEY, FIRST, end)
    Scheduling(moved(ledgers, end).of("acme")).set(enabled=True)

    on = backfill(Schedules(moved(ledgers, end).of("acme")), KEY, FIRST, end)

    assert [(one.instant, one.outcome) for one in off.missed] == [
        (FIRST + minute * MINUTE, f"skipped({DISABLED})") for minute in range(4)
    ]
    assert [one.instant for one in off.owed] == [FIRST + minute * MINUTE for minute in (4, 5)]
    assert (len(on.made), on.owed) == (4, off.owed)


def test_what_a_pause_passes_over_is_owed_until_the_resume_records_it(ledgers: Ledgers) -> None:
    end = FIRST + 3 * MINUTE
    Schedules(moved(ledgers, START).of("acme")).put(
        KEY, TASK, [Trigger("default", "0 * * * * ?")], args=["old"]
    )
    pause(Schedules(moved(ledgers, START + 1).of("acme")), KEY)
    schedules = Schedules(moved(ledgers, end).of("acme"))
    paused = backfill_plan(schedules, KEY, FIRST, end)

    resume(schedules, KEY)

    resumed = backfill_plan(schedules, KEY, FIRST, end)
    assert (paused.missed, len(paused.owed)) == ([], 3)
    assert [one.instant for one in resumed.missed] == [one.instant for one in paused.owed]
    assert ({one.outcome for one in resumed.missed}, resumed.owed) == ({"skipped(paused)"}, [])


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
