"""A schedule, its fires and their jobs, at whatever time a test says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tenure.lease.ledger import Ledger
from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import Outcome
from tenure.lease.tasks import Task
from tenure.scheduler.execution_log import LogEntry
from tenure.scheduler.fire_record import Fire
from tenure.scheduler.history import History
from tenure.scheduler.plan import month
from tenure.scheduler.scheduler import Scheduler
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.trigger import Trigger
from tenure.testing import START

from .given import claim

SECOND, MINUTE, DAY = 1000, 60_000, 86_400_000
FIRST = START + 40 * SECOND
KEY = "reports.daily"
TASK = Task(KEY, lambda: None)
EVERY_MINUTE = [Trigger("default", "0 * * * * ?")]


def pages(
    schedules: Schedules, job_key: str, *, month: str, limit: int, trigger: str | None = None
) -> Iterator[Sequence[Fire]]:
    """The pages of a month's fire records, newest first."""
    page, after = schedules.fires(job_key, month=month, limit=limit, trigger=trigger)
    yield page
    while after:
        page, after = schedules.fires(job_key, month=month, limit=limit, trigger=trigger, after=after)
        yield page


class Clockwork:
    """A schedule that fires each minute, and its log, at whatever time the test says."""

    def __init__(self, ledgers: Ledgers, history: History | None = None) -> None:
        self.ledgers = ledgers
        self.history = history

    def at(self, now: int) -> Ledgers:
        return Ledgers(self.ledgers.scripts.at(now), self.ledgers.namespace)

    def ledger(self, now: int) -> Ledger:
        return self.at(now).of("acme")

    def schedules(self, now: int = START) -> Schedules:
        return Schedules(self.ledger(now), self.history)

    def put(
        self, triggers: Sequence[Trigger] = tuple(EVERY_MINUTE), now: int = START, **options: Any
    ) -> None:
        self.schedules(now).put(KEY, TASK, triggers, **options)

    def fire(self, now: int, *names: str) -> None:
        for name in names or ("one",):
            Scheduler(self.at(now), name).round()

    def end(self, now: int, outcome: Outcome) -> str:
        """Claim the one job that is due, and end its attempt."""
        lease = claim(self.ledger(now))
        self.ledger(now).settle(lease, outcome)
        return lease.id

    def log(self, instant: int = START) -> list[LogEntry]:
        """The month's entries, oldest first."""
        page = self.schedules().logs(KEY, month=month(instant), limit=100)
        assert page.next_cursor is None
        return list(page.items)[::-1]

    def said(self) -> list[tuple[str, str | None, bool]]:
        return [(one.status, one.reason, one.executed) for one in self.log()]
