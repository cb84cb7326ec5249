"""Asks again for the leases that are held: all of them now and then, and single ones before they start late."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..lease.ledgers import Ledgers
from ..scripts.errors import NotFound, StaleFence, TenureError
from .courier import Post
from .row import Row

BATCH = 100

Kept = Callable[[Row, float], None]
Lost = Callable[[Row, TenureError], None]


def renewal_posts(ledgers: Ledgers, rows: Iterable[Row], kept: Kept, lost: Lost) -> list[Post]:
    """Calls that prolong the leases of `rows`; `kept` hears of each row that is still ours and when it was asked for,
    `lost` of each that is not. Of a call that failed neither hears: the leases are as they were."""
    by_tenant: dict[str, list[Row]] = {}
    for row in rows:
        by_tenant.setdefault(row.lease.tenant, []).append(row)
    return [
        _renewal(ledgers, tenant, group[at : at + BATCH], kept, lost)
        for tenant, group in by_tenant.items()
        for at in range(0, len(group), BATCH)
    ]


def _renewal(ledgers: Ledgers, tenant: str, rows: list[Row], kept: Kept, lost: Lost) -> Post:
    call = ledgers.of(tenant).renew_call([(row.lease.id, row.lease.fence) for row in rows])

    def read(answer: Any, sent_at: float) -> None:
        if isinstance(answer, TenureError):
            return
        for row, one in zip(rows, answer, strict=True):
            if isinstance(one, (StaleFence, NotFound)):
                lost(row, one)
            elif not isinstance(one, TenureError):
                kept(row, sent_at)

    return Post(call, read)
