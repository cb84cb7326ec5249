"""What the worker has to tell the ledger and has not yet: outcomes, and the progress before them. It outlives a
reconnect."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..lease.jobs import News
from ..lease.ledgers import Ledgers
from ..lease.outcome import NextChunk, Outcome, Stopped, Succeed
from ..scripts.errors import NotFound, StaleFence, TenureError
from .clock import NEVER
from .courier import PASSING, RETRY_S, Post
from .progress import Progress
from .row import Row

log = logging.getLogger("tenure.worker")

BATCH = 64
BATCH_BYTES = 4_000_000
TRIES = 10
COMPANY_JOBS = 32
COMPANY_S = 0.003
"""Outcomes wait for company: for so many, and no longer than this."""


@dataclass(slots=True)
class Ending:
    """An attempt that has ended, on its way to the ledger."""

    row: Row
    outcome: Outcome
    tries: int = 0

    @property
    def bytes(self) -> int:
        """About how long it is."""
        match self.outcome:
            case Succeed(result):
                return len(result) + 500
            case NextChunk(cursor):
                return len(cursor) + 500
            case _:
                return 500


class Outbox:
    def __init__(self, ledgers: Ledgers, told: Callable[[list[News]], None]) -> None:
        self.progress = Progress(ledgers)
        self._ledgers = ledgers
        self._told = told
        self._endings: list[Ending] = []
        self._failing: list[Ending] = []
        self._oldest = NEVER
        self._in_flight = 0
        self._retry_at = 0.0

    @property
    def settled(self) -> bool:
        """Whether all has been said and answered."""
        return self.progress.settled and not (self._endings or self._failing or self._in_flight)

    def ended(self, row: Row, outcome: Outcome, now: float) -> None:
        self._endings.append(Ending(row, outcome))
        self._oldest = min(self._oldest, now)

    def forget(self, row: Row) -> None:
        """Nothing more is to be said of a row."""
        self.progress.forget(row)

    def send_at(self, now: float, alone: bool) -> float:
        """When to send; with `alone` there is no company to wait for."""
        at = self.progress.send_at(now)
        if self._endings or self._failing:
            soon = alone or self._failing or len(self._endings) >= COMPANY_JOBS
            at = min(at, max(self._retry_at, now if soon else self._oldest + COMPANY_S))
        return at

    def posts(self, now: float) -> list[Post]:
        """All that can be sent now. Progress of a job goes before its end."""
        found = self.progress.posts(now, {ending.row.number for ending in self._endings})
        return found if now < self._retry_at else found + self._settle_posts()

    def _settle_posts(self) -> list[Post]:
        """The endings by tenant, in batches; one that made a batch fail goes alone, so that it fails alone."""
        endings, failing = self._endings, self._failing
        self._endings, self._failing, self._oldest = [], [], NEVER
        by_tenant: dict[str, list[Ending]] = {}
        for ending in endings:
            by_tenant.setdefault(ending.row.lease.tenant, []).append(ending)
        batches = [[ending] for ending in failing]
        for group in by_tenant.values():
            batches += _batches(group)
        self._in_flight += len(batches)
        return [self._settle(batch) for batch in batches]

    def _settle(self, batch: list[Ending]) -> Post:
        ledger = self._ledgers.of(batch[0].row.lease.tenant)
        call = ledger.settle_call([(one.row.lease.id, one.row.lease.fence, one.outcome) for one in batch])

        def read(answer: Any, sent_at: float) -> None:
            self._in_flight -= 1
            if isinstance(answer, TenureError):
                self._not_settled(batch, answer, sent_at)
                return
            refusals, news = answer
            for ending, refused in zip(batch, refusals, strict=True):
                if refused is not None:
                    _say_refused(refused)
                    if ending.row.lease.keyed:
                        self.ended(ending.row, Stopped(), sent_at)
            self._told(news)

        return Post(call, read)

    def _not_settled(self, batch: list[Ending], error: TenureError, sent_at: float) -> None:
        self._retry_at = sent_at + RETRY_S
        for ending in batch:
            ending.tries += 1
            if isinstance(error, PASSING) or ending.tries < TRIES:
                self._failing.append(ending)
            else:
                log.error(
                    "job %s: its outcome cannot be stored, its lease will lapse: %s",
                    ending.row.lease.id,
                    error,
                )


def _batches(endings: list[Ending]) -> list[list[Ending]]:
    found: list[list[Ending]] = []
    size = BATCH_BYTES
    for ending in endings:
        if size + ending.bytes > BATCH_BYTES or len(found[-1]) == BATCH:
            found.append([])
            size = 0
        found[-1].append(ending)
        size += ending.bytes
    return found


def _say_refused(refused: TenureError) -> None:
    """A later claim has taken over, or a person has canceled it: what we did no longer counts, and that is all."""
    level = logging.INFO if isinstance(refused, (StaleFence, NotFound)) else logging.ERROR
    log.log(level, "an outcome was refused: %s", refused)
