"""Deaths of jobs that somebody may want to hear of: gathered by task and reason where jobs die, told by a job.

The first death of a group is told ten seconds later, with all that came until then; more of the group is told five
minutes after that at the earliest. The script that makes the telling job marks the group as told, so each death is told
by exactly one job, which is as safe as any other: it is retried, and seen when it fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..scripts import Call
from ..scripts.loader import Arg, texts
from . import views
from .ids import new_id
from .jobs import DUE, News
from .ledger import Ledger
from .ledgers import Ledgers
from .payload import pack_args

TELLER = "tenure.notify"
NOTICES = DUE + "@notices"
"""The queue of the tenant index in which tenants stand that have something to tell."""
QUIET_MS = 300_000
GROUPS = 100
"""So many groups are told at one visit, ..."""
TENANTS, VISIT_MS = 100, 2_000
"""... and so many tenants are visited at a time."""


@dataclass(frozen=True, slots=True)
class Group:
    """Jobs of a task that died for the same reason, since an instant (epoch ms)."""

    task: str
    reason: str
    since: int


class Notices:
    """What there is to tell of one tenant."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def due(self) -> list[Group]:
        """The groups that are to be told of now."""

        def read(reply: Any) -> list[Group]:
            return [Group(task, reason, int(since)) for task, reason, since in map(texts, reply)]

        return self._ledger.scripts.run(Call("notices", self._ledger.keys.home, {"limit": GROUPS}, read))

    def tell(self, pool: str) -> list[str]:
        """Make a job for each group that is due, and tell the index when there will be more; answers their ids."""
        rest: list[Arg] = []
        for group in self.due():
            said = pack_args([group.task, group.reason, group.since], {})
            rest += [group.task, group.reason, group.since, new_id(), said]
        args: dict[str, Arg] = {"pool": pool, "pause": QUIET_MS}
        call: Call[Any] = Call("notices_told", self._ledger.keys.home, args, lambda reply: reply, rest)
        due, version, made, news = self._ledger.scripts.run(call)
        tenant = self._ledger.tenant
        again = News(tenant, NOTICES, int(due) if due else None, int(version))
        self._ledger.index.put([again, *views.news(tenant, news)])
        return texts(made)


class Teller:
    """Visits the tenants with deaths to tell of, for an application that has notifiers. Any number share the work."""

    def __init__(self, ledgers: Ledgers, pool: str) -> None:
        self._ledgers = ledgers
        self._pool = pool

    def round(self) -> float:
        visit = self._ledgers.index.take(NOTICES, TENANTS, VISIT_MS)
        self._ledgers.each(visit.tenants, lambda ledger: Notices(ledger).tell(self._pool))
        return VISIT_MS / 1000
