"""The workers in the register, and whether any of them serves a pool."""

from __future__ import annotations

from ..app import Tenure
from ..lease.jobs import JobView
from ..lease.workers import unserved
from ..scripts.errors import TenureError
from ..scripts.states import State
from .output import say


def say_unserved(app: Tenure, job: JobView) -> bool:
    """Say so when a pending job waits for a pool that no live worker serves. Answers whether it was said."""
    if job.status is not State.PENDING:
        return False
    try:
        odd = unserved([job.pool], app.ledgers().index.workers())
    except TenureError:
        return False  # the job was asked for, and is shown though the register cannot be read
    for pool in odd:
        say(no_worker(pool))
    return bool(odd)


def no_worker(pool: str) -> str:
    return f"no live worker serves pool {pool!r}: tenure worker --pool {pool}"
