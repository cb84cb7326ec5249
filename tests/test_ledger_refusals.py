"""What the ledger refuses, and that a refusal leaves every key as it was (I6, I7, I10), on a full server too."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from tenure.lease.jobs import Lease
from tenure.lease.ledger import Ledger
from tenure.lease.outcome import Fail, GiveBack, Lose, NextChunk, Outcome, SkipRest, Succeed
from tenure.scripts.errors import NotFound, StaleFence, TenureError, WrongState
from tenure.scripts.states import MOVES, State

from .given import STALE, Store, running

OUTCOMES: list[Outcome] = [
    Succeed(b"late" * 50),
    SkipRest("late"),
    NextChunk(b"late" * 50, done=99, total=99, message="late"),
    Fail("late"),
    Fail("late", permanent=True),
    Lose("late"),
    GiveBack(),
    GiveBack(started=False),
]


def renew(ledger: Ledger, lease: Lease) -> TenureError | int:
    return ledger.renew([lease])[0]


def report(ledger: Ledger, lease: Lease) -> TenureError | int:
    try:
        return ledger.report(lease, cursor=b"late", done=99, doing=99, message="late", lines=["late"])
    except TenureError as exc:
        return exc


def settle(outcome: Outcome) -> Callable[[Ledger, Lease], TenureError | None]:
    def call(ledger: Ledger, lease: Lease) -> TenureError | None:
        try:
            ledger.settle(lease, outcome)
        except TenureError as exc:
            return exc
        return None

    return call


def name(outcome: Outcome) -> str:
    return repr(outcome)[:30]


@pytest.mark.parametrize("state", STALE)
@pytest.mark.parametrize("write", [renew, report], ids=["renew", "report"])
def test_a_holder_that_lost_its_lease_can_write_nothing(
    ledger: Ledger,
    store: Store,
    memory: Callable[[], bool],
    state: str,
    write: Callable[[Ledger, Lease], TenureError | int],
) -> None:
    lease = STALE[state](ledger)
    memory()

    with store.unchanged():
        refused = write(ledger, lease)

    assert isinstance(refused, StaleFence)
    assert lease.id in str(refused)


@pytest.mark.parametrize("state", STALE)
@pytest.mark.parametrize("outcome", OUTCOMES, ids=name)
def test_a_holder_that_lost_its_lease_can_settle_nothing(
    ledger: Ledger, store: Store, memory: Callable[[], bool], state: str, outcome: Outcome
) -> None:
    """Where the outcome is the one that ended its attempt, it is the same call sent again: accepted, and no change."""
    lease = STALE[state](ledger)
    memory()

    with store.unchanged():
        answer = settle(outcome)(ledger, lease)

    ended_by = {
        "pending": Fail,
        "between chunks": NextChunk,
        "succeeded": Succeed,
        "dead": Fail,
        "failed": Fail,
    }
    if type(outcome) is ended_by.get(state):
        assert answer is None
    else:
        assert isinstance(answer, StaleFence)


@pytest.mark.parametrize("outcome", OUTCOMES, ids=name)
@pytest.mark.parametrize("off_by", [-1, 1])
def test_only_the_very_fence_is_accepted(ledger: Ledger, store: Store, outcome: Outcome, off_by: int) -> None:
    """Equality, not order: a fence from the future is as wrong as one from the past."""
    lease = running(ledger)
    wrong = replace(lease, fence=lease.fence + off_by)

    with store.unchanged():
        assert isinstance(settle(outcome)(ledger, wrong), StaleFence)
        assert isinstance(renew(ledger, wrong), StaleFence)
        assert isinstance(report(ledger, wrong), StaleFence)


@pytest.mark.parametrize("outcome", OUTCOMES, ids=name)
def test_a_job_that_is_not_there_is_named(ledger: Ledger, store: Store, outcome: Outcome) -> None:
    lost = replace(running(ledger), id="01J00000000000000000000000")

    with store.unchanged():
        for answer in (settle(outcome)(ledger, lost), renew(ledger, lost), report(ledger, lost)):
            assert isinstance(answer, NotFound)
            assert lost.id in str(answer)


def test_a_refusal_says_who_holds_the_job_and_what_you_hold(ledger: Ledger) -> None:
    lease = STALE["running for another"](ledger)
    now = ledger.get(lease.id)

    with pytest.raises(StaleFence, match=f"running under fence {now.fence}, you hold {lease.fence}"):
        ledger.settle(lease, Succeed())


# -- cancel, against the table of states ------------------------------------------------------------------------------


def test_a_succeeded_job_cannot_be_canceled(ledger: Ledger, store: Store) -> None:
    lease = STALE["succeeded"](ledger)

    with store.unchanged(), pytest.raises(WrongState, match=f"job {lease.id} refused: it is succeeded"):
        ledger.cancel(lease.id, "too late")


def test_canceling_twice_is_one_cancel(ledger: Ledger, store: Store) -> None:
    lease = STALE["canceled"](ledger)

    with store.unchanged():
        assert ledger.cancel(lease.id, "another reason") == "canceled"


def test_a_job_that_is_not_there_cannot_be_canceled(ledger: Ledger, store: Store) -> None:
    running(ledger)

    with store.unchanged(), pytest.raises(NotFound, match="01J00000000000000000000000"):
        ledger.cancel("01J00000000000000000000000")


@pytest.mark.parametrize("state", STALE)
def test_cancel_does_what_the_table_of_states_says(ledger: Ledger, state: str) -> None:
    lease = STALE[state](ledger)
    before = ledger.get(lease.id).status

    with contextlib.suppress(WrongState):
        ledger.cancel(lease.id)

    expected = MOVES["cancel"].get(before, before)
    assert ledger.get(lease.id).status == expected


def test_nothing_leaves_succeeded() -> None:
    assert not [move for move, steps in MOVES.items() if State.SUCCEEDED in steps]


# -- reads write nothing ----------------------------------------------------------------------------------------------


def test_looking_changes_nothing(ledger: Ledger, store: Store) -> None:
    for arrange in STALE.values():
        arrange(ledger)
    ids = [job.id for job in ledger.list().items]

    with store.unchanged():
        ledger.counts()
        ledger.standing()
        ledger.get_many(ids, lines=10)
        for status in (None, *State):
            ledger.list(status=status)
