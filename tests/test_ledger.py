"""The life of a job, verb by verb: what each does when it is allowed."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tenure.lease.jobs import REAP, Lease, Progress
from tenure.lease.leases import Leases
from tenure.lease.ledger import GRACE_MS, LEASE_MS, Ledger, NewJob
from tenure.lease.outcome import Fail, GiveBack, Lose, NextChunk, SkipRest, Succeed
from tenure.lease.retry import Retry
from tenure.scripts.errors import BadInput, KeyReused, NotFound, StaleFence
from tenure.scripts.states import Cause
from tenure.testing import START

from .given import At, Store, claim, claimed_ids, running, view

SECOND = 1_000
MINUTE = 60 * SECOND
BAND = 2**42


# -- enqueue ----------------------------------------------------------------------------------------------------------


def test_an_enqueued_job_is_pending_and_due_at_once(ledger: Ledger) -> None:
    job = ledger.enqueue(NewJob("report"))

    found = ledger.get(job.id)
    assert (found.status, found.run_at, found.created_at, found.revision) == ("pending", START, START, 1)
    assert found.blocker is None
    assert ledger.counts() == {("report", "pending"): 1}


def test_a_job_for_later_is_claimed_at_its_time_and_not_a_millisecond_before(ledger: Ledger, at: At) -> None:
    job = ledger.enqueue(NewJob("report", when="+5000"))

    early = at(START + 4_999).claim("advance", "one")
    on_time = at(START + 5_000).claim("advance", "one")

    assert (early.leases, early.reason, early.news.due_ms) == ([], "not_due", START + 5_000)
    assert [lease.id for lease in on_time.leases] == [job.id]


def test_a_job_for_an_instant_in_the_past_is_due_now(ledger: Ledger) -> None:
    job = ledger.enqueue(NewJob("report", when=START - MINUTE))

    assert claimed_ids(ledger, 1) == [job.id]


@pytest.mark.parametrize("delay_ms", [2 * LEASE_MS, 10 * LEASE_MS, 30 * 24 * 60 * MINUTE])
def test_a_long_delay_makes_one_job_that_runs_once(ledger: Ledger, at: At, delay_ms: int) -> None:
    """Some brokers deliver a delayed job again whenever their visibility time-out passes."""
    job = ledger.enqueue(NewJob("report", when=f"+{delay_ms}"))
    for share in range(10):
        now = at(START + delay_ms * share // 10)
        assert now.reap() == []
        assert now.claim("advance", "one").leases == []

    lease = claim(at(START + delay_ms))

    assert lease.id == job.id
    assert at(START + delay_ms).claim("advance", "two").leases == []


# -- idempotency keys -------------------------------------------------------------------------------------------------


def test_the_same_key_gives_the_same_job(ledger: Ledger, store: Store) -> None:
    first = ledger.enqueue(NewJob("report", b"args", idempotency_key="order-7"))

    with store.unchanged():
        again = ledger.enqueue(NewJob("report", b"args", idempotency_key="order-7"))

    assert (again.id, again.created) == (first.id, False)


def test_other_arguments_under_the_same_key_are_refused(ledger: Ledger, store: Store) -> None:
    first = ledger.enqueue(NewJob("report", b"args", idempotency_key="order-7"))

    with store.unchanged(), pytest.raises(KeyReused, match=f"job {first.id} \\(report, pending\\)"):
        ledger.enqueue(NewJob("report", b"others", idempotency_key="order-7"))


def test_a_key_of_a_job_of_another_task_says_so(ledger: Ledger, store: Store) -> None:
    first = ledger.enqueue(NewJob("report", b"args", idempotency_key="order-7"))

    for other, said in (
        (NewJob("mail", b"args"), "is of another task than mail"),
        (NewJob("report"), "has other arg"),
    ):
        with store.unchanged(), pytest.raises(KeyReused, match=f"job {first.id} .*, which {said}"):
            ledger.enqueue(replace(other, idempotency_key="order-7"))


def test_a_kept_key_still_gives_the_job_after_its_end(ledger: Ledger) -> None:
    lease = running(ledger, idempotency_key="order-7")
    ledger.settle(lease, Succeed())

    again = ledger.enqueue(NewJob("report", idempotency_key="order-7"))

    assert (again.id, again.created) == (lease.id, False)


@pytest.mark.parametrize("end", [Succeed(), SkipRest("nothing to do"), Fail("broken", permanent=True)])
def test_an_active_key_is_free_again_when_the_job_has_ended(
    ledger: Ledger, end: Succeed | SkipRest | Fail
) -> None:
    lease = running(ledger, idempotency_key="sync", unique_mode="active")
    during = ledger.enqueue(NewJob("report", idempotency_key="sync", unique_mode="active"))
    ledger.settle(lease, end)

    after = ledger.enqueue(NewJob("report", b"others", idempotency_key="sync", unique_mode="active"))

    assert (during.id, during.created) == (lease.id, False)
    assert (after.id != lease.id, after.created) == (True, True)


def test_an_active_key_is_free_again_after_a_cancel(ledger: Ledger) -> None:
    job = ledger.enqueue(NewJob("report", idempotency_key="sync", unique_mode="active"))
    ledger.cancel(job.id)

    assert ledger.enqueue(NewJob("report", idempotency_key="sync", unique_mode="active")).created


def test_two_tenants_may_use_the_same_key(ledger: Ledger) -> None:
    other = Ledger(ledger.scripts, type(ledger.keys)(ledger.keys.namespace, "other"), ledger.index)

    assert ledger.enqueue(NewJob("report", idempotency_key="order-7")).created
    assert other.enqueue(NewJob("report", idempotency_key="order-7")).created


def test_one_refused_job_of_a_batch_does_not_hold_back_the_others(ledger: Ledger) -> None:
    ledger.enqueue(NewJob("report", b"args", idempotency_key="order-7"))

    first, refused, last = ledger.enqueue_many(
        [NewJob("report"), NewJob("report", b"others", idempotency_key="order-7"), NewJob("report")]
    )

    assert isinstance(refused, KeyReused)
    assert ledger.counts() == {("report", "pending"): 3}
    assert not isinstance(first, Exception)
    assert not isinstance(last, Exception)


# -- claim ------------------------------------------------------------------------------------------------------------


def test_a_claim_leases_the_job_and_opens_its_first_attempt(ledger: Ledger) -> None:
    job = ledger.enqueue(NewJob("report", b"args"))

    lease = claim(ledger, "one")

    found = view(ledger, lease)
    assert (lease.id, lease.task, lease.args, lease.attempt) == (job.id, "report", b"args", 1)
    assert lease.expires_at == START + LEASE_MS
    assert lease.deadline == START + 10 * MINUTE + GRACE_MS
    assert (found.status, found.worker, found.fence, found.started_at) == (
        "running",
        "one",
        lease.fence,
        START,
    )
    assert [(attempt.number, attempt.status, attempt.worker) for attempt in found.attempts] == [
        (1, "running", "one")
    ]


def test_a_lease_does_not_pass_the_deadline_of_its_job(ledger: Ledger) -> None:
    lease = running(ledger, fields={"timeout": "1000"})

    assert lease.expires_at == lease.deadline == START + 1000 + GRACE_MS


def test_a_claimed_job_is_not_claimed_again(ledger: Ledger) -> None:
    ledger.enqueue(NewJob("report"))

    first, second = ledger.claim("advance", "one"), ledger.claim("advance", "two")

    assert (len(first.leases), first.reason) == (1, "")
    assert (second.leases, second.reason) == ([], "no_jobs")


def test_a_claim_takes_from_its_own_pool_only(ledger: Ledger) -> None:
    ledger.enqueue(NewJob("report"))
    call = ledger.enqueue(NewJob("call", pool="outbound"))

    assert claimed_ids(ledger, 10, "outbound") == [call.id]


def test_jobs_of_one_priority_come_in_the_order_of_their_due_times(ledger: Ledger, at: At) -> None:
    third = ledger.enqueue(NewJob("report", when=START + 30))
    first = ledger.enqueue(NewJob("report", when=START + 10))
    second = ledger.enqueue(NewJob("report", when=START + 20))

    assert claimed_ids(at(START + 30), 10) == [first.id, second.id, third.id]


def test_jobs_due_at_the_same_instant_come_in_the_order_of_their_ids(ledger: Ledger) -> None:
    ids = sorted(ledger.enqueue(NewJob("report")).id for _ in range(5))

    assert claimed_ids(ledger, 10) == ids


def test_the_urgent_come_first_and_every_fourth_is_the_earliest(ledger: Ledger, at: At) -> None:
    """Priority alone would starve the others: a steady stream of urgent jobs must not hold back one job for ever."""
    old = [ledger.enqueue(NewJob("report", when=START + ms, fields={"priority": "9"})).id for ms in range(3)]
    urgent = [
        ledger.enqueue(NewJob("report", when=START + 10 + ms, fields={"priority": "0"})).id for ms in range(9)
    ]
    now = at(START + 100)

    order = [claimed_ids(now, 1)[0] for _ in range(12)]

    assert order == [*urgent[0:3], old[0], *urgent[3:6], old[1], *urgent[6:9], old[2]]


def test_a_batch_is_in_the_order_of_single_claims(ledger: Ledger, at: At) -> None:
    old = [ledger.enqueue(NewJob("report", when=START + ms, fields={"priority": "9"})).id for ms in range(2)]
    urgent = [
        ledger.enqueue(NewJob("report", when=START + 10 + ms, fields={"priority": "0"})).id for ms in range(6)
    ]

    assert claimed_ids(at(START + 100), 8) == [*urgent[0:3], old[0], *urgent[3:6], old[1]]


def test_a_claim_without_a_choice_is_nobodys_turn(ledger: Ledger, at: At) -> None:
    """Turns are counted among claims that pass an earlier job over; what is due later is not passed over."""
    ledger.enqueue(NewJob("report", when=START + MINUTE, fields={"priority": "7"}))
    for _ in range(3):
        running(ledger)
    old = ledger.enqueue(NewJob("report", when=START, fields={"priority": "9"})).id
    urgent = [
        ledger.enqueue(NewJob("report", when=START + 10, fields={"priority": "0"})).id for _ in range(4)
    ]

    assert claimed_ids(at(START + 100), 4) == [*sorted(urgent)[:3], old]


def test_of_two_as_old_the_urgent_one_has_the_fourth_turn_too(ledger: Ledger) -> None:
    for priority in ("9", "0"):
        for _ in range(4):
            ledger.enqueue(NewJob("report", fields={"priority": priority}))

    assert [ledger.get(job).priority for job in claimed_ids(ledger, 5)] == [0, 0, 0, 0, 9]


def test_the_fourth_turn_is_of_the_earliest_among_all_priorities(ledger: Ledger, at: At) -> None:
    whens = {"0": 30, "3": 20, "5": 10, "9": 15}
    for priority, ms in whens.items():
        for _ in range(4):
            ledger.enqueue(NewJob("report", when=START + ms, fields={"priority": priority}))

    assert [ledger.get(job).priority for job in claimed_ids(at(START + 100), 4)] == [0, 0, 0, 5]


def test_a_job_for_the_last_instant_there_is_is_seen(ledger: Ledger) -> None:
    ledger.enqueue(NewJob("report", when=BAND - 1))

    empty = ledger.claim("advance", "one")

    assert (empty.reason, empty.news.due_ms) == ("not_due", BAND - 1)


def test_a_stray_entry_in_a_queue_stands_in_front_of_nobody(ledger: Ledger, store: Store) -> None:
    """The row decides, and the entry goes; who claims comes again at once, because there may be more behind it."""
    held = running(ledger)
    queue = ledger.keys("queue", line="advance")
    store.redis.zadd(queue, {held.id: START, "01J00000000000000000000000": START})

    empty = ledger.claim("advance", "two", 5)

    assert (empty.leases, empty.news.due_ms) == ([], START)
    assert not store.redis.exists(queue)
    assert view(ledger, held).fence == held.fence


def test_a_future_job_of_a_better_priority_does_not_hide_a_due_one(ledger: Ledger) -> None:
    ledger.enqueue(NewJob("report", when=START + MINUTE, fields={"priority": "0"}))
    due = ledger.enqueue(NewJob("report", fields={"priority": "9"}))

    assert claimed_ids(ledger, 10) == [due.id]


def test_a_claim_says_when_the_next_job_is_due(ledger: Ledger) -> None:
    ledger.enqueue(NewJob("report"))
    ledger.enqueue(NewJob("report", when=START + 2 * MINUTE, fields={"priority": "1"}))
    ledger.enqueue(NewJob("report", when=START + MINUTE, fields={"priority": "9"}))

    first, second = ledger.claim("advance", "one"), ledger.claim("advance", "one")

    assert (len(first.leases), first.news.due_ms) == (1, START + MINUTE)
    assert (len(second.leases), second.reason, second.news.due_ms) == (0, "not_due", START + MINUTE)


def test_a_claim_that_leaves_due_jobs_says_so(ledger: Ledger) -> None:
    """Else the index forgets a tenant whose backlog is longer than one claim."""
    for _ in range(4):
        ledger.enqueue(NewJob("report"))

    due = [ledger.claim("advance", "one", want).news.due_ms for want in (1, 2, 1, 1)]

    assert due == [START, START, None, None]


def test_fences_grow_with_every_claim_of_the_tenant(ledger: Ledger) -> None:
    for _ in range(20):
        ledger.enqueue(NewJob("report"))

    fences = [lease.fence for lease in ledger.claim("advance", "one", 10).leases]
    fences += [claim(ledger).fence for _ in range(10)]

    assert fences == sorted(set(fences))


def test_fences_grow_also_when_the_servers_clock_goes_back(ledger: Ledger, at: At) -> None:
    first = running(ledger)

    later = running(at(START - 60 * MINUTE))

    assert later.fence > first.fence


# -- renew ------------------------------------------------------------------------------------------------------------


def test_a_renewal_counts_from_now(ledger: Ledger, at: At) -> None:
    lease = running(ledger)

    (expiry,) = at(START + 15 * SECOND).renew([lease])

    assert expiry == START + 15 * SECOND + LEASE_MS
    assert view(ledger, lease).lease_until == expiry


def test_renewals_stop_at_the_deadline(ledger: Ledger, at: At) -> None:
    lease = running(ledger)
    shortly_before = lease.deadline - SECOND
    for now in range(START, shortly_before, 30 * SECOND):
        at(now).renew([lease])

    (expiry,) = at(shortly_before).renew([lease])

    assert expiry == lease.deadline


def test_a_lease_that_ended_is_still_renewed_if_nobody_took_the_job(ledger: Ledger, at: At) -> None:
    lease = running(ledger)

    (expiry,) = at(lease.expires_at + 1).renew([lease])

    assert expiry == lease.expires_at + 1 + LEASE_MS


def test_a_lost_lease_among_many_does_not_stop_the_others(ledger: Ledger) -> None:
    kept, lost = running(ledger), running(ledger)
    ledger.cancel(lost.id)

    expiry, refused = ledger.renew([kept, lost])

    assert expiry == START + LEASE_MS
    assert isinstance(refused, StaleFence)


# -- settle -----------------------------------------------------------------------------------------------------------


def test_success_keeps_the_result(ledger: Ledger, at: At) -> None:
    lease = running(ledger)

    at(START + 1234).settle(lease, Succeed(b"42"))

    found = view(ledger, lease)
    assert (found.status, found.result, found.finished_at) == ("succeeded", b"42", START + 1234)
    (attempt,) = found.attempts
    assert (attempt.status, attempt.cause, attempt.ended_at) == ("succeeded", None, START + 1234)


def test_a_skipped_job_has_succeeded_and_says_why(ledger: Ledger) -> None:
    lease = running(ledger)

    ledger.settle(lease, SkipRest("no new orders"))

    found = view(ledger, lease)
    assert (found.status, found.reason, found.attempts[0].status) == ("succeeded", "no new orders", "skipped")


def test_a_failed_attempt_comes_again_after_its_delay(ledger: Ledger, at: At) -> None:
    lease = running(ledger)

    ledger.settle(lease, Fail("ValueError: no", delay_ms=30_000, stack="Traceback ..."))

    found = view(ledger, lease)
    assert (found.status, found.run_at, found.failures) == ("pending", START + 30_000, 1)
    assert (found.attempts[0].status, found.attempts[0].cause) == ("failed", "raised")
    assert (found.attempts[0].error, found.attempts[0].stack) == ("ValueError: no", "Traceback ...")
    assert at(START + 29_999).claim("advance", "two").leases == []
    assert claim(at(START + 30_000), "two").attempt == 2


@pytest.mark.parametrize("max_attempts", [1, 2, 3, 7])
def test_a_job_is_dead_after_its_last_attempt(ledger: Ledger, max_attempts: int) -> None:
    ledger.enqueue(NewJob("report", fields={"max_attempts": str(max_attempts)}))

    for _ in range(max_attempts):
        lease = claim(ledger)
        ledger.settle(lease, Fail("no luck"))

    found = view(ledger, lease)
    assert (found.status, found.dead_reason, found.failures) == ("dead", "attempts_exhausted", max_attempts)
    assert [attempt.number for attempt in found.attempts] == list(range(1, max_attempts + 1))
    assert ledger.claim("advance", "one").reason == "no_jobs"


def test_a_permanent_error_is_not_tried_again(ledger: Ledger) -> None:
    lease = running(ledger)

    ledger.settle(lease, Fail("PaymentRefused", permanent=True))

    assert (view(ledger, lease).status, view(ledger, lease).dead_reason) == ("dead", "permanent_error")


@pytest.mark.parametrize(
    ("end", "ends_as", "reason"),
    [
        (Fail("no luck"), "failed", "attempts_exhausted"),
        (Fail("never", permanent=True), "failed", "permanent_error"),
        (Lose("exit code -9"), "dead", "lost_too_often"),
    ],
    ids=["attempts exhausted", "permanent error", "lost too often"],
)
def test_a_job_whose_owner_handles_failure_fails_and_only_a_poisonous_one_is_dead(
    ledger: Ledger, store: Store, end: Fail | Lose, ends_as: str, reason: str
) -> None:
    lease = running(ledger, fields={"end_as": "failed", "max_attempts": "1", "max_lost": "1"})

    ledger.settle(lease, end)

    found = view(ledger, lease)
    assert (found.status, found.dead_reason, found.finished_at) == (ends_as, reason, START)
    assert [job.id for job in ledger.list(status=ends_as).items] == [lease.id]


def test_the_reaper_knows_whose_owner_handles_failure(ledger: Ledger, at: At) -> None:
    lease = running(ledger, fields={"end_as": "failed", "timeout": "1000", "max_attempts": "1"})

    assert at(lease.deadline).reap() == [(lease.id, "failed")]


@pytest.mark.parametrize("cause", [Cause.RAISED, Cause.LIMIT, Cause.REFUSED, Cause.TIMEOUT])
def test_the_cause_of_a_failure_is_kept(ledger: Ledger, cause: Cause) -> None:
    lease = running(ledger)

    ledger.settle(lease, Fail("why", cause))

    assert view(ledger, lease).attempts[0].cause == cause


def test_a_killed_worker_spends_the_losses_and_not_the_attempts(ledger: Ledger) -> None:
    lease = running(ledger)

    ledger.settle(lease, Lose("exit code -9"))

    found = view(ledger, lease)
    assert (found.status, found.run_at, found.failures, found.losses) == ("pending", START, 0, 1)
    assert (found.attempts[0].cause, found.attempts[0].error) == ("killed", "exit code -9")


def test_a_job_that_kills_its_workers_is_dead_after_the_third(ledger: Ledger) -> None:
    """A poison job must not kill one worker after the other for ever."""
    ledger.enqueue(NewJob("report", fields={"max_attempts": "100"}))
    for _ in range(3):
        lease = claim(ledger)
        ledger.settle(lease, Lose("exit code -11"))

    found = view(ledger, lease)
    assert (found.status, found.dead_reason, found.losses) == ("dead", "lost_too_often", 3)


def test_a_job_that_may_end_its_process_is_to_run_alone(
    ledger: Ledger,
) -> None:
    ledger.enqueue(NewJob("report", fields={"max_attempts": "9", "max_lost": "3"}))
    alone = list[bool]()
    for outcome in (Fail("no"), Lose("killed"), Fail("no"), Fail("no"), Lose("killed"), Fail("no")):
        lease = claim(ledger)
        alone.append(lease.alone)
        ledger.settle(lease, outcome)

    assert alone == [False, False, True, False, False, True]
    assert claim(ledger).alone


def test_a_job_handed_back_spends_nothing(ledger: Ledger) -> None:
    lease = running(ledger)

    ledger.settle(lease, GiveBack())

    found = view(ledger, lease)
    assert (found.status, found.failures, found.losses) == ("pending", 0, 0)
    assert (found.attempts[0].status, found.attempts[0].cause) == ("canceled", "released")
    redis: Any = ledger.scripts.redis
    assert not redis.exists(ledger.keys("gates"))  # where it would stand that a worker does not know the task
    assert claim(ledger, "two").attempt == 2


def test_a_job_handed_back_before_it_started_had_no_attempt(ledger: Ledger) -> None:
    lease = running(ledger)

    ledger.settle(lease, GiveBack(started=False))

    assert (view(ledger, lease).attempts, view(ledger, lease).started_at) == ((), None)
    again = claim(ledger.at(START + 5_000), "two")
    assert again.attempt == 1
    assert again.fence > lease.fence
    assert view(ledger, lease).started_at == START + 5_000


def test_a_job_that_was_tried_before_keeps_when_that_was(ledger: Ledger) -> None:
    lease = running(ledger)
    ledger.settle(lease, Fail("no luck"))

    ledger.settle(claim(ledger.at(START + 5_000)), GiveBack(started=False))

    assert (len(view(ledger, lease).attempts), view(ledger, lease).started_at) == (1, START)


def test_one_refused_outcome_of_a_batch_does_not_hold_back_the_others(ledger: Ledger) -> None:
    first, lost, last = running(ledger), running(ledger), running(ledger)
    ledger.cancel(lost.id)
    ends = [(lease.id, lease.fence, Succeed()) for lease in (first, lost, last)]

    answers, _ = ledger.scripts.run(ledger.settle_call(ends))

    assert [answers[0], answers[2]] == [None, None]
    assert isinstance(answers[1], StaleFence)
    assert ledger.counts() == {("report", "succeeded"): 2, ("report", "canceled"): 1}


# -- chunks -----------------------------------------------------------------------------------------------------------


def test_a_chunk_keeps_the_attempt_open_under_a_rising_fence(ledger: Ledger) -> None:
    lease = running(ledger, fields={"background": "1"})

    fences = [lease.fence]
    for chunk in range(1, 6):
        ledger.settle(lease, NextChunk(b"after %d" % chunk, done=chunk, total=6))
        lease = claim(ledger, f"worker {chunk}")
        fences.append(lease.fence)
        assert (lease.cursor, lease.chunk, lease.attempt) == (b"after %d" % chunk, chunk, 1)
    ledger.settle(lease, Succeed())

    found = view(ledger, lease)
    assert fences == sorted(set(fences))
    (attempt,) = found.attempts
    assert (attempt.status, attempt.chunks, attempt.worker, attempt.fence) == (
        "succeeded",
        5,
        "worker 5",
        fences[-1],
    )


def test_a_chunk_forgives_the_failures_before_it(ledger: Ledger) -> None:
    lease = running(ledger)
    ledger.settle(lease, Fail("once"))
    ledger.settle(claim(ledger), Fail("twice"))

    ledger.settle(claim(ledger), NextChunk(b"cursor"))
    ledger.settle(claim(ledger), Fail("once again"))

    assert (view(ledger, lease).status, view(ledger, lease).failures) == ("pending", 1)


def test_a_retry_starts_at_the_last_committed_chunk(ledger: Ledger) -> None:
    lease = running(ledger, fields={"background": "1"})
    ledger.settle(lease, NextChunk(b"after 100", done=100))
    ledger.settle(claim(ledger), Fail("broken pipe"))

    again = claim(ledger, "two")

    assert (again.attempt, again.chunk, again.cursor) == (2, 1, b"after 100")


def test_a_chunk_may_ask_for_a_pause(ledger: Ledger, at: At) -> None:
    lease = running(ledger)

    ledger.settle(lease, NextChunk(b"cursor", delay_ms=5_000))

    assert at(START + 4_999).claim("advance", "one").leases == []
    assert claim(at(START + 5_000)).id == lease.id


def test_a_chunk_handed_back_before_it_started_leaves_the_attempt_open(ledger: Ledger) -> None:
    lease = running(ledger)
    ledger.settle(lease, NextChunk(b"cursor"))

    ledger.settle(claim(ledger), GiveBack(started=False))

    found = view(ledger, lease)
    assert [(attempt.number, attempt.status) for attempt in found.attempts] == [(1, "running")]
    assert claim(ledger, "two").attempt == 1


def test_a_checkpoint_commits_without_giving_up_the_slot(ledger: Ledger) -> None:
    lease = running(ledger, fields={"background": "1"})

    ledger.report(lease, cursor=b"after 10", done=10, total=40, message="ten", lines=["one", "two"])

    found = ledger.get(lease.id, lines=10)
    progress = found.progress
    assert progress is not None
    assert (found.status, found.cursor, found.fence) == ("running", b"after 10", lease.fence)
    assert (progress.done, progress.total, progress.message) == (10, 40, "ten")
    assert [(number, text) for number, _, text in progress.lines] == [(1, "one"), (2, "two")]


def test_a_job_that_is_no_background_task_keeps_its_cursor_and_no_progress(
    ledger: Ledger, store: Store
) -> None:
    """Its row says that there is no progress to remove, so what was written would stay for ever."""
    lease = running(ledger)

    ledger.report(lease, cursor=b"after 10", done=10, total=40, doing=3, message="ten", lines=["one"])

    assert view(ledger, lease).cursor == b"after 10"
    ledger.settle(lease, NextChunk(b"after 20", done=20, total=40, message="twenty"))
    assert view(ledger, lease).cursor == b"after 20"
    assert not [name for name in store.dump() if ":p:" in name or ":pl:" in name]


def test_work_inside_a_chunk_is_shown_apart_and_gone_when_the_attempt_ends(ledger: Ledger) -> None:
    lease = running(ledger, fields={"background": "1"})
    ledger.report(lease, cursor=b"c", done=10, total=40)

    ledger.report(lease, doing=17)
    during = view(ledger, lease).progress
    ledger.settle(lease, Fail("broken"))
    after = view(ledger, lease).progress

    assert during is not None
    assert after is not None
    assert (during.done, during.doing) == (10, 17)
    assert (after.done, after.doing) == (10, None)


def test_only_a_checkpoint_moves_what_is_done_and_a_total_may_come_without(ledger: Ledger) -> None:
    lease = running(ledger, fields={"background": "1"})

    ledger.report(lease, done=5, total=9)
    before = view(ledger, lease).progress
    ledger.report(lease, cursor=b"c", done=5)
    after = view(ledger, lease).progress

    assert before
    assert after
    assert (before.done, before.total) == (None, 9)
    assert (after.done, after.total) == (5, 9)


def test_a_checkpoint_takes_the_place_of_what_was_under_way(ledger: Ledger) -> None:
    lease = running(ledger, fields={"background": "1"})
    ledger.report(lease, doing=9, total=40)

    ledger.report(lease, cursor=b"c", done=10)

    progress = view(ledger, lease).progress
    assert progress
    assert (progress.done, progress.doing) == (10, None)


def test_the_curve_of_a_long_task_stays_in_a_bounded_place(ledger: Ledger) -> None:
    lease = running(ledger, fields={"background": "1"})
    for done in range(1, 301):
        ledger.at(START + 100 * done).report(lease, cursor=b"c", done=done)

    progress = view(ledger, lease).progress
    assert progress
    assert progress.samples == tuple((100 * done, done) for _, done in progress.samples)
    steps = [done for _, done in progress.samples]
    assert 24 <= len(steps) <= 64
    assert (steps[0], steps[-1]) == (1, 300)
    assert steps == sorted(set(steps))
    assert max(after - before for before, after in pairwise(steps)) <= 300 / 12, "the whole curve, evenly"


def test_a_retry_says_once_where_it_goes_on_and_its_next_chunk_does_not(ledger: Ledger) -> None:
    lease = running(ledger, fields={"background": "1"})
    ledger.settle(lease, NextChunk(b"c", done=1, total=9))
    ledger.settle(claim(ledger), Fail("broken"))
    for done in (2, 3):
        ledger.settle(claim(ledger), NextChunk(b"c", done=done, total=9))
    claim(ledger)

    progress = ledger.get(lease.id, lines=10).progress
    assert progress
    assert [text for _, _, text in progress.lines] == ["attempt 2 goes on from 1 of 9"]


@pytest.mark.parametrize(("named", "done"), [({"total": 40}, 40), ({}, 10)])
def test_a_task_that_succeeded_has_done_all_of_the_total_that_it_named(
    ledger: Ledger, named: dict[str, int], done: int
) -> None:
    lease = running(ledger, fields={"background": "1"})
    ledger.report(lease, cursor=b"c", done=10, **named)

    ledger.settle(lease, Succeed(b"42"))

    progress = view(ledger, lease).progress
    assert progress
    assert (progress.done, progress.total) == (done, named.get("total"))


def test_only_the_newest_thousand_log_lines_are_kept(ledger: Ledger) -> None:
    lease = running(ledger, fields={"background": "1"})

    for start in range(0, 1_100, 100):
        ledger.report(lease, lines=[f"line {n}" for n in range(start, start + 100)])

    progress = ledger.get(lease.id, lines=2_000).progress
    assert progress is not None
    assert len(progress.lines) == 1_000
    assert [progress.lines[0][::2], progress.lines[-1][::2]] == [(101, "line 100"), (1_100, "line 1099")]


@pytest.mark.parametrize("former", ["counted", "not counted", "lost"])
def test_long_log_lines_are_kept_as_far_as_256_kb_go(ledger: Ledger, at: At, former: str) -> None:
    """To the byte, whether those before were counted, are of a version that did not count, or have gone."""
    lease = running(ledger, fields={"background": "1"})
    ledger = at(START)
    line = "x" * (1024 - len(f"{START} "))
    ledger.report(lease, lines=[line] * 100)
    redis: Any = ledger.scripts.redis
    if former == "not counted":
        redis.hdel(ledger.keys("progress", id=lease.id), "bytes")

    more = ledger.report_call(lease.id, lease.fence, lines=[line] * 256, skipped=int(former == "lost"))
    ledger.scripts.run(more)

    progress = ledger.get(lease.id, lines=2_000).progress
    assert progress is not None
    assert len(progress.lines) == 256
    assert progress.lines[-1][0] == 356 + (former == "lost")


@pytest.mark.parametrize("skipped", [1, 3])
def test_lines_that_were_lost_on_the_way_have_their_numbers(ledger: Ledger, skipped: int) -> None:
    lease = running(ledger, fields={"background": "1"})

    ledger.report(lease, lines=["one"])
    ledger.scripts.run(ledger.report_call(lease.id, lease.fence, lines=["later"], skipped=skipped))

    progress = ledger.get(lease.id, lines=9).progress
    assert progress is not None
    assert [(number, text) for number, _, text in progress.lines] == [(2 + skipped, "later")]


def progress_of(ledger: Ledger, lease: Lease, lines: int = 0) -> Progress:
    progress = ledger.get(lease.id, lines=lines).progress
    assert progress is not None
    return progress


def test_what_is_done_never_goes_back(ledger: Ledger) -> None:
    lease = running(ledger, fields={"background": "1"})

    for done in (7, 5):
        ledger.report(lease, cursor=b"c", done=done, total=9)
        assert progress_of(ledger, lease).done == 7
    ledger.settle(lease, NextChunk(b"d", done=6))

    assert progress_of(ledger, lease).done == 7


def test_an_attempt_says_where_it_goes_on_also_where_nothing_was_counted(ledger: Ledger) -> None:
    lease = running(ledger, fields={"background": "1"})
    ledger.report(lease, cursor=b"c")
    ledger.settle(lease, Fail("no"))

    claim(ledger)

    (line,) = progress_of(ledger, lease, lines=9).lines
    assert line[::2] == (1, "attempt 2 goes on from the last checkpoint")


def test_a_stage_and_warnings_are_shown_until_the_work_is_another(ledger: Ledger) -> None:
    lease = running(ledger, fields={"background": "1", "unit": "rows"})

    ledger.report(lease, stage="reading", warnings=2)
    ledger.report(lease, cursor=b"c", done=1, warnings=1)
    ledger.settle(lease, Fail("no", permanent=True))

    progress = ledger.get(lease.id).progress
    assert progress is not None
    assert (progress.stage, progress.unit, progress.warnings) == ("reading", "rows", 3)
    ledger.retry(lease.id, from_start=True)
    progress = ledger.get(lease.id).progress
    assert progress is not None
    assert (progress.stage, progress.unit, progress.warnings) == (None, "rows", 0)


# -- reap -------------------------------------------------------------------------------------------------------------


def test_a_lease_is_reaped_at_its_end_and_not_a_millisecond_before(ledger: Ledger, at: At) -> None:
    lease = running(ledger)

    assert at(lease.expires_at - 1).reap() == []
    assert view(ledger, lease).status == "running"

    assert at(lease.expires_at).reap() == [(lease.id, "pending")]
    found = view(ledger, lease)
    assert (found.attempts[0].status, found.attempts[0].cause) == ("failed", "lease_lost")
    assert (found.run_at, found.losses, found.failures) == (lease.expires_at, 1, 0)


def test_a_lease_that_ends_with_the_deadline_is_a_time_out(ledger: Ledger, at: At) -> None:
    """Not a loss: the worker may be alive and well, its task is not."""
    lease = running(ledger, fields={"timeout": "1000"})

    at(lease.deadline).reap()

    found = view(ledger, lease)
    assert (found.attempts[0].cause, found.failures, found.losses) == ("timeout", 1, 0)
    assert found.run_at == lease.deadline + Retry().backoff_ms(1)


def test_time_outs_back_off_as_other_failures_do(ledger: Ledger) -> None:
    ledger.enqueue(NewJob("report", fields={"timeout": "1000", "max_attempts": "5"}))
    waits = []
    now = ledger
    for _ in range(4):
        lease = claim(now)
        now = ledger.at(lease.deadline)
        now.reap()
        found = view(now, lease)
        waits.append(found.run_at - lease.deadline)
        now = ledger.at(found.run_at)

    assert waits == [30_000, 60_000, 120_000, 240_000]


def test_a_job_lost_three_times_is_dead(ledger: Ledger) -> None:
    lease = running(ledger)
    for _ in range(3):
        later = ledger.at(lease.expires_at)
        later.reap()
        found = view(later, lease)
        if found.status == "pending":
            lease = claim(later)

    assert (found.status, found.dead_reason, found.losses) == ("dead", "lost_too_often", 3)


def test_a_reap_takes_a_bounded_number_and_says_when_to_come_again(ledger: Ledger, at: At) -> None:
    for _ in range(5):
        running(ledger)

    ended = at(START + LEASE_MS).reap(limit=3)
    rest = at(START + LEASE_MS).reap(limit=3)

    assert (len(ended), len(rest)) == (3, 2)


def test_a_stray_entry_among_the_leases_harms_no_job(ledger: Ledger, store: Store) -> None:
    """The row decides, and the entry goes."""
    waiting = ledger.enqueue(NewJob("report", when=START + MINUTE)).id
    store.redis.zadd(ledger.keys("running"), {waiting: START, "01J00000000000000000000000": START})

    assert ledger.reap() == []

    assert ledger.get(waiting).status == "pending"
    assert not store.redis.exists(ledger.keys("running"))


def test_the_reaper_forgets_named_leases_whose_time_is_over(ledger: Ledger, at: At, store: Store) -> None:
    leases = Leases(ledger.scripts, ledger.keys, ledger.index, lambda: ledger.scripts.redis)
    leases.take("stock", 30_000)
    leases.take("till", 40_000)

    at(START + 29_999).reap()
    assert store.redis.zcard(ledger.keys("leases")) == 2
    at(START + 30_000).reap()

    assert store.redis.zrange(ledger.keys("leases"), 0, -1) == [b"till"]
    assert not store.redis.exists(ledger.keys("lease", name="stock"))
    assert at(START + 30_000).index.take(REAP, 0).next_due_ms == START + 40_000


def test_a_quick_worker_takes_over_from_a_slow_one(ledger: Ledger, at: At) -> None:
    slow = running(ledger, worker="slow")
    later = at(slow.expires_at)
    later.reap()
    quick = claim(later, "quick")

    with pytest.raises(StaleFence):
        later.settle(slow, Succeed(b"slow"))
    later.settle(quick, Succeed(b"quick"))

    found = view(later, slow)
    assert (found.result, [attempt.worker for attempt in found.attempts]) == (b"quick", ["slow", "quick"])


# -- latest start -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("finder", ["claim", "reap"])
def test_a_job_that_nobody_started_in_time_is_dead_whoever_finds_it(
    ledger: Ledger, at: At, finder: str
) -> None:
    job = ledger.enqueue(NewJob("report", fields={"start_by": "+5000"}))

    late = at(START + 5_000)
    if finder == "claim":
        assert late.claim("advance", "one").leases == []
    else:
        assert late.reap() == [(job.id, "dead")]

    found = ledger.get(job.id)
    assert (found.status, found.dead_reason, found.attempts) == ("dead", "expired", ())
    assert found.finished_at == START + 5_000
    assert late.reap() == []


def test_a_job_started_at_the_last_moment_is_not_late(ledger: Ledger, at: At) -> None:
    """Nor does it matter when it ends, or that it comes again after a failure."""
    ledger.enqueue(NewJob("report", fields={"start_by": "+5000"}))
    lease = claim(at(START + 4_999))

    at(START + 6_000).settle(lease, Fail("no luck", delay_ms=MINUTE))

    assert at(START + 10 * MINUTE).reap() == []
    assert claim(at(START + 10 * MINUTE)).attempt == 2


def test_a_job_handed_back_before_it_started_still_owes_its_start(ledger: Ledger, at: At) -> None:
    ledger.enqueue(NewJob("report", fields={"start_by": "+5000"}))
    lease = claim(ledger)
    ledger.settle(lease, GiveBack(started=False))

    assert at(START + 4_999).reap() == []
    assert at(START + 5_000).reap() == [(lease.id, "dead")]


def test_late_jobs_in_front_do_not_hide_the_others(ledger: Ledger, at: At) -> None:
    """A claim looks at a bounded number; what it did not reach it says is still due."""
    for _ in range(9):
        ledger.enqueue(NewJob("report", fields={"start_by": "+1"}))
    good = ledger.enqueue(NewJob("report", when=START + 1))
    late = at(START + 1)

    claims = []
    while not claims or not claims[-1].leases:
        claims.append(late.claim("advance", "one", 2))
        assert len(claims) < 10
        assert claims[-1].news.is_due or claims[-1].leases

    assert [lease.id for lease in claims[-1].leases] == [good.id]
    assert ledger.counts() == {("report", "dead"): 9, ("report", "running"): 1}


def test_the_reaper_is_told_of_a_latest_start(ledger: Ledger, at: At) -> None:
    """So it is decided in time also where no worker claims from the pool; one that is later tells nobody."""
    for start_by in (9_000, 5_000, 7_000):
        ledger.enqueue(NewJob("report", pool="nobody", fields={"start_by": f"+{start_by}"}))

    visits = [at(START + ms).index.take(REAP, 10).tenants for ms in (4_999, 5_000)]

    assert visits == [[], ["acme"]]
    assert len(at(START + 5_000).reap()) == 1
    assert at(START + 6_999).index.take(REAP, 10).tenants == []
    assert at(START + 7_000).index.take(REAP, 10).tenants == ["acme"]


def test_a_stray_entry_among_the_latest_starts_harms_no_job(ledger: Ledger, store: Store) -> None:
    """The row decides, and the entry goes."""
    lease = running(ledger)
    starts = ledger.keys("starts")
    store.redis.zadd(starts, {lease.id: START, "01J00000000000000000000000": START})

    assert ledger.reap() == []

    assert view(ledger, lease).status == "running"
    assert not store.redis.exists(starts)


def test_the_sweep_finds_a_latest_start_that_the_index_lost(ledger: Ledger) -> None:
    ledger.enqueue(NewJob("report", fields={"start_by": "+5000"}))

    assert {news.queue: news.due_ms for news in ledger.standing()}[REAP] == START + 5_000


# -- cancel -----------------------------------------------------------------------------------------------------------


def test_a_canceled_job_is_never_claimed(ledger: Ledger) -> None:
    job = ledger.enqueue(NewJob("report"))

    before = ledger.cancel(job.id, "wrong customer")

    found = ledger.get(job.id)
    assert (before, found.status, found.reason, found.generation) == (
        "pending",
        "canceled",
        "wrong customer",
        2,
    )
    assert ledger.claim("advance", "one").reason == "no_jobs"


def test_canceling_a_running_job_takes_its_write_right_at_once(ledger: Ledger) -> None:
    lease = running(ledger)

    assert ledger.cancel(lease.id) == "running"

    found = view(ledger, lease)
    assert (found.status, found.attempts[0].status, found.attempts[0].cause) == (
        "canceled",
        "canceled",
        "canceled",
    )
    with pytest.raises(StaleFence):
        ledger.settle(lease, Succeed())


def test_canceling_between_chunks_ends_the_open_attempt(ledger: Ledger) -> None:
    lease = running(ledger, fields={"background": "1"})
    ledger.settle(lease, NextChunk(b"cursor", done=3, total=9))

    ledger.cancel(lease.id)

    found = view(ledger, lease)
    assert (found.attempts[0].status, found.attempts[0].cause) == ("canceled", "canceled")
    assert found.progress is not None
    assert (found.progress.done, found.progress.total) == (3, 9)


def test_a_dead_job_may_be_canceled(ledger: Ledger) -> None:
    lease = running(ledger)
    ledger.settle(lease, Fail("broken", permanent=True))

    assert ledger.cancel(lease.id) == "dead"
    assert view(ledger, lease).status == "canceled"


# -- look -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 64, 65, 4_000])
def test_words_of_any_length_are_kept_and_do_not_swell_the_row(ledger: Ledger, size: int) -> None:
    """One field over 64 bytes makes a row three times as big (the invariants look for it after this test)."""
    text = "ä" * (size // 2) or "a"
    fields = {"trace": text, "fire": f"default:{text}"}
    lease = running(ledger, fields=fields)
    canceled = running(ledger)

    ledger.settle(lease, SkipRest(text))
    ledger.cancel(canceled.id, text)

    found = view(ledger, lease)
    assert (lease.trace, lease.fire) == (found.trace, found.fire) == (text, f"default:{text}")
    assert (found.reason, view(ledger, canceled).reason) == (text, text)


def test_a_job_that_is_not_there_is_not_found(ledger: Ledger) -> None:
    with pytest.raises(NotFound, match="01J00000000000000000000000"):
        ledger.get("01J00000000000000000000000")


def test_two_tenants_see_nothing_of_each_other(ledger: Ledger) -> None:
    other = Ledger(ledger.scripts, type(ledger.keys)(ledger.keys.namespace, "other"), ledger.index)
    job = ledger.enqueue(NewJob("report"))

    assert other.get_many([job.id]) == []
    assert other.counts() == {}
    assert other.list().items == []
    assert other.claim("advance", "one").leases == []


# -- retention --------------------------------------------------------------------------------------------------------


def test_a_succeeded_job_goes_whole_after_a_day(ledger: Ledger, at: At, store: Store) -> None:
    day = 24 * 60 * MINUTE
    old = running(ledger, args=b"a" * 500, idempotency_key="k" * 200, fields={"background": "1"})
    ledger.report(old, cursor=b"c" * 100, done=1, lines=["line"])
    ledger.settle(old, Succeed(b"r" * 500))

    for lease in [running(at(START + day))]:
        at(START + day).settle(lease, Succeed())

    assert ledger.get_many([old.id]) == []
    assert [name for name in store.dump() if old.id in name] == []
    assert ledger.enqueue(NewJob("report", b"others", idempotency_key="k" * 200)).created


def test_a_past_due_time_is_now_and_takes_nobodys_turn(ledger: Ledger) -> None:
    first = ledger.enqueue(NewJob("report"))
    late = ledger.enqueue(NewJob("report", when=1))

    assert ledger.get(late.id).run_at == START
    assert claimed_ids(ledger, 2) == sorted([first.id, late.id])


def test_a_due_time_past_the_end_of_its_priority_is_refused(ledger: Ledger, store: Store) -> None:
    ledger.enqueue(NewJob("report"))

    with store.unchanged(), pytest.raises(BadInput, match="too far ahead"):
        ledger.enqueue(NewJob("report", when=1 << 42))


def test_thousands_of_jobs_in_one_call_are_all_there(ledger: Ledger) -> None:
    answers = ledger.enqueue_many([NewJob("report") for _ in range(4_500)])

    assert ledger.counts() == {("report", "pending"): len(answers)}
    assert len(claimed_ids(ledger, 5)) == 5
