"""Ends what must not go on: a job canceled, paused, lost or out of time, and every job when the worker stops."""

from __future__ import annotations

import time

from .clock import NEVER
from .crew import Crew
from .row import Row
from .slot import Slot
from .wire import Why

AGAIN_S = 0.01
REST_S = 0.02
"""A lane is looked through no more often: it may run a thousand jobs."""


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
        if slot.runs(row):
            slot.tell(row, why, time.monotonic(), self._grace_s)

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
        if slot.doomed or not slot.rows:
            return NEVER
        if now < slot.looked_at + REST_S and slot.width > 1:
            return slot.looked_at + REST_S
        slot.looked_at = now
        again = slot.press(now)
        due: list[tuple[Row, Why]] = []
        for row in slot.running:
            if row.number not in slot.told:
                at, why = self._next_limit(slot, row, now)
                again = min(again, at)
                if at <= now:
                    due.append((row, why))
                elif slot.width > 1:
                    again = min(again, self._find_blocker(slot, row, now))
        return self._end(slot, due, now) if due else again

    def _next_limit(self, slot: Slot, row: Row, now: float) -> tuple[float, Why]:
        """Until when a job may run, and why no longer; of several that are past, the gravest."""
        limits = [
            (row.ends_by(slot.began(row)) + self._grace_s, Why.TIMEOUT),
            (row.over_at + self._grace_s, Why.MEMORY),
            (row.held_from + self._patience_s, Why.LOST),
            (self._end_by, Why.RELEASED),
        ]
        return next((limit for limit in limits if limit[0] <= now), None) or min(limits)

    def _end(self, slot: Slot, due: list[tuple[Row, Why]], now: float) -> float:
        self._crew.take_back(slot)
        due = [(row, why) for row, why in due if slot.runs(row)]
        for row, why in due:
            if why not in (Why.TIMEOUT, Why.MEMORY):
                slot.tell(row, why, now, self._grace_s)
        late = [row for row, why in due if why is Why.TIMEOUT]
        over = [row for row, why in due if why is Why.MEMORY]
        blocker = slot.blocker
        if late and blocker is not None and blocker not in late:
            slot.kill(Why.BLOCKING, [blocker])
        elif late:
            slot.kill(
                Why.TIMEOUT, [blocker] if blocker else late
            )  # their alarms told them before the grace began
        elif over:
            slot.kill(Why.MEMORY, over)
        return now + AGAIN_S

    def _find_blocker(self, slot: Slot, row: Row, now: float) -> float:
        """A job that is out of time and does not end may be the victim of one beside it. Answers when to ask."""
        ask_at = row.ends_by(slot.began(row)) + self._grace_s / 2
        if now >= ask_at:
            slot.ask_who_blocks(row)
            return now + AGAIN_S
        return ask_at
