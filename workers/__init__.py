"""The worker: claims jobs from the ledger and runs them in slots, processes that can be killed one by one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .application import Application, load_application
    from .ctx import Ctx
    from .ledger_worker import LedgerWorker, run_worker
    from .options import WorkerOptions

_HOMES = {
    "Application": "application",
    "Ctx": "ctx",
    "LedgerWorker": "ledger_worker",
    "WorkerOptions": "options",
    "load_application": "application",
    "run_worker": "ledger_worker",
}

__all__ = ["Application", "Ctx", "LedgerWorker", "WorkerOptions", "load_application", "run_worker"]


def __getattr__(name: str) -> Any:
    # brought in at first use: a task's module imports Ctx, and RQ takes a third of a second to load
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
