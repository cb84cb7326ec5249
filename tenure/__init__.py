"""Tenure: a Redis-centric distributed scheduler and lease manager.

Importing this opens nothing and loads almost nothing; names are brought in when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .app import Tenure
    from .handles import Job, TaskCall, TaskHandle
    from .lease.budgets import Budgets, LimitCrossed
    from .lease.outcome import Continue, Done, Permanent, RetryAfter, Skip
    from .lease.retention import Keep
    from .lease.retry import Retry
    from .notices import Notice
    from .scheduler.job_key import JobKey
    from .scripts.errors import TenureError
    from .settings import Settings
    from .workers.ctx import Ctx

_HOMES = {
    "Tenure": "app",
    "Job": "handles",
    "TaskCall": "handles",
    "TaskHandle": "handles",
    "Ctx": "workers.ctx",
    "Budgets": "lease.budgets",
    "LimitCrossed": "lease.budgets",
    "Continue": "lease.outcome",
    "Done": "lease.outcome",
    "Skip": "lease.outcome",
    "Permanent": "lease.outcome",
    "RetryAfter": "lease.outcome",
    "Keep": "lease.retention",
    "Retry": "lease.retry",
    "Notice": "notices",
    "JobKey": "scheduler.job_key",
    "Settings": "settings",
    "TenureError": "scripts.errors",
}

__all__ = [
    "Budgets",
    "Continue",
    "Ctx",
    "Done",
    "Job",
    "JobKey",
    "Keep",
    "LimitCrossed",
    "Notice",
    "Permanent",
    "Retry",
    "RetryAfter",
    "Settings",
    "Skip",
    "TaskCall",
    "TaskHandle",
    "Tenure",
    "TenureError",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
