"""Single readings of a wall clock as instants: the edges of days and of times of day."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, timedelta
from functools import cache, lru_cache

from ..scripts.errors import BadInput
from .cron_clock import clock
from .cron_search import AFTER_ALL, BEFORE_ALL, DAY
from .zones import EPOCH, zone


@dataclass(frozen=True, slots=True)
class One:
    """One reading."""

    reading: int

    def first(self, reading: int) -> int:
        return self.reading if reading <= self.reading else AFTER_ALL

    def last(self, reading: int) -> int:
        return self.reading if reading >= self.reading else BEFORE_ALL

    def between(self, low: int, high: int) -> Iterator[list[int]]:
        return iter([[self.reading]] if low <= self.reading < high else [])

    def count(self, low: int, high: int) -> int:
        return int(low <= self.reading < high)


class Wall:
    """The clock on a wall in one zone. Instants are epoch seconds, days are counted from 1970-01-01."""

    def __init__(self, tz: str) -> None:
        self._tz = zone(tz).tz
        self._standard, self._rhythm = clock(tz, "standard"), clock(tz, "rhythm")
        self.begins = lru_cache(maxsize=4096)(self._begins)

    def day(self, instant: int) -> int:
        """The day it shows at an instant."""
        return self.reading(instant) // DAY

    def reading(self, instant: int) -> int:
        """What it shows at an instant, in seconds since it showed 1970-01-01 00:00."""
        shown = (EPOCH + timedelta(seconds=instant)).astimezone(self._tz).replace(tzinfo=UTC)
        return (shown - EPOCH) // timedelta(seconds=1)

    def first_at(self, day: int, second: int) -> int:
        """The first instant at which the day has come so far: the first of two passes, or the end of a gap."""
        reading = day * DAY + second
        found = self._standard.first(One(reading), reading - 2 * DAY)
        assert found is not None
        return found

    def last_at(self, day: int, second: int) -> int:
        """The last instant at which it shows that time, or, if it never does, the one before the gap ends."""
        reading = day * DAY + second
        found = self._rhythm.last(One(reading), reading + 2 * DAY)
        return self.first_at(day, second) - 1 if found is None else found

    def changes(self, instant: int, end: int) -> Iterator[tuple[int, int]]:
        """The changes of the clock from `instant` up to before `end`: when, and by how much it goes forward."""
        return self._rhythm.changes(instant, end)

    def _begins(self, day: int) -> int:
        """The first instant of a day."""
        return self.first_at(day, 0)


@cache
def wall(tz: str) -> Wall:
    """The shared clock of a zone. Raises as `zones.zone`."""
    return Wall(tz)


def weekday(day: int) -> int:
    """0 is Sunday; 1970-01-01 was a Thursday."""
    return (day + 4) % 7


WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


def read_weekday(name: object, what: str) -> int:
    """A weekday by its three letters. Raises BadInput."""
    if not isinstance(name, str) or name.upper() not in WEEKDAYS:
        raise BadInput(f"{what} {name!r:.40} is not a weekday", hint=f"one of: {', '.join(WEEKDAYS)}")
    return WEEKDAYS.index(name.upper())


def read_time_of_day(text: object, what: str) -> int:
    """`HH:MM` or `HH:MM:SS` in seconds since midnight. Raises BadInput."""
    parts = text.split(":") if isinstance(text, str) else []
    if len(parts) in (2, 3) and all(len(part) == 2 and part.isascii() and part.isdigit() for part in parts):
        hour, minute, second = (*map(int, parts), 0)[:3]
        if hour < 24 and minute < 60 and second < 60:
            return hour * 3600 + minute * 60 + second
    raise BadInput(f"{what} {text!r:.40} is not a time of day", hint="write it like '08:30' or '23:59:59'")
