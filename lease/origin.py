"""Which job runs here: what it enqueues belongs to its trace, and names it as its parent."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """A running job and the trace it belongs to."""

    job: str
    trace: str
    below: Callable[[], str] = str
    """The lineage of a job that it enqueues, as its row has it. Raises LimitCrossed."""


running_job: ContextVar[Origin | None] = ContextVar("running_job", default=None)
"""Follows the task into its coroutines and `asyncio.to_thread`; into a thread of its own only with
`contextvars.copy_context().run`.
"""
