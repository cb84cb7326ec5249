"""Asks again for the leases that are held: all of them now and then, and single ones before they start late."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..lease.ledgers import Ledgers
from ..scripts.errors import NotFound, StaleFence, TenureError
from .clock import ServerClock
from .courier import Post
from .crew import Crew
from .row import Row
from .stopping import Stopping
from .trust import hold
from .wire import Why

BATCH = 100


class Renewals:
    def __init__(self, ledgers: Ledgers, clock: ServerClock, crew: Crew, stopping: Stopping) -> None:
        self._ledgers = ledgers
        self._clock = clock
        self._crew = crew
        self._stopping = stopping

    def posts(self, rows: Iterable[Row]) -> list[Post]:
        """Calls that prolong the leases of `rows`. One that fails changes nothing: the leases are as they were."""
        by_tenant: dict[str, list[Row]] = {}
        for row in rows:
            by_tenant.setdefault(row.lease.tenant, []).append(row)
        return [
            self._renewal(tenant, group[at : at + BATCH])
            for tenant, group in by_tenant.items()
            for at in range(0, len(group), BATCH)
        ]

    def _renewal(self, tenant: str, rows: list[Row]) -> Post:
        call = self._ledgers.of(tenant).renew_call([(row.lease.id, row.lease.fence) for row in rows])

        def read(answer: Any, sent_at: float) -> None:
            if isinstance(answer, TenureError):
                return
            for row, one in zip(rows, answer, strict=True):
                if isinstance(one, (StaleFence, NotFound)):
                    self._stopping.tell(row, _why(str(one)))
                elif not isinstance(one, TenureError):
                    held = hold(self._clock, self._ledgers.lease_ms, row.lease, one, sent_at)
                    self._crew.kept(row, held)

        return Post(call, read)


def _why(refused: str) -> Why:
    """Who has taken a lease away: a person, or time."""
    words = {" is canceled ": Why.CANCELED, " is paused ": Why.PAUSED}
    return next((why for word, why in words.items() if word in refused), Why.LOST)
