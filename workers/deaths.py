"""What becomes of a job whose slot has died under it."""

from __future__ import annotations

import signal

from ..lease.budgets import Limit, LimitCrossed, Lineage
from ..lease.outcome import Fail, GiveBack, Lose, Outcome
from ..lease.tasks import Task
from ..scripts.states import Cause
from .attempt import backoff, limited
from .meter import over_time
from .row import Row
from .wire import Why


def after_death(
    told: Why | None, status: int | None, task: Task, failures: int, grace_ms: int, others: int = 0
) -> Outcome | None:
    """The outcome, by what the job had been told and how the slot ended; None when the ledger knows already, or others
    will tell it. With `others` beside it nobody knows which of them ended it."""
    match told:
        case Why.CANCELED | Why.PAUSED | Why.LOST:
            return None
        case Why.RELEASED:
            return GiveBack()
        case Why.TIMEOUT:
            summary = f"killed: {grace_ms} ms after its time was up it had not stopped"
            return Fail(summary, Cause.TIMEOUT, backoff(task, failures))
        case Why.BLOCKING:
            summary = (
                "killed: it held the event loop of its lane for so long that a job beside it ran out of time"
            )
            return Fail(summary, Cause.TIMEOUT, backoff(task, failures))
        case Why.KILLED:
            return Lose("killed on request")
        case Why.MEMORY:
            return None  # `over_budget` has it
        case None:
            beside = f", with {others} other jobs in it" if others else ""
            return Lose(f"the process of its slot ended{beside}: {_how(status)}")


def over_budget(row: Row, began: float, told: Why | None, task: Task) -> Outcome | None:
    """The outcome of a job that was killed because it did not stop when it had crossed a budget; None of any other."""
    path = Lineage.of(row.lease.lineage).of_job(row.lease.id, task.key, task.budgets).path
    if told is Why.MEMORY:
        crossed = LimitCrossed(Limit.MEMORY, "killed: over its budget of memory it did not stop", path)
    elif told is Why.TIMEOUT and row.ends_by(began) < row.limit_at:
        crossed = LimitCrossed(Limit.TIMEOUT, f"killed: {over_time(task.budgets)}, and it did not stop", path)
    else:
        return None
    return limited(crossed, task, row.lease.failures)


def _how(status: int | None) -> str:
    """In words: an exit code, or minus the number of a signal; None when nobody said."""
    if status is None:
        return "how is not known, for the fork server did not say"
    if status >= 0:
        return f"exit code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"{name} (not from here: perhaps out of memory)" if -status == signal.SIGKILL else name
