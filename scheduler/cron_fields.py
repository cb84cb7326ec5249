"""What a parsed cron expression says: plain values, without a clock.

Weekdays count from 0 = Sunday in both dialects. A set of days of one month is an int whose bit 0 is the 1st.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

FIRST_YEAR = 1970
LAST_YEAR = 2125  # as Quartz in 2025: a hundred years on. A constant, since this engine reads no clock.

SUNDAY = 0
SATURDAY = 6


@dataclass(frozen=True, slots=True)
class Item:
    """One member of a list: `first` to `last`, every `step`-th; a single value has first == last."""

    first: int
    last: int
    step: int = 1


@dataclass(frozen=True, slots=True)
class Field:
    """A field of plain numbers: the items as written (for words) and the values they give."""

    items: tuple[Item, ...]
    values: tuple[int, ...]
    whole: bool = False  # exactly `*` or `?`: no restriction at all
    starred: bool = False  # begins with `*`: for the clock changes, not a fixed time

    @property
    def listed(self) -> bool:
        """Whether it was written as single values only."""
        return all(item.first == item.last for item in self.items)

    def rhythm(self, low: int, high: int) -> int:
        """The step of a field that goes on evenly from one round to the next (1 for all values), else 0."""
        size = high - low + 1
        if len(self.values) == size:
            return 1
        only = self.items[0]
        even = len(self.items) == 1 and (only.first, only.last) == (low, high) and size % only.step == 0
        return only.step if even else 0


class DayItem(Protocol):
    """One way of naming days of a month."""

    def days(self, length: int, first: int) -> int:
        """The days meant in a month of `length` days whose 1st falls on weekday `first`."""
        ...


@dataclass(frozen=True, slots=True)
class Dates:
    """Plain days of the month; a month without the day is passed over."""

    field: Field

    def days(self, length: int, first: int) -> int:
        return _bits(day for day in self.field.values if day <= length)


@dataclass(frozen=True, slots=True)
class Weekdays:
    """Plain weekdays, every week."""

    field: Field

    def days(self, length: int, first: int) -> int:
        wanted = self.field.values
        return _bits(day for day in range(1, length + 1) if (first + day - 1) % 7 in wanted)


@dataclass(frozen=True, slots=True)
class LastDay:
    """`L`, `L-3`, `LW`, `L-3W`: the last day, or so many days before it, or the weekday nearest to that."""

    before: int = 0
    nearest_weekday: bool = False

    def days(self, length: int, first: int) -> int:
        day = length - self.before
        if day < 1:
            return 0
        return _bits([_nearest_weekday(day, length, first) if self.nearest_weekday else day])


@dataclass(frozen=True, slots=True)
class NearestWeekday:
    """`15W`: the weekday nearest to that day, within its month."""

    day: int

    def days(self, length: int, first: int) -> int:
        return _bits([_nearest_weekday(self.day, length, first)]) if self.day <= length else 0


@dataclass(frozen=True, slots=True)
class LastWeekday:
    """`6L` of Quartz, `5L` of crontab: the last such weekday of the month."""

    weekday: int

    def days(self, length: int, first: int) -> int:
        last = (first + length - 1) % 7
        return _bits([length - (last - self.weekday) % 7])


@dataclass(frozen=True, slots=True)
class NthWeekday:
    """`FRI#2`: the second Friday; a month without it is passed over."""

    weekday: int
    nth: int

    def days(self, length: int, first: int) -> int:
        day = 1 + (self.weekday - first) % 7 + 7 * (self.nth - 1)
        return _bits([day]) if day <= length else 0


@dataclass(frozen=True, slots=True)
class DayField:
    """The day-of-month or the day-of-week field: the union of its items."""

    items: tuple[DayItem, ...]
    whole: bool = False

    def days(self, length: int, first: int) -> int:
        found = 0
        for item in self.items:
            found |= item.days(length, first)
        return found


@dataclass(frozen=True, slots=True)
class Schedule:
    """A whole expression."""

    second: Field
    minute: Field
    hour: Field
    day: DayField
    month: Field
    weekday: DayField
    year: Field
    either_day: bool  # crontab with both day fields restricted: a day of either kind will do

    @property
    def fixed_time(self) -> bool:
        """Whether it names wall times, as opposed to a rhythm that goes on through a clock change."""
        return not (self.minute.starred or self.hour.starred)

    def days(self, length: int, first: int) -> int:
        by_date = self.day.days(length, first)
        by_weekday = self.weekday.days(length, first)
        return by_date | by_weekday if self.either_day else by_date & by_weekday


def _nearest_weekday(day: int, length: int, first: int) -> int:
    """Quartz's rule: Friday before or Monday after, but never out of the month."""
    weekday = (first + day - 1) % 7
    if weekday == SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == SUNDAY:
        return day + 1 if day < length else day - 2
    return day


def _bits(days: Iterable[int]) -> int:
    found = 0
    for day in days:
        found |= 1 << (day - 1)
    return found
