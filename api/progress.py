"""How far a background task is, as numbers that never promise more than is known."""

from __future__ import annotations

from ..lease.eta import estimate
from ..lease.jobs import JobView
from ..scripts.states import State
from .plain import Json, instant

ESTIMATING: Json = {"state": "estimating", "at": None, "low": None, "high": None}


def percent(view: JobView) -> float | None:
    """Committed work of the total, to one decimal, rounded down; None without a total.

    100 stands for `succeeded` and for nothing else: a task that succeeded has it whatever it counted last, and any
    other stays below.
    """
    if view.progress is None or not view.progress.total or view.progress.total < 0:
        return None
    if view.status is State.SUCCEEDED:
        return 100.0
    tenths = 1000 * max(0, view.progress.done or 0) // view.progress.total
    return min(tenths, 999) / 10


def eta(view: JobView) -> Json | None:
    """When it will have ended; None once it has.

    A task that waits for its next chunk works on from when that is due.
    """
    if view.ended or view.progress is None:
        return None
    at_work = view.status in (State.RUNNING, State.PENDING)
    left = estimate(view.progress, view.read_at) if at_work else None
    if left is None:
        return ESTIMATING
    start = max(view.read_at, view.run_at) if view.status is State.PENDING else view.read_at
    return {
        "state": "known",
        "at": instant(start + left.likely_ms),
        "low": instant(start + left.low_ms),
        "high": instant(start + left.high_ms),
    }
