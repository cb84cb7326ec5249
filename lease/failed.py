"""A dead or failed job in few words, for lists of what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..scripts.states import State


@dataclass(frozen=True, slots=True)
class FailedJob:
    """`at` is when it ended; `error` the beginning of its newest one; `refused` the code of why it could not be
    retried, if that was asked and it could not.
    """

    id: str
    task: str
    status: State
    generation: int
    at: int
    dead_reason: str
    fingerprint: str
    instance: str | None
    trace: str
    error: str
    refused: str | None = None


def failed_jobs(rows: Sequence[list[Any]]) -> list[FailedJob]:
    """What the scripts' `failed_row` gives; a job that has gone meanwhile is left out."""
    return [_failed_job([value.decode(errors="ignore") for value in row]) for row in rows if row]


def _failed_job(row: list[str]) -> FailedJob:
    id_, task, state, generation, at, reason, fingerprint, instance, trace, _attempts, error, refused = row
    return FailedJob(
        id=id_,
        task=task,
        status=State(state),
        generation=int(generation),
        at=int(at or 0),
        dead_reason=reason,
        fingerprint=fingerprint,
        instance=instance or None,
        trace=trace or id_,
        error=error,
        refused=refused or None,
    )
