"""Every n days, weeks, months or years by the calendar, at the same time of day."""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from .cron_search import AFTER_ALL, BEFORE_ALL, DAY

UNITS = ("day", "week", "month", "year")
_EPOCH = date(1970, 1, 1).toordinal()
_LAST_MONTH = 2126 * 12
_RUN = 60


@dataclass(frozen=True, slots=True)
class CalendarInterval:
    """Readings of a clock, in seconds: `anchor` (its date and time of day), then each `n` `unit`s later.

    Each is counted from the anchor, so 31 January monthly gives 29 February (28), then 31 March: the day is cut to the
    month's length and comes back. Quartz goes step by step, and stays at the 29th.
    """

    anchor: int
    unit: str
    n: int

    def first(self, reading: int) -> int:
        """The first at or after `reading`, or AFTER_ALL."""
        return self._at(self._index(reading))

    def last(self, reading: int) -> int:
        """The last at or before `reading`, or BEFORE_ALL."""
        k = self._guess(reading) + 1
        while k >= 0 and self._at(k) > reading:
            k -= 1
        return self._at(k) if k >= 0 else BEFORE_ALL

    def between(self, low: int, high: int) -> Iterator[list[int]]:
        """All from `low` up to before `high`, in short lists."""
        run: list[int] = []
        found = self.first(low)
        while found < high:
            run.append(found)
            if len(run) == _RUN:
                yield run
                run = []
            found = self.first(found + 1)
        if run:
            yield run

    def count(self, low: int, high: int) -> int:
        """How many there are from `low` up to before `high`."""
        return max(0, self._index(high) - self._index(low))

    def _index(self, reading: int) -> int:
        """Which of them is the first at or after `reading`."""
        k = max(0, self._guess(reading) - 1)
        while self._at(k) < reading:
            k += 1
        return k

    def _guess(self, reading: int) -> int:
        """About which of them is near `reading`: one too few or too many at most."""
        if self.unit in ("day", "week"):
            return (reading - self.anchor) // (DAY * self._days)
        return (_month(reading) - _month(self.anchor)) // self._months

    def _at(self, k: int) -> int:
        if self.unit in ("day", "week"):
            return self.anchor + k * self._days * DAY
        month = _month(self.anchor) + k * self._months
        if month >= _LAST_MONTH:
            return AFTER_ALL
        first = date(month // 12, month % 12 + 1, 1)
        length = calendar.monthrange(first.year, first.month)[1]
        day = min(_date(self.anchor).day, length)
        return (first.toordinal() - _EPOCH + day - 1) * DAY + self.anchor % DAY

    @property
    def _days(self) -> int:
        return self.n * (7 if self.unit == "week" else 1)

    @property
    def _months(self) -> int:
        return self.n * (12 if self.unit == "year" else 1)


def _date(reading: int) -> date:
    return date.fromordinal(min(max(reading // DAY, -_EPOCH + 1), 150 * 366) + _EPOCH)


def _month(reading: int) -> int:
    """Months since year 0 of the month a reading lies in."""
    day = _date(reading)
    return day.year * 12 + day.month - 1
