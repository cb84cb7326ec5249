"""What runs longer than a moment, shown to RQ's tools as a job of theirs. It holds no truth and ends by itself.

RQ lists a worker's executions, and its dashboard fails on one whose job hash is missing: so both are written together,
with a time to live, and only for jobs that run long enough for somebody to look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from redis import Redis
from rq.executions import Execution
from rq.job import Job, JobStatus
from rq.utils import now

from ..lease.payload import unpack_args
from .row import Row

TTL_S = 60


@dataclass(frozen=True, slots=True)
class Shown:
    job: Job
    execution: Execution


class Mirror:
    def __init__(self, redis: Redis, worker: str) -> None:
        self._redis = redis
        self._worker = worker
        self._shown: dict[int, Shown] = {}

    def show(self, rows: list[Row]) -> None:
        """Let RQ see exactly these rows."""
        running = {row.number: row for row in rows}
        if not running and not self._shown:
            return
        with cast(Any, self._redis).pipeline(transaction=False) as pipe:
            for number in [number for number in self._shown if number not in running]:
                self._hide(self._shown.pop(number), pipe)
            for number, row in running.items():
                shown = self._shown.get(number)
                if shown is None:
                    self._shown[number] = self._add(row, pipe)
                else:
                    self._refresh(shown, pipe)
            pipe.execute()

    def _add(self, row: Row, pipe: Any) -> Shown:
        lease = row.lease
        args, kwargs = unpack_args(lease.args)
        job = cast(Any, Job).create(
            lease.task,
            args=args,
            kwargs=kwargs,
            id=lease.id,
            origin=row.pool,
            connection=self._redis,
            timeout=-1,
        )
        job.description = f"{lease.task} of tenant {lease.tenant}, attempt {lease.attempt}"
        job.worker_name = self._worker
        job.started_at = job.enqueued_at = now()
        job._status = JobStatus.STARTED  # pyright: ignore[reportPrivateUsage]
        job.save(pipeline=pipe)
        pipe.expire(job.key, TTL_S)
        return Shown(job, Execution.create(job, TTL_S, pipe, self._worker))

    def _refresh(self, shown: Shown, pipe: Any) -> None:
        pipe.expire(shown.job.key, TTL_S)
        shown.execution.heartbeat(shown.job.started_job_registry, TTL_S, pipe)

    def _hide(self, shown: Shown, pipe: Any) -> None:
        shown.execution.delete(shown.job, pipe)
        pipe.delete(shown.job.key)
