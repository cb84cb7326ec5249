"""What the worker has to tell the ledger and has not yet: outcomes, progress, checkpoints. It outlives a reconnect."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..lease.jobs import News
from ..lease.ledger import Ledger
from ..lease.ledgers import Ledgers
from ..lease.outcome import Outcome
from ..scripts import Call
from ..scripts.errors import NotFound, StaleFence, StoreFull, StoreReadOnly, StoreUnreachable, TenureError
from .courier import Post
from .row import Row

log = logging.getLogger("tenure.worker")

BATCH = 64
BATCH_BYTES = 4_000_000
TRIES = 10
REPORT_S = 0.25
"""A task's progress is written at most so often; what it says in between is gathered, the last word always written."""

PASSING = (StoreUnreachable, StoreReadOnly, StoreFull)


@dataclass(slots=True)
class Ending:
    """An attempt that has ended, on its way to the ledger."""

    row: Row
    outcome: Outcome
    tries: int = 0


@dataclass(slots=True)
class Reported:
    """What a task said of its progress and was not yet written."""

    row: Row
    due: float
    doing: int | None = None
    total: int | None = None
    message: str = ""
    lines: list[str] = field(default_factory=list[str])

    def add(self, doing: int | None, total: int | None, message: str, lines: list[str]) -> None:
        self.doing = self.doing if doing is None else doing
        self.total = self.total if total is None else total
        self.message = message or self.message
        self.lines = (self.lines + lines)[-1000:]


Ack = Callable[[TenureError | None], None]


class Outbox:
    def __init__(self, ledgers: Ledgers, told: Callable[[list[News]], None]) -> None:
        self.oldest: float | None = None
        """Since when something urgent waits."""
        self._ledgers = ledgers
        self._told = told
        self._endings: list[Ending] = []
        self._failing: list[Ending] = []
        self._checkpoints: list[Post] = []
        self._reports: dict[int, Reported] = {}
        self._written: dict[int, float] = {}
        self._in_flight = 0
        self._retry_at = 0.0

    @property
    def settled(self) -> bool:
        """Whether all has been said and answered."""
        return not (self._endings or self._failing or self._checkpoints or self._in_flight)

    def ended(self, row: Row, outcome: Outcome, now: float) -> None:
        self._endings.append(Ending(row, outcome))
        self._written.pop(row.number, None)
        self._urgent(now)

    def forget(self, row: Row) -> None:
        """Nothing more is to be said of a row."""
        self._reports.pop(row.number, None)
        self._written.pop(row.number, None)

    def reported(
        self, row: Row, doing: int | None, total: int | None, message: str, lines: list[str], *, now: float
    ) -> None:
        waiting = self._reports.get(row.number)
        if waiting is None:
            due = max(now, self._written.get(row.number, 0.0) + REPORT_S)
            waiting = self._reports[row.number] = Reported(row, due)
        waiting.add(doing, total, message, lines)

    def checkpoint(
        self,
        row: Row,
        cursor: bytes,
        done: int | None,
        total: int | None,
        message: str,
        *,
        ack: Ack,
        now: float,
    ) -> None:
        """Commit a checkpoint; `ack` hears None, or why it was refused."""
        said = self._reports.pop(row.number, None)
        lines = said.lines if said else []
        call = report_call(
            self._ledgers.of(row.lease.tenant),
            row,
            cursor=cursor,
            done=done,
            total=total,
            message=message,
            lines=lines,
        )

        def read(answer: Any, sent_at: float) -> None:
            self._in_flight -= 1
            if isinstance(answer, PASSING):
                self._checkpoints.append(Post(call, read))
                self._retry_at = sent_at + 0.5
                self._urgent(sent_at)
            else:
                ack(answer if isinstance(answer, TenureError) else None)

        self._checkpoints.append(Post(call, read))
        self._urgent(now)

    def send_at(self, now: float, many: int, patience_s: float, alone: bool) -> float:
        """When to send: at once if there are many endings or (`alone`) nothing else is to be waited for."""
        at = min((report.due for report in self._reports.values()), default=float("inf"))
        if self.oldest is not None:
            soon = alone or len(self._endings) >= many or self._checkpoints
            at = min(at, max(self._retry_at, now if soon else self.oldest + patience_s))
        return at

    def posts(self, now: float) -> list[Post]:
        """All that can be sent now. Progress of a job goes before its end."""
        found = self._report_posts(now)
        if now < self._retry_at:
            return found
        self._in_flight += len(self._checkpoints)
        found += self._checkpoints
        self._checkpoints = []
        self.oldest = None
        return found + self._settle_posts()

    def _urgent(self, now: float) -> None:
        if self.oldest is None:
            self.oldest = now

    def _report_posts(self, now: float) -> list[Post]:
        ending = {ending.row.number for ending in self._endings}
        due = [
            report for report in self._reports.values() if report.due <= now or report.row.number in ending
        ]
        found: list[Post] = []
        for report in due:
            del self._reports[report.row.number]
            if report.row.number not in ending:
                self._written[report.row.number] = now
            call = report_call(
                self._ledgers.of(report.row.lease.tenant),
                report.row,
                doing=report.doing,
                total=report.total,
                message=report.message,
                lines=report.lines,
            )
            found.append(Post(call, _passed_over))
        return found

    def _settle_posts(self) -> list[Post]:
        """The endings by tenant, in batches; one that made a batch fail goes alone, so that it fails alone."""
        endings, self._endings = self._endings, []
        failing, self._failing = self._failing, []
        batches: list[list[Ending]] = [[ending] for ending in failing]
        by_tenant: dict[str, list[Ending]] = {}
        for ending in endings:
            by_tenant.setdefault(ending.row.lease.tenant, []).append(ending)
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
                    _report_refusal(ending, refused)
            self._told(news)

        return Post(call, read)

    def _not_settled(self, batch: list[Ending], error: TenureError, now: float) -> None:
        self._retry_at = now + 0.5
        self._urgent(now)
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


def report_call(
    ledger: Ledger,
    row: Row,
    *,
    cursor: bytes = b"",
    done: int | None = None,
    total: int | None = None,
    doing: int | None = None,
    message: str = "",
    lines: list[str],
) -> Call[int]:
    """The ledger's `report`, not yet sent."""
    args: dict[str, str | bytes | int] = {
        "id": row.lease.id,
        "fence": row.lease.fence,
        "cursor": cursor,
        "done": "" if done is None else done,
        "total": "" if total is None else total,
        "doing": "" if doing is None else doing,
        "message": message,
    }
    return Call("report", ledger.keys.home, args, int, lines)


def _batches(endings: list[Ending]) -> list[list[Ending]]:
    found: list[list[Ending]] = []
    size = BATCH_BYTES
    for ending in endings:
        weight = (
            len(getattr(ending.outcome, "result", b"")) + len(getattr(ending.outcome, "cursor", b"")) + 500
        )
        if size + weight > BATCH_BYTES or len(found[-1]) == BATCH:
            found.append([])
            size = 0
        found[-1].append(ending)
        size += weight
    return found


def _report_refusal(ending: Ending, refused: TenureError) -> None:
    """A later claim has taken over, or a person has canceled it: what we did no longer counts, and that is all."""
    level = logging.INFO if isinstance(refused, (StaleFence, NotFound)) else logging.ERROR
    log.log(level, "an outcome was refused: %s", refused)


def _passed_over(answer: Any, sent_at: float) -> None:
    """Progress that was refused or lost is not worth a word: the next one comes soon, or the job has ended."""
