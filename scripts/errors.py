"""Every error Tenure raises, in one tree.

    TenureError
    ├── BadInput            refused before the store was asked (also a ValueError)
    │   ├── BadPayload      a value that cannot be stored exactly
    │   │   └── PayloadTooLarge, of what a task returned ResultTooLarge
    │   ├── UnknownTask     no task of that name is registered
    │   └── UnknownBinding  no binding of that name is registered
    ├── NotAllowed          a binding does not let this user work on that record
    ├── RightsUnknown       the application's own `may` or `authorize` failed, so nobody may
    ├── NotFound            no such job, schedule or lease in this tenant
    │   └── NoSuchRow       nor the business row that a binding is to write
    ├── Conflict            the state of things forbids it
    │   ├── KeyReused       the idempotency key belongs to a job of another task or with other arguments
    │   ├── WrongState      the operation is not in the state table
    │   ├── InstanceEnded   an instance that has ended is not suspended or resumed, and its cleared jobs not retried
    │   ├── OutcomeHappened a call outside has happened, as a person confirmed: it is not sent again
    │   ├── OutcomeUnknown  a call outside may or may not have happened: a person has to say so first
    │   ├── StalePlan       a schedule, a trigger or a job has moved on since it was read
    │   ├── InUse           something that is needed is not deleted
    │   └── SchedulingDisabled  the tenant's switch is off, or its settings cannot be read
    ├── StaleFence          a later holder has taken over; this one may write nothing
    ├── LeaseLost           the right to work has ended; stop
    ├── LeaseTaken          somebody else holds the named lease
    ├── Canceled            a person canceled the job; raised inside the task by `ctx.check()`
    ├── JobFailed           `job.result()` of a job that did not succeed
    ├── MissingExtra        an optional package is needed and not installed
    ├── ArchiveUnreachable  the database of the archive does not answer: what is asked for may be there
    └── StoreError          the server
        ├── StoreUnreachable, StoreTooOld, StoreReadOnly, StoreFull, StoreEvicts
        ├── StoreRefused    credentials or rights
        └── DurabilityUnavailable

Each carries `code` for machines, `hint` (the next step) for people, and its message names the value,
what was found and what would have been right.
"""

from __future__ import annotations

import re
from typing import ClassVar

from .states import State, possible


class TenureError(Exception):
    """Base of all errors that Tenure raises on purpose."""

    code: ClassVar[str] = "TENURE_ERROR"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        if hint:
            self.add_note(f"next: {hint}")  # so that a plain traceback tells it too


class BadInput(TenureError, ValueError):
    """The caller's value breaks a rule; nothing was sent to the store."""

    code = "BAD_INPUT"


class BadPayload(BadInput):
    code = "BAD_PAYLOAD"


class PayloadTooLarge(BadPayload):
    code = "PAYLOAD_TOO_LARGE"


class ResultTooLarge(PayloadTooLarge):
    code = "RESULT_TOO_LARGE"


class UnknownTask(BadInput):
    code = "UNKNOWN_TASK"


class UnknownBinding(BadInput):
    code = "UNKNOWN_BINDING"


class NotAllowed(TenureError):
    code = "NOT_ALLOWED"


class RightsUnknown(TenureError):
    code = "RIGHTS_UNKNOWN"


class NotFound(TenureError):
    code = "NOT_FOUND"


class NoSuchRow(NotFound):
    code = "NO_SUCH_ROW"


class Conflict(TenureError):
    code = "CONFLICT"


class KeyReused(Conflict):
    code = "KEY_REUSED"


class WrongState(Conflict):
    code = "WRONG_STATE"


class InstanceEnded(Conflict):
    code = "INSTANCE_ENDED"


class OutcomeUnknown(Conflict):
    code = "OUTCOME_UNKNOWN"


class OutcomeHappened(Conflict):
    code = "OUTCOME_HAPPENED"


class StalePlan(Conflict):
    code = "STALE_PLAN"


class InUse(Conflict):
    code = "IN_USE"


class SchedulingDisabled(Conflict):
    code = "SCHEDULING_DISABLED"


class StaleFence(TenureError):
    code = "STALE_FENCE"


class LeaseLost(TenureError):
    code = "LEASE_LOST"


class LeaseTaken(TenureError):
    code = "LEASE_TAKEN"


class Canceled(TenureError):
    code = "CANCELED"


class JobFailed(TenureError):
    code = "JOB_FAILED"


class MissingExtra(TenureError):
    code = "MISSING_EXTRA"


def install(extra: str) -> str:
    """How an extra of Tenure is installed, as the hint of a MissingExtra; from a clone, since no index has Tenure."""
    return f"in a clone of Tenure: pip install '.[{extra}]'"


class ArchiveUnreachable(TenureError):
    code = "ARCHIVE_UNREACHABLE"


class StoreError(TenureError):
    code = "STORE_ERROR"


class StoreUnreachable(StoreError):
    code = "STORE_UNREACHABLE"


class StoreTooOld(StoreError):
    code = "STORE_TOO_OLD"


class StoreReadOnly(StoreError):
    code = "STORE_READ_ONLY"


class StoreFull(StoreError):
    code = "STORE_FULL"


class StoreEvicts(StoreError):
    code = "STORE_EVICTS"


class StoreRefused(StoreError):
    code = "STORE_REFUSED"


class DurabilityUnavailable(StoreError):
    code = "DURABILITY_UNAVAILABLE"


_BY_CODE: dict[str, type[TenureError]] = {
    kind.code: kind
    for kind in (
        NotFound,
        KeyReused,
        WrongState,
        InstanceEnded,
        OutcomeUnknown,
        OutcomeHappened,
        StalePlan,
        InUse,
        SchedulingDisabled,
        StaleFence,
        LeaseTaken,
        BadInput,
    )
}


def refusal(text: str) -> TenureError | None:
    """The error a script's `CODE sentence; next: step` stands for, or None when the code is not ours."""
    code, _, said = text.partition(" ")
    kind = _BY_CODE.get(code)
    sentence, _, step = said.partition("; next: ")
    return kind(sentence, hint=step or (_possible(sentence) if kind is WrongState else "")) if kind else None


def _possible(sentence: str) -> str:
    """The next step after a refusal that ends with the state, as all do in `shared/move.lua`."""
    found = re.search(r" refused: it is (\w+)", sentence)
    return possible(State(found[1])) if found and found[1] in set(State) else ""
