"""How far a background task is, as numbers that never promise more than is known."""

from __future__ import annotations

from ..lease.eta import remaining
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
    """When it will have ended; None once it has."""
    if view.ended or view.progress is None:
        return None
    left = remaining(view)
    if left is None:
        return ESTIMATING
    return {
        "state": "known",
        "at": instant(view.read_at + left.likely_ms),
        "low": instant(view.read_at + left.low_ms),
        "high": instant(view.read_at + left.high_ms),
    }
