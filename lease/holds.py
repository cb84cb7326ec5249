"""Holds: a person keeps the jobs of a tenant, a pool or a task from being claimed, until a release or an instant."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..scripts import Call
from ..scripts.errors import BadInput
from ..scripts.loader import Arg, texts
from . import views
from .durations import Duration, duration_ms
from .ledger import Ledger
from .requests import epoch_ms
from .tasks import check_key, check_pool
from .who import check_word

KINDS = ("tenant", "pool", "task")


@dataclass(frozen=True, slots=True)
class Hold:
    """What is held: the whole tenant, or its jobs of a pool or a task. Times are epoch ms; `until` None: until a
    release.
    """

    tenant: str
    kind: str
    name: str | None
    reason: str
    by: str
    since: int
    until: int | None

    @property
    def what(self) -> str:
        """In words: `pool outbound`."""
        return f"tenant {self.tenant}" if self.name is None else f"{self.kind} {self.name}"


class Holds:
    """Operations on the holds of one tenant."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def add(
        self,
        *,
        pool: str | None = None,
        task: str | None = None,
        reason: str = "",
        until: Duration | datetime | None = None,
        by: str = "",
    ) -> tuple[Hold, bool]:
        """Hold a pool, a task or, with neither, the tenant; answers the hold, and whether anything changed.

        What runs goes on; what a worker has claimed and not begun goes back. Raises BadInput.
        """
        kind, name = target(pool, task)
        check_word(by, reason)
        words = json.dumps([by, reason], ensure_ascii=False)
        args: dict[str, Arg] = {"kind": kind, "name": name, "till": _till(until), "words": words}
        self._ledger.index.register(self._ledger.tenant)
        changed, *hold, news = self._ledger.scripts.run(Call("hold_put", self._ledger.keys.home, args, tuple))
        self._ledger.index.put(views.news(self._ledger.tenant, news))
        return _hold(self._ledger.tenant, kind, name, texts(hold)), bool(changed == b"1")

    def remove(self, *, pool: str | None = None, task: str | None = None) -> bool:
        """Release what is held; answers whether it was."""
        kind, name = target(pool, task)
        args: dict[str, Arg] = {"kind": kind, "name": name}
        changed, news = self._ledger.scripts.run(Call("hold_drop", self._ledger.keys.home, args, tuple))
        self._ledger.index.put(views.news(self._ledger.tenant, news))
        return bool(changed == b"1")

    def list(self) -> Sequence[Hold]:
        """What is held: the tenant first, then pools and tasks by name."""
        reply: Any = self._ledger.scripts.run(Call("holds", self._ledger.keys.home, {}, list))
        found = [
            _hold(self._ledger.tenant, kind, name, hold)
            for kind, name, *hold in (texts(one) for one in reply)
        ]
        return sorted(found, key=lambda hold: (KINDS.index(hold.kind), hold.name or ""))


def target(pool: str | None, task: str | None) -> tuple[str, str]:
    """What is meant: its kind and its name, which a tenant needs none of. Raises BadInput."""
    if pool is not None and task is not None:
        raise BadInput(
            f"pool {pool!r:.40} and task {task!r:.40} are both given: a hold is of one of them, or of the tenant",
            hint="hold them one by one",
        )
    if pool is not None:
        return "pool", check_pool(pool)
    if task is not None:
        check_key(task)
        return "task", task
    return "tenant", ""


def words_of(words: str) -> tuple[str, str]:
    """Who holds it, and why."""
    by, reason = json.loads(words)
    return str(by), str(reason)


def _till(until: Duration | datetime | None) -> Arg:
    if until is None:
        return ""
    if isinstance(until, datetime):
        return epoch_ms(until, what="until")
    return f"+{duration_ms(until, what='until', least_ms=1)}"


def _hold(tenant: str, kind: str, name: str, hold: Sequence[str]) -> Hold:
    until, since, words = hold
    by, reason = words_of(words)
    return Hold(tenant, kind, name or None, reason, by, int(since), int(until) or None)
