"""When something is due: the times of a trigger, as pure functions over epoch milliseconds.

Every kind answers the same three questions (`Times`), each without walking over what lies between: so an outage of a
month costs a trigger of every second no more than an outage of a minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from .cron_clock import Clock, Mark, Only, Plan, Skipped, WallTimes

SECOND_MS = 1000
LAST_MS = 4_923_590_400_000
"""2126-01-10: nothing is planned beyond it. Cron expressions end with 2125."""


class Odd(NamedTuple):
    """A planned instant at which the clocks change: `at`, the reading it is planned by, and what the clock shows then,
    all in ms; what the change does to it, and why it does not fire, if it does not.
    """

    at: int
    nominal: int
    shown: int
    mark: Mark
    skipped: Skipped | None


class Times(Protocol):
    """A set of instants."""

    def next_ms(self, after_ms: int) -> int | None:
        """The first strictly later than `after_ms`, or None."""
        ...

    def prev_ms(self, before_ms: int) -> int | None:
        """The last strictly earlier than `before_ms`, or None."""
        ...

    def count_ms(self, start_ms: int, end_ms: int) -> int:
        """How many there are from `start_ms` up to before `end_ms`."""
        ...

    def odd_ms(self, start_ms: int, end_ms: int, *, only: Only | None = None) -> Iterator[Odd]:
        """What the clocks' changes move, double or take out in that time. `only` what is `skipped`: what would be in
        these times too, did the clocks not change; or what is `moved`: out of a gap, to the first instant after it.
        """
        ...


def as_odd(plan: Plan, fraction_ms: int = 0) -> Odd:
    """A plan of a clock in ms, each of its instants `fraction_ms` later."""
    assert plan.mark
    at, nominal, shown = (part * SECOND_MS + fraction_ms for part in (plan.instant, plan.reading, plan.shown))
    return Odd(at, nominal, shown, plan.mark, plan.skipped)


@dataclass(frozen=True, slots=True)
class Every:
    """`anchor_ms + k * interval_ms` for k = 0, 1, ...; with `limit` only so many. Counted from the anchor: no drift."""

    anchor_ms: int
    interval_ms: int
    limit: int | None = None

    def next_ms(self, after_ms: int) -> int | None:
        return self._at(max(0, (after_ms - self.anchor_ms) // self.interval_ms + 1))

    def prev_ms(self, before_ms: int) -> int | None:
        k = (before_ms - 1 - self.anchor_ms) // self.interval_ms
        return None if k < 0 else self._at(min(k, self._last))

    def count_ms(self, start_ms: int, end_ms: int) -> int:
        return max(0, self._before(end_ms) - self._before(start_ms))

    def odd_ms(self, start_ms: int, end_ms: int, *, only: Only | None = None) -> Iterator[Odd]:
        return iter(())

    @property
    def _last(self) -> int:
        beyond = max(0, (LAST_MS - self.anchor_ms) // self.interval_ms)
        return beyond if self.limit is None else min(self.limit - 1, beyond)

    def _at(self, k: int) -> int | None:
        return self.anchor_ms + k * self.interval_ms if k <= self._last else None

    def _before(self, end_ms: int) -> int:
        """How many there are before `end_ms`."""
        return min(max(0, -((self.anchor_ms - end_ms) // self.interval_ms)), self._last + 1)


@dataclass(frozen=True, slots=True)
class Read:
    """Readings of a wall clock, each `fraction_ms` later, under the clock's policy for days on which it changes."""

    clock: Clock
    readings: WallTimes
    fraction_ms: int = 0

    def next_ms(self, after_ms: int) -> int | None:
        found = self.clock.first(self.readings, (after_ms - self.fraction_ms) // SECOND_MS + 1)
        return self._ms(found)

    def prev_ms(self, before_ms: int) -> int | None:
        found = self.clock.last(self.readings, self._second_from(before_ms) - 1)
        return self._ms(found)

    def count_ms(self, start_ms: int, end_ms: int) -> int:
        return self.clock.count(self.readings, self._second_from(start_ms), self._second_from(end_ms))

    def odd_ms(self, start_ms: int, end_ms: int, *, only: Only | None = None) -> Iterator[Odd]:
        start, end = self._second_from(start_ms), self._second_from(end_ms)
        for plan in self.clock.odd(self.readings, start, end, only=only):
            yield as_odd(plan, self.fraction_ms)

    def _second_from(self, ms: int) -> int:
        return -((self.fraction_ms - ms) // SECOND_MS)

    def _ms(self, found: int | None) -> int | None:
        return None if found is None else found * SECOND_MS + self.fraction_ms


@dataclass(frozen=True, slots=True)
class Within:
    """Those of `times` from `start_ms` up to before `end_ms`."""

    times: Times
    start_ms: int
    end_ms: int = LAST_MS

    def next_ms(self, after_ms: int) -> int | None:
        found = self.times.next_ms(max(after_ms, self.start_ms - 1))
        return found if found is not None and found < self.end_ms else None

    def prev_ms(self, before_ms: int) -> int | None:
        found = self.times.prev_ms(min(before_ms, self.end_ms))
        return found if found is not None and found >= self.start_ms else None

    def count_ms(self, start_ms: int, end_ms: int) -> int:
        return self.times.count_ms(max(start_ms, self.start_ms), max(min(end_ms, self.end_ms), self.start_ms))

    def odd_ms(self, start_ms: int, end_ms: int, *, only: Only | None = None) -> Iterator[Odd]:
        start, end = max(start_ms, self.start_ms), min(end_ms, self.end_ms)
        return self.times.odd_ms(start, end, only=only)


@dataclass(frozen=True, slots=True)
class From:
    """`first_ms`, and those of `times` after it."""

    first_ms: int
    times: Times

    def next_ms(self, after_ms: int) -> int | None:
        return self.first_ms if after_ms < self.first_ms else self.times.next_ms(after_ms)

    def prev_ms(self, before_ms: int) -> int | None:
        if before_ms <= self.first_ms:
            return None
        found = self.times.prev_ms(before_ms)
        return self.first_ms if found is None else max(found, self.first_ms)

    def count_ms(self, start_ms: int, end_ms: int) -> int:
        first = start_ms <= self.first_ms < end_ms
        later = max(start_ms, self.first_ms + 1)
        return first + (self.times.count_ms(later, end_ms) if later < end_ms else 0)

    def odd_ms(self, start_ms: int, end_ms: int, *, only: Only | None = None) -> Iterator[Odd]:
        return self.times.odd_ms(max(start_ms, self.first_ms + 1), end_ms, only=only)


@dataclass(frozen=True, slots=True)
class AtMost:
    """The first `limit` of `times` from `start_ms` on."""

    times: Times
    start_ms: int
    limit: int

    def next_ms(self, after_ms: int) -> int | None:
        found = self.times.next_ms(max(after_ms, self.start_ms - 1))
        return found if found is not None and self._before(found) < self.limit else None

    def prev_ms(self, before_ms: int) -> int | None:
        found = self.times.prev_ms(before_ms)
        if found is None or found < self.start_ms:
            return None
        surplus = self._before(found) + 1 - self.limit
        return found if surplus <= 0 else self._last()

    def count_ms(self, start_ms: int, end_ms: int) -> int:
        return max(0, min(self.limit, self._before(end_ms)) - min(self.limit, self._before(start_ms)))

    def odd_ms(self, start_ms: int, end_ms: int, *, only: Only | None = None) -> Iterator[Odd]:
        found = self.times.odd_ms(max(start_ms, self.start_ms), end_ms, only=only)
        return (odd for odd in found if self._before(odd.at) < self.limit)

    def _before(self, end_ms: int) -> int:
        return self.times.count_ms(self.start_ms, max(end_ms, self.start_ms))

    def _last(self) -> int:
        """The last that counts, by halving the time it can lie in."""
        low, high = self.start_ms, LAST_MS
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._before(middle) >= self.limit else (middle, high)
        return low
