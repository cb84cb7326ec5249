"""What clients see of batches: pure functions from the ledger's values to JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..lease.batches import Batch
from ..lease.replay import ReplayPreview
from .failure_views import failed_job
from .plain import Json, escaped, instant


def batch_view(batch: Batch) -> Json:
    """What was to be done, who said so, and how far it is; `success` counts operations, not how the jobs end."""
    return {
        "id": batch.id,
        "tenant": batch.tenant,
        "verb": batch.deed,
        "status": batch.state,
        "conditions": None if batch.conditions is None else conditions_view(batch.conditions),
        "total": batch.total,
        "success": batch.success,
        "skipped": batch.skipped,
        "left": batch.total - batch.done,
        "reasons": dict(batch.reasons),
        "rate": batch.rate,
        "by": None if batch.by is None else escaped(batch.by),
        "reason": escaped(batch.reason, lines=True) or None,
        "createdAt": instant(batch.made_at),
        "begunAt": instant(batch.begun_at),
        "finishedAt": instant(batch.finished_at),
    }


def batch_with_jobs(batch: Batch) -> Json:
    """The same, and of each job the outcome: `accepted`, `skipped` with its code, or null before its turn."""
    items = [{"id": one.id, "outcome": one.outcome, "reason": one.skipped} for one in batch.jobs]
    return {**batch_view(batch), "items": items}


def preview_view(preview: ReplayPreview) -> Json:
    """What a replay would do; `hasMore` says that there may be more jobs than these."""
    return {
        "token": preview.token,
        "tenant": preview.tenant,
        "conditions": conditions_view(preview.conditions),
        "count": len(preview.jobs),
        "jobs": [failed_job(job) for job in preview.jobs],
        "skippedCount": len(preview.skipped),
        "skipped": [{**failed_job(job), "reason": job.refused} for job in preview.skipped],
        "scanned": preview.scanned,
        "hasMore": preview.more,
    }


_NAMES = {
    "task": "type",
    "trace": "traceId",
    "min_age": "minAge",
    "max_age": "maxAge",
    "ended_from": "endedFrom",
    "ended_to": "endedTo",
}


def conditions_view(conditions: Mapping[str, Any]) -> Json:
    """The conditions by the names that a body gives them."""
    return {_NAMES.get(name, name): escaped(str(value)) for name, value in conditions.items()}
