"""The first and last clock readings that a schedule names, with no zone and no clock change.

A *reading* is what a wall clock shows, counted in seconds from 1970-01-01 00:00 on that clock. The search
goes down from coarse to fine: month, day, minute of the day, second. Only 28 shapes of month exist (four
lengths, seven first weekdays), so the days of a month are an int looked up by its shape, and the next day is
its lowest set bit.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import date
from functools import cached_property

from .cron_fields import FIRST_YEAR, LAST_YEAR, Schedule

DAY = 86_400

# What `first` and `last` answer when there is none: beyond every reading, so that callers need not ask twice.
AFTER_ALL = 1 << 62
BEFORE_ALL = -AFTER_ALL

_EPOCH = date(1970, 1, 1).toordinal()
_MONTHS = [date(year, month, 1) for year in range(FIRST_YEAR, LAST_YEAR + 1) for month in range(1, 13)]
_STARTS = [month.toordinal() - _EPOCH for month in _MONTHS]
_END = date(LAST_YEAR + 1, 1, 1).toordinal() - _EPOCH
_LENGTHS = [after - start for start, after in zip(_STARTS, [*_STARTS[1:], _END], strict=True)]
# Month of the year (from 0), length and first weekday (from Sunday) in one number, for each month.
_KINDS = [
    (month.month - 1) * 28 + (length - 28) * 7 + month.isoweekday() % 7
    for month, length in zip(_MONTHS, _LENGTHS, strict=True)
]


class _MonthDays(dict[int, int]):
    """The matching days of each kind of month, computed when first asked for."""

    def __init__(self, schedule: Schedule) -> None:
        super().__init__()
        self._schedule = schedule

    def __missing__(self, kind: int) -> int:
        month, shape = divmod(kind, 28)
        days = 0
        if month + 1 in self._schedule.month.values:
            length, first = divmod(shape, 7)
            days = self._schedule.days(length + 28, first)
        self[kind] = days
        return days


class Readings:
    """All readings of a schedule, from 1970 to 2125."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        minutes = schedule.minute.values
        self._seconds = seconds = schedule.second.values
        self._minutes = [hour * 3600 + minute * 60 for hour in schedule.hour.values for minute in minutes]
        # The last second of each matching minute: the first of them not yet over is the minute to look in.
        self._ends = self._minutes if seconds == (0,) else [it + seconds[-1] for it in self._minutes]
        self._month_days = _MonthDays(schedule)
        self._years = None if schedule.year.whole else frozenset(y - FIRST_YEAR for y in schedule.year.values)
        # The day last asked for and the answer: a search mostly goes on where it stopped. One tuple, so that
        # threads which share these readings see a question with its own answer.
        self._next_day = (0, -1)

    def first(self, reading: int) -> int:
        """The first matching reading at or after `reading`, or AFTER_ALL."""
        day = reading // DAY
        asked, found = self._next_day
        if not asked <= day <= found:
            found = self._day_from(day)
        if found == day:
            second = reading - day * DAY
            ends, seconds = self._ends, self._seconds
            place = bisect_left(ends, second)
            if place < len(ends):
                if len(seconds) == 1:
                    return day * DAY + ends[place]
                minute = self._minutes[place]
                return day * DAY + minute + seconds[bisect_left(seconds, second - minute)]
            found = self._day_from(day + 1)
        if found == AFTER_ALL:
            return AFTER_ALL
        return found * DAY + self._minutes[0] + self._seconds[0]

    def last(self, reading: int) -> int:
        """The last matching reading at or before `reading`, or BEFORE_ALL."""
        day = reading // DAY
        found = self._day_until(day)
        if found == day:
            second = reading - day * DAY
            minutes, seconds = self._minutes, self._seconds
            place = bisect_right(minutes, second - seconds[0]) - 1
            if place >= 0:
                minute = minutes[place]
                return day * DAY + minute + seconds[bisect_right(seconds, second - minute) - 1]
            found = self._day_until(day - 1)
        if found == BEFORE_ALL:
            return BEFORE_ALL
        return found * DAY + self._ends[-1]

    def between(self, low: int, high: int) -> Iterator[list[int]]:
        """All matching readings from `low` up to before `high`, in lists of at most 60 matching minutes."""
        day = self._day_from(low // DAY)
        while day * DAY < high:
            midnight = day * DAY
            minutes = self._minutes
            begin = bisect_left(self._ends, low - midnight)
            end = bisect_left(minutes, high - midnight)
            for place in range(begin, end, 60):
                run = [
                    midnight + minute + second
                    for minute in minutes[place : min(place + 60, end)]
                    for second in self._seconds
                ]
                if run[0] < low or run[-1] >= high:
                    run = run[bisect_left(run, low) : bisect_left(run, high)]
                if run:
                    yield run
            day = self._day_from(day + 1)

    def count(self, low: int, high: int) -> int:
        """How many matching readings there are from `low` up to before `high`."""
        found = 0
        day = self._day_from(low // DAY)
        while day * DAY < high:
            midnight = day * DAY
            found += self._before(high - midnight) - self._before(low - midnight)
            day = self._day_from(day + 1)
        return found

    def run(self, reading: int) -> tuple[int, int] | None:
        """The readings of its day without a break around a matching one, up to before the second; None for another."""
        if self.first(reading) != reading:
            return None
        midnight = reading // DAY * DAY
        starts, ends = self._runs
        place = bisect_right(starts, reading - midnight) - 1
        return midnight + starts[place], midnight + ends[place]

    @cached_property
    def _runs(self) -> tuple[list[int], list[int]]:
        """Of a matching day, the beginnings of all runs of seconds without a break, and their ends."""
        starts, ends = list[int](), list[int]()
        for minute in self._minutes:
            for second in self._seconds:
                if ends and ends[-1] == minute + second:
                    ends[-1] += 1
                else:
                    starts.append(minute + second)
                    ends.append(minute + second + 1)
        return starts, ends

    def _before(self, second: int) -> int:
        """How many readings of a matching day are before its `second`."""
        place = bisect_right(self._minutes, second) - 1
        if place < 0:
            return 0
        return place * len(self._seconds) + bisect_left(self._seconds, second - self._minutes[place])

    def _day_from(self, day: int) -> int:
        """The first matching day at or after `day`, or AFTER_ALL."""
        asked, day = day, day if day > 0 else 0
        kinds, month_days, years = _KINDS, self._month_days, self._years
        month = bisect_right(_STARTS, day) - 1
        days = month_days[kinds[month]] >> (day - _STARTS[month])
        if days and (years is None or month // 12 in years):
            found = day + (days & -days).bit_length() - 1
        else:
            found = AFTER_ALL
            for later in range(month + 1, len(kinds)):
                days = month_days[kinds[later]]
                if days and (years is None or later // 12 in years):
                    found = _STARTS[later] + (days & -days).bit_length() - 1
                    break
        self._next_day = (asked, found)
        return found

    def _day_until(self, day: int) -> int:
        """The last matching day at or before `day`, or BEFORE_ALL."""
        if day < 0:
            return BEFORE_ALL
        if day >= _END:
            day = _END - 1
        month_days, years = self._month_days, self._years
        month = bisect_right(_STARTS, day) - 1
        start = _STARTS[month]
        days = month_days[_KINDS[month]] & ((2 << (day - start)) - 1)
        while month >= 0:
            if days and (years is None or month // 12 in years):
                return _STARTS[month] + days.bit_length() - 1
            month -= 1
            days = month_days[_KINDS[month]]
        return BEFORE_ALL
