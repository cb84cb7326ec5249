"""The life of the slots: who is missing is made, who has worked enough is replaced, who has died is buried."""

from __future__ import annotations

import itertools
import logging
import signal
import time
from collections.abc import Callable

from ..lease.tasks import Registry
from .clock import NEVER
from .crew import Crew
from .deaths import after_death, over_budget
from .hearing import Hearing
from .options import WorkerOptions
from .pool import Pool
from .slot import Slot
from .zygote import Born, Died, Zygote

log = logging.getLogger("tenure.worker")

RESPAWN_S = 1.0
KILL_S = 0.5
"""How long the fork server may take to kill a slot; then the worker does it."""
REPORT_S = 5.0
"""How long it may take to say how a slot ended that ended by itself; nobody else knows."""
AGAIN_S = 0.1


class Staffing:
    def __init__(
        self,
        crew: Crew,
        hearing: Hearing,
        zygote: Zygote,
        registry: Registry,
        options: WorkerOptions,
        watch: Callable[[Slot], None],
        unwatch: Callable[[Slot], None],
    ) -> None:
        self._crew = crew
        self._hearing = hearing
        self._zygote = zygote
        self._registry = registry
        self._options = options
        self._watch = watch
        self._unwatch = unwatch
        self._keys = itertools.count(1)
        self._respawn_at = 0.0
        self._answers = True

    def fill(self, now: float) -> float:
        """Make the slots that are missing. Answers when to come again."""
        if self._crew.stopping:
            return NEVER
        if now < self._respawn_at:
            return self._respawn_at
        try:
            for share in self._crew.shares:
                for _ in range(share.missing):
                    self._make(share)
        except OSError as exc:
            log.error("no new slot: %s; next try in %d s", exc, RESPAWN_S)
            self._respawn_at = now + RESPAWN_S
            return self._respawn_at
        return NEVER

    def _make(self, pool: Pool) -> None:
        slot = Slot(next(self._keys), pool.name, self._zygote, pool.width)
        self._crew.add(slot)
        self._watch(slot)

    def heard(self, slot: Slot) -> None:
        """A slot has something to say."""
        if self._crew.slot(slot.key) is None:
            return  # what it said was read when it died, a moment ago
        now = time.monotonic()
        self._hearing.hear(slot, slot.said(), now)
        if slot.gone_at is not None:
            self._unwatch(slot)  # what it said before its end is read when it is buried
        if slot.leaving or self._has_worked_enough(slot):
            self._retire(slot, now)

    def _has_worked_enough(self, slot: Slot) -> bool:
        limit = self._options.recycle_mb
        too_large = limit is not None and slot.memory_kb > limit * 1024
        return too_large or slot.jobs >= self._options.recycle_jobs

    def _retire(self, slot: Slot, now: float) -> None:
        """Replace it: a lane at once, as its last job may take long, another one when its job has ended."""
        slot.leaving = True
        self._crew.take_back(slot)
        if (slot.width > 1 or not slot.rows) and self._crew.dismiss(slot):
            self.fill(now)
        if not slot.rows:
            slot.leave()

    def news(self, event: Born | Died, now: float) -> None:
        """What the fork server says."""
        self._answers = True
        slot = self._crew.slot(event.key)
        if slot is None:
            return
        if isinstance(event, Born):
            slot.pid = event.pid
        else:
            self._bury(slot, event.status, now)
            self.fill(now)

    def bury_unreported(self, now: float) -> float:
        """End and bury the slots that should have ended and of which the fork server says nothing: it is stopped.

        Answers when to come again.
        """
        again = NEVER
        for slot in self._crew.slots:
            if slot.gone_at is None or slot.pid is None:
                continue
            due = slot.gone_at + (KILL_S if slot.doomed else REPORT_S)
            if now < due:
                again = min(again, due)
                continue
            if self._answers:
                self._answers = False
                log.warning("the fork server does not answer: what is to end is ended without it")
            if slot.doomed:
                self._zygote.kill_directly(slot.pid)
            if self._zygote.has_ended(slot.pid):
                self._bury(slot, None, now)
            again = min(again, now + AGAIN_S)
        return again

    def bury_all(self, now: float) -> None:
        """The fork server has died, and all slots with it: hand in what is known of their rows."""
        self._crew.release()
        for slot in self._crew.slots:
            self._bury(slot, -signal.SIGKILL, now)

    def _bury(self, slot: Slot, status: int | None, now: float) -> None:
        self._hearing.hear(slot, slot.last_words(), now)
        self._crew.take_back(slot)
        rows = list(slot.rows.values())
        for row in rows:
            task, told = self._registry.get(row.lease.task), slot.why(row)
            grace_ms, others = self._options.grace_ms, len(rows) - 1
            crossed = over_budget(row, slot.began(row), told, task)
            outcome = crossed or after_death(told, status, task, row.lease.failures, grace_ms, others)
            self._crew.ended(row, outcome, now)
        slot.rows.clear()
        if not (slot.jobs or slot.leaving or slot.doomed) and now - slot.made_at < RESPAWN_S:
            self._respawn_at = now + RESPAWN_S  # it could not even begin: do not try in a circle
        self._unwatch(slot)
        self._crew.remove(slot)
        slot.close()
