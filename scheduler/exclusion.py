"""Times at which nothing is planned: days, times of day and cron expressions, taken out of a trigger's times.

A rule knows its excluded stretches, so what lies in one is passed over in one step and counted in none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from .cron_clock import Clock, Only
from .cron_search import Readings
from .times import LAST_MS, SECOND_MS, Odd, Times
from .wall import Wall, weekday

MOST_STRETCHES = 5_000
"""A trigger that meets so many excluded stretches in a row, and no free time, counts as one that never fires."""


class Rule(Protocol):
    """Excluded stretches of time."""

    def stretch(self, ms: int) -> tuple[int, int] | None:
        """The excluded stretch in which `ms` lies, as (start, end before which it lies), or None."""
        ...

    def next_from(self, ms: int) -> int:
        """The first excluded instant at or after `ms`; LAST_MS if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Days:
    """Whole days: some weekdays (0 is Sunday), and dates, counted from 1970-01-01 and in order."""

    wall: Wall
    weekdays: frozenset[int]
    dates: tuple[int, ...]

    def stretch(self, ms: int) -> tuple[int, int] | None:
        day = self.wall.day(ms // SECOND_MS)
        if weekday(day) not in self.weekdays and not self._listed(day):
            return None
        return self.wall.begins(day) * SECOND_MS, self.wall.begins(day + 1) * SECOND_MS

    def next_from(self, ms: int) -> int:
        day = self.wall.day(ms // SECOND_MS)
        place = bisect_left(self.dates, day)
        found = [*self.dates[place : place + 1]]
        found += [later for later in range(day, day + 8) if weekday(later) in self.weekdays][:1]
        return max(ms, self.wall.begins(min(found)) * SECOND_MS) if found else LAST_MS

    def _listed(self, day: int) -> bool:
        place = bisect_left(self.dates, day)
        return place < len(self.dates) and self.dates[place] == day


@dataclass(frozen=True, slots=True)
class Window:
    """Each day from one time of day to another, both included; over midnight if the second is the earlier one. With
    `outside` all other times are excluded instead.
    """

    wall: Wall
    first_s: int
    last_s: int
    outside: bool = False

    def stretch(self, ms: int) -> tuple[int, int] | None:
        return next((found for found in self._around(ms) if found[0] <= ms < found[1]), None)

    def next_from(self, ms: int) -> int:
        return next((max(ms, start) for start, end in self._around(ms) if ms < end), LAST_MS)

    def _around(self, ms: int) -> Iterator[tuple[int, int]]:
        day = self.wall.day(ms // SECOND_MS)
        for near in range(day - 2, day + 3):
            start, end = self._of(near)
            yield (end, self._of(near + 1)[0]) if self.outside else (start, end)

    def _of(self, day: int) -> tuple[int, int]:
        last = self.wall.last_at(day + (self.last_s < self.first_s), self.last_s)
        return self.wall.first_at(day, self.first_s) * SECOND_MS, last * SECOND_MS + 1


@dataclass(frozen=True, slots=True)
class Seconds:
    """All seconds that a cron expression names."""

    clock: Clock
    readings: Readings

    def stretch(self, ms: int) -> tuple[int, int] | None:
        found = self.clock.run(self.readings, ms // SECOND_MS)
        return found and (found[0] * SECOND_MS, found[1] * SECOND_MS)

    def next_from(self, ms: int) -> int:
        found = self.clock.first(self.readings, ms // SECOND_MS)
        return LAST_MS if found is None else max(ms, found * SECOND_MS)


@dataclass(frozen=True, slots=True)
class Excluding:
    """Those of `times` that no rule excludes."""

    times: Times
    rules: tuple[Rule, ...]

    def next_ms(self, after_ms: int) -> int | None:
        found = self.times.next_ms(after_ms)
        for _ in range(MOST_STRETCHES):
            stretch = None if found is None else self._stretch(found)
            if stretch is None:
                return found
            found = self.times.next_ms(stretch[1] - 1)
        return None

    def prev_ms(self, before_ms: int) -> int | None:
        found = self.times.prev_ms(before_ms)
        for _ in range(MOST_STRETCHES):
            stretch = None if found is None else self._stretch(found)
            if stretch is None:
                return found
            found = self.times.prev_ms(stretch[0])
        return None

    def count_ms(self, start_ms: int, end_ms: int) -> int:
        found, at = 0, start_ms
        while at < end_ms:
            stretch = self._stretch(at)
            if stretch is None:
                free_until = min(end_ms, *(rule.next_from(at) for rule in self.rules))
                found += self.times.count_ms(at, free_until)
                at = free_until
            else:
                at = stretch[1]
        return found

    def odd_ms(self, start_ms: int, end_ms: int, *, only: Only | None = None) -> Iterator[Odd]:
        found = self.times.odd_ms(start_ms, end_ms, only=only)
        return (odd for odd in found if self._stretch(odd.at) is None)

    def _stretch(self, ms: int) -> tuple[int, int] | None:
        for rule in self.rules:
            if stretch := rule.stretch(ms):
                return stretch
        return None
