"""Replay: what a preview shows is what is done, no more and no less, whatever happens in between and whoever dies."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tenure.lease import replay
from tenure.lease.batches import Batch, Batches, BatchState
from tenure.lease.ids import new_id
from tenure.lease.jobs import REAP
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail
from tenure.lease.replay import ReplayConditions, ReplayPreview, Replays
from tenure.scripts.errors import BadInput, NotFound, StoreUnreachable
from tenure.testing import START, Died, Faults
from tenure.workers.fingerprint import failure

from .given import At, Store, claim, running, unknown_outcome
from .test_batches import die

SECOND, MINUTE = 1_000, 60_000
GONE = failure("KeyError", "shop.orders.sync", "order 7 is gone")


def dead(
    ledger: Ledger, task: str = "sync", error: str = "ValueError: no luck", told: str = "", **fields: Any
) -> str:
    lease = running(ledger, task, fields=fields)
    ledger.settle(lease, Fail(error, permanent=True, failure=told))
    return lease.id


def preview(ledger: Ledger, limit: int = 500, **conditions: Any) -> ReplayPreview:
    return Replays(ledger).preview(ReplayConditions(**conditions), limit)


def chosen(ledger: Ledger, **conditions: Any) -> list[str]:
    return [job.id for job in preview(ledger, **conditions).jobs]


def outcomes(batch: Batch) -> dict[str, str | None]:
    return {job.id: job.skipped for job in batch.jobs}


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


# -- what is chosen ---------------------------------------------------------------------------------------------------


def test_the_dead_are_chosen_unless_it_is_said_otherwise_and_first_comes_who_ended_first(
    ledger: Ledger, at: At
) -> None:
    one, failed, two = dead(ledger), dead(at(START + 1), end_as="failed"), dead(at(START + 2))
    ledger.enqueue(NewJob("sync"))

    assert chosen(ledger) == [one, two]
    assert chosen(ledger, status="failed") == [failed]


def test_jobs_are_chosen_by_each_condition_and_by_all_of_them(ledger: Ledger, at: At) -> None:
    first = dead(ledger, "sync", "ValueError: No Luck", GONE, instance="i-1", trace="t-1")
    second = dead(at(START + MINUTE), "mail", "ValueError: no luck either", instance="i-1")
    third = dead(at(START + 2 * MINUTE), "sync", "TimeoutError", GONE, instance="i-2", trace="t-1")
    now = at(START + 3 * MINUTE)
    fingerprint = GONE.partition("\n")[0]

    assert chosen(now, task="sync") == [first, third]
    assert chosen(now, instance="i-1") == [first, second]
    assert chosen(now, trace="t-1") == [first, third]
    assert chosen(now, trace=second) == [second], "a job without a trace of its own is its own"
    assert chosen(now, error="no luck") == [first, second]
    assert chosen(now, fingerprint=fingerprint) == [first, third]
    assert chosen(now, min_age="2m") == [first, second]
    assert chosen(now, max_age="2m") == [second, third]
    assert chosen(now, min_age="2m", max_age="2m") == [second]
    assert chosen(now, ended_from=moment(START + MINUTE)) == [second, third]
    assert chosen(now, ended_to=moment(START + MINUTE)) == [first]
    assert chosen(now, task="sync", instance="i-1", fingerprint=fingerprint, error="luck") == [first]
    assert chosen(now, task="sync", instance="i-1", error="either") == []


def test_the_newest_are_taken_when_there_are_more_than_asked_for(ledger: Ledger, at: At) -> None:
    made = [dead(at(START + number)) for number in range(5)]

    found = preview(ledger, 2)

    assert [job.id for job in found.jobs] == made[3:]
    assert found.more
    assert not preview(ledger, 5).more or preview(ledger, 6).more is False


def test_at_most_500_are_chosen(ledger: Ledger) -> None:
    die(ledger, 510)

    found = preview(ledger)

    assert (len(found.jobs), found.more) == (500, True)
    assert len(preview(ledger, 500, error="no luck").jobs) == 500


def test_a_preview_looks_at_a_bounded_number_of_jobs_and_says_so(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "LOOK", 100)
    die(ledger, 300)

    found = preview(ledger)

    assert 100 <= found.scanned < 300
    assert found.more


REFUSED: list[dict[str, Any]] = [
    {"status": "canceled"},
    {"status": "colour"},
    {"min_age": "soon"},
    {"max_age": "-1s"},
    {"ended_from": datetime(2026, 1, 1)},
    {"ended_to": "noon"},
    {"error": ""},
    {"fingerprint": "A B"},
    {"instance": "x" * 201},
    {"trace": "\n"},
    {"colour": "red"},
]


@pytest.mark.parametrize("conditions", REFUSED, ids=str)
def test_a_condition_that_makes_no_sense_is_refused(
    ledger: Ledger, store: Store, conditions: dict[str, Any]
) -> None:
    dead(ledger)

    with store.unchanged(), pytest.raises(BadInput):
        Replays(ledger).preview(conditions)  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [0, 501, True, "5"])
def test_a_number_of_jobs_that_is_none_is_refused(ledger: Ledger, limit: Any) -> None:
    with pytest.raises(BadInput, match="1 to 500 jobs at a time"):
        preview(ledger, limit)


# -- what the preview shows is what is done ----------------------------------------------------------------------------


def test_a_replay_does_what_its_preview_has_shown(ledger: Ledger, at: At) -> None:
    jobs = [dead(at(START + number)) for number in range(3)]
    unknown = unknown_outcome(at(START + 3)).id
    later = at(START + MINUTE)
    found = preview(later)
    newer = dead(at(START + MINUTE))

    batch = Replays(at(START + 2 * MINUTE)).apply(found.token, rate=10, reason="the bank is back", by="ada")

    assert [job.id for job in found.jobs] == jobs
    assert [(job.id, job.refused) for job in found.skipped] == [(unknown, "OUTCOME_UNKNOWN")]
    assert outcomes(batch) == {**dict.fromkeys(jobs), unknown: "OUTCOME_UNKNOWN"}
    assert (batch.state, batch.total, batch.success, batch.skipped) == ("done", 4, 3, 1)
    assert [ledger.get(job_id).run_at - START - 2 * MINUTE for job_id in jobs] == [0, 100, 200]
    for job_id in jobs:
        job = ledger.get(job_id)
        assert (job.status, job.generation, job.failures, len(job.attempts)) == ("pending", 2, 0, 1)
        assert (job.history[0].verb, job.history[0].by, job.reason) == ("replay", "ada", "the bank is back")
    assert ledger.get(newer).status == "dead", "it was not in the preview"


def test_a_preview_changes_no_job(ledger: Ledger, store: Store) -> None:
    job_id = dead(ledger)
    before = {name: value for name, value in store.dump().items() if ":b" not in name}

    found = preview(ledger)

    after = {name: value for name, value in store.dump().items() if ":b" not in name}
    assert [job.id for job in found.jobs] == [job_id]
    assert after == before


def test_what_has_moved_in_between_is_skipped(ledger: Ledger) -> None:
    still, retried, again, skipped = (dead(ledger) for _ in range(4))
    found = preview(ledger)
    ledger.retry(again)
    ledger.settle(claim(ledger), Fail("no luck", permanent=True))
    ledger.retry(retried)
    ledger.skip(skipped)

    batch = Replays(ledger).apply(found.token)

    assert outcomes(batch) == {
        still: None,
        retried: "STALE_PLAN",
        again: "STALE_PLAN",
        skipped: "STALE_PLAN",
    }


def test_one_that_got_its_word_after_the_preview_waits_for_the_next_one(ledger: Ledger) -> None:
    lease = unknown_outcome(ledger)
    found = preview(ledger)
    ledger.confirm(lease.id, False)

    first = Replays(ledger).apply(found.token)
    second = Replays(ledger).apply(preview(ledger).token)

    assert outcomes(first) == {lease.id: "OUTCOME_UNKNOWN"}
    assert outcomes(second) == {lease.id: None}


def test_a_replay_that_is_sent_twice_is_one(ledger: Ledger, at: At, store: Store) -> None:
    job_id = dead(ledger)
    found = preview(ledger)
    first = Replays(ledger).apply(found.token, reason="first")
    ledger.settle(claim(ledger), Fail("no luck", permanent=True))

    with store.unchanged():
        again = Replays(at(START + MINUTE)).apply(found.token, reason="second")

    assert again == first
    assert (ledger.get(job_id).status, ledger.get(job_id).generation) == ("dead", 2)


def test_conditions_are_on_record_as_they_were_given(ledger: Ledger) -> None:
    found = preview(ledger, task="sync", max_age="2h", ended_to=moment(START))

    assert (
        Batches(ledger).get(found.token).conditions
        == found.conditions
        == {
            "status": "dead",
            "task": "sync",
            "max_age": "2h",
            "ended_to": "2026-09-21T14:13:20.000Z",
        }
    )


def test_a_replay_of_nothing_is_done_at_once(ledger: Ledger) -> None:
    batch = Replays(ledger).apply(preview(ledger).token)

    assert (batch.state, batch.total, batch.success, batch.skipped) == ("done", 0, 0, 0)


def test_a_token_of_nobody_is_not_found(ledger: Ledger, store: Store) -> None:
    dead(ledger)

    with store.unchanged(), pytest.raises(NotFound, match="is not on record"):
        Replays(ledger).apply(new_id())


# -- whoever dies on the way ------------------------------------------------------------------------------------------

STEPS = [
    *[("before", script, nth) for script, nth in [("batch_begin", 1), ("batch_work", 1), ("batch_work", 2)]],
    *[("after", script, nth) for script, nth in [("batch_begin", 1), ("batch_work", 1), ("batch_work", 2)]],
]


@pytest.mark.parametrize(("when", "script", "nth"), STEPS)
def test_a_replay_survives_its_caller(
    ledger: Ledger, at: At, faults: Faults, when: str, script: str, nth: int
) -> None:
    """Begun, it is done by the reaper of any process; not begun, nothing is done until somebody says so again."""
    ids = die(ledger, 70)
    found = preview(ledger)
    (faults.die_before if when == "before" else faults.die_after)(script, nth)
    with pytest.raises(Died):
        Replays(ledger).apply(found.token, rate=200)

    later = at(START + 3 * SECOND)
    later.index.put(later.standing())
    for _tenant in later.index.take(REAP, 10).tenants:
        later.reap()

    begun = (when, script) != ("before", "batch_begin")
    batch = Batches(later).get(found.token)
    assert batch.state is (BatchState.DONE if begun else BatchState.PLANNED)
    assert batch.success == (70 if begun else 0)
    assert {job.generation for job in ledger.get_many(ids)} == {2 if begun else 1}
    again = Replays(later).apply(found.token, rate=200)
    assert (again.state, again.success) == ("done", 70)


@pytest.mark.parametrize("script", ["query", "batch_plan", "batch_begin", "batch_work", "batch_read"])
def test_a_replay_whose_reply_was_lost_is_sent_again(ledger: Ledger, faults: Faults, script: str) -> None:
    ids = die(ledger, 70)
    token = new_id()

    def whole() -> Batch:
        return Replays(ledger).apply(Replays(ledger).preview({}, token=token).token)

    faults.lose_reply(script)
    with pytest.raises(StoreUnreachable):
        whole()
    batch = whole()

    assert (batch.success, batch.skipped) == (70, 0)
    assert {job.generation for job in ledger.get_many(ids)} == {2}


def test_jobs_that_move_between_two_slices_are_skipped(ledger: Ledger, faults: Faults) -> None:
    ids = die(ledger, 70)
    found = preview(ledger)
    last = found.jobs[-1].id

    def skip_the_last() -> None:
        if faults.calls[-1] == "batch_work":
            faults.after_each = None
            ledger.skip(last)

    faults.after_each = skip_the_last
    batch = Replays(ledger).apply(found.token)

    assert last in ids
    assert (batch.success, batch.reasons) == (69, {"STALE_PLAN": 1})


def test_a_replay_never_retries_what_is_held_by_another_key(ledger: Ledger) -> None:
    lease = running(ledger, idempotency_key="k", unique_mode="active")
    ledger.settle(lease, Fail("broken", permanent=True))
    found = preview(ledger)
    ledger.enqueue(NewJob("report", when="+1", idempotency_key="k", unique_mode="active"))

    batch = Replays(ledger).apply(found.token)

    assert outcomes(batch) == {lease.id: "KEY_REUSED"}


def raises(make: Callable[[], object]) -> bool:
    try:
        make()
    except BadInput:
        return True
    return False


def test_the_pace_is_checked_before_anything_is_begun(ledger: Ledger, store: Store) -> None:
    dead(ledger)
    found = preview(ledger)

    with store.unchanged():
        assert raises(lambda: Replays(ledger).apply(found.token, rate=201))
        assert raises(lambda: Replays(ledger).apply(found.token, by="a\nb"))


def test_ages_that_no_job_can_have_are_refused(ledger: Ledger, store: Store) -> None:
    with store.unchanged(), pytest.raises(BadInput, match="min_age 2h is more than max_age 1h"):
        Replays(ledger).preview({"min_age": "2h", "max_age": "1h"})
    with store.unchanged(), pytest.raises(BadInput, match=r"ended_from .* is later than ended_to"):
        Replays(ledger).preview(
            {"ended_from": datetime(2026, 1, 2, tzinfo=UTC), "ended_to": datetime(2026, 1, 1, tzinfo=UTC)}
        )
