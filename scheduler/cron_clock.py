"""From clock readings to instants: what becomes of a reading when the clocks change.

A zone's time is cut into stretches of one offset. A policy is one rule: which readings fire within a stretch.
`_fires` writes all four down; everything else is the same for every policy. Instants are epoch seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Literal, NamedTuple, Protocol

from .cron_fields import FIRST_YEAR, LAST_YEAR
from .cron_search import AFTER_ALL, BEFORE_ALL, DAY, Readings
from .zones import SPAN_BITS, Stretch, zone

Policy = Literal["rhythm", "standard", "skip", "quartz"]
Mark = Literal["gap", "overlap"]
Skipped = Literal["dst_gap", "dst_overlap"]
Only = Literal["skipped", "moved"]
"""What does not fire because the clocks change, or what fires after a gap instead of in it."""

# Readings repeat only where clocks go back, by a day at most: two days on, no earlier reading comes again.
_REPEATS_WITHIN = 2 * DAY
_FIRST = -_REPEATS_WITHIN
_LAST = (LAST_YEAR + 2 - FIRST_YEAR) * 366 * DAY


class WallTimes(Protocol):
    """Readings of a wall clock, in seconds since it showed 1970-01-01 00:00."""

    def first(self, reading: int) -> int:
        """The first at or after `reading`, or AFTER_ALL."""
        ...

    def last(self, reading: int) -> int:
        """The last at or before `reading`, or BEFORE_ALL."""
        ...

    def between(self, low: int, high: int) -> Iterator[list[int]]:
        """All from `low` up to before `high`, in short lists."""
        ...

    def count(self, low: int, high: int) -> int:
        """How many there are from `low` up to before `high`."""
        ...


class Plan(NamedTuple):
    """One planned instant, its reading, what the clock shows then, and what is odd about it, if anything is."""

    instant: int
    reading: int
    shown: int
    mark: Mark | None
    skipped: Skipped | None


class _Window(NamedTuple):
    """A stretch, and the readings from `low` up to before `high` that fire in it."""

    start: int
    end: int
    offset: int
    low: int
    high: int
    stretch: Stretch


class Clock:
    """A zone's clock under one policy for the days on which it changes."""

    def __init__(self, tz: str, policy: Policy) -> None:
        self.zone = zone(tz)
        self.policy: Policy = policy
        self._windows: dict[int, tuple[_Window, ...]] = {}
        self._recent: _Window | None = None

    def first(self, readings: WallTimes, instant: int) -> int | None:
        """The first fire at or after `instant`."""
        if not _FIRST <= instant < _LAST:
            if instant >= _LAST:
                return None
            instant = _FIRST
        while True:
            start, end, offset, low, high, _ = self._window(instant)
            reading = instant + offset
            reading = readings.first(low if instant <= start or reading < low else reading)
            if reading < high:
                found = reading - offset
                return (
                    found if found > start else start
                )  # a reading of before the stretch was left out by the clocks
            if end - instant < _REPEATS_WITHIN:
                instant = end
            elif reading == AFTER_ALL:
                return None
            else:
                instant = max(end, reading - offset - _REPEATS_WITHIN)

    def last(self, readings: WallTimes, instant: int) -> int | None:
        """The last fire at or before `instant`."""
        if instant < _FIRST:
            return None
        instant = min(instant, _LAST)
        while True:
            start, _, offset, low, high, _ = self._window(instant)
            reading = readings.last(min(high - 1, instant + offset))
            if reading >= low:
                return max(start, reading - offset)
            if instant - start < _REPEATS_WITHIN:
                instant = start - 1
            elif reading == BEFORE_ALL:
                return None
            else:
                instant = min(start - 1, reading - offset + _REPEATS_WITHIN)

    def between(self, readings: WallTimes, instant: int, end: int) -> Iterator[list[int]]:
        """All fires from `instant` up to before `end`, in short lists."""
        for start, made_up, offset, low, high in self._parts(readings, instant, end):
            if made_up:
                yield [start]
            for run in readings.between(low, high):
                yield [reading - offset for reading in run]

    def count(self, readings: WallTimes, instant: int, end: int) -> int:
        """How many fires there are from `instant` up to before `end`."""
        parts = self._parts(readings, instant, end)
        return sum(made_up + readings.count(low, high) for _, made_up, _, low, high in parts)

    def _parts(
        self, readings: WallTimes, instant: int, end: int
    ) -> Iterator[tuple[int, bool, int, int, int]]:
        """For each stretch in that time: its start, whether that fires for what a gap left out, its offset, and the
        readings, from `low` up to before `high`, that fire in it.
        """
        instant, end = max(instant, _FIRST), min(end, _LAST)
        while instant < end:
            start, stop, offset, low, high, _ = self._window(instant)
            made_up = False
            if instant > start:
                low = max(low, instant + offset)
            elif low < start + offset:
                made_up = readings.first(low) < start + offset
                low = start + offset + made_up
            # Within the repeat of an hour that fires once, nothing is left: `low` lies beyond the end.
            yield start, made_up, offset, low, max(low, min(high, end + offset))
            instant = stop

    def run(self, readings: Readings, instant: int) -> tuple[int, int] | None:
        """A stretch of seconds around `instant` that all show a matching reading, or None if it does not itself."""
        start, end, offset, _, _, _ = self._window(instant)
        found = readings.run(instant + offset)
        return found and (max(start, found[0] - offset), min(end, found[1] - offset))

    def planned(self, readings: WallTimes, instant: int, end: int, *, only_odd: bool) -> Iterator[Plan]:
        """All planned instants from `instant` up to before `end`, skipped ones included."""
        instant, end = max(instant, _FIRST), min(end, _LAST)
        while instant < end:
            window = self._window(instant)
            low, high = instant + window.offset, min(window.end, end) + window.offset
            if instant == window.start and (odd := self._after_gap(readings, window)):
                yield odd
                low += 1
            yield from self._existing(readings, window, low, high, only_odd)
            instant = window.end

    def odd(self, readings: WallTimes, instant: int, end: int, *, only: Only | None) -> Iterator[Plan]:
        """What is planned from `instant` up to before `end` where the clocks change: all of it, or `only` what does
        not fire for that reason, or what fires at another time.
        """
        if (only and self.policy == "rhythm") or (only == "moved" and self.policy != "standard"):
            return iter(())
        odd = self.planned(readings, instant, end, only_odd=True)
        if only == "moved":
            return (plan for plan in odd if plan.mark == "gap")
        return (plan for plan in odd if plan.skipped) if only else odd

    def changes(self, instant: int, end: int) -> Iterator[tuple[int, int]]:
        """The changes of the clock from `instant` up to before `end`: when, and by how much it goes forward."""
        instant, end = max(instant, _FIRST), min(end, _LAST)
        while instant < end:
            window = self._window(instant)
            if instant == window.start and window.stretch.before != window.offset:
                yield instant, window.offset - window.stretch.before
            instant = window.end

    def _existing(
        self, readings: WallTimes, window: _Window, low: int, high: int, only_odd: bool
    ) -> Iterator[Plan]:
        """The plans of readings from `low` up to before `high`: repeats, plain ones, then those to repeat."""
        offset, stretch = window.offset, window.stretch
        once = min(max(low, stretch.start + stretch.before), high)
        twice = max(min(high, stretch.end + stretch.after), once)
        parts: list[tuple[int, int, Mark | None]] = [
            (low, once, "overlap"),
            (once, twice, None),
            (twice, high, "overlap"),
        ]
        for begin, stop, mark in parts:
            if begin >= stop or (only_odd and mark is None):
                continue
            for run in readings.between(begin, stop):
                for reading in run:
                    fires = window.low <= reading < window.high
                    yield Plan(reading - offset, reading, reading, mark, None if fires else "dst_overlap")

    def _after_gap(self, readings: WallTimes, window: _Window) -> Plan | None:
        """What stands at the first instant after a gap for all the readings left out."""
        start, _, offset, _, _, stretch = window
        opens = start + offset
        if self.policy == "rhythm" or stretch.before >= offset:
            return None
        missing = readings.first(start + stretch.before)
        if missing >= opens:
            return None
        if self.policy == "standard":
            return Plan(start, missing, opens, "gap", None)
        if readings.first(opens) == opens:
            return Plan(start, opens, opens, "gap", None)  # that instant has a reading of its own
        return Plan(start, missing, opens, "gap", "dst_gap")

    def goes_on_from(self, instant: int) -> int:
        """Where Quartz goes on when it is asked from an instant: of a reading that comes twice it takes the second."""
        if self.policy != "quartz" or not _FIRST <= instant < _LAST:
            return instant
        window = self._window(instant)
        reading, after = instant + window.offset, window.stretch.after
        return reading - after if reading >= window.end + after else instant

    def _window(self, instant: int) -> _Window:
        recent = self._recent
        if recent and recent.start <= instant < recent.end:
            return recent
        number = instant >> SPAN_BITS
        windows = self._windows.get(number)
        if windows is None:
            # Two threads may both compute this; they store the same value.
            windows = self._windows[number] = tuple(
                _Window(it.start, it.end, it.offset, *_fires(self.policy, it), it)
                for it in self.zone.span(number)
            )
        for window in windows:
            if instant < window.end:
                self._recent = window
                return window
        raise AssertionError("a span covers all of its instants")


@cache
def clock(tz: str, policy: Policy) -> Clock:
    """The shared clock of a zone; it learns the zone's changes as they are asked for."""
    return Clock(tz, policy)


def _fires(policy: Policy, stretch: Stretch) -> tuple[int, int]:
    """The readings, from the first up to before the second, that fire in a stretch."""
    start, end, offset, before, after = stretch
    match policy:
        case "rhythm":  # all that exist, as often as they exist
            return start + offset, end + offset
        case (
            "standard"
        ):  # go on where the stretch before ended: takes in what a gap left out, not what repeats
            return start + before, end + offset
        case "skip":  # so too, but without what a gap left out
            return start + max(before, offset), end + offset
        case "quartz":  # stop where the next stretch will begin: the second of two readings counts
            return start + offset, end + min(offset, after)
