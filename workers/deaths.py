"""What becomes of a job whose slot has died under it."""

from __future__ import annotations

import signal

from ..lease.outcome import Fail, GiveBack, Lose, Outcome
from ..lease.tasks import Task
from ..scripts.states import Cause
from .attempt import backoff
from .wire import Why


def after_death(
    told: Why | None, status: int | None, task: Task, failures: int, grace_ms: int
) -> Outcome | None:
    """The outcome, by what the slot had been told and how it ended; None when the ledger knows already, or others will
    tell it."""
    match told:
        case Why.CANCELED | Why.PAUSED | Why.LOST:
            return None
        case Why.RELEASED:
            return GiveBack()
        case Why.TIMEOUT:
            summary = f"killed: {grace_ms} ms after its time was up it had not stopped"
            return Fail(summary, Cause.TIMEOUT, backoff(task, failures))
        case Why.KILLED:
            return Lose("killed on request")
        case None:
            return Lose(f"the process of its slot ended: {_how(status)}")


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
