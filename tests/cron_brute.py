"""A slow and simple second opinion on cron: walk over every minute (or second) of a window and ask it.

Nothing here uses the engine: the expressions are made together with the sets they mean, and readings come from
`zoneinfo` one by one. What a policy does to a repeated or missing reading is decided by watching the clock go by.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cache
from random import Random
from zoneinfo import ZoneInfo

DayRule = Callable[[date], bool]


@dataclass(frozen=True)
class Meaning:
    """An expression and what it means."""

    text: str
    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    months: frozenset[int]
    day: DayRule
    fixed: bool
    _days: dict[date, bool] = field(default_factory=dict)

    def matches(self, reading: datetime) -> bool:
        return (
            reading.minute in self.minutes
            and reading.hour in self.hours
            and reading.second in self.seconds
            and self.matches_day(reading.date())
        )

    def matches_day(self, day: date) -> bool:
        if day not in self._days:
            self._days[day] = day.month in self.months and self.day(day)
        return self._days[day]


class Walk:
    """Every instant of a window, `unit` seconds apart, with the reading of a zone's clock."""

    def __init__(self, tz: str, start: datetime, end: datetime, unit: int, margin: timedelta) -> None:
        self.start, self.end, self.unit = start, end, timedelta(seconds=unit)
        self.readings: list[tuple[datetime, datetime]] = []
        self.zone = zone = ZoneInfo(tz)
        at = start - margin
        while at < end + margin:
            self.readings.append((at, at.astimezone(zone).replace(tzinfo=None, fold=0)))
            at += self.unit
        self._parts = [
            (nth, reading.minute, reading.hour, reading.second, reading.date())
            for nth, (_, reading) in enumerate(self.readings)
        ]
        self._last_pass = {reading: nth for nth, (_, reading) in enumerate(self.readings)}
        self._gaps: dict[int, datetime] = {}
        """Steps before which readings are left out, and the first of those."""
        self._again: set[int] = set()
        """Steps at which the clock shows what it has shown before."""
        expected = previous = self.readings[0][1]
        for nth, (_, reading) in enumerate(self.readings):
            if reading > previous + self.unit:
                self._gaps[nth] = previous + self.unit
            if reading < expected:
                self._again.add(nth)
            expected, previous = max(expected, reading + self.unit), reading

    def plan(self, meaning: Meaning, dst: str) -> tuple[list[datetime], list[datetime]]:
        """The fires and the skipped instants of the window."""
        policy = self._quartz if dst == "quartz" else self._standard if meaning.fixed else self._rhythm
        fires, skipped = policy(meaning, dst)
        return self._inside(fires), self._inside(set(skipped) - set(fires))

    def moved(self, meaning: Meaning, dst: str) -> list[datetime]:
        """The fires that stand there for what a gap left out."""
        if dst != "standard" or not meaning.fixed:
            return []
        fires, skipped = self._standard(meaning, dst)
        return self._inside(set(fires) & set(skipped))

    def _inside(self, instants: Iterable[datetime]) -> list[datetime]:
        return [at for at in sorted(instants) if self.start <= at < self.end]

    def _matching(self, meaning: Meaning) -> list[int]:
        minutes, hours, seconds = meaning.minutes, meaning.hours, meaning.seconds
        return [
            nth
            for nth, minute, hour, second, day in self._parts
            if minute in minutes and hour in hours and second in seconds and meaning.matches_day(day)
        ]

    def _rhythm(self, meaning: Meaning, dst: str) -> tuple[list[datetime], list[datetime]]:
        return [self.readings[nth][0] for nth in self._matching(meaning)], []

    def _standard(self, meaning: Meaning, dst: str) -> tuple[list[datetime], list[datetime]]:
        matching = self._matching(meaning)
        fires = {self.readings[nth][0] for nth in matching if nth not in self._again}
        skipped = [self.readings[nth][0] for nth in matching if nth in self._again]
        for nth, missing in self._gaps.items():
            at, reading = self.readings[nth]
            if self._missing(meaning, missing, reading):
                skipped.append(at)
                if dst != "skip":
                    fires.add(at)
        return [*fires], skipped

    def _quartz(self, meaning: Meaning, dst: str) -> tuple[list[datetime], list[datetime]]:
        fires: list[datetime] = []
        skipped: list[datetime] = []
        for nth in self._matching(meaning):
            at, reading = self.readings[nth]
            (fires if self._last_pass[reading] == nth else skipped).append(at)
        skipped += [
            self.readings[nth][0]
            for nth, missing in self._gaps.items()
            if self._missing(meaning, missing, self.readings[nth][1])
        ]
        return fires, skipped

    def _missing(self, meaning: Meaning, reading: datetime, end: datetime) -> bool:
        while reading < end:
            if meaning.matches(reading):
                return True
            reading += self.unit
        return False


def random_meaning(random: Random, quartz: bool, seconds: bool = False) -> Meaning:
    """A random expression in one of the two dialects."""
    second_text, second_values = _field(random, 0, 59) if seconds else ("0", frozenset({0}))
    minute_text, minute_values = _field(random, 0, 59)
    hour_text, hour_values = _field(random, 0, 23)
    month_text, month_values = (
        _field(random, 1, 12) if random.random() < 0.2 else ("*", frozenset(range(1, 13)))
    )
    day_text, weekday_text, rule = (_quartz_days if quartz else _crontab_days)(random)
    parts = [minute_text, hour_text, day_text, month_text, weekday_text]
    return Meaning(
        " ".join([second_text, *parts] if quartz else parts),
        second_values,
        minute_values,
        hour_values,
        month_values,
        rule,
        fixed=not (minute_text.startswith("*") or hour_text.startswith("*")),
    )


def _field(random: Random, low: int, high: int) -> tuple[str, frozenset[int]]:
    pieces = [_item(random, low, high) for _ in range(random.choice((1, 1, 1, 2, 3)))]
    if random.random() < 0.25:
        pieces = [("*", set(range(low, high + 1)))]
    return ",".join(text for text, _ in pieces), frozenset().union(*(values for _, values in pieces))


def _item(random: Random, low: int, high: int) -> tuple[str, set[int]]:
    first, last = random.randint(low, high), random.randint(low, high)
    step = random.randint(1, high - low)
    around = [*range(first, high + 1), *range(low, first)]
    span = around[: around.index(last) + 1]
    return random.choice(
        [
            (str(first), {first}),
            (f"{first}-{last}", set(span)),
            (f"{first}-{last}/{step}", set(span[::step])),
            (f"*/{step}", set(range(low, high + 1, step))),
            (f"{first}/{step}", set(range(first, high + 1, step))),
        ]
    )


def _weekday(day: date) -> int:
    return day.isoweekday() % 7


def _length(day: date) -> int:
    return calendar.monthrange(day.year, day.month)[1]


def _dates(random: Random) -> tuple[str, DayRule]:
    text, values = _field(random, 1, 31)
    return text, lambda day: day.day in values


def _weekdays(random: Random, base: int) -> tuple[str, DayRule]:
    text, values = _field(random, base, base + 6)
    return text, lambda day: _weekday(day) + base in values


def _special_date(random: Random) -> tuple[str, DayRule]:
    back, wanted = random.randint(0, 27), random.randint(1, 31)

    def near(day: date, target: int) -> bool:
        """Whether `day` is the Monday-to-Friday day of its month with the least distance to `target`."""
        length = _length(day)
        if not 1 <= target <= length:
            return False
        working = [d for d in range(1, length + 1) if 1 <= _weekday(day.replace(day=d)) <= 5]
        # A Saturday prefers the Friday, a Sunday the Monday: each is one day off, the other two.
        return day.day == min(working, key=lambda d: abs(d - target))

    return random.choice(
        [
            ("L", lambda day: day.day == _length(day)),
            (f"L-{back}", lambda day: day.day == _length(day) - back),
            ("LW", lambda day: near(day, _length(day))),
            (f"L-{back}W", lambda day: near(day, _length(day) - back)),
            (f"{wanted}W", lambda day: near(day, wanted)),
        ]
    )


def _special_weekday(random: Random, base: int) -> tuple[str, DayRule]:
    weekday, nth = random.randint(0, 6), random.randint(1, 5)
    return random.choice(
        [
            (f"{weekday + base}L", lambda day: _weekday(day) == weekday and day.day > _length(day) - 7),
            (f"{weekday + base}#{nth}", lambda day: _weekday(day) == weekday and (day.day + 6) // 7 == nth),
        ]
    )


def _quartz_days(random: Random) -> tuple[str, str, DayRule]:
    kind = random.random()
    if kind < 0.4:
        return "*", "?", lambda day: True
    if kind < 0.7:
        text, rule = random.choice((_dates, _special_date))(random)
        return text, "?", rule
    text, rule = random.choice((_weekdays, _special_weekday))(random, 1)
    return "?", text, rule


def _crontab_days(random: Random) -> tuple[str, str, DayRule]:
    date_text, date_rule = random.choice((_dates, _special_date))(random)
    weekday_text, weekday_rule = random.choice((_weekdays, _special_weekday))(random, 0)
    kind = random.random()
    if kind < 0.4:
        return "*", "*", lambda day: True
    if kind < 0.6 or weekday_text == "*":
        return date_text, "*", date_rule
    if kind < 0.8 or date_text == "*":
        return "*", weekday_text, weekday_rule
    return date_text, weekday_text, lambda day: date_rule(day) or weekday_rule(day)


@cache
def changes(tz: str, years: range) -> list[datetime]:
    """The instants, to the hour, at which a zone's offset changes."""
    zone, hour = ZoneInfo(tz), timedelta(hours=1)
    found: list[datetime] = []
    for year in years:
        day = datetime(year, 1, 1, tzinfo=UTC)
        while day.year == year:
            after = day + timedelta(days=1)
            if day.astimezone(zone).utcoffset() != after.astimezone(zone).utcoffset():
                at = day
                while at.astimezone(zone).utcoffset() == (at + hour).astimezone(zone).utcoffset():
                    at += hour
                found.append(at)
            day = after
    return found
