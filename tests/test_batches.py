"""One verb for many jobs: each job's own outcome, at a pace, and to the end whoever dies on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tenure.lease.batch_work import work_off
from tenure.lease.batches import MOST_BATCHES, MOST_JOBS, Batch, Batches, BatchState
from tenure.lease.jobs import DUE, REAP
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail
from tenure.scripts import Call
from tenure.scripts.errors import BadInput, NotFound, StoreUnreachable
from tenure.testing import START, Died, Faults

from .given import At, Store, canceled, claim, dead, failed, running, succeeded, unknown_outcome, view

NOWHERE = "01J00000000000000000000000"
BATCH = "01J00000000000000000000BAT"
SECOND = 1_000
DRIVE_MS = 2_000


def die(ledger: Ledger, many: int, **job: Any) -> list[str]:
    """So many dead jobs, in the order they were made."""
    jobs = [NewJob("report", **job) for _ in range(many)]
    ids = [job.id for job in jobs]
    for at in range(0, many, 100):
        ledger.enqueue_many(jobs[at : at + 100])
        leases = ledger.claim("advance", "one", 100).leases
        ends = [(lease.id, lease.fence, Fail("no luck", permanent=True)) for lease in leases]
        ledger.scripts.run(ledger.settle_call(ends))
    return ids


def skipped(batch: Batch) -> dict[str, str | None]:
    return {job.id: job.skipped for job in batch.jobs}


# -- each job has its own outcome -------------------------------------------------------------------------------------


def other_key(ledger: Ledger) -> str:
    lease = running(ledger, idempotency_key="k", unique_mode="active")
    ledger.settle(lease, Fail("broken", permanent=True))
    ledger.enqueue(NewJob("report", when="+1", idempotency_key="k", unique_mode="active"))
    return lease.id


def happened(ledger: Ledger) -> str:
    lease = unknown_outcome(ledger)
    ledger.confirm(lease.id, True)
    return lease.id


def not_happened(ledger: Ledger) -> str:
    lease = unknown_outcome(ledger)
    ledger.confirm(lease.id, False)
    return lease.id


RETRIED: dict[str, tuple[Callable[[Ledger], str], str | None]] = {
    "dead": (lambda ledger: dead(ledger).id, None),
    "failed": (lambda ledger: failed(ledger).id, None),
    "canceled": (lambda ledger: canceled(ledger).id, None),
    "confirmed as not happened": (not_happened, None),
    "not there": (lambda _: NOWHERE, "NOT_FOUND"),
    "succeeded": (lambda ledger: succeeded(ledger).id, "WRONG_STATE"),
    "running": (lambda ledger: running(ledger).id, "WRONG_STATE"),
    "outcome unknown": (lambda ledger: unknown_outcome(ledger).id, "OUTCOME_UNKNOWN"),
    "confirmed as happened": (happened, "OUTCOME_HAPPENED"),
    "its key is another's": (other_key, "KEY_REUSED"),
}


def test_of_many_jobs_each_is_retried_or_skipped_for_a_reason_of_its_own(ledger: Ledger) -> None:
    made = [(make(ledger), code) for make, code in RETRIED.values()]
    before = {job.id: job for job in ledger.get_many([job_id for job_id, _ in made])}

    batch = Batches(ledger).retry([job_id for job_id, _ in made], reason="all is well", by="ada")

    assert skipped(batch) == dict(made)
    assert (batch.state, batch.success, batch.skipped, batch.total) == (BatchState.DONE, 4, 6, 10)
    assert batch.reasons == {
        "NOT_FOUND": 1,
        "WRONG_STATE": 2,
        "OUTCOME_UNKNOWN": 1,
        "OUTCOME_HAPPENED": 1,
        "KEY_REUSED": 1,
    }
    for job_id, code in made:
        if code is None:
            job = ledger.get(job_id)
            assert (job.status, job.generation) == ("pending", before[job_id].generation + 1)
            assert job.attempts == before[job_id].attempts
            assert (job.history[-1].verb, job.history[-1].by, job.reason) == ("retry", "ada", "all is well")
        elif job_id != NOWHERE:
            assert ledger.get(job_id).revision == before[job_id].revision


def test_of_many_jobs_each_is_skipped_unless_it_has_ended_well_or_was_canceled(ledger: Ledger) -> None:
    make: list[Callable[[Ledger], Any]] = [dead, failed, running, unknown_outcome, succeeded, canceled]
    ids = [one(ledger).id for one in make]

    batch = Batches(ledger).skip([*ids, NOWHERE], reason="not worth it", by="ada")

    codes = [None, None, None, None, "WRONG_STATE", "WRONG_STATE", "NOT_FOUND"]
    assert list(skipped(batch).values()) == codes
    for job_id in ids[:4]:
        job = ledger.get(job_id)
        assert (job.status, job.reason) == ("canceled", "skipped: not worth it")
        assert (job.history[-1].verb, job.history[-1].reason) == ("skip", "not worth it")


def test_an_id_that_is_given_twice_counts_once(ledger: Ledger) -> None:
    job_id = dead(ledger).id

    batch = Batches(ledger).retry([job_id, job_id])

    assert (batch.total, batch.success) == (1, 1)


@pytest.mark.parametrize("rate", [0, 201, 2.5, True, "20"])
def test_a_pace_that_is_none_is_refused(ledger: Ledger, store: Store, rate: Any) -> None:
    job_id = dead(ledger).id

    with store.unchanged(), pytest.raises(BadInput, match="1 to 200 jobs a second"):
        Batches(ledger).retry([job_id], rate=rate)


@pytest.mark.parametrize("ids", [[], ["nowhere"], [7], [NOWHERE] * (MOST_JOBS + 1)])
def test_what_is_no_list_of_ids_is_refused(ledger: Ledger, store: Store, ids: list[Any]) -> None:
    with store.unchanged(), pytest.raises(BadInput):
        Batches(ledger).skip(ids)


# -- its pace ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "apart"), [(1, 1000), (3, 333.333), (20, 50), (200, 5)])
def test_due_times_are_spread_by_the_rate_in_the_order_of_the_ids(
    ledger: Ledger, rate: int, apart: float
) -> None:
    ids = die(ledger, 12)

    Batches(ledger).retry(ids[::-1], rate=rate)

    due = [ledger.get(job_id).run_at - START for job_id in ids[::-1]]
    assert due == [int(apart * at) for at in range(12)]


def test_a_batch_that_is_gone_on_with_late_keeps_its_pace(ledger: Ledger, at: At) -> None:
    """Not everything that should have been due by then is due at once."""
    ids = die(ledger, 6)
    batches = Batches(ledger)
    batches.plan("retry", "replay", [(job_id, None, "") for job_id in ids], batch_id=BATCH)
    begin(ledger, BATCH, rate=1)
    work_one(ledger, BATCH, 0, 2)

    late = at(START + 10 * SECOND)
    work_off(late, BATCH, 2)

    due = [ledger.get(job_id).run_at - START for job_id in ids]
    assert due == [0, SECOND, 10 * SECOND, 11 * SECOND, 12 * SECOND, 13 * SECOND]


def test_the_most_jobs_of_a_batch_are_done_in_slices(ledger: Ledger, faults: Faults) -> None:
    ids = die(ledger, MOST_JOBS)
    faults.calls.clear()

    batch = Batches(ledger).retry(ids, rate=200)

    assert (batch.success, batch.skipped) == (MOST_JOBS, 0)
    assert faults.calls.count("batch_work") == 10
    assert ledger.counts() == {("report", "pending"): MOST_JOBS}
    assert (
        max(job.run_at for at in range(0, 500, 100) for job in ledger.get_many(ids[at : at + 100]))
        == START + 2495
    )


# -- planned first, done later ----------------------------------------------------------------------------------------


def begin(ledger: Ledger, batch_id: str, rate: int = 20) -> None:
    Batches(ledger).begin(batch_id, rate=rate, reason="why", by="ada")


def work_one(ledger: Ledger, batch_id: str, done: int, most: int) -> None:
    """One slice, as one who knows that so many are done asks for it."""
    args: Any = {"id": batch_id, "from": done, "most": most}
    ledger.scripts.run(Call("batch_work", ledger.keys.home, args, tuple))


def plan(ledger: Ledger, ids: list[str], code: str = "") -> None:
    generations = {job.id: job.generation for job in ledger.get_many(ids)}
    Batches(ledger).plan("retry", "replay", [(one, generations[one], code) for one in ids], batch_id=BATCH)


def test_what_is_planned_is_not_done(ledger: Ledger, store: Store) -> None:
    ids = die(ledger, 2)

    plan(ledger, ids)
    ledger.reap()
    with store.unchanged():
        ledger.reap()

    batch = Batches(ledger).get(BATCH)
    assert (batch.state, batch.total, batch.done, batch.rate, batch.by) == ("planned", 2, 0, None, None)
    assert ledger.counts() == {("report", "dead"): 2}


def test_a_job_that_has_moved_since_it_was_planned_is_skipped(ledger: Ledger) -> None:
    """Also one that is dead again: somebody has retried it, and that was not this person's word."""
    same, retried, again, given_up = die(ledger, 4)
    plan(ledger, [same, retried, again, given_up])
    ledger.retry(again)
    ledger.settle(claim(ledger), Fail("no luck", permanent=True))
    ledger.retry(retried)
    ledger.skip(given_up)

    batch = Batches(ledger).run(BATCH)

    assert skipped(batch) == {
        same: None,
        retried: "STALE_PLAN",
        again: "STALE_PLAN",
        given_up: "STALE_PLAN",
    }


def test_a_job_that_moved_before_it_was_planned_is_skipped(ledger: Ledger) -> None:
    """Who plans has seen it in another generation."""
    (job_id,) = die(ledger, 1)
    ledger.retry(job_id)
    ledger.settle(claim(ledger), Fail("no luck", permanent=True))
    Batches(ledger).plan("retry", "replay", [(job_id, 1, "")], batch_id=BATCH)

    assert skipped(Batches(ledger).run(BATCH)) == {job_id: "STALE_PLAN"}


def test_what_was_to_be_skipped_is_skipped_whatever_it_has_become(ledger: Ledger) -> None:
    lease = unknown_outcome(ledger)
    plan(ledger, [lease.id], "OUTCOME_UNKNOWN")
    ledger.confirm(lease.id, False)

    batch = Batches(ledger).run(BATCH)

    assert skipped(batch) == {lease.id: "OUTCOME_UNKNOWN"}
    assert (batch.state, batch.total, batch.success, batch.skipped) == ("done", 1, 0, 1)
    assert view(ledger, lease).status == "dead"


def test_a_batch_is_begun_once_and_keeps_its_first_word(ledger: Ledger, store: Store) -> None:
    plan(ledger, die(ledger, 2))
    first = Batches(ledger).run(BATCH, rate=5, reason="first", by="ada")

    with store.unchanged():
        again = Batches(ledger).run(BATCH, rate=7, reason="second", by="bob")

    assert again == first
    assert (again.rate, again.reason, again.by) == (5, "first", "ada")


def test_a_batch_that_is_not_on_record_is_not_found(ledger: Ledger, store: Store) -> None:
    dead(ledger)

    with store.unchanged():
        for act in (Batches(ledger).run, Batches(ledger).begin, Batches(ledger).get):
            with pytest.raises(NotFound, match=BATCH):
                act(BATCH)
        with pytest.raises(NotFound, match=BATCH):
            work_off(ledger, BATCH)
        with pytest.raises(BadInput, match="not the id of a batch"):
            Batches(ledger).run("nowhere")


def test_the_newest_batches_are_kept_and_those_that_run(ledger: Ledger, at: At) -> None:
    (job_id,) = die(ledger, 1)
    plan(ledger, [job_id])
    begin(ledger, BATCH)
    made = [
        Batches(at(START + number)).plan("skip", "skip", [(NOWHERE, None, "")])
        for number in range(1, MOST_BATCHES + 5)
    ]

    listed = [batch.id for batch in Batches(ledger).newest()]

    assert listed == [*made[::-1][: MOST_BATCHES - 1], BATCH]


def test_the_oldest_goes_first_and_all_that_are_too_many_go(ledger: Ledger, at: At) -> None:
    """While more than 100 run they all stay; then there are several too many at once."""
    nobody = [(NOWHERE, None, "")]
    made = [Batches(at(START + number)).plan("skip", "skip", nobody) for number in range(MOST_BATCHES)]
    for batch_id in made:
        begin(ledger, batch_id)
    more = [Batches(at(START + 500 + number)).plan("skip", "skip", nobody) for number in range(3)]
    for batch_id in more[:2]:
        begin(ledger, batch_id)
    ran = [*made, *more[:2]]
    kept = len(Batches(ledger).newest(200))
    for batch_id in ran:
        work_off(ledger, batch_id)

    last = Batches(at(START + 600)).plan("skip", "skip", nobody)

    listed = [batch.id for batch in Batches(ledger).newest(200)]
    assert kept >= MOST_BATCHES + 2
    assert listed == [last, *[batch_id for batch_id in [*ran, *more[2:]][::-1] if batch_id in listed]]
    assert len(listed) == MOST_BATCHES
    assert not set(made[:2]) & set(listed)


def test_batches_are_listed_newest_first_without_their_jobs(ledger: Ledger, at: At) -> None:
    ids = die(ledger, 2)
    first = Batches(ledger).retry(ids)
    second = Batches(at(START + 1)).skip(ids)

    listed = Batches(ledger).newest(1)

    assert [batch.id for batch in listed] == [second.id]
    assert listed[0].jobs == ()
    assert (listed[0].success, Batches(ledger).get(first.id)) == (2, first)


# -- whoever dies on the way ------------------------------------------------------------------------------------------


CALLS = [("batch_plan", 1), ("batch_begin", 1), ("batch_work", 1), ("batch_work", 2), ("batch_read", 1)]


@pytest.mark.parametrize(("script", "nth"), CALLS)
def test_a_batch_whose_reply_was_lost_is_sent_again_and_done_once(
    ledger: Ledger, faults: Faults, script: str, nth: int
) -> None:
    ids = die(ledger, 75)
    faults.lose_reply(script, nth)

    with pytest.raises(StoreUnreachable):
        Batches(ledger).retry(ids, batch_id=BATCH)
    batch = Batches(ledger).retry(ids, batch_id=BATCH)

    assert (batch.success, batch.skipped) == (75, 0)
    assert {job.generation for job in ledger.get_many(ids)} == {2}


@pytest.mark.parametrize(
    ("when", "script", "nth", "done_by_then"),
    [
        ("before", "batch_plan", 1, None),
        ("after", "batch_plan", 1, None),
        ("before", "batch_begin", 1, None),
        ("after", "batch_begin", 1, 0),
        ("before", "batch_work", 1, 0),
        ("after", "batch_work", 1, 50),
        ("before", "batch_work", 2, 50),
        ("after", "batch_work", 2, 75),
    ],
)
def test_a_batch_that_has_begun_is_done_though_its_caller_is_dead(
    ledger: Ledger, at: At, faults: Faults, when: str, script: str, nth: int, done_by_then: int | None
) -> None:
    ids = die(ledger, 75)
    (faults.die_before if when == "before" else faults.die_after)(script, nth)
    with pytest.raises(Died):
        Batches(ledger).retry(ids, batch_id=BATCH)
    retried = ledger.counts().get(("report", "pending"), 0)

    later = at(START + DRIVE_MS)
    sweep_and_reap(later)

    assert retried == (done_by_then or 0)
    assert ledger.counts() == {("report", "dead" if done_by_then is None else "pending"): 75}
    if done_by_then is not None:
        assert Batches(later).get(BATCH).state is BatchState.DONE


def sweep_and_reap(ledger: Ledger) -> None:
    """What other processes do: the sweep puts into the index what the ledger says, and a reaper visits."""
    ledger.index.put(ledger.standing())
    for _tenant in ledger.index.take(REAP, 10).tenants:
        ledger.reap()


def test_nobody_else_comes_while_its_caller_is_at_it(ledger: Ledger, at: At) -> None:
    plan(ledger, die(ledger, 2))
    begin(ledger, BATCH)

    at(START + DRIVE_MS - 1).reap()

    assert Batches(ledger).get(BATCH).done == 0


def test_the_index_is_told_when_to_come(ledger: Ledger, at: At) -> None:
    """The caller dies right after its first word, and no sweep comes by."""
    plan(ledger, die(ledger, 2))
    begin(ledger, BATCH)

    assert ledger.index.take(REAP, 10).tenants == []
    assert at(START + DRIVE_MS).index.take(REAP, 10).tenants == ["acme"]


def test_a_visit_does_not_put_off_the_next_one_for_ever(ledger: Ledger, at: At, faults: Faults) -> None:
    """A reaper dies too, and the next one comes."""
    plan(ledger, die(ledger, 75))
    begin(ledger, BATCH)
    later = at(START + DRIVE_MS)
    faults.die_before("batch_work", 2)
    with pytest.raises(Died):
        later.reap()

    sweep_and_reap(at(START + 2 * DRIVE_MS))

    assert Batches(ledger).get(BATCH).state is BatchState.DONE


def test_after_each_slice_and_each_visit_the_next_one_has_its_time(
    ledger: Ledger, at: At, faults: Faults
) -> None:
    plan(ledger, die(ledger, 4))
    begin(ledger, BATCH)
    work_one(at(START + SECOND), BATCH, 0, 2)

    at(START + DRIVE_MS).reap()
    by_then = Batches(ledger).get(BATCH).done
    faults.die_before("batch_work")
    with pytest.raises(Died):
        at(START + SECOND + DRIVE_MS).reap()
    at(START + SECOND + 2 * DRIVE_MS - 1).reap()
    still = Batches(ledger).get(BATCH).done
    at(START + SECOND + 2 * DRIVE_MS).reap()

    assert (by_then, still, Batches(ledger).get(BATCH).done) == (2, 2, 4)


def test_a_visit_to_a_batch_that_does_not_run_is_the_last(ledger: Ledger, store: Store) -> None:
    """Such an entry is damage: nobody is sent there for ever."""
    redis: Any = store.redis
    plan(ledger, die(ledger, 1))
    redis.zadd(ledger.keys("batch_work"), {BATCH: START, NOWHERE: START})

    ledger.reap()

    assert not redis.exists(ledger.keys("batch_work"))
    assert Batches(ledger).get(BATCH).done == 0


def test_two_that_work_off_one_batch_do_each_slice_once(ledger: Ledger, faults: Faults) -> None:
    ids = die(ledger, 10)
    plan(ledger, ids)
    begin(ledger, BATCH)

    def other() -> None:
        faults.after_each = None
        work_one(ledger, BATCH, 2, 2)

    faults.after_each = other
    work_off(ledger, BATCH, 2)

    batch = Batches(ledger).get(BATCH)
    assert (batch.success, batch.skipped) == (10, 0)
    assert [ledger.get(job_id).run_at - START for job_id in ids] == [50 * at for at in range(10)]


def test_a_slice_of_another_moment_does_nothing(ledger: Ledger, store: Store) -> None:
    plan(ledger, die(ledger, 4))
    begin(ledger, BATCH)
    work_one(ledger, BATCH, 0, 2)

    with store.unchanged():
        work_one(ledger, BATCH, 0, 2)
        work_one(ledger, BATCH, 3, 2)


def test_what_it_has_made_due_is_told_to_the_index(ledger: Ledger) -> None:
    ids = die(ledger, 2)
    ledger.claim("advance", "one")

    Batches(ledger).retry(ids)

    assert ledger.index.take(DUE + "advance", 10).tenants == ["acme"]
