"""What clients see of batches: pure functions from the ledger's values to JSON."""

from __future__ import annotations

from ..lease.batches import Batch
from .plain import Json, escaped, instant


def batch_view(batch: Batch) -> Json:
    """What was to be done, who said so, and how far it is; `success` counts operations, not how the jobs end."""
    return {
        "id": batch.id,
        "tenant": batch.tenant,
        "verb": batch.deed,
        "status": batch.state,
        "conditions": batch.conditions,
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
