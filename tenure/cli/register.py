"""The workers in RQ's register, and whether any of them serves a pool."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Any, cast

from redis.exceptions import RedisError
from rq.worker import BaseWorker

from ..app import Tenure
from ..lease.jobs import JobView
from ..scripts.errors import TenureError
from ..scripts.states import State
from .output import say


def live_workers(app: Tenure) -> list[BaseWorker] | None:
    """Those that live, as they say every two seconds; None on a cluster that RQ was given no server for."""
    if app.store.facts.cluster and app.settings.rq_url is None:
        return None
    with closing(app.rq_redis()) as redis:
        found: list[BaseWorker] = cast(Any, BaseWorker).all(connection=redis)
    return sorted(found, key=lambda worker: worker.name)


def unserved(pools: Iterable[str], workers: Iterable[BaseWorker] | None) -> list[str]:
    """Those of the pools that none of the workers serves; none when it is not known who works."""
    if workers is None:
        return []
    served = {pool for worker in workers for pool in worker.queue_names()}
    return [pool for pool in pools if pool not in served]


def say_unserved(app: Tenure, job: JobView) -> bool:
    """Say so when a pending job waits for a pool that no live worker serves. Answers whether it was said."""
    if job.status is not State.PENDING:
        return False
    try:
        odd = unserved([job.pool], live_workers(app))
    except (RedisError, TenureError):
        return False  # the job was asked for, and is shown though RQ's register cannot be read
    for pool in odd:
        say(no_worker(pool))
    return bool(odd)


def no_worker(pool: str) -> str:
    return f"no live worker serves pool {pool!r}: tenure worker --pool {pool}"
