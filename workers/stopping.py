"""Ends what must not go on: a job canceled, paused, lost or out of time, and every job when the worker stops."""

from __future__ import annotations

import time

from .clock import NEVER
from .crew import Crew
from .row import Row
from .slot import Slot
from .wire import Why

AGAIN_S = 0.01


class Stopping:
    def __init__(self, crew: Crew, grace_s: float, hold_s: float) -> None:
        self._crew = crew
        self._grace_s = grace_s
        # a job is told that its lease is lost while there is still time to kill it before another one may begin
        self._patience_s = hold_s - hold_s / 20 - min(grace_s, hold_s / 4)
        self._end_by = NEVER

    def withdrawn(self, pool: str, tenant: str, job_id: str, fence: int, why: Why) -> None:
        """A person has canceled or paused a job; perhaps it is ours."""
        row = self._crew.find(pool, tenant, job_id, fence)
        if row is not None:
            self.tell(row, why)

    def tell(self, row: Row, why: Why) -> None:
        """A job must not go on, or not begin."""
        if self._crew.withdraw(row):
            return
        slot = self._crew.slot_of(row)
        if slot is None:
            return
        self._crew.take_back(slot, but=row)
        if slot.head is row:
            slot.tell(why, time.monotonic(), self._grace_s)

    def release(self, end_by: float) -> None:
        """The worker stops: what has not begun goes back, what runs may end until `end_by`."""
        self._end_by = end_by
        self._crew.release()

    def kill_all(self, why: Why) -> None:
        """End what runs, now."""
        for slot in self._crew.slots:
            self._crew.take_back(slot)
            if slot.rows:
                slot.kill(why)

    def press(self, now: float) -> float:
        """End what has come to a limit, and press on what was told to stop. Answers when to come again."""
        return min((self._press(slot, now) for slot in self._crew.slots), default=NEVER)

    def _press(self, slot: Slot, now: float) -> float:
        row = slot.head
        if row is None or slot.doomed:
            return NEVER
        if slot.told is not None:
            return slot.press(now)
        limits = self._limits(row)
        for at, why in limits:
            if now >= at:
                self._end(slot, why, now)
                return now + AGAIN_S
        return min(at for at, _ in limits)

    def _limits(self, row: Row) -> list[tuple[float, Why]]:
        """Until when a job may run, and why no longer."""
        return [
            (row.limit_at + self._grace_s, Why.TIMEOUT),
            (row.held_from + self._patience_s, Why.LOST),
            (self._end_by, Why.RELEASED),
        ]

    def _end(self, slot: Slot, why: Why, now: float) -> None:
        self._crew.take_back(slot)
        if why is Why.TIMEOUT:
            slot.kill(why)  # its own alarm has told it before the grace began
        else:
            slot.tell(why, now, self._grace_s)
