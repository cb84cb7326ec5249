"""Jobs of RQ's own `rq cron`: they stand in a file of Python, which is loaded as RQ loads it; Redis has only copies.

An interval counts from when the last process that says so fired it; cron text is read by croniter, on the host's clock.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from redis import Redis
from rq.cron import CronJob, CronScheduler

from ..lease.payload import digest
from ..scripts.errors import BadInput
from .job_key import JobKey
from .rq_cron_text import of_rq_cron
from .rq_job import OldJob
from .rq_moves import trigger_of


class _Errors(logging.Handler):
    """RQ passes over a job that it cannot register, and says so in its log only."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def processes(redis: Redis) -> Sequence[str]:
    """The `rq cron` processes that live, by name."""
    return sorted(one.name for one in CronScheduler.all(redis, cleanup=False))


def read_file(redis: Redis, path: str, tz: str, now: int) -> Sequence[OldJob]:
    """The jobs of a configuration file or module. Raises BadInput when it cannot be loaded, or not all of it."""
    scheduler, errors = CronScheduler(redis, logging_level=logging.CRITICAL), _Errors()
    scheduler.log.addHandler(errors)
    try:
        scheduler.load_config_from_file(path)
    except Exception as exc:  # it is the user's code
        raise BadInput(f"{path} cannot be loaded: {exc}", hint="does `rq cron` load it?") from None
    finally:
        scheduler.log.removeHandler(errors)
    if errors.said:
        raise BadInput(f"{path}: {'; '.join(errors.said)}", hint="mend that, or take it out")
    jobs, known = scheduler.get_jobs(), _next_of_intervals(redis)
    many = Counter(job.name for job in jobs)
    return [_job(job, many[job.name] > 1, tz, now, known) for job in jobs]


def _next_of_intervals(redis: Redis) -> Mapping[tuple[str, int], int]:
    """When living processes fire their intervals next, by name and seconds, in epoch ms."""
    found: dict[tuple[str, int], int] = {}
    for one in CronScheduler.all(redis, cleanup=False):
        for job in one.get_jobs():
            if job.interval and job.next_enqueue_time:
                found[job.name, job.interval] = round(job.next_enqueue_time.timestamp() * 1000)
    return found


def _job(job: CronJob, again: bool, tz: str, now: int, known: Mapping[tuple[str, int], int]) -> OldJob:
    options = cast("Mapping[str, Any]", job.job_options)
    interval, problem = job.interval, ""
    due = now + 1000 * (interval or 0)
    if interval:
        due = max(now + 1, known.get((job.name, interval), due))
    try:
        key = JobKey.parse(f"{job.name}-{_mark(job)}" if again else job.name)
    except BadInput as exc:
        key, problem = JobKey(f"rq-{digest(job.name)[:12]}"), str(exc)
    if options.get("webhooks"):
        problem = "it has webhooks, which schedules here do not"
    found = OldJob(
        id=job.name,
        key=key,
        due_ms=due // 1000 * 1000,
        queue=job.queue_name,
        function=job.func_name,
        args=job.args,
        kwargs=cast("Mapping[str, Any]", job.kwargs),
        cron=job.cron,
        interval_s=interval,
        timeout_s=options.get("job_timeout"),
        meta=options.get("meta") or {},
        problem=problem,
    )
    return found if job.cron is None else _next_by_cron(found, tz, now)


def _next_by_cron(job: OldJob, tz: str, now: int) -> OldJob:
    with suppress(BadInput):  # which the move says again
        due = trigger_of(job, tz, of_rq_cron).times(0).next_ms(now)
        return job if due is None else replace(job, due_ms=due)
    return job


def _mark(job: CronJob) -> str:
    rest = json.dumps([job.args, job.kwargs], default=repr, sort_keys=True)
    return digest(job.queue_name, rest, f"{job.cron} {job.interval}")[:10]
