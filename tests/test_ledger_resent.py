"""A call whose reply was lost is sent again: the second arrival gives the same answer and changes nothing (I2, I13)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from tenure.lease.ledger import LEASE_MS, Ledger, NewJob, new_token
from tenure.lease.outcome import Fail, GiveBack, Lose, NextChunk, Outcome, SkipRest, Succeed
from tenure.scripts import Call
from tenure.scripts.errors import StaleFence, StoreUnreachable
from tenure.testing import START, Died, Faults

from .given import At, Store, claim, running, view

OUTCOMES: list[Outcome] = [
    Succeed(b"result" * 20),
    SkipRest("nothing to do"),
    NextChunk(b"cursor" * 20, done=3, total=9, message="three"),
    Fail("once more", delay_ms=30_000),
    Fail("never again", permanent=True),
    Lose("exit code -9"),
    GiveBack(),
]


def again(faults: Faults, script: str, send: Callable[[], Any]) -> Any:
    """Send a call whose reply is lost, then send it again."""
    faults.lose_reply(script)
    with pytest.raises(StoreUnreachable):
        send()
    return send()


def test_a_job_is_enqueued_once(ledger: Ledger, store: Store, faults: Faults) -> None:
    job = NewJob("report", b"args" * 30)

    answer = again(faults, "enqueue", lambda: ledger.enqueue(job))

    assert (answer.id, answer.created) == (job.id, True)
    assert ledger.counts() == {("report", "pending"): 1}


def test_a_job_with_a_key_is_enqueued_once(ledger: Ledger, faults: Faults) -> None:
    job = NewJob("report", b"args", idempotency_key="order-7")

    answer = again(faults, "enqueue", lambda: ledger.enqueue(job))

    assert (answer.id, answer.created) == (job.id, True)


def test_an_enqueue_sent_again_after_the_job_was_claimed_leaves_it_running(
    ledger: Ledger, store: Store
) -> None:
    job = NewJob("report")
    ledger.enqueue(job)
    claim(ledger)

    with store.unchanged():
        assert ledger.enqueue(job).id == job.id


def test_a_batch_of_which_a_part_is_known_makes_only_the_rest(ledger: Ledger) -> None:
    jobs = [NewJob("report") for _ in range(4)]
    ledger.enqueue_many(jobs[:2])

    ledger.enqueue_many(jobs)

    assert ledger.counts() == {("report", "pending"): 4}


def test_a_claim_answers_the_same_leases(ledger: Ledger, store: Store, faults: Faults) -> None:
    for _ in range(5):
        ledger.enqueue(NewJob("report", b"args"))
    call = ledger.claim_call("advance", "one", 3, new_token())
    first: list[Any] = []

    faults.after_each = lambda: first.append(store.dump())
    answer = again(faults, "claim", lambda: ledger.scripts.run(call))
    faults.after_each = None

    once, twice = first
    assert once == twice
    assert [(lease.attempt, lease.args) for lease in answer.leases] == [(1, b"args")] * 3
    assert [lease.fence for lease in answer.leases] == [view(ledger, lease).fence for lease in answer.leases]
    assert ledger.counts() == {("report", "running"): 3, ("report", "pending"): 2}


def test_a_claim_sent_again_leaves_out_what_was_lost_meanwhile(ledger: Ledger) -> None:
    jobs = [ledger.enqueue(NewJob("report")) for _ in range(2)]
    call = ledger.claim_call("advance", "one", 2, new_token())
    ledger.scripts.run(call)
    ledger.cancel(jobs[0].id)

    answer = ledger.scripts.run(call)

    assert [lease.id for lease in answer.leases] == [jobs[1].id]


def test_a_claim_sent_again_leaves_out_a_lease_whose_time_is_over(ledger: Ledger, at: At) -> None:
    ledger.enqueue(NewJob("report"))
    call = ledger.claim_call("advance", "one", 1, new_token())
    (lease,) = ledger.scripts.run(call).leases

    assert at(lease.expires_at - 1).scripts.run(call).leases == [lease]
    assert at(lease.expires_at).scripts.run(call).leases == []


def test_a_claim_sent_again_says_when_the_reaper_is_wanted(ledger: Ledger, at: At) -> None:
    """By then the leases of the claim may have ended, and there may be nothing to reap at all."""
    running(at(START - 1_000))
    ledger.enqueue(NewJob("report"))
    call = ledger.claim_call("advance", "two", 1, new_token())
    first = ledger.scripts.run(call)

    again = ledger.scripts.run(call)
    for job in ledger.list(status="running").items:
        ledger.cancel(job.id)
    last = ledger.scripts.run(call)

    assert first.reap.due_ms == again.reap.due_ms == START - 1_000 + LEASE_MS
    assert (last.leases, last.reap.due_ms) == ([], START)


def test_a_claim_is_answered_again_for_a_minute(ledger: Ledger, store: Store) -> None:
    running(ledger)

    left_ms = store.redis.pttl(ledger.keys("memo", pool="advance", worker="one"))

    assert 0 < int(left_ms) <= 60_000


def test_a_claim_under_a_new_token_is_a_new_claim(ledger: Ledger) -> None:
    for _ in range(2):
        ledger.enqueue(NewJob("report"))

    first, second = claim(ledger), claim(ledger)

    assert first.id != second.id


def test_a_renewal_sent_again_gives_the_same_expiry(ledger: Ledger, faults: Faults) -> None:
    lease = running(ledger)

    (expiry,) = again(faults, "renew", lambda: ledger.renew([lease]))

    assert expiry == lease.expires_at


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: repr(outcome)[:30])
def test_an_outcome_sent_again_is_accepted_and_changes_nothing(
    ledger: Ledger, store: Store, faults: Faults, outcome: Outcome
) -> None:
    lease = running(ledger, fields={"background": "1"})
    faults.lose_reply("settle")
    with pytest.raises(StoreUnreachable):
        ledger.settle(lease, outcome)

    with store.unchanged():
        ledger.settle(lease, outcome)


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: repr(outcome)[:30])
def test_an_outcome_sent_again_after_the_next_claim_harms_nobody(
    ledger: Ledger, at: At, store: Store, outcome: Outcome
) -> None:
    """An ended attempt is known by its fence; an open one, of which a chunk ended, belongs to its new holder alone."""
    lease = running(ledger, fields={"background": "1"})
    ledger.settle(lease, outcome)
    now = at(START + 60_000)
    now.claim("advance", "two")

    refusal = pytest.raises(StaleFence) if isinstance(outcome, NextChunk) else contextlib.nullcontext()
    with store.unchanged(), refusal:
        now.settle(lease, outcome)


def test_a_job_handed_back_unstarted_twice_is_handed_back_once(
    ledger: Ledger, store: Store, faults: Faults
) -> None:
    """Its attempt is gone, so nothing is left to know the call by: the refusal is harmless, and nothing changes."""
    lease = running(ledger)
    ledger.settle(lease, GiveBack(started=False))

    with store.unchanged(), pytest.raises(StaleFence):
        ledger.settle(lease, GiveBack(started=False))

    assert view(ledger, lease).status == "pending"


def test_a_cancel_sent_again_is_one_cancel(ledger: Ledger, faults: Faults) -> None:
    lease = running(ledger)

    answer = again(faults, "cancel", lambda: ledger.cancel(lease.id, "why"))

    assert answer == "canceled"
    assert view(ledger, lease).generation == 2


def test_a_reap_sent_again_takes_nothing_more(ledger: Ledger, at: At, faults: Faults) -> None:
    lease = running(ledger)
    later = at(lease.expires_at)

    assert again(faults, "reap", later.reap) == []
    assert view(ledger, lease).losses == 1


def test_a_report_sent_again_commits_the_same(ledger: Ledger, faults: Faults) -> None:
    lease = running(ledger, fields={"background": "1"})

    again(faults, "report", lambda: ledger.report(lease, cursor=b"after 10", done=10, total=40))

    progress = view(ledger, lease).progress
    assert progress is not None
    assert (progress.done, progress.total) == (10, 40)


def test_a_report_sent_again_counts_its_warnings_and_lines_once(ledger: Ledger, faults: Faults) -> None:
    lease = running(ledger, fields={"background": "1"})

    for word in (1, 2):
        call = ledger.report_call(lease.id, lease.fence, lines=[f"line {word}"], warnings=1, word=word)
        again(faults, "report", lambda call=call: ledger.scripts.run(call))  # type: ignore[misc]

    progress = ledger.get(lease.id, lines=9).progress
    assert progress is not None
    assert (progress.warnings, [text for _, _, text in progress.lines]) == (2, ["line 1", "line 2"])


def test_words_are_numbered_anew_under_each_fence(ledger: Ledger) -> None:
    for _ in range(2):
        lease = (
            running(ledger, fields={"background": "1"}) if not _ else ledger.claim("advance", "w2").leases[0]
        )
        ledger.scripts.run(ledger.report_call(lease.id, lease.fence, lines=["line"], word=1))
        ledger.settle(lease, NextChunk(b"c"))

    progress = ledger.get(lease.id, lines=9).progress
    assert progress is not None
    assert len(progress.lines) == 2


def test_calls_of_one_pipeline_that_is_sent_twice_are_each_applied_once(
    ledger: Ledger, faults: Faults
) -> None:
    leases = [running(ledger) for _ in range(3)]
    calls: list[Call[Any]] = [ledger.settle_call([(lease.id, lease.fence, Succeed())]) for lease in leases]

    again(faults, "settle", lambda: ledger.scripts.run_all(calls))

    assert ledger.counts() == {("report", "succeeded"): 3}


@pytest.mark.parametrize("script", ["index_register", "enqueue", "index_put"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_enqueue_that_dies_anywhere_leaves_a_job_that_is_found_or_none(
    ledger: Ledger, faults: Faults, script: str, when: str
) -> None:
    """And if it is found, the index's sweep finds it too: the tenant is registered before its first job."""
    (faults.die_before if when == "before" else faults.die_after)(script)
    job = NewJob("report")
    with pytest.raises(Died):
        ledger.enqueue(job)

    acknowledged = script == "index_put" or (script, when) == ("enqueue", "after")
    assert [found.id for found in ledger.get_many([job.id])] == ([job.id] if acknowledged else [])
    assert ledger.enqueue(job).id == job.id
