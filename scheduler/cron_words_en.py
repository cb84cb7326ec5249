"""Cron in English: from the time to the date."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .cron_fields import (
    Dates,
    DayItem,
    Field,
    LastDay,
    LastWeekday,
    NearestWeekday,
    NthWeekday,
    Schedule,
    Weekdays,
)

_MONTHS = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]
_WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
_NTH = ["", "first", "second", "third", "fourth", "fifth"]


def phrase(schedule: Schedule, times: list[str]) -> str:
    """`times`: the times of day, if they are few."""
    parts = [
        *([f"at {_and(times)}"] if times else [_seconds(schedule), _minutes(schedule), _hours(schedule)]),
        _days(schedule) or ("every day" if times else ""),
        _months(schedule),
        _years(schedule),
    ]
    return ", ".join(part for part in parts if part)


def _seconds(schedule: Schedule) -> str:
    field = schedule.second
    if field.values == (0,):
        return ""
    if step := field.rhythm(0, 59):
        return "every second" if step == 1 else f"every {step} seconds"
    each = " of every minute" if schedule.minute.rhythm(0, 59) == 1 else ""
    return f"at second {_values(field)}{each}"


def _minutes(schedule: Schedule) -> str:
    field = schedule.minute
    step = field.rhythm(0, 59)
    if step == 1:
        return "every minute" if schedule.second.values == (0,) else ""
    if step:
        return f"every {step} minutes"
    each = " of every hour" if schedule.hour.rhythm(0, 23) == 1 else ""
    return f"at minute {_values(field)}{each}"


def _hours(schedule: Schedule) -> str:
    step = schedule.hour.rhythm(0, 23)
    if step == 1:
        return ""
    return f"every {step} hours" if step else f"in hour {_values(schedule.hour)}"


def _days(schedule: Schedule) -> str:
    return " or ".join(
        _day(item) for field in (schedule.day, schedule.weekday) if not field.whole for item in field.items
    )


def _day(item: DayItem) -> str:
    match item:
        case Dates(field):
            return f"on day {_values(field)} of the month"
        case Weekdays(field):
            return ("on " if field.listed else "") + _values(field, _weekday)
        case LastDay(before, nearest_weekday):
            ahead = f"{before} day{'s' if before > 1 else ''} before " if before else ""
            nearest = "the weekday nearest to " if nearest_weekday else ""
            return f"{'on ' if nearest or not ahead else ''}{nearest}{ahead}the last day of the month"
        case NearestWeekday(day):
            return f"on the weekday nearest to day {day} of the month"
        case LastWeekday(weekday):
            return f"on the last {_weekday(weekday)} of the month"
        case NthWeekday(weekday, nth):
            return f"on the {_NTH[nth]} {_weekday(weekday)} of the month"
        case _:
            raise AssertionError(f"no words for {item!r}")


def _months(schedule: Schedule) -> str:
    field = schedule.month
    return "" if len(field.values) == 12 else f"in {_values(field, lambda month: _MONTHS[month - 1])}"


def _years(schedule: Schedule) -> str:
    return "" if schedule.year.whole else f"in {_values(schedule.year)}"


def _weekday(number: int) -> str:
    return _WEEKDAYS[number % 7]


def _values(field: Field, name: Callable[[int], str] = str) -> str:
    words: list[str] = []
    for item in field.items:
        span = name(item.first) if item.first == item.last else f"{name(item.first)} to {name(item.last)}"
        words.append(span if item.step == 1 else f"{span} in steps of {item.step}")
    return _and(words)


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
