"""The gate: a queue class for an old scheduler that goes on for other jobs while some are handed over.

    rqscheduler -q tenure.scheduler.rq_gate.GatedQueue

What is handed over is out of that scheduler's sight; but an application that adds its jobs at each start adds them
again. The gate knows such a job by the name it has here and lets it pass only while nobody else fires it.
"""

from __future__ import annotations

import logging
import secrets
from typing import Any

from rq.defaults import RQ_KEY_PREFIX
from rq.job import Job
from rq.queue import Queue

from ..scripts.errors import Conflict
from .plain_pickle import write_pickle
from .rq_job import read_job
from .rq_store import HANDED, SCHEDULED, OldProcess

PROBE = "tenure-probe"
PATIENCE_S = 5
_log = logging.getLogger("tenure.gate")


class GatedQueue(Queue):
    """An RQ queue that takes no job which Tenure fires."""

    def enqueue_job(self, job: Job, *args: Any, **options: Any) -> Job:
        if job.id.startswith(PROBE):
            self.connection.rpush(_answer_key(job.id), "gated")
            self.connection.expire(_answer_key(job.id), 60)
            return job
        redis: Any = self.connection
        key = str(read_job(job.id, redis.hgetall(job.key), 0).key)
        tenant: bytes | None = redis.hget(HANDED, key)
        if tenant is not None:
            _log.info(
                "job %s is not enqueued: schedule %s of tenant %s fires it", job.id, key, tenant.decode()
            )
            return job
        return super().enqueue_job(job, *args, **options)


def ask(redis: Any, process: OldProcess) -> None:
    """Give the one living scheduler a job that only a gate understands. Raises Conflict unless it does."""
    job_id = f"{PROBE}-{secrets.token_hex(8)}"
    row, queue = f"{RQ_KEY_PREFIX}:job:{job_id}", f"{RQ_KEY_PREFIX}:queue:{PROBE}"
    call = write_pickle(("tenure.is_there_a_gate", None, (), {}))
    redis.hset(
        row, mapping={"data": call, "origin": PROBE, "status": "scheduled", "description": "is there a gate?"}
    )
    redis.expire(row, process.gone_in_s + 60)
    redis.zadd(SCHEDULED, {job_id: 0})
    try:
        said = redis.blpop([_answer_key(job_id), queue], timeout=process.gone_in_s + PATIENCE_S)
    finally:
        redis.zrem(SCHEDULED, job_id)
        redis.delete(row, queue, _answer_key(job_id))
        redis.srem(f"{RQ_KEY_PREFIX}:queues", queue)
    if said is None:
        raise Conflict(
            f"old scheduler {process.name} did not answer within {process.gone_in_s + PATIENCE_S} s",
            hint="does it run? if it is dead it is forgotten by now: try again without --gated",
        )
    if said[1] != b"gated":
        raise Conflict(
            f"old scheduler {process.name} is not gated: what an application adds again, it would fire",
            hint="start it with -q tenure.scheduler.rq_gate.GatedQueue",
        )


def _answer_key(job_id: str) -> str:
    return f"rq:tenure:answer:{job_id}"
