"""What tasks say of their progress, on its way to the ledger: words are gathered, each checkpoint is answered."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..lease.jobs import Reported
from ..lease.ledgers import Ledgers
from ..scripts import Call
from ..scripts.errors import TenureError
from .clock import NEVER
from .courier import PASSING, RETRY_S, Post
from .row import Row
from .wire import Report

REPORT_S = 0.25
"""A task's progress is written at most so often; what it says in between is gathered, the last word always written."""
LINES, LINE_BYTES = 1_000, 256 * 1024
"""The ring of log lines, as the ledger has it: what it would push out at once is not sent."""

NOTHING = Report()
Ack = Callable[[TenureError | None], None]


@dataclass(slots=True)
class Said:
    """What a task said of its progress and was not yet written."""

    row: Row
    due: float
    word: int
    """Numbers what is written of a row, so that it counts once however often it is sent."""
    report: Report = NOTHING
    lines: deque[str] = field(default_factory=deque[str])
    size: int = 0
    skipped: int = 0
    """How many lines were pushed out before they were written."""
    request: str = ""
    response: str = ""
    spent: Callable[[int], None] | None = None
    """Is told how many steps the call tree has counted."""

    def note(self, request: str, response: str) -> None:
        self.request, self.response = request or self.request, response or self.response

    def add(self, new: Report) -> None:
        old = self.report
        self.report = Report(
            old.doing if new.doing is None else new.doing,
            old.total if new.total is None else new.total,
            new.message or old.message,
            [],
            new.stage or old.stage,
            old.warnings + new.warnings,
            old.steps + new.steps,
            new.root or old.root,
        )
        for line in new.lines:
            self._add_line(line)

    def _add_line(self, line: str) -> None:
        self.lines.append(line)
        self.size += len(line.encode())
        while len(self.lines) > LINES or self.size > LINE_BYTES:
            self.size -= len(self.lines.popleft().encode())
            self.skipped += 1

    def call(
        self, ledgers: Ledgers, *, cursor: bytes = b"", done: int | None = None, committed: bool = False
    ) -> Call[Reported]:
        """The report, or the checkpoint that is `committed` with it."""
        lease, report = self.row.lease, self.report
        return ledgers.of(lease.tenant).report_call(
            lease.id,
            lease.fence,
            cursor=cursor,
            done=done,
            doing=None if committed else report.doing,
            total=report.total,
            message=report.message,
            lines=self.lines,
            request=self.request,
            response=self.response,
            stage=report.stage,
            warnings=report.warnings,
            skipped=self.skipped,
            word=self.word,
            steps=report.steps,
            root=report.root,
        )


class Progress:
    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers
        self._said: dict[int, Said] = {}
        self._words = itertools.count(1)
        self._written_at: dict[int, float] = {}
        self._checkpoints: list[Post] = []
        self._in_flight = 0
        self._retry_at = 0.0

    @property
    def settled(self) -> bool:
        """Whether all checkpoints are answered."""
        return not (self._checkpoints or self._in_flight)

    def report(
        self, row: Row, report: Report, *, now: float, spent: Callable[[int], None] | None = None
    ) -> None:
        """What a task says; `spent` hears how many steps its call tree has counted, if it says any."""
        said = self._gathered(row, now)
        said.add(report)
        said.spent = spent if report.steps else said.spent

    def note(self, row: Row, request: str, response: str, *, now: float) -> None:
        self._gathered(row, now).note(request, response)

    def _gathered(self, row: Row, now: float) -> Said:
        said = self._said.get(row.number)
        if said is None:
            due = max(now, self._written_at.get(row.number, 0.0) + REPORT_S)
            said = self._said[row.number] = Said(row, due, next(self._words))
        return said

    def checkpoint(
        self, row: Row, cursor: bytes, done: int | None, total: int | None, message: str, *, ack: Ack
    ) -> None:
        """Commit a checkpoint, with what was reported before it; `ack` hears None, or why it was refused."""
        said = self._said.pop(row.number, None) or Said(row, 0.0, next(self._words))
        said.add(Report(total=total, message=message))
        call = said.call(self._ledgers, cursor=cursor, done=done, committed=True)
        self._checkpoints.append(self._post(call, ack))

    def _post(self, call: Call[Reported], ack: Ack) -> Post:
        def read(answer: Any, sent_at: float) -> None:
            self._in_flight -= 1
            if isinstance(answer, PASSING):
                self._retry_at = sent_at + RETRY_S
                self._checkpoints.append(self._post(call, ack))
            else:
                ack(answer if isinstance(answer, TenureError) else None)

        return Post(call, read)

    def forget(self, row: Row) -> None:
        """Nothing more is to be said of a row."""
        self._said.pop(row.number, None)
        self._written_at.pop(row.number, None)

    def send_at(self, now: float) -> float:
        """When there is something to send."""
        at = min((said.due for said in self._said.values()), default=NEVER)
        return min(at, max(now, self._retry_at)) if self._checkpoints else at

    def posts(self, now: float, ending: Collection[int]) -> list[Post]:
        """All that can be sent now, and the last word of the rows that are `ending`."""
        found: list[Post] = []
        for said in [said for said in self._said.values() if said.due <= now or said.row.number in ending]:
            found.append(self._report(said))
            self._written_at[said.row.number] = now
        for number in ending:
            self._written_at.pop(number, None)
        if now < self._retry_at:
            return found
        checkpoints, self._checkpoints = self._checkpoints, []
        self._in_flight += len(checkpoints)
        return found + checkpoints

    def _report(self, said: Said) -> Post:
        del self._said[said.row.number]
        return Post(said.call(self._ledgers), partial(_tell, said.spent))


def _tell(spent: Callable[[int], None] | None, answer: Any, sent_at: float) -> None:
    """A report that was refused or lost is not worth a word: the next one comes soon, or the job has ended."""
    if spent and isinstance(answer, Reported):
        spent(answer.spent)
