"""What slots say of their rows, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from ..lease.outcome import GiveBack
from ..scripts.errors import TenureError
from .crew import Crew
from .progress import Progress
from .row import Row
from .slot import Slot
from .wire import Report, Say, Why, outcome_of


class Hearing:
    def __init__(self, crew: Crew, progress: Progress) -> None:
        self._crew = crew
        self._progress = progress

    def hear(self, slot: Slot, frames: Iterable[list[Any]], now: float) -> None:
        for kind, number, *parts in frames:
            row = slot.rows.get(number)
            if row is not None:
                self._hear(slot, row, kind, parts, now)

    def _hear(self, slot: Slot, row: Row, kind: int, parts: list[Any], now: float) -> None:
        match kind:
            case Say.END:
                self._hear_end(slot, row, *parts, now=now)
            case Say.BACK:
                slot.finish(row, now)
                self._crew.put_back([row])
            case Say.OVER:
                row.over_at = now
            case Say.BLOCKER:
                slot.blamed.add(*parts)
            case Say.NEED:
                slot.answer(row.number, [row.lease.args, row.lease.cursor])
            case Say.REPORT:
                self._progress.report(row, Report(*parts), now=now, spent=partial(slot.spent, row))
            case Say.NOTE:
                self._progress.note(row, *parts, now=now)
            case Say.CHECKPOINT:
                self._progress.checkpoint(row, *parts, ack=lambda error: _acknowledge(slot, row, error))
            case _:
                pass

    def _hear_end(
        self, slot: Slot, row: Row, seconds: float, frame: list[Any] | None, memory_kb: int, *, now: float
    ) -> None:
        outcome = None
        if frame is not None:
            outcome = outcome_of(frame)
        elif slot.why(row) is Why.RELEASED:
            outcome = GiveBack()
        slot.finish(row, now)
        slot.jobs += 1
        slot.memory_kb = max(slot.memory_kb, memory_kb)
        self._crew.ran(row, seconds)
        self._crew.ended(row, outcome, now)


def _acknowledge(slot: Slot, row: Row, error: TenureError | None) -> None:
    if slot.rows.get(row.number) is row:
        slot.answer(row.number, None if error is None else str(error))
