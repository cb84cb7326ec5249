"""The execution log of a schedule: what became of its planned fires, written when it happened; read by month.

An instant that was skipped has one entry. One that fired has an entry for each round of its job that ended: a job that
failed, and that somebody retried, has failed at one time and was executed at another, and the log tells both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..lease.ids import fire_id
from ..lease.payload import digest
from ..scripts.errors import BadInput
from .job_key import JobKey
from .skips import log_sentence

Status = Literal["Executed", "Failed", "Skipped"]
LONGEST = 100
_MONTH = re.compile(r"[0-9]{4}(0[1-9]|1[0-2])")
_POSITION = re.compile(r"[0-9]{1,16}")


@dataclass(frozen=True, slots=True)
class LogEntry:
    """What became of one planned instant (epoch ms), or of `count` of them up to `until` that were skipped.

    `position` is its place in the log, by which pages go on: the tenant clock, in microseconds. `round` counts the
    generations of the fired job.
    """

    event_id: str
    job_key: JobKey
    trigger: str
    fire_time: int
    status: Status
    executed: bool
    """Whether it has begun: a job that is canceled before has failed and was not executed."""
    reason: str | None
    """Why it was skipped, or how its job has failed; None where it was executed."""
    message: str | None
    job_id: str | None
    created_at: int
    position: str
    round: int = 1
    until: int | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class LogPage:
    """Entries of a month, newest first, and the cursor of the next page (None: there is none)."""

    items: Sequence[LogEntry]
    next_cursor: str | None


def event_id(tenant: str, job_key: str, trigger: str, instant: int, generation: int = 1) -> str:
    """The id of an entry: a digest of tenant, JobKey, trigger and planned instant (epoch ms; of a range the first one),
    and of later rounds of the job their generation. Whoever computes it finds the same.
    """
    later = (str(generation),) if generation > 1 else ()
    return digest(tenant, job_key, trigger, str(instant), *later)


def check_month(month: str) -> str:
    """Return `month` if it is YYYYMM, else refuse it."""
    if not isinstance(month, str) or not _MONTH.fullmatch(month):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(
            f"month {month!r:.40} is not a month as YYYYMM, in UTC", hint="202609 is September 2026"
        )
    return month


def check_position(cursor: str) -> str:
    """Return a cursor if a page of the log may have given it, else refuse it."""
    if not isinstance(cursor, str) or not _POSITION.fullmatch(cursor):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(
            f"cursor {cursor!r:.40} is not one this list gave", hint="start again without a cursor"
        )
    return cursor


def read_entry(tenant: str, job_key: JobKey, entry: bytes) -> LogEntry:
    """An entry as the scripts have written it."""
    first, _, words = entry.decode(errors="ignore").partition("\n")
    position, kind, trigger, instant, *rest = first.split(" ")
    made = int(position) // 1000
    if kind == "S":
        until, count, reason = rest
        return LogEntry(
            event_id=event_id(tenant, str(job_key), trigger, int(instant)),
            job_key=job_key,
            trigger=trigger,
            fire_time=int(instant),
            status="Skipped",
            executed=False,
            reason=reason,
            message=log_sentence(reason),
            job_id=None,
            created_at=made,
            position=position,
            until=None if until == "-" else int(until),
            count=int(count),
        )
    generation, begun, reason = rest if kind == "F" else (*rest, "1", "")
    return LogEntry(
        event_id=event_id(tenant, str(job_key), trigger, int(instant), int(generation)),
        job_key=job_key,
        trigger=trigger,
        fire_time=int(instant),
        status="Executed" if kind == "E" else "Failed",
        executed=begun == "1",
        reason=reason or None,
        message=words or None,
        job_id=fire_id(tenant, str(job_key), trigger, int(instant)),
        created_at=made,
        position=position,
        round=int(generation),
    )
