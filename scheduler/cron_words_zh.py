"""Cron in Chinese: from the year to the second."""

from __future__ import annotations

from collections.abc import Callable

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

_WEEKDAYS = ["周日", "周一", "周二", "周三", "周四", "周五", "周六"]
_NTH = ["", "第一", "第二", "第三", "第四", "第五"]


def phrase(schedule: Schedule, times: list[str]) -> str:
    """`times`: the times of day, if they are few."""
    parts = [
        _years(schedule),
        _months(schedule),
        _days(schedule) or ("每天" if times else ""),
        *(["、".join(times)] if times else [_hours(schedule), _minutes(schedule), _seconds(schedule)]),
    ]
    return " ".join(part for part in parts if part)


def _years(schedule: Schedule) -> str:
    return "" if schedule.year.whole else f"{_values(schedule.year)}年"


def _months(schedule: Schedule) -> str:
    field = schedule.month
    return "" if len(field.values) == 12 else _values(field, lambda month: f"{month}月")


def _days(schedule: Schedule) -> str:
    of = "每月" if len(schedule.month.values) == 12 else "当月"
    return "或".join(
        _day(item, of)
        for field in (schedule.day, schedule.weekday)
        if not field.whole
        for item in field.items
    )


def _day(item: DayItem, of: str) -> str:
    match item:
        case Dates(field):
            return of + _values(field, lambda day: f"{day}日")
        case Weekdays(field):
            return ("每" if field.listed else "") + _values(field, _weekday)
        case LastDay(before, nearest_weekday):
            day = f"{of}最后一天的前{before}天" if before else f"{of}最后一天"
            return f"离{day}最近的工作日" if nearest_weekday else day
        case NearestWeekday(day):
            return f"离{of}{day}日最近的工作日"
        case LastWeekday(weekday):
            return f"{of}最后一个{_weekday(weekday)}"
        case NthWeekday(weekday, nth):
            return f"{of}{_NTH[nth]}个{_weekday(weekday)}"
        case _:
            raise AssertionError(f"no words for {item!r}")


def _hours(schedule: Schedule) -> str:
    step = schedule.hour.rhythm(0, 23)
    if step == 1:
        return ""
    return f"每 {step} 小时" if step else _values(schedule.hour, lambda hour: f"{hour}时")


def _minutes(schedule: Schedule) -> str:
    field = schedule.minute
    step = field.rhythm(0, 59)
    if step == 1:
        return "每分钟" if schedule.second.values == (0,) or not schedule.second.rhythm(0, 59) else ""
    if step:
        return f"每 {step} 分钟"
    each = "每小时 " if schedule.hour.rhythm(0, 23) == 1 else ""
    return each + _values(field, lambda minute: f"{minute}分")


def _seconds(schedule: Schedule) -> str:
    field = schedule.second
    if field.values == (0,):
        return ""
    if step := field.rhythm(0, 59):
        return "每秒" if step == 1 else f"每 {step} 秒"
    return _values(field, lambda second: f"第{second}秒")


def _weekday(number: int) -> str:
    return _WEEKDAYS[number % 7]


def _values(field: Field, name: Callable[[int], str] = str) -> str:
    words: list[str] = []
    for item in field.items:
        span = name(item.first) if item.first == item.last else f"{name(item.first)}至{name(item.last)}"
        words.append(span if item.step == 1 else f"{span} 步长 {item.step}")
    return "、".join(words)
