"""A worker's share of a pool: its slots, and the rows claimed ahead of them."""

from __future__ import annotations

from collections import deque

from .pace import Pace
from .row import Row
from .slot import Slot

WANT_LIMIT = 100
AHEAD_LIMIT = 64
DEPTH_LIMIT = 16
DEPTH_S = 0.004
"""A slot is given more than one row only if they are this short together."""
UNSTARTED_S = 1.0
"""A row not started by then goes back to the store, for somebody who has a free slot."""


class Pool:
    def __init__(self, name: str, size: int, ahead_s: float) -> None:
        self.name = name
        self.size = size
        self.slots: list[Slot] = []
        self.buffer: deque[Row] = deque()
        self.unsure: dict[int, Row] = {}
        """Rows that wait to hear whether they are still ours."""
        self.pace = Pace()
        self._ahead_s = ahead_s

    @property
    def waiting(self) -> list[Row]:
        """The rows that no slot was given."""
        return [*self.buffer, *self.unsure.values()]

    def want(self, now: float) -> int:
        """How many rows to claim: for the free slots, and ahead of the others while jobs are short."""
        free = (
            sum(1 for slot in self.slots if slot.open and not slot.rows) - len(self.buffer) - len(self.unsure)
        )
        return max(0, min(WANT_LIMIT, max(0, free) + self._ahead(now, free)))

    def _ahead(self, now: float, free: int) -> int:
        mean = self.pace.mean
        if mean is None or not self._all_short():
            return 0
        # a slot that is busy with one long job will not come back for more soon
        active = sum(1 for slot in self.slots if slot.open and slot.quiet_for(now) < self._ahead_s)
        room = active * min(AHEAD_LIMIT, int(self._ahead_s / max(mean, 1e-6)))
        waiting = len(self.buffer) + len(self.unsure) + sum(max(0, len(slot.rows) - 1) for slot in self.slots)
        if free <= 0 and waiting > room // 2:
            return 0  # claim in large steps
        return max(0, room - waiting)

    def _all_short(self) -> bool:
        """Nobody may wait behind a job of which nothing is known, or that is known to be long."""
        return all((self.pace.of(row.lease.task) or 1.0) < self._ahead_s for row in self.buffer)

    def feed(self, now: float) -> list[Row]:
        """Give rows to slots that can take them; answers the rows that have to be checked first."""
        stale: list[Row] = []
        if not self.buffer:
            return stale
        ready = [slot for slot in self.slots if slot.open and slot.quiet_for(now) < DEPTH_S]
        for depth in range(DEPTH_LIMIT):
            for slot in ready:
                if len(slot.rows) > depth:
                    continue
                row = self._next(now, stale)
                if row is None:
                    return stale
                if not self._fits(row, depth) or not slot.give(row, now):
                    self.buffer.appendleft(row)
                    return stale
        return stale

    def _next(self, now: float, stale: list[Row]) -> Row | None:
        while self.buffer:
            row = self.buffer.popleft()
            if now <= row.fresh_until:
                return row
            self.unsure[row.number] = row
            stale.append(row)
        return None

    def _fits(self, row: Row, depth: int) -> bool:
        if depth == 0:
            return True
        mean = self.pace.of(row.lease.task)
        return mean is not None and mean * (depth + 1) < DEPTH_S

    def overdue(self, now: float) -> list[Row]:
        """Take out the rows that have waited too long for a slot, or for word of their lease."""
        old = [row for row in self.waiting if now - row.claimed_at > UNSTARTED_S]
        for row in old:
            self.remove(row)
        return old

    def remove(self, row: Row) -> bool:
        """Take one row out; False when it is not here."""
        if self.unsure.pop(row.number, None):
            return True
        if row in self.buffer:
            self.buffer.remove(row)
            return True
        return False

    def empty(self) -> list[Row]:
        """Take out all rows that have not been given to a slot."""
        rows = self.waiting
        self.buffer.clear()
        self.unsure.clear()
        return rows

    def find(self, tenant: str, job_id: str, fence: int) -> Row | None:
        """The row of a job as it was claimed under a fence, wherever it is in this pool."""
        given = [row for slot in self.slots for row in slot.rows.values()]
        for row in [*self.waiting, *given]:
            if (row.lease.tenant, row.lease.id, row.lease.fence) == (tenant, job_id, fence):
                return row
        return None
