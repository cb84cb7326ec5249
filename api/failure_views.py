"""What clients see of failures: pure functions from the ledger's values to JSON."""

from __future__ import annotations

from ..lease.failed import FailedJob
from ..lease.failures import FailureGroup, FailurePage
from . import views
from .plain import Json, escaped, instant

CONDITIONS = {"fingerprint": "fingerprint", "task": "type", "instance": "instance", "trace": "traceId"}
"""How the body of a replay names what chooses jobs."""


def failure_page(found: FailurePage) -> Json:
    """`scanned` is null where counters told all, else how many jobs were looked at."""
    return {**views.page([group(one) for one in found.items], found.next_cursor), "scanned": found.scanned}


def group(one: FailureGroup) -> Json:
    """A group of failures; `condition` is what a replay of it takes."""
    return {
        "by": one.by,
        "key": one.key,
        "count": one.count,
        "firstSeen": instant(one.first_seen),
        "lastSeen": instant(one.last_seen),
        "exception": _text(one.exception),
        "frame": _text(one.frame),
        "template": _text(one.template),
        "condition": {CONDITIONS[name]: value for name, value in one.condition.items()},
        "members": [failed_job(job) for job in one.members],
    }


def failed_job(job: FailedJob) -> Json:
    return {
        "id": job.id,
        "type": job.task,
        "status": job.status,
        "deadReason": job.dead_reason,
        "at": instant(job.at),
        "error": escaped(job.error, lines=True) or None,
    }


def _text(text: str | None) -> str | None:
    return None if text is None else escaped(text)
