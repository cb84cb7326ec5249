"""How much later than its instants the jobs of a trigger are due."""

from __future__ import annotations

from ..lease.payload import digest
from .trigger import Trigger


def jitter_ms(tenant: str, job_key: str, trigger: Trigger) -> int:
    """How much later the jobs of a trigger are due: the same for each of its fires, spread over the schedules."""
    if not trigger.jitter_ms:
        return 0
    return int(digest(tenant, job_key, trigger.name), 16) % (trigger.jitter_ms + 1)
