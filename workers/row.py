"""A claimed job in the hands of a worker."""

from __future__ import annotations

from ..lease.budgets import NONE as NO_BUDGETS
from ..lease.jobs import Lease
from .clock import NEVER
from .trust import Hold
from .wire import INLINE, Ticket, encode

FRESH_S = 0.05
"""A row that has waited longer is checked again before it starts."""


class Row:
    """A lease, and the local instants that go with it."""

    __slots__ = (
        "alone",
        "budgets",
        "claimed_at",
        "fresh_until",
        "given_at",
        "held_from",
        "held_until",
        "lease",
        "limit_at",
        "number",
        "over_at",
        "pool",
    )

    def __init__(self, number: int, pool: str, lease: Lease, hold: Hold, now: float, limit_at: float) -> None:
        self.number = number
        self.pool = pool
        self.lease = lease
        self.claimed_at = hold.since
        self.limit_at = limit_at
        self.budgets = NO_BUDGETS
        self.over_at = NEVER
        """Since when it is over its budget of memory."""
        self.alone = False
        """Whether it must have the process of a slot for itself."""
        self.given_at = 0.0
        """When a slot was given it."""
        self.confirm(hold, now)

    def confirm(self, hold: Hold, now: float) -> None:
        """The store said that we hold it. All is counted from when it was asked, not from when the answer came."""
        self.held_from, self.held_until = hold
        # on a slow line the answer itself is older than that: then it must start at once or not
        self.fresh_until = min(max(self.held_from + FRESH_S, now + FRESH_S / 5), self.held_until)

    def ends_by(self, began: float) -> float:
        """When its time is up, if it has run since `began`."""
        return min(self.limit_at, began + self.budgets.time_s)

    def ticket(self) -> bytes:
        lease = self.lease
        long = len(lease.args) + len(lease.cursor) > INLINE
        return encode(
            Ticket(
                self.number,
                lease.id,
                lease.tenant,
                lease.task,
                lease.fence,
                lease.attempt,
                lease.chunk,
                lease.edit,
                lease.failures,
                lease.background,
                lease.fire,
                lease.fire_time,
                self.limit_at,
                self.fresh_until,
                self.held_until,
                None if long else lease.args,
                b"" if long else lease.cursor,
                lease.trace,
                lease.lineage,
                lease.spent,
            )
        )
