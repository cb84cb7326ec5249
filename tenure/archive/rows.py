"""Records of Redis as rows of the archive, and back. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from sqlalchemy import Row

from ..lease import views
from ..lease.jobs import JobView
from ..lease.payload import LIMIT, pack, unpack
from ..scheduler.execution_log import LogEntry, Status, event_id, read_entry
from ..scheduler.fire_record import Fire, read_fire
from ..scheduler.job_key import JobKey
from ..scheduler.plan import month

Values = dict[str, Any]
LONGEST_JOB = 64 * LIMIT


@dataclass
class Batch:
    """Rows that are written in one transaction, with the note of how far they go."""

    fires: list[Values] = field(default_factory=list[Values])
    entries: list[Values] = field(default_factory=list[Values])
    jobs: list[Values] = field(default_factory=list[Values])
    progress: list[Values] = field(default_factory=list[Values])

    def __len__(self) -> int:
        return len(self.fires) + len(self.entries) + len(self.jobs)


def fire_row(tenant: str, of_month: str, trigger: str, job_key: str, record: bytes) -> Values:
    fire = read_fire(trigger, record.decode())
    return {
        "event_id": event_id(tenant, job_key, trigger, fire.fire_time),
        "tenant": tenant,
        "job_key": job_key,
        "trigger_name": trigger,
        "month": of_month,
        "fire_time": fire.fire_time,
        "outcome": fire.outcome,
        "reason": fire.reason,
        "job_id": fire.job_id,
        "written_at": fire.at,
        "scheduler": _text(fire.scheduler),
        "until": fire.until,
        "instants": fire.count,
    }


def fire(row: Row[Any]) -> Fire:
    return Fire(
        trigger=row.trigger_name,
        fire_time=row.fire_time,
        outcome=row.outcome,
        reason=row.reason,
        job_id=row.job_id,
        at=row.written_at,
        scheduler=row.scheduler,
        until=row.until,
        count=row.instants,
    )


def entry_row(tenant: str, of_month: str, job_key: str, record: bytes) -> Values:
    entry = read_entry(tenant, JobKey.parse(job_key), record)
    return {
        "event_id": entry.event_id,
        "tenant": tenant,
        "job_key": job_key,
        "trigger_name": entry.trigger,
        "month": of_month,
        "position": int(entry.position),
        "fire_time": entry.fire_time,
        "status": entry.status,
        "executed": entry.executed,
        "reason": entry.reason,
        "message": _text(entry.message),
        "job_id": entry.job_id,
        "round": entry.round,
        "until": entry.until,
        "instants": entry.count,
    }


def entry(row: Row[Any]) -> LogEntry:
    return LogEntry(
        event_id=row.event_id,
        job_key=JobKey.parse(row.job_key),
        trigger=row.trigger_name,
        fire_time=row.fire_time,
        status=cast(Status, row.status),
        executed=row.executed,
        reason=row.reason,
        message=row.message,
        job_id=row.job_id,
        created_at=row.position // 1000,
        position=str(row.position),
        round=row.round,
        until=row.until,
        count=row.instants,
    )


def job_row(tenant: str, read_at: bytes, shown: Sequence[Any]) -> Values | None:
    """A job as the script `read` gives it; None if it has not ended."""
    view = views.jobs(tenant, [read_at, shown])[0]
    if not view.ended or view.finished_at is None:
        return None
    return {
        "tenant": tenant,
        "id": view.id,
        "revision": view.revision,
        "task": view.task,
        "status": view.status.value,
        "month": month(view.finished_at),
        "created_at": view.created_at,
        "finished_at": view.finished_at,
        "job": pack([read_at, shown], what=f"job {view.id}", limit=LONGEST_JOB),
    }


def job(row: Row[Any]) -> JobView:
    return views.jobs(row.tenant, cast("list[Any]", unpack(row.job)))[0]


def progress_row(tenant: str, source: str, position: int, mark: str) -> Values:
    return {"tenant": tenant, "source": source, "position": position, "mark": mark, "since": None}


def _text(text: str | None) -> str | None:
    """PostgreSQL has no place for a NUL."""
    return None if text is None else text.replace("\0", "\\x00")
