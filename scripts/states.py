"""The states of a job and the moves between them: written once, used by Lua, Python, docs and tests."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    WAITING = "waiting"
    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DEAD = "dead"
    CANCELED = "canceled"


class Cause(StrEnum):
    """What ended an attempt, when it was not a normal return."""

    RAISED = "raised"
    LIMIT = "limit"
    TOO_LARGE = "too_large"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    LEASE_LOST = "lease_lost"
    KILLED = "killed"
    RELEASED = "released"
    CANCELED = "canceled"
    PAUSED = "paused"


class DeadReason(StrEnum):
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    PERMANENT_ERROR = "permanent_error"
    OUTCOME_UNKNOWN = "outcome_unknown"
    LOST_TOO_OFTEN = "lost_too_often"
    EXPIRED = "expired"


ENDED = frozenset({State.SUCCEEDED, State.FAILED, State.DEAD, State.CANCELED})

_CANCELABLE = (State.WAITING, State.PENDING, State.RUNNING, State.PAUSED, State.FAILED, State.DEAD)

# operation -> {state it starts from: state it leads to}. A pair that is not here is refused. What would come back to
# pending is paused instead while its instance is suspended, and canceled when that has ended, if its task says so
# (`shared/flag.lua`). So a waiting job need not be paused: it meets the flag when its parents let it go.
MOVES: dict[str, dict[State, State]] = {
    "claim": {State.PENDING: State.RUNNING},
    "succeed": {State.RUNNING: State.SUCCEEDED},
    "continue": {State.RUNNING: State.PENDING},
    "try_again": {State.RUNNING: State.PENDING},
    "give_back": {State.RUNNING: State.PENDING},
    "bury": {State.RUNNING: State.DEAD},
    "give_up": {State.RUNNING: State.FAILED},
    "expire": {State.PENDING: State.DEAD},
    "reschedule": {State.PENDING: State.PENDING},
    "pause": dict.fromkeys((State.PENDING, State.RUNNING), State.PAUSED),
    "resume": {State.PAUSED: State.PENDING},
    "cancel": dict.fromkeys(_CANCELABLE, State.CANCELED),
    "skip": dict.fromkeys(_CANCELABLE, State.CANCELED),
    "retry": dict.fromkeys((State.FAILED, State.DEAD, State.CANCELED), State.PENDING),
}

# What a person may do to a job, or to its instance, and whether that begins a new generation of it.
BY_HAND: dict[str, bool] = {
    "retry": True,
    "replay": True,
    "cancel": True,
    "skip": True,
    "reschedule": False,
    "confirm": False,
    "pause": True,
    "resume": True,
}


_OF_ONE_JOB = ("retry", "reschedule", "cancel", "skip")


def possible(state: State) -> str:
    """What a person may do to a job in `state`, as the next step of what was refused."""
    verbs = [verb for verb in _OF_ONE_JOB if state in MOVES[verb]]
    if verbs:
        return f"while it is {state}, it takes: {', '.join(verbs)}"
    return f"nothing changes a {state} job; to do its work again make a new one"


def lua_moves() -> str:
    """The table above as a Lua constructor, for the scripts' prelude."""
    rows = []
    for operation, steps in MOVES.items():
        pairs = ", ".join(f"{start} = '{end}'" for start, end in steps.items())
        rows.append(f"  {operation} = {{{pairs}}},")
    states = ", ".join(f"'{state}'" for state in State)
    return "\n".join([f"local STATES = {{{states}}}", "local MOVES = {", *rows, "}"])
