"""The slots at work: rows go in, outcomes come out, and who does not stop in time is ended."""

from __future__ import annotations

import itertools
import logging
import signal
import time
from collections.abc import Callable
from typing import Any

from ..lease.ledgers import Ledgers
from ..lease.outcome import Fail, GiveBack, Lose, Outcome
from ..lease.tasks import Registry
from ..scripts.errors import TenureError
from .courier import Post
from .deaths import after_death
from .options import WorkerOptions
from .outbox import Outbox
from .pool import Pool
from .renewals import renewal_posts
from .row import Row
from .slots import Slot
from .wire import Say, Why, outcome_of
from .zygote import Born, Died, Zygote

log = logging.getLogger("tenure.worker")

STUCK_S = 0.25
"""Rows that a slot was given and has not begun by then are taken back from it."""
UNKNOWN_TASK_MS = 30_000
RESPAWN_S = 1.0
NEVER = float("inf")


class Crew:
    def __init__(
        self,
        zygote: Zygote,
        pools: list[Pool],
        registry: Registry,
        ledgers: Ledgers,
        outbox: Outbox,
        options: WorkerOptions,
        watch: Callable[[Slot], None],
        unwatch: Callable[[Slot], None],
    ) -> None:
        self.pools = pools
        self.succeeded = self.failed = 0
        self.working_s = 0.0
        self.stopping = False
        self._zygote = zygote
        self._registry = registry
        self._ledgers = ledgers
        self._outbox = outbox
        self._options = options
        self._grace_s = options.grace_ms / 1000
        self._watch = watch
        self._unwatch = unwatch
        self._by_name = {pool.name: pool for pool in pools}
        self._slots: dict[int, Slot] = {}
        self._keys = itertools.count(1)
        self._stale: list[Row] = []
        self._unknown: set[str] = set()
        self._respawn_at = 0.0
        self._end_by = NEVER
        self._hold_s = ledgers.lease_ms / 1000
        margin = self._hold_s / 20
        self._patience_s = self._hold_s - margin - min(self._grace_s, self._hold_s / 4)
        """After so long without a renewal the job is told that its lease is lost; killed before the lease ends."""

    # Where rows come from and go to.

    def got(self, row: Row) -> None:
        """A job was claimed."""
        if self.stopping:
            self._give_back(row)
        elif row.lease.task not in self._registry:
            self._refuse_unknown(row)
        else:
            self._by_name[row.pool].buffer.append(row)

    def feed(self, now: float) -> None:
        """Give rows to the slots that can take them."""
        for pool in self.pools:
            if pool.buffer:
                self._stale += pool.feed(now, self._hold_s)

    def checks(self) -> list[Post]:
        """Asks whether rows that have waited are still ours."""
        rows, self._stale = self._stale, []
        return renewal_posts(self._ledgers, rows, self.kept, self.lost)

    @property
    def has_checks(self) -> bool:
        return bool(self._stale)

    @property
    def running(self) -> int:
        """How many rows the slots have."""
        return sum(len(slot.rows) for slot in self._slots.values())

    @property
    def empty(self) -> bool:
        """Whether nothing runs and nothing waits to run."""
        return not any(pool.buffer or pool.unsure for pool in self.pools) and not self.running

    @property
    def slots(self) -> list[Slot]:
        return list(self._slots.values())

    def held_since_before(self, instant: float) -> list[Row]:
        """The rows whose leases were last confirmed before `instant`."""
        given = [row for slot in self._slots.values() for row in slot.rows.values()]
        waiting = [row for pool in self.pools for row in (*pool.buffer, *pool.unsure.values())]
        return [row for row in given + waiting if row.held_from <= instant]

    def kept(self, row: Row, sent_at: float) -> None:
        """The store says that a row is still ours."""
        row.confirm(sent_at, time.monotonic())
        pool = self._by_name[row.pool]
        if pool.unsure.pop(row.number, None):
            pool.buffer.appendleft(row)
            return
        slot = self._slot_of(row)
        if slot is not None and slot.head is row:
            slot.held(row, sent_at + self._hold_s)

    def lost(self, row: Row, error: TenureError) -> None:
        """The store says that a row is no longer ours."""
        self._tell(row, Why.CANCELED if " is canceled " in str(error) else Why.LOST)

    def canceled(self, pool: str, tenant: str, job_id: str) -> None:
        """A person has canceled a job; perhaps it is ours."""
        row = self._by_name[pool].find(tenant, job_id)
        if row is not None:
            self._tell(row, Why.CANCELED)

    # The life of a slot.

    def fill(self, now: float) -> None:
        """Make the slots that are missing."""
        if self.stopping or now < self._respawn_at:
            return
        for pool in self.pools:
            while len(pool.slots) < pool.size:
                try:
                    slot = Slot(next(self._keys), pool.name, self._zygote)
                except OSError as exc:
                    log.error("no new slot: %s; next try in %d s", exc, RESPAWN_S)
                    self._respawn_at = now + RESPAWN_S
                    return
                self._slots[slot.key] = slot
                pool.slots.append(slot)
                self._watch(slot)

    def news(self, event: Born | Died, now: float) -> None:
        slot = self._slots.get(event.key)
        if slot is None:
            return
        if isinstance(event, Born):
            slot.pid = event.pid
        else:
            self._died(slot, event.status, now)

    def heard(self, slot: Slot) -> None:
        """Read what a slot says."""
        if slot.key not in self._slots:
            return  # what it said was read when it died, a moment ago
        now = time.monotonic()
        for frame in slot.said():
            self._hear(slot, frame, now)

    def _died(self, slot: Slot, status: int, now: float) -> None:
        for frame in slot.last_words():
            self._hear(slot, frame, now)
        self._return(slot.take_back())
        for row in slot.rows.values():
            task = self._registry.get(row.lease.task)
            outcome = after_death(slot.told, status, task, row.lease.failures, self._options.grace_ms)
            self._ended(row, outcome, now)
        slot.rows.clear()
        if not (slot.jobs or slot.leaving or slot.doomed) and now - slot.made_at < RESPAWN_S:
            self._respawn_at = now + RESPAWN_S  # it could not even begin: do not try in a circle
        self._drop(slot)
        self._unwatch(slot)
        slot.close()
        del self._slots[slot.key]
        self.fill(now)

    def _drop(self, slot: Slot) -> None:
        pool = self._by_name[slot.pool]
        if slot in pool.slots:
            pool.slots.remove(slot)

    # What a slot says.

    def _hear(self, slot: Slot, frame: list[Any], now: float) -> None:
        kind, number, *parts = frame
        if kind == Say.END:
            self._hear_end(slot, number, *parts, now=now)
            return
        row = slot.rows.get(number)
        if row is None:
            return
        if kind == Say.BACK:
            slot.finish(number, now)
            self._return([row])
        elif kind == Say.NEED:
            slot.answer(number, [row.lease.args, row.lease.cursor])
        elif kind == Say.REPORT:
            self._outbox.reported(row, *parts, now=now)
        elif kind == Say.CHECKPOINT:
            self._outbox.checkpoint(
                row, *parts, ack=lambda error: self._acknowledge(slot, row, error), now=now
            )

    def _hear_end(
        self, slot: Slot, number: int, seconds: float, frame: list[Any] | None, memory_kb: int, *, now: float
    ) -> None:
        told = slot.told
        row = slot.finish(number, now)
        if row is None:
            return
        slot.jobs += 1
        self.working_s += seconds
        self._by_name[slot.pool].pace.saw(row.lease.task, seconds)
        if frame is not None:
            self._ended(row, outcome_of(frame), now)
        elif told is Why.RELEASED:
            self._ended(row, GiveBack(), now)
        limit = self._options.recycle_mb
        if slot.jobs >= self._options.recycle_jobs or (limit and memory_kb > limit * 1024):
            self._retire(slot, now)

    def _acknowledge(self, slot: Slot, row: Row, error: TenureError | None) -> None:
        if slot.rows.get(row.number) is row:
            slot.answer(row.number, None if error is None else str(error))

    def _ended(self, row: Row, outcome: Outcome | None, now: float) -> None:
        if outcome is None:
            self._outbox.forget(row)
            return
        if isinstance(outcome, (Fail, Lose)):
            self.failed += 1
        elif not isinstance(outcome, GiveBack):
            self.succeeded += 1
        self._outbox.ended(row, outcome, now)

    def _retire(self, slot: Slot, now: float) -> None:
        """Replace a slot that has worked enough."""
        slot.leaving = True
        self._return(slot.take_back())
        if not slot.rows:
            slot.leave()
            self._drop(slot)
            self.fill(now)

    # Stopping.

    def release(self, end_by: float) -> None:
        """Begin to stop: what has not begun goes back; what runs may end until `end_by`."""
        self.stopping = True
        self._end_by = end_by
        for slot in self._slots.values():
            self._return(slot.take_back())
        for pool in self.pools:
            for row in pool.empty():
                self._give_back(row)
        self._stale = []

    def kill_all(self, why: Why) -> None:
        """End what runs, now."""
        for slot in self._slots.values():
            self._return(slot.take_back())
            if slot.rows:
                slot.kill(why)

    def bury_all(self, now: float) -> None:
        """The fork server has died, and all slots with it: hand in what is known of their rows."""
        self.release(now)
        for slot in list(self._slots.values()):
            self._died(slot, -signal.SIGKILL, now)

    def press(self, now: float) -> float:
        """Do what is due: time limits, leases not renewed, stops not obeyed, rows that wait too long. Answers when to
        come again."""
        for pool in self.pools:
            for row in pool.overdue(now):
                self._give_back(row)
        waiting = any(pool.buffer or pool.unsure for pool in self.pools)
        again = now + 0.1 if waiting else NEVER
        for slot in list(self._slots.values()):
            if slot.rows:
                again = min(again, self._press_slot(slot, now))
            if not slot.push():
                again = min(again, now + 0.005)
        if self._respawn_at > now:
            again = min(again, self._respawn_at)
        else:
            self.fill(now)
        return again

    def _press_slot(self, slot: Slot, now: float) -> float:
        if len(slot.rows) > 1 and slot.quiet_for(now) > STUCK_S:
            self._return(slot.take_back())
        row = slot.head
        if row is None:
            return NEVER
        if slot.doomed:
            return NEVER
        if slot.told is not None:
            return slot.press(now)
        limit_at, lost_at = row.limit_at + self._grace_s, row.held_from + self._patience_s
        if now >= limit_at:
            self._return(slot.take_back())
            slot.kill(Why.TIMEOUT)
        elif now >= lost_at:
            self._tell_slot(slot, Why.LOST, now)
        elif now >= self._end_by:
            self._tell_slot(slot, Why.RELEASED, now)
        stuck_at = now + STUCK_S if len(slot.rows) > 1 else NEVER
        return (
            max(now + 0.001, min(limit_at, lost_at, self._end_by, stuck_at))
            if slot.told is None
            else now + 0.01
        )

    def _tell(self, row: Row, why: Why) -> None:
        """A job must not go on, or not begin."""
        if self._by_name[row.pool].remove(row):
            return
        slot = self._slot_of(row)
        if slot is None:
            return
        taken = slot.take_back()
        self._return([other for other in taken if other is not row])
        if slot.head is row:
            self._tell_slot(slot, why, time.monotonic())

    def _tell_slot(self, slot: Slot, why: Why, now: float) -> None:
        self._return(slot.take_back())
        slot.tell(why, now, self._grace_s)

    # Rows that do not run here.

    def _return(self, rows: list[Row]) -> None:
        """Rows that a slot has not begun: to another one, or back when we stop."""
        for row in reversed(rows):
            if self.stopping:
                self._give_back(row)
            else:
                self._by_name[row.pool].buffer.appendleft(row)

    def _give_back(self, row: Row) -> None:
        self._outbox.ended(row, GiveBack(started=False), time.monotonic())

    def _refuse_unknown(self, row: Row) -> None:
        task = row.lease.task
        if task not in self._unknown:
            self._unknown.add(task)
            log.warning(
                "task %r is not registered here: its jobs are put off by %s s (job %s of tenant %s is one). "
                "Is this worker's code older than the caller's, or was an alias forgotten?",
                task,
                UNKNOWN_TASK_MS // 1000,
                row.lease.id,
                row.lease.tenant,
            )
        self._outbox.ended(row, GiveBack(started=False, delay_ms=UNKNOWN_TASK_MS), time.monotonic())

    def _slot_of(self, row: Row) -> Slot | None:
        return next((slot for slot in self._slots.values() if row.number in slot.rows), None)
