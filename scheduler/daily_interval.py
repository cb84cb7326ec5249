"""Every n minutes between two times of day, on some weekdays: it starts afresh each day."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .cron_clock import Skipped
from .times import SECOND_MS, Every
from .wall import Wall, weekday

_WEEK = 8
"""How far the next day that counts can be: a week, and one that a zone left out."""


@dataclass(frozen=True, slots=True)
class DailyInterval:
    """On each of `days` (0 is Sunday): at `first_s` (seconds since midnight), then every `interval_ms` of elapsed time,
    to `last_s` and no later. Where clocks go back within that time, the doubled hour has its fires twice.
    """

    wall: Wall
    interval_ms: int
    first_s: int
    last_s: int
    days: frozenset[int]

    def next_ms(self, after_ms: int) -> int | None:
        for every in self._from(self.wall.day(after_ms // SECOND_MS) - 1):
            if (found := every.next_ms(after_ms)) is not None:
                return found
        return None

    def prev_ms(self, before_ms: int) -> int | None:
        today = self.wall.day(before_ms // SECOND_MS)
        for day in range(today + 1, today - _WEEK - 1, -1):
            if (every := self._of(day)) and (found := every.prev_ms(before_ms)) is not None:
                return found
        return None

    def count_ms(self, start_ms: int, end_ms: int) -> int:
        first, last = self.wall.day(start_ms // SECOND_MS) - 1, self.wall.day(end_ms // SECOND_MS) + 1
        days = (self._of(day) for day in range(first, last + 1))
        return sum(every.count_ms(start_ms, end_ms) for every in days if every)

    def skipped_ms(self, start_ms: int, end_ms: int) -> Iterator[tuple[int, Skipped]]:
        return iter(())

    def _from(self, day: int) -> Iterator[Every]:
        for later in range(day, day + _WEEK + 2):
            if every := self._of(later):
                yield every

    def _of(self, day: int) -> Every | None:
        """The fires of one day."""
        if weekday(day) not in self.days:
            return None
        first = self.wall.first_at(day, self.first_s)
        last = max(first, self.wall.last_at(day, self.last_s))  # what a gap left out is one fire after it
        return Every(first * SECOND_MS, self.interval_ms, (last - first) * SECOND_MS // self.interval_ms + 1)
