"""Every operation against every state: what the table of states has leads where it says, all else changes nothing.

A full server is no other: only the claim is refused there, whatever it would find.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tenure.lease.instances import Instances
from tenure.lease.jobs import Lease
from tenure.lease.ledger import Ledger
from tenure.lease.outcome import Fail, GiveBack, Lose, NextChunk, Outcome, Succeed
from tenure.scripts.errors import StaleFence, StoreFull, TenureError, WrongState
from tenure.scripts.keys import parse
from tenure.scripts.states import MOVES, State
from tenure.testing import Invariants

from .given import PAUSABLE, Store, place, running, view

Act = Callable[[Ledger, Lease], object]


def settle(outcome: Outcome) -> Act:
    return lambda ledger, lease: ledger.settle(lease, outcome)


OPERATIONS: dict[str, Act] = {
    "claim": lambda ledger, lease: ledger.claim("advance", "another"),
    "succeed": settle(Succeed(b"r")),
    "continue": settle(NextChunk(b"c")),
    "try_again": settle(Fail("no luck")),
    "give_back": settle(GiveBack()),
    "bury": settle(Lose("exit code -9")),
    "give_up": settle(Fail("no luck", permanent=True)),
    "expire": lambda ledger, lease: ledger.at(lease.expires_at - 1).reap(),
    "reschedule": lambda ledger, lease: ledger.reschedule(lease.id, priority=1),
    "cancel": lambda ledger, lease: ledger.cancel(lease.id, "why"),
    "skip": lambda ledger, lease: ledger.skip(lease.id, "why"),
    "retry": lambda ledger, lease: ledger.retry(lease.id, args=b"others", reason="why"),
    "pause": lambda ledger, lease: Instances(ledger).pause("order-7"),
    "resume": lambda ledger, lease: Instances(ledger).resume("order-7"),
}
# The job is there already, by the very outcome or word that is sent now.
SENT_AGAIN = {
    ("succeed", State.SUCCEEDED),
    ("bury", State.DEAD),
    ("give_up", State.FAILED),
    ("try_again", State.FAILED),
    ("cancel", State.CANCELED),
    ("skip", State.CANCELED),
}
BY_HAND = ("reschedule", "cancel", "skip", "retry")
OF_INSTANCE = ("pause", "resume")
NEW_ROUND = ("cancel", "skip", "retry", *OF_INSTANCE)
FIELDS = {"end_as": "failed", "max_lost": "1", "start_by": "+1000", **PAUSABLE}
ENDS: dict[State, Outcome] = {
    State.SUCCEEDED: Succeed(b"result"),
    State.FAILED: Fail("its owner looks after it", permanent=True),
    State.DEAD: Lose("exit code -9"),
}


def arranged(ledger: Ledger, state: State) -> Lease:
    """A job in a state, with the lease that it has or had."""
    lease = running(ledger, args=b"args", fields=FIELDS)
    if state in ENDS:
        ledger.settle(lease, ENDS[state])
    elif state is State.CANCELED:
        ledger.cancel(lease.id)
    elif state is not State.RUNNING:
        ledger.settle(lease, GiveBack(started=False))
        if state is State.PAUSED:
            Instances(ledger).pause("order-7")
        elif state is State.WAITING:
            place(ledger, lease.id, state)
    assert view(ledger, lease).status is state
    return lease


def of_jobs(dump: dict[str, Any]) -> dict[str, Any]:
    """A dump without the flags of instances, and without what every change leaves: the tenant's clock, the index."""
    passed_over = ("meta", "instance", "instances", "due", "seen")
    return {name: value for name, value in dump.items() if parse(name)[2] not in passed_over}


def test_every_operation_of_the_table_is_tried() -> None:
    assert set(OPERATIONS) == set(MOVES)


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_leads_where_the_table_says_or_changes_nothing(
    ledger: Ledger, store: Store, memory: Callable[[], bool], operation: str, state: State
) -> None:
    lease = arranged(ledger, state)
    if state is not State.PENDING:
        ledger.claim(
            "advance", "another"
        )  # an empty claim forgets what was told of the pool: not now, please
    before, dump = view(ledger, lease), store.dump()
    invariants = Invariants()
    invariants.check(dump)
    no_room = memory() and operation == "claim"

    try:
        OPERATIONS[operation](ledger, lease)
        refused = None
    except TenureError as exc:
        refused = exc

    after = view(ledger, lease)
    invariants.check(store.dump())
    if no_room:
        assert store.dump() == dump
        assert isinstance(refused, StoreFull)
    elif state in MOVES[operation]:
        assert refused is None
        assert after.status is MOVES[operation][state]
        assert after.revision == before.revision + 1
        assert after.generation == before.generation + (operation in NEW_ROUND)
    else:
        assert of_jobs(store.dump()) == of_jobs(dump) if operation == "pause" else store.dump() == dump
        harmless = operation in ("claim", "expire", *OF_INSTANCE) or (operation, state) in SENT_AGAIN
        assert refused is None if harmless else isinstance(refused, (WrongState, StaleFence))
        if isinstance(refused, WrongState):
            assert operation in BY_HAND
            assert f"{operation} of job {lease.id} refused: it is {state}" in str(refused)
