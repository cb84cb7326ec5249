"""Business rows that follow their tasks, as the ledger sees it: which are behind, who writes them, what came of it.

The ledger is the truth: the script that changes a task notes that its row is behind. Whoever takes it in hand reads the
task and a clock in one script, so a later state always has a later clock, and a row that keeps the clock refuses what
comes late. A writer that dies leaves a row that is behind, and the next one comes when its time in hand is over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..scripts import Call
from ..scripts.errors import StoreError
from ..scripts.loader import Arg
from . import views
from .jobs import BINDINGS, JobView, News
from .ledger import Ledger
from .ledgers import Ledgers
from .reports import storable
from .tasks import Registry

log = logging.getLogger("tenure.bindings")

HOLD_MS = 10_000
"""So long others leave a row to whoever has it in hand."""
ROWS = 20
TENANTS, VISIT_MS = 100, 1_000
LONGEST_PAUSE_MS = 60_000
ERROR_LIMIT = 500

Write = Callable[[JobView, int], object]
"""Brings a row to a task's state, under a clock; raises when it cannot."""


@dataclass(frozen=True, slots=True)
class Behind:
    """A task whose row is to be written. `clock` is larger than that of any earlier state of any task of the tenant."""

    task: JobView
    clock: int
    tries: int


class Rows:
    """The business rows of one tenant's tasks."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def take(
        self, bindings: Sequence[str], *, only: str = "", limit: int = ROWS
    ) -> tuple[list[Behind], int | None]:
        """Take in hand what is behind and due, of these bindings; answers too when there will be more (epoch ms)."""

        def read(reply: Any) -> tuple[list[Behind], News]:
            due, version, now, *taken = reply
            found: list[Behind] = []
            for clock, tries, shown in taken:
                (task,) = views.jobs(self._ledger.tenant, [now, shown])
                found.append(Behind(task, int(clock), int(tries)))
            return found, self._news(due, version)

        args: dict[str, Arg] = {"only": only, "limit": limit, "hold": HOLD_MS}
        call = Call("bindings_take", self._ledger.keys.home, args, read, list(bindings))
        found, news = self._ledger.scripts.run(call)
        self._ledger.index.put([news])
        return found, news.due_ms

    def done(self, results: Sequence[tuple[Behind, str | None]]) -> None:
        """Say what came of writing: None, or why it could not be written, which is tried again ever more slowly."""
        rest: list[Arg] = []
        for behind, error in results:
            pause = "" if error is None else min(LONGEST_PAUSE_MS, 1000 * 2 ** min(behind.tries, 10))
            rest += [behind.task.id, behind.task.revision, behind.clock, error or "", pause]
        call = Call(
            "bindings_done", self._ledger.keys.home, {}, lambda reply: self._news(reply[0], reply[1]), rest
        )
        self._ledger.index.put([self._ledger.scripts.run(call)])

    def _news(self, due: bytes, version: bytes) -> News:
        return News(self._ledger.tenant, BINDINGS, int(due) if due else None, int(version))


class Binder:
    """Visits the tenants with rows that are behind. Any number share the work; one that dies is not missed."""

    def __init__(self, ledgers: Ledgers, writers: Mapping[str, Write], registry: Registry) -> None:
        self._ledgers = ledgers
        self._writers = writers
        self._registry = registry

    def round(self) -> float:
        visit = self._ledgers.index.take(BINDINGS, TENANTS, VISIT_MS)
        nexts = self._ledgers.each(visit.tenants, lambda ledger: self.bring_up(ledger.tenant))
        soonest = min((due for due in [*nexts, visit.next_due_ms] if due is not None), default=None)
        return VISIT_MS / 1000 if soonest is None else min(VISIT_MS, max(50, soonest - visit.now_ms)) / 1000

    def bring_up(self, tenant: str, only: str = "") -> int | None:
        """Write the rows of a tenant that are due, or the one of a task; answers when there will be more."""
        rows = Rows(self._ledgers.of(tenant))
        behind, due = rows.take(list(self._writers), only=only)
        for one in behind:
            rows.done([(one, self._write(one))])
        return due

    def _write(self, behind: Behind) -> str | None:
        task = behind.task
        assert task.bound
        try:
            self._writers[task.bound.binding](task, behind.clock)
        except StoreError:
            raise
        except Exception as exc:
            secrets = self._registry.secrets_of(task.task, task.args)
            text = f"{type(exc).__name__}: {secrets.beginning(storable(str(exc)), ERROR_LIMIT)}"
            said = text.encode("utf-8", "replace")[:ERROR_LIMIT].decode("utf-8", "ignore")
            log.warning("binding %s of task %s cannot be written: %s", task.bound.binding, task.id, said)
            return said
        return None
