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
"""A slot is given more than it can run at a time only if those rows are this short together."""
UNSTARTED_S = 1.0
"""A row not started by then goes back to the store, for somebody who has a free slot."""


class Pool:
    """A pool of a lane has, beside its own slots, a share of exclusive ones for the rows that must run alone.

    They are made when such a row comes, up to as many again.
    """

    def __init__(
        self, name: str, size: int, ahead_s: float, width: int = 1, *, when_needed: bool = False
    ) -> None:
        self.name = name
        self.size = size
        self.width = width
        """How many rows each slot runs at a time."""
        self.slots: list[Slot] = []
        self.buffer: deque[Row] = deque()
        self.unsure: dict[int, Row] = {}
        """Rows that wait to hear whether they are still ours."""
        self.pace = Pace()
        self.congested = False
        """Whether the last row did not fit into a slot's socket: there is room again in a moment."""
        self.alone = None if width == 1 else Pool(f"{name} alone", size, ahead_s, when_needed=True)
        self.shares = [self, self.alone] if self.alone else [self]
        self._ahead_s = ahead_s
        self._when_needed = when_needed

    def share_of(self, row: Row) -> Pool:
        return self.alone if self.alone and row.alone else self

    @property
    def missing(self) -> int:
        """How many slots are to be made."""
        room = self.size - len(self.slots)
        if not self._when_needed:
            return room
        return min(room, len(self.buffer) - sum(1 for slot in self.slots if not slot.rows))

    @property
    def waiting(self) -> list[Row]:
        """The rows that no slot was given."""
        return [*self.buffer, *self.unsure.values()]

    @property
    def _spare(self) -> int:
        """How much is free in the slots, less the rows that wait for it."""
        waiting = sum(len(share.buffer) + len(share.unsure) for share in self.shares)
        return sum(slot.free for slot in self.slots) - waiting

    @property
    def free(self) -> int:
        """How many rows could begin at once."""
        return max(0, self._spare)

    def want(self, now: float) -> int:
        """How many rows to claim: for what is free in the slots, and ahead of the rest while jobs are short."""
        return max(0, min(WANT_LIMIT, self.free + self._ahead(now, self._spare)))

    def _ahead(self, now: float, free: int) -> int:
        mean = self.pace.mean
        if mean is None or not self._all_short():
            return 0
        # a slot in which nothing has ended for long will not come back for more soon
        active = sum(1 for slot in self.slots if slot.open and slot.quiet_for(now) < self._ahead_s)
        room = active * min(AHEAD_LIMIT, int(self._ahead_s / max(self._turn_s(mean), 1e-6)))
        behind = sum(max(0, len(slot.rows) - self.width) for slot in self.slots)
        waiting = len(self.buffer) + len(self.unsure) + behind
        if free <= 0 and waiting > room // 2:
            return 0  # claim in large steps
        return max(0, room - waiting)

    def _all_short(self) -> bool:
        """Nobody may wait behind a job of which nothing is known, or that is known to be long."""
        return all(self._turn_s(self.pace.of(row.lease.task)) < self._ahead_s for row in self.buffer)

    def _turn_s(self, mean: float | None) -> float:
        """How soon a slot full of jobs that take `mean` seconds has room for one more."""
        return 1.0 if mean is None else mean / self.width

    def feed(self, now: float) -> list[Row]:
        """Give rows to slots that can take them; answers the rows that have to be checked first."""
        stale: list[Row] = []
        self.congested = False
        ready = [slot for slot in self.slots if slot.open and self._may_get_more(slot, now)]
        if not (self.buffer and ready):
            return stale
        # the emptiest first, so that the slots fill up alike
        most = DEPTH_LIMIT if self.width == 1 else self.width
        for depth in range(min(len(slot.rows) for slot in ready), most):
            for slot in ready:
                if len(slot.rows) > depth:
                    continue
                row = self._next(now, stale)
                if row is None:
                    return stale
                if not self._fits(row, depth) or not self._give(slot, row, now):
                    self.buffer.appendleft(row)
                    return stale
        return stale

    def _may_get_more(self, slot: Slot, now: float) -> bool:
        return len(slot.rows) < self.width or (self.width == 1 and slot.quiet_for(now) < DEPTH_S)

    def _give(self, slot: Slot, row: Row, now: float) -> bool:
        self.congested = not slot.give(row, now)
        return not self.congested

    def _next(self, now: float, stale: list[Row]) -> Row | None:
        while self.buffer:
            row = self.buffer.popleft()
            if now <= row.fresh_until:
                return row
            self.unsure[row.number] = row
            stale.append(row)
        return None

    def _fits(self, row: Row, depth: int) -> bool:
        if depth < self.width:
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
