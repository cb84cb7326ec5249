"""What a person does with a job: retry, skip, reschedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tenure.lease.jobs import DUE, Lease
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail, Lose, NextChunk, Succeed
from tenure.scripts import Scripts
from tenure.scripts.errors import (
    BadInput,
    KeyReused,
    NotFound,
    OutcomeHappened,
    OutcomeUnknown,
    StaleFence,
    StalePlan,
    StoreUnreachable,
    WrongState,
)
from tenure.scripts.fields import FIELDS
from tenure.scripts.loader import Arg
from tenure.testing import START, Faults

from .given import At, Store, canceled, claim, claimed_ids, dead, failed, running, unknown_outcome, view

MINUTE = 60_000
NOWHERE = "01J00000000000000000000000"

STOPPED: dict[str, Callable[[Ledger], Lease]] = {"dead": dead, "failed": failed, "canceled": canceled}


# -- retry ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", STOPPED)
def test_a_retry_begins_a_new_round_and_keeps_every_attempt(ledger: Ledger, at: At, state: str) -> None:
    lease = STOPPED[state](ledger)
    before = view(ledger, lease)

    assert at(START + MINUTE).retry(lease.id, reason="the customer is there now")

    found = view(ledger, lease)
    assert (found.status, found.run_at, found.generation) == (
        "pending",
        START + MINUTE,
        before.generation + 1,
    )
    assert (found.dead_reason, found.finished_at, found.reason) == (None, None, "the customer is there now")
    assert found.attempts == before.attempts
    again = claim(at(START + MINUTE))
    assert (again.id, again.attempt, again.generation) == (lease.id, 2, found.generation)
    assert [(one.number, one.generation) for one in view(ledger, lease).attempts] == [
        (1, 1),
        (2, found.generation),
    ]


def test_the_counts_of_the_round_begin_again(ledger: Ledger) -> None:
    lease = running(ledger, fields={"max_attempts": "2", "max_lost": "2"})
    ledger.settle(lease, Lose("exit code -9"))
    ledger.settle(claim(ledger), Fail("no luck"))
    ledger.settle(claim(ledger), Fail("no luck"))
    ledger.retry(lease.id)

    counts = (view(ledger, lease).failures, view(ledger, lease).losses)
    ledger.settle(claim(ledger), Fail("no luck"))
    ledger.settle(claim(ledger), Lose("exit code -9"))

    assert counts == (0, 0)
    assert (view(ledger, lease).status, view(ledger, lease).failures, view(ledger, lease).losses) == (
        "pending",
        1,
        1,
    )


def test_a_retried_background_task_goes_on_from_its_last_checkpoint(ledger: Ledger) -> None:
    lease = running(ledger, fields={"background": "1"})
    ledger.settle(lease, NextChunk(b"after 100", done=100, total=300))
    ledger.settle(claim(ledger), Fail("broken", permanent=True))

    ledger.retry(lease.id)
    again = claim(ledger)

    assert (again.cursor, again.chunk, again.operation_key) == (b"after 100", 1, lease.operation_key)
    progress = view(ledger, lease).progress
    assert progress is not None
    assert (progress.done, progress.total) == (100, 300)


@pytest.mark.parametrize("cursor", [b"after 100", b"after 100" * 20])
def test_a_background_task_may_be_retried_from_the_start(ledger: Ledger, cursor: bytes) -> None:
    """The same work under the same operation key: what it has done outside is still done."""
    lease = running(ledger, args=b"args", fields={"background": "1"})
    ledger.settle(lease, NextChunk(cursor, done=100, total=300, message="a hundred"))
    ledger.settle(claim(ledger), Fail("broken", permanent=True))

    ledger.retry(lease.id, from_start=True)
    again = claim(ledger)

    assert (again.cursor, again.chunk, again.args, again.operation_key) == (
        b"",
        0,
        b"args",
        lease.operation_key,
    )
    progress = view(ledger, lease).progress
    assert progress is not None
    assert (progress.done, progress.total, progress.message) == (None, None, "")


def test_a_retry_from_the_start_sent_again_is_one_and_no_other_retry(
    ledger: Ledger, faults: Faults, store: Store
) -> None:
    lease = dead(ledger)

    began = again(faults, "retry", lambda: ledger.retry(lease.id, from_start=True, token="once"))

    assert began == 2
    with store.unchanged(), pytest.raises(WrongState):
        ledger.retry(lease.id, token="once")


@pytest.mark.parametrize("others", [b"others", b"o" * 100, b""])
@pytest.mark.parametrize("first", [b"args", b"a" * 100, b""])
def test_other_arguments_are_other_work_from_the_beginning(
    ledger: Ledger, first: bytes, others: bytes
) -> None:
    lease = running(ledger, args=first, fields={"background": "1"})
    ledger.report(lease, cursor=b"c" * 100, done=100, total=300, message="a hundred", lines=["one"])
    ledger.settle(lease, NextChunk(b"after 100" * 20, done=100, total=300))
    ledger.settle(claim(ledger), Fail("broken", permanent=True))

    ledger.retry(lease.id, args=others)
    again = claim(ledger)
    ledger.settle(again, NextChunk(b"after 1", done=1, total=9))

    found = ledger.get(lease.id, lines=9)
    if first == others:
        assert (again.args, again.cursor, again.edit) == (first, b"after 100" * 20, 0)
        return
    assert (again.args, again.cursor, again.chunk) == (others, b"", 0)
    assert again.operation_key == f"{lease.id}.1"
    assert found.progress is not None
    assert (found.progress.done, found.progress.total) == (1, 9)
    assert [text for _, _, text in found.progress.lines] == ["one"]


def test_a_retry_may_be_for_later(ledger: Ledger, at: At) -> None:
    lease = dead(ledger)

    ledger.retry(lease.id, when="+5000")

    assert view(ledger, lease).blocker == "not_due"
    assert claimed_ids(at(START + 4_999), 1) == []
    assert claimed_ids(at(START + 5_000), 1) == [lease.id]


def test_a_retry_is_told_to_the_index(ledger: Ledger) -> None:
    lease = dead(ledger)
    ledger.claim("advance", "one")

    ledger.retry(lease.id)

    assert ledger.index.take(DUE + "advance", 10).tenants == ["acme"]


def test_a_retried_job_has_no_latest_start_any_more(ledger: Ledger, at: At) -> None:
    """A person wants it now, late as it is."""
    job = ledger.enqueue(NewJob("report", fields={"start_by": "+1000"}))
    late = at(START + MINUTE)
    late.reap()

    late.retry(job.id)

    assert late.reap() == []
    assert claimed_ids(late, 1) == [job.id]


def test_the_holder_from_before_a_cancel_and_a_retry_can_write_nothing(ledger: Ledger, store: Store) -> None:
    lease = canceled(ledger)
    ledger.retry(lease.id)
    claim(ledger, "another")

    with store.unchanged(), pytest.raises(StaleFence):
        ledger.settle(lease, Succeed(b"late"))


def test_a_retry_takes_its_active_key_again(ledger: Ledger) -> None:
    lease = running(ledger, args=b"args", idempotency_key="sync", unique_mode="active")
    ledger.settle(lease, Fail("broken", permanent=True))

    ledger.retry(lease.id, args=b"edited")

    again = ledger.enqueue(NewJob("report", b"args", idempotency_key="sync", unique_mode="active"))
    assert (again.id, again.created) == (lease.id, False), "the key stands for the request, not for its edit"


def test_a_retry_is_refused_when_another_job_has_its_key_now(ledger: Ledger, store: Store) -> None:
    lease = running(ledger, idempotency_key="sync", unique_mode="active")
    ledger.settle(lease, Fail("broken", permanent=True))
    other = ledger.enqueue(NewJob("report", b"new", idempotency_key="sync", unique_mode="active"))

    with store.unchanged(), pytest.raises(KeyReused, match=f"belongs to job {other.id} now"):
        ledger.retry(lease.id)


@pytest.mark.parametrize("canceled_since", [False, True])
def test_a_job_whose_outcome_nobody_knows_is_not_sent_again_unasked(
    ledger: Ledger, store: Store, canceled_since: bool
) -> None:
    """Nor by the detour over a cancel."""
    lease = unknown_outcome(ledger)
    if canceled_since:
        ledger.cancel(lease.id)

    with store.unchanged(), pytest.raises(OutcomeUnknown, match="may or may not have happened"):
        ledger.retry(lease.id)
    assert ledger.retry(lease.id, force=True, reason="the bank has no such payment")

    assert view(ledger, lease).status == "pending"


@pytest.mark.parametrize("act", ["get", "retry", "skip", "cancel", "reschedule", "confirm"])
@pytest.mark.parametrize("job_id", [NOWHERE, "typo"])
def test_a_job_that_is_not_there_is_not_found_in_the_same_words(
    ledger: Ledger, store: Store, act: str, job_id: str
) -> None:
    running(ledger)

    with store.unchanged(), pytest.raises(NotFound) as refused:
        getattr(ledger, act)(job_id, *([True] if act == "confirm" else []))

    assert str(refused.value) == f"job {job_id!r} is not in the ledger of tenant acme"
    assert refused.value.hint


@pytest.mark.parametrize("seen", [0, 1, 3])
def test_a_retry_decided_on_another_generation_is_refused(ledger: Ledger, store: Store, seen: int) -> None:
    lease = canceled(ledger)

    with store.unchanged(), pytest.raises(StalePlan, match=f"it is in generation 2, not {seen}"):
        ledger.retry(lease.id, generation=seen)


class Twice(Scripts):
    """Each call is sent twice, as after a connection that broke, and the second answer counts."""

    def _execute(self, commands: list[list[Arg]]) -> list[Any]:
        super()._execute(commands)
        return super()._execute(commands)


# -- retry, sent again ------------------------------------------------------------------------------------------------


def again(faults: Faults, script: str, send: Callable[[], Any]) -> Any:
    faults.lose_reply(script)
    with pytest.raises(StoreUnreachable):
        send()
    return send()


@pytest.mark.parametrize("generation", [None, 1])
@pytest.mark.parametrize("args", [None, b"others" * 20])
def test_a_retry_sent_again_is_one_retry(
    ledger: Ledger, at: At, faults: Faults, generation: int | None, args: bytes | None
) -> None:
    lease = dead(ledger)

    began = again(
        faults, "retry", lambda: ledger.retry(lease.id, generation=generation, args=args, token="once")
    )

    found = view(ledger, lease)
    assert (began, found.generation, found.edit, found.status) == (2, 2, int(args is not None), "pending")


def test_a_call_whose_connection_broke_is_answered_as_if_it_had_come_once(ledger: Ledger) -> None:
    """The client sends it again by itself, whether the caller has a name for it or not."""
    lease, waiting = dead(ledger), ledger.enqueue(NewJob("report"))
    plain = ledger.scripts
    ledger.scripts = Twice(plain.redis, plain.now, plain.faults, plain.address, plain.library)

    assert ledger.retry(lease.id) == 2
    assert ledger.reschedule(waiting.id, when="+1000")

    assert view(ledger, lease).generation == 2
    assert ledger.get(waiting.id).revision == 2


@pytest.mark.parametrize("generation", [None, 1])
def test_a_retry_under_its_token_is_answered_as_it_was_whatever_became_of_its_round(
    ledger: Ledger, store: Store, generation: int | None
) -> None:
    lease = dead(ledger)
    said = [ledger.retry(lease.id, generation=generation, token="once")]
    for end in (None, Fail("broken again", permanent=True)):
        if end:
            ledger.settle(claim(ledger), end)
        with store.unchanged():
            said.append(ledger.retry(lease.id, generation=generation, token="once"))
    ledger.cancel(lease.id)
    with store.unchanged():
        said.append(ledger.retry(lease.id, generation=generation, token="once"))

    assert said == [2, 2, 2, 2]
    assert view(ledger, lease).generation == 3


def test_the_same_retry_without_its_token_is_another_one_and_judged_as_the_job_stands(
    ledger: Ledger, store: Store
) -> None:
    """As in a batch: an old plan is not carried out, and nobody is told that it was."""
    lease = dead(ledger)
    ledger.retry(lease.id, generation=1)
    stale = pytest.raises(StalePlan, match="it is in generation 2, not 1")

    with store.unchanged():
        with stale:
            ledger.retry(lease.id, generation=1)
        with pytest.raises(WrongState, match="it is pending"):
            ledger.retry(lease.id)
    ledger.settle(claim(ledger), Succeed())
    with store.unchanged():
        with stale:
            ledger.retry(lease.id, generation=1)
        with pytest.raises(WrongState, match="it is succeeded"):
            ledger.retry(lease.id)


def test_a_round_that_has_failed_is_retried_by_who_has_seen_that(ledger: Ledger, store: Store) -> None:
    lease = dead(ledger)
    ledger.retry(lease.id, generation=1)
    ledger.settle(claim(ledger), Fail("broken again", permanent=True))

    with store.unchanged(), pytest.raises(StalePlan, match="it is in generation 2, not 1"):
        ledger.retry(lease.id, generation=1)
    assert ledger.retry(lease.id, generation=2) == 3


def test_another_retry_under_the_same_token_is_not_taken_for_the_same(ledger: Ledger, store: Store) -> None:
    lease = dead(ledger)
    ledger.retry(lease.id, args=b"mine", generation=1, token="once")

    with store.unchanged():
        with pytest.raises(StalePlan):
            ledger.retry(lease.id, args=b"yours", generation=1, token="once")
        with pytest.raises(WrongState):
            ledger.retry(lease.id, args=b"yours", token="once")


@pytest.mark.parametrize("token", ["", "t" * 101, "new\nline", 5, b"once"])
def test_a_token_is_a_short_name(ledger: Ledger, store: Store, token: Any) -> None:
    lease, waiting = dead(ledger), ledger.enqueue(NewJob("report"))

    with store.unchanged():
        for verb, job_id in ((ledger.retry, lease.id), (ledger.reschedule, waiting.id)):
            with pytest.raises(BadInput, match=r"token .* is not allowed: 1 to 100 printable characters"):
                verb(job_id, token=token)


# -- skip -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reason", "kept"), [("", "skipped"), ("no such shop", "skipped: no such shop")])
def test_a_skipped_job_is_canceled_and_says_so(ledger: Ledger, reason: str, kept: str) -> None:
    lease = dead(ledger)

    assert ledger.skip(lease.id, reason) == "dead"

    found = view(ledger, lease)
    assert (found.status, found.reason) == ("canceled", kept)


def test_skipping_a_running_job_takes_its_write_right_at_once(ledger: Ledger) -> None:
    lease = running(ledger)

    ledger.skip(lease.id)

    with pytest.raises(StaleFence):
        ledger.settle(lease, Succeed())


def test_a_skip_sent_again_is_one_skip(ledger: Ledger, faults: Faults) -> None:
    lease = running(ledger)

    assert again(faults, "cancel", lambda: ledger.skip(lease.id, "why")) == "canceled"
    assert (view(ledger, lease).generation, view(ledger, lease).reason) == (2, "skipped: why")


# -- reschedule -------------------------------------------------------------------------------------------------------


def test_a_job_for_later_may_run_now(ledger: Ledger) -> None:
    job = ledger.enqueue(NewJob("report", when="+60000"))
    assert ledger.index.take(DUE + "advance", 10).tenants == []

    assert ledger.reschedule(job.id, when="+0")

    assert ledger.index.take(DUE + "advance", 10).tenants == ["acme"]
    assert claimed_ids(ledger, 1) == [job.id]


def test_a_job_may_be_put_off(ledger: Ledger, at: At) -> None:
    job = ledger.enqueue(NewJob("report"))

    ledger.reschedule(job.id, when=START + MINUTE)

    assert claimed_ids(at(START + MINUTE - 1), 1) == []
    assert claimed_ids(at(START + MINUTE), 1) == [job.id]


def test_a_job_may_be_made_more_urgent(ledger: Ledger) -> None:
    first, second = (ledger.enqueue(NewJob("report")) for _ in range(2))

    ledger.reschedule(second.id, priority=0)

    assert claimed_ids(ledger, 2) == [second.id, first.id]
    assert ledger.get(second.id).priority == 0


def test_what_is_due_keeps_its_place_among_what_is_due(ledger: Ledger, at: At, store: Store) -> None:
    job = ledger.enqueue(NewJob("report"))

    with store.unchanged():
        assert not at(START + MINUTE).reschedule(job.id, when="+0")
        assert not at(START + MINUTE).reschedule(job.id, priority=5)
        assert not at(START + MINUTE).reschedule(job.id)


def test_the_backoff_of_a_failed_attempt_may_be_cut_short(ledger: Ledger) -> None:
    lease = running(ledger)
    ledger.settle(lease, Fail("no luck", delay_ms=MINUTE))

    ledger.reschedule(lease.id, when="+0")

    assert claim(ledger).attempt == 2


def test_a_job_is_not_put_off_past_its_latest_start(ledger: Ledger, store: Store) -> None:
    job = ledger.enqueue(NewJob("report", fields={"start_by": "+1000"}))

    with store.unchanged(), pytest.raises(BadInput, match=f"its latest start is {START + 1000}"):
        ledger.reschedule(job.id, when="+1000")
    assert ledger.reschedule(job.id, when="+999")


def test_a_reschedule_decided_on_another_revision_is_refused(ledger: Ledger, store: Store) -> None:
    job = ledger.enqueue(NewJob("report"))

    with store.unchanged(), pytest.raises(StalePlan, match="it is at revision 1, not 2"):
        ledger.reschedule(job.id, when="+1000", revision=2)


def test_a_reschedule_sent_again_is_one_reschedule(ledger: Ledger, at: At, faults: Faults) -> None:
    job = ledger.enqueue(NewJob("report"))
    faults.lose_reply("reschedule")
    with pytest.raises(StoreUnreachable):
        ledger.reschedule(job.id, when="+1000", revision=1, token="once")

    assert at(START + 500).reschedule(job.id, when="+1000", revision=1, token="once")
    with pytest.raises(StalePlan, match="it is at revision 2, not 1"):
        ledger.reschedule(job.id, when="+1000", revision=1)

    assert (ledger.get(job.id).run_at, ledger.get(job.id).revision) == (START + 1000, 2)


def test_a_due_time_beyond_all_bounds_is_refused(ledger: Ledger, store: Store) -> None:
    waiting, ended = ledger.enqueue(NewJob("report", when="+1")), dead(ledger)

    with store.unchanged():
        with pytest.raises(BadInput, match="too far ahead"):
            ledger.reschedule(waiting.id, when=1 << 42)
        with pytest.raises(BadInput, match="too far ahead"):
            ledger.retry(ended.id, when=1 << 42)


# -- confirm ----------------------------------------------------------------------------------------------------------


def test_what_has_not_happened_may_be_sent_again(ledger: Ledger) -> None:
    lease = unknown_outcome(ledger)

    assert ledger.confirm(lease.id, False, "the bank has no such payment", "ada")
    found = view(ledger, lease)
    ledger.retry(lease.id)

    assert (found.status, found.confirmed) == ("dead", False)
    assert found.history[0].reason == "not happened: the bank has no such payment"
    assert (view(ledger, lease).status, view(ledger, lease).confirmed) == ("pending", None)


def test_what_has_happened_is_not_sent_again_unless_it_is_forced(ledger: Ledger, store: Store) -> None:
    lease = unknown_outcome(ledger)
    ledger.confirm(lease.id, True, by="ada")

    with store.unchanged(), pytest.raises(OutcomeHappened, match="has happened, as was confirmed"):
        ledger.retry(lease.id)
    assert ledger.retry(lease.id, force=True, reason="they want it twice")


def test_what_has_happened_may_be_skipped(ledger: Ledger) -> None:
    lease = unknown_outcome(ledger)
    ledger.confirm(lease.id, True)

    assert ledger.skip(lease.id) == "dead"


def test_the_last_word_counts(ledger: Ledger) -> None:
    lease = unknown_outcome(ledger)

    said = [ledger.confirm(lease.id, happened, by="ada") for happened in (True, True, False)]

    assert said == [True, False, True]
    assert [deed.reason for deed in view(ledger, lease).history] == ["happened", "not happened"]
    assert ledger.retry(lease.id)


def test_a_confirmation_counts_for_one_round(ledger: Ledger) -> None:
    lease = unknown_outcome(ledger)
    ledger.confirm(lease.id, False)
    ledger.retry(lease.id)
    ledger.settle(claim(ledger), Fail("broken", permanent=True))

    with pytest.raises(WrongState, match=r"it is dead \(permanent_error\), and no outcome of it is unknown"):
        ledger.confirm(lease.id, False)


@pytest.mark.parametrize("state", STOPPED)
def test_nothing_is_confirmed_of_a_job_whose_outcome_is_known(
    ledger: Ledger, store: Store, state: str
) -> None:
    lease = STOPPED[state](ledger)

    with store.unchanged(), pytest.raises(WrongState, match=f"it is {state}"):
        ledger.confirm(lease.id, True)


def test_a_confirmation_sent_again_is_one(ledger: Ledger, faults: Faults) -> None:
    lease = unknown_outcome(ledger)

    assert not again(faults, "confirm", lambda: ledger.confirm(lease.id, False, "no such payment"))
    assert view(ledger, lease).revision == 4


def test_who_watches_a_background_task_hears_of_a_confirmation(ledger: Ledger, at: At, store: Store) -> None:
    redis: Any = store.redis
    lease = running(ledger, fields={"background": "1"})
    ledger.settle(lease, Fail("broken", permanent=True))
    redis.hset(ledger.keys("row", id=lease.id), FIELDS["dead_reason"], "outcome_unknown")

    at(START + MINUTE).confirm(lease.id, True)

    progress = view(ledger, lease).progress
    assert progress is not None
    assert progress.updated_at == START + MINUTE
