"""The crew: a worker's slots, and the rows in its hands. Rows come from claims, run in slots and end in the outbox."""

from __future__ import annotations

import itertools
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence

from ..lease.jobs import Lease
from ..lease.outcome import GiveBack, Outcome, Stopped
from ..lease.tasks import Registry
from .clock import NEVER
from .leaving import Leaving
from .outbox import Outbox
from .pool import Pool
from .row import Row
from .slot import Slot
from .tally import Tally
from .trust import Hold

log = logging.getLogger("tenure.worker")

STUCK_S = 0.25
"""Rows that a slot was given and has not taken by then are taken back from it."""
STALL_S = 1.0
"""So long nothing more is given to a slot that took nothing: its event loop is blocked."""
TIDY_S = 0.1
ANSWER_S = 0.005
UNKNOWN_LIMIT = 100
"""Of so many tasks that are not registered here, the latest met, claims say that they are not."""


class Crew:
    def __init__(self, pools: list[Pool], registry: Registry, outbox: Outbox) -> None:
        self.tally = Tally()
        self.left = Leaving()
        """To others, since it stops."""
        self.stopping = False
        """Whether nothing more may begin."""
        self.pools = pools
        self.shares = [share for pool in pools for share in pool.shares]
        """Of all pools: what has slots and rows of its own."""
        self._registry = registry
        self._outbox = outbox
        self._by_name = {pool.name: pool for pool in pools}
        self._by_slot = {share.name: share for share in self.shares}
        self._slots: dict[int, Slot] = {}
        self._stale: list[Row] = []
        self.unknown: deque[str] = deque(maxlen=UNKNOWN_LIMIT)
        """Tasks of jobs that came here and are not registered here."""

    # The slots.

    @property
    def slots(self) -> list[Slot]:
        return list(self._slots.values())

    def slot(self, key: int) -> Slot | None:
        return self._slots.get(key)

    def add(self, slot: Slot) -> None:
        self._slots[slot.key] = slot
        self._by_slot[slot.pool].slots.append(slot)

    def dismiss(self, slot: Slot) -> bool:
        """Make room for another in its pool; it ends what it has. False when that was done before."""
        slots = self._by_slot[slot.pool].slots
        if slot not in slots:
            return False
        slots.remove(slot)
        return True

    def remove(self, slot: Slot) -> None:
        self.dismiss(slot)
        del self._slots[slot.key]

    # Rows that have not begun.

    def got(self, row: Row) -> None:
        """A job was claimed."""
        if self.stopping:
            self._give_back(row)
        elif row.lease.task not in self._registry:
            self._refuse_unknown(row)
        else:
            pool, task = self._by_name[row.pool], self._registry.get(row.lease.task)
            row.budgets = task.budgets
            if pool.alone:
                row.alone = row.lease.alone or not task.is_async or task.budgets.needs_process
            pool.share_of(row).buffer.append(row)

    def feed(self, now: float) -> bool:
        """Give rows to the slots that can take them. False when a socket was full, and there is room in a moment."""
        congested = False
        for share in self.shares:
            if share.buffer:
                self._stale += share.feed(now)
                congested = congested or share.congested
        return not congested

    @property
    def has_stale(self) -> bool:
        """Whether rows have waited so long that they must be asked for again before they begin."""
        return bool(self._stale)

    def take_stale(self) -> list[Row]:
        rows, self._stale = self._stale, []
        return rows

    def kept(self, row: Row, hold: Hold) -> None:
        """The store says that a row is still ours."""
        row.confirm(hold, time.monotonic())
        share = self._share_of(row)
        if share.unsure.pop(row.number, None):
            share.buffer.appendleft(row)
            return
        slot = self.slot_of(row)
        if slot is not None and slot.runs(row):
            slot.held(row)

    def withdraw(self, row: Row) -> bool:
        """Forget a row that waits for a slot; False when it does not."""
        waits = self._share_of(row).remove(row)
        if waits:
            self._forget(row)
        return waits

    def take_back(self, slot: Slot, but: Row | None = None) -> None:
        """What the slot has not begun goes elsewhere, `but` nowhere."""
        rows = slot.take_back()
        if but is not None and but in rows:
            rows.remove(but)
            self._forget(but)
        self.put_back(rows)

    def put_back(self, rows: Sequence[Row]) -> None:
        """Rows that a slot has not begun: to another one, or to the store when we stop."""
        for row in reversed(rows):
            if self.stopping:
                self._give_back(row)
            else:
                self._share_of(row).buffer.appendleft(row)

    def flush(self, held: Callable[[Lease, str], bool]) -> None:
        """What is held and has not begun goes back to the store."""
        for slot in self.slots:
            self.take_back(slot)
        for share in self.shares:
            for row in share.waiting:
                if held(row.lease, row.pool) and share.remove(row):
                    self._give_back(row)

    def release(self) -> None:
        """Begin to stop: what has not begun goes back to the store."""
        self.stopping = True
        self._stale = []
        for slot in self.slots:
            self.take_back(slot)
        for share in self.shares:
            for row in share.empty():
                self._give_back(row)

    def tidy(self, now: float) -> float:
        """Hand on rows that wait too long and answers that did not fit. Answers when to come again."""
        for share in self.shares:
            for row in share.overdue(now):
                self._give_back(row)
        again = now + TIDY_S if any(share.waiting for share in self.shares) else NEVER
        for slot in self.slots:
            again = min(again, self._unstick(slot, now))
            if not slot.push():
                again = min(again, now + ANSWER_S)
        return again

    def _unstick(self, slot: Slot, now: float) -> float:
        """Take back what a slot does not come to. Answers when to come again."""
        if now >= slot.stalled_until:
            slot.stalled_until = 0.0
        if not slot.rows or len(slot.rows) == slot.width == 1:
            return slot.stalled_until or NEVER
        if slot.quiet_for(now) > STUCK_S and slot.untaken_for(now) > STUCK_S:
            self.take_back(slot)
            if len(slot.rows) < slot.width:
                slot.stalled_until = now + STALL_S
        return now + STUCK_S

    # Rows that run.

    def ended(self, row: Row, outcome: Outcome | None, now: float) -> None:
        """None: the ledger knows already, or others will tell it."""
        if outcome is None:
            self._forget(row)
        else:
            self.tally.ended(outcome)
            self._tell(row, outcome, now)

    def _tell(self, row: Row, outcome: Outcome, now: float) -> None:
        self._outbox.ended(row, outcome, now)
        if self.stopping:
            self.left.saw(row.lease, outcome)

    @property
    def running(self) -> int:
        """How many rows the slots have."""
        return sum(len(slot.rows) for slot in self._slots.values())

    @property
    def leases(self) -> list[Lease]:
        """Of the rows that the slots have."""
        return [row.lease for slot in self._slots.values() for row in slot.rows.values()]

    @property
    def empty(self) -> bool:
        """Whether nothing runs and nothing waits to run."""
        return not any(share.waiting for share in self.shares) and not self.running

    def slot_of(self, row: Row) -> Slot | None:
        return next((slot for slot in self._slots.values() if row.number in slot.rows), None)

    def find(self, pool: str, tenant: str, job_id: str, fence: int) -> Row | None:
        """The row of a job as it was claimed under a fence, if it is here."""
        waiting = (row for share in self._by_name[pool].shares for row in share.waiting)
        given = (row for slot in self._slots.values() for row in slot.rows.values())
        wanted = (tenant, job_id, fence)
        found = (
            row
            for row in itertools.chain(waiting, given)
            if (row.lease.tenant, row.lease.id, row.lease.fence) == wanted
        )
        return next(found, None)

    def held_since_before(self, instant: float) -> list[Row]:
        """The rows whose leases were last confirmed before `instant`."""
        given = [row for slot in self._slots.values() for row in slot.rows.values()]
        waiting = [row for share in self.shares for row in share.waiting]
        return [row for row in given + waiting if row.held_from <= instant]

    def ran(self, row: Row, seconds: float) -> None:
        """A row has run for so long."""
        self.tally.working_s += seconds
        self._share_of(row).pace.saw(row.lease.task, seconds)

    def _share_of(self, row: Row) -> Pool:
        return self._by_name[row.pool].share_of(row)

    # Rows that do not run here.

    def _forget(self, row: Row) -> None:
        """It was taken from us. What the ledger cannot know is that we have stopped, so that its key is free."""
        self._outbox.forget(row)
        if row.lease.keyed:
            self._outbox.ended(row, Stopped(), time.monotonic())

    def _give_back(self, row: Row, *, unknown: bool = False) -> None:
        self._tell(row, GiveBack(started=False, unknown=unknown), time.monotonic())

    def _refuse_unknown(self, row: Row) -> None:
        task = row.lease.task
        if task not in self.unknown:
            self.unknown.append(task)
            log.warning(
                "task %r is not registered here: its jobs are left to workers that know it (job %s of tenant %s is "
                "one). Is this worker's code older than the caller's, or was an alias forgotten?",
                task,
                row.lease.id,
                row.lease.tenant,
            )
        self._give_back(row, unknown=True)
