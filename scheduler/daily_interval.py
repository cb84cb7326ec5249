"""Every n minutes between two times of day, on some weekdays: it starts afresh each day."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .cron_clock import Only
from .cron_search import DAY
from .times import SECOND_MS, Every, Odd
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

    def odd_ms(self, start_ms: int, end_ms: int, *, only: Only | None = None) -> Iterator[Odd]:
        if only == "skipped":
            return  # a change of the clocks takes none of them out
        near = (start_ms // SECOND_MS - 2 * DAY, end_ms // SECOND_MS + 2 * DAY)
        for change, forward in self.wall.changes(*near):
            if only == "moved" and forward < 0:
                continue
            found = self._doubled(change, -forward) if forward < 0 else self._after_gap(change)
            yield from (odd for odd in found if start_ms <= odd.at < end_ms)

    def _doubled(self, change: int, back: int) -> Iterator[Odd]:
        """The fires of both passes of what comes twice."""
        at, end = self.next_ms((change - back) * SECOND_MS - 1), (change + back) * SECOND_MS
        while at is not None and at < end:
            shown = self.wall.reading(at // SECOND_MS) * SECOND_MS + at % SECOND_MS
            yield Odd(at, shown, shown, "overlap", None)
            at = self.next_ms(at)

    def _after_gap(self, change: int) -> Iterator[Odd]:
        """The first fire of a day, where the clocks leave out its time."""
        shown = self.wall.reading(change)
        for day in range(shown // DAY - 2, shown // DAY + 1):
            nominal = day * DAY + self.first_s
            if (
                weekday(day) in self.days
                and nominal < shown
                and self.wall.first_at(day, self.first_s) == change
            ):
                yield Odd(change * SECOND_MS, nominal * SECOND_MS, shown * SECOND_MS, "gap", None)

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
