"""Every operation against every state: what the table of states has leads where it says, all else changes nothing.

A full server is no other: only the claim is refused there, whatever it would find.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tenure.lease.instances import Instances
from tenure.lease.jobs import Lease
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail, GiveBack, Lose, NextChunk, Outcome, Succeed
from tenure.scripts.errors import InstanceEnded, StaleFence, StoreFull, TenureError, WrongState
from tenure.scripts.keys import parse
from tenure.scripts.states import MOVES, State
from tenure.testing import START, Invariants

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
    "expire": lambda ledger, lease: ledger.at(START + 600).reap(),
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
FIELDS = {"end_as": "failed", "max_lost": "1", "start_by": "+500", **PAUSABLE, "cleared_on_end": "1"}
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
        if operation in ("pause", "expire"):  # the reaper tells the index when it has to come again
            assert of_jobs(store.dump()) == of_jobs(dump)
        else:
            assert store.dump() == dump
        harmless = operation in ("claim", "expire", *OF_INSTANCE) or (operation, state) in SENT_AGAIN
        assert refused is None if harmless else isinstance(refused, (WrongState, StaleFence))
        if isinstance(refused, WrongState):
            assert operation in BY_HAND
            assert f"{operation} of job {lease.id} refused: it is {state}" in str(refused)


# -- the same under a flag of the job's instance that the walk has not brought the job after --------------------------

TURNED = {"suspended": State.PAUSED, "ended": State.CANCELED}


def flagged(ledger: Ledger, state: State, flag: str) -> Lease:
    """A job in a state, and its instance has the flag; the walk stands in front of it."""
    lease = arranged(ledger, state)
    ledger.at(START - 1).enqueue(NewJob("report", when="+9999999999", fields={"instance": "order-7"}))
    Instances(ledger, step=1).begin("order-7", flag)
    assert view(ledger, lease).status is state
    return lease


def led_to(operation: str, state: State, flag: str) -> State | None:
    """Where the table leads, unless the flag says otherwise; None is nowhere."""
    to = MOVES[operation].get(state)
    if operation in ("retry", *OF_INSTANCE) and flag == "ended":
        return None
    comes_back = to is State.PENDING and state is not State.PENDING
    met = operation in ("claim", "expire") and state is State.PENDING
    return TURNED[flag] if comes_back or met else to


@pytest.mark.parametrize("flag", TURNED)
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_obeys_the_flag_before_the_walk_has_come(
    ledger: Ledger, store: Store, operation: str, state: State, flag: str
) -> None:
    if (state, flag) == (State.PAUSED, "suspended"):
        pytest.skip("it has followed already")
    lease = flagged(ledger, state, flag)
    if state is not State.PENDING:
        ledger.claim("advance", "another")
    before, dump = view(ledger, lease), store.dump()
    invariants = Invariants()
    invariants.check(dump)

    try:
        OPERATIONS[operation](ledger, lease)
        refused = None
    except TenureError as exc:
        refused = exc

    after = view(ledger, lease)
    invariants.check(store.dump())
    to = led_to(operation, state, flag)
    if to is not None:
        assert refused is None
        assert after.status is to
        assert after.revision == before.revision + 1
        assert after.generation == before.generation + (operation in NEW_ROUND or to is TURNED[flag])
    elif operation in OF_INSTANCE and flag == "suspended":
        assert refused is None
        assert (after.status, after.revision) == (before.status, before.revision)
    else:
        assert store.dump() == dump
        if operation in OF_INSTANCE or (operation == "retry" and state in MOVES[operation]):
            assert isinstance(refused, InstanceEnded)
