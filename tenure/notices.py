"""Notifiers: functions of yours that hear of jobs gone dead, called in a job of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from .lease.filters import Filters
from .lease.instants import from_ms
from .lease.jobs import JobView
from .lease.listing import LONGEST, list_jobs
from .lease.notices import TELLER
from .scripts.errors import BadInput
from .scripts.states import State

if TYPE_CHECKING:
    from .app import Tenure
    from .workers.ctx import Ctx

NAMED = 10


@dataclass(frozen=True, slots=True)
class Notice:
    """Jobs of one task that died for one reason, between two instants.

    `jobs` are the ids of the newest ten; `error` is the newest one's. With `more` there were more than `count`.
    `owner` is what the task was registered with.
    """

    tenant: str
    task: str
    owner: str
    reason: str
    count: int
    more: bool
    since: datetime
    until: datetime
    jobs: tuple[str, ...]
    error: str | None

    @property
    def text(self) -> str:
        """All of it in a sentence."""
        many = f"more than {self.count}" if self.more else str(self.count)
        jobs = "job" if (self.count, self.more) == (1, False) else "jobs"
        said = f": {self.error}" if self.error else ""
        return f"{many} {jobs} of {self.task} in tenant {self.tenant} died ({self.reason}){said}"


Notifier = Callable[[Notice], Coroutine[Any, Any, object] | object]


class Notifiers:
    """What an application has registered."""

    def __init__(self, app: Tenure) -> None:
        self._app = app
        self._all: list[Notifier] = []
        self.pool: str | None = None
        """Whose workers call them; None while there are none."""

    def add(self, notifier: Notifier, pool: str) -> None:
        if not callable(notifier):
            raise BadInput(
                f"notifier {notifier!r:.80} cannot be called",
                hint="put @app.notifier() on a function that takes a Notice",
            )
        if self.pool not in (None, pool):
            raise BadInput(
                f"notifiers are called in pool {self.pool!r} already, not in {pool!r}",
                hint="give all of them the same pool",
            )
        if self.pool is None:
            self._app.task(TELLER, pool=pool, timeout="5m")(self._tell)
            self.pool = pool
        self._all.append(notifier)

    def _tell(self, ctx: Ctx, task: str, reason: str, since: int) -> int:
        """Call them one by one; a retry goes on with the one that failed."""
        notice = self._notice(ctx, task, reason, since)
        if notice is None:
            return 0
        for at in range(ctx.cursor.get("told", 0), len(self._all)):
            said = self._all[at](notice)
            if asyncio.iscoroutine(said):
                asyncio.run(said)
            ctx.checkpoint({"told": at + 1})
        return notice.count

    def _notice(self, ctx: Ctx, task: str, reason: str, since: int) -> Notice | None:
        """None when none of those jobs is dead any more."""
        ledger = self._app.ledger(ctx.tenant)
        until = ledger.get(ctx.job_id).created_at
        asked = Filters(status=State.DEAD, tasks=[task], ended_from=since, ended_to=until + 1)
        page = list_jobs(ledger, asked, limit=LONGEST)
        dead = [job for job in page.items if job.dead_reason == reason]
        if not dead:
            return None
        owner = self._app.registry.get(task).owner if task in self._app.registry else ""
        return Notice(
            tenant=ctx.tenant,
            task=task,
            owner=owner,
            reason=reason,
            count=len(dead),
            more=page.next_cursor is not None,
            since=from_ms(since),
            until=from_ms(until),
            jobs=tuple(job.id for job in dead[:NAMED]),
            error=_error(dead[0]),
        )


def _error(job: JobView) -> str | None:
    return job.error.error if job.error else None
