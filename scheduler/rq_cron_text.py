"""Cron text of rq-scheduler and of `rq cron`, as text that means the same here.

rq-scheduler reads it with the package `crontab`: five fields, a sixth for the year, or seconds before them and the
year behind; both day fields have to match, `L5` is the last Friday. `rq cron` reads it with croniter: five fields as
here, or seconds behind them. What has no counterpart is refused: a guess would fire at the wrong time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..scripts.errors import BadInput
from .cron import CronExpression
from .wall import WEEKDAYS

_ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS = ("second", "minute", "hour", "day-of-month", "month", "day-of-week", "year")
_PLAIN = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d+))?")
_LAST_WEEKDAY = re.compile(r"l(\d)")
_LAST = {
    "second": 59,
    "minute": 59,
    "hour": 23,
    "day-of-month": 31,
    "month": 12,
    "day-of-week": 6,
    "year": 2099,
}


@dataclass(frozen=True, slots=True)
class CronText:
    """An expression, and the calendar it needs: days it must leave out."""

    cron: str
    calendar: Mapping[str, Any] | None = field(default=None)


def of_rq_scheduler(text: str) -> CronText:
    """What rq-scheduler's `cron_string` means. Raises BadInput for what has no counterpart here."""
    parts = _ALIASES.get(text, text).lower().split()
    if not 5 <= len(parts) <= 7:
        raise BadInput(f"cron {text!r:.60} has {len(parts)} fields, of 5 to 7")
    second, *five = ["0"] * (len(parts) < 7) + parts
    *five, year = five + ["*"] * (len(parts) == 5)
    written = [_written(name, part, text) for name, part in zip(_FIELDS, [second, *five, year], strict=True)]
    return _checked(text, written, both_days=True)


def of_rq_cron(text: str) -> CronText:
    """What a cron string of `rq cron` means. Raises BadInput for what has no counterpart here."""
    parts = text.split()
    if len(parts) <= 5:
        return _known(text, CronText(text))
    if len(parts) > 6:
        raise BadInput(f"cron {text!r:.60} has a year, which croniter reads and `rq cron` seldom has")
    *five, second = parts
    written = [
        _written(name, part.lower(), text) for name, part in zip(_FIELDS, [second, *five, "*"], strict=True)
    ]
    return _checked(text, written, both_days=False)


def _checked(text: str, written: Sequence[str], *, both_days: bool) -> CronText:
    second, minute, hour, day, month, weekday, year = written
    calendar = None
    if day != "*" and weekday != "*":
        if not both_days:
            raise BadInput(f"cron {text!r:.60} has seconds and both day fields, of which one is enough there")
        calendar, weekday = _all_but(weekday, text), "*"
    if second == "0" and year == "*":
        return _known(text, CronText(" ".join((minute, hour, day, month, weekday)), calendar))
    days = ("?", _quartz_weekday(weekday, text)) if weekday != "*" else (day, "?")
    years = [] if year == "*" else [year]
    return _known(text, CronText(" ".join((second, minute, hour, days[0], month, days[1], *years)), calendar))


def _known(text: str, found: CronText) -> CronText:
    try:
        CronExpression(found.cron)
    except BadInput as exc:
        raise BadInput(f"cron {text!r:.60} cannot be read here: {exc}") from None
    return found


def _written(name: str, part: str, text: str) -> str:
    """One field. A `*` or `?` among its items is all of it, as there."""
    items = part.split(",")
    if {"*", "?"} & set(items):
        return "*"
    return ",".join(_item(name, item, text) for item in items)


def _item(name: str, item: str, text: str) -> str:
    if name == "day-of-month" and item == "l":
        return "L"
    if name == "day-of-week" and (found := _LAST_WEEKDAY.fullmatch(item)):
        return f"{int(found[1]) % 7}L"
    found = _PLAIN.fullmatch(item)
    if found is None or item.startswith(("l", "z")):
        raise BadInput(f"cron {text!r:.60}: {item!r} in the field {name} has no counterpart here")
    star, first, last, step = found.groups()
    if star or step is None:
        return item.upper()
    return f"{first}-{last or _LAST[name]}/{step}".upper()  # an open step runs to the end of the field


def _days(weekday: str, text: str) -> set[int]:
    """The weekdays of a field without `L`, 0 for Sunday."""
    days: set[int] = set()
    for item in weekday.lower().split(","):
        found = _PLAIN.fullmatch(item)
        if found is None or item.endswith("l"):
            raise BadInput(
                f"cron {text!r:.60} wants a last weekday on certain days, which has no counterpart here"
            )
        star, first, last, step = found.groups()
        low = 0 if star else _day(first)
        high = 6 if star else _day(last or first)
        if last and high == 0:
            high = 7  # `sat-sun`
        days.update(day % 7 for day in range(low, high + 1, int(step or 1)))
    return days


def _day(name: str) -> int:
    return int(name) if name.isdigit() else WEEKDAYS.index(name.upper())


def _all_but(weekday: str, text: str) -> Mapping[str, Any] | None:
    """A calendar that leaves out the other days of the week, so that both day fields have to match."""
    kept = _days(weekday, text)
    left_out = [WEEKDAYS[day] for day in range(7) if day not in kept]
    return {"weekdays": left_out} if left_out else None


def _quartz_weekday(weekday: str, text: str) -> str:
    """The field in Quartz's dialect, where Sunday is 1."""
    if found := re.fullmatch(r"(\d)L", weekday):
        return f"{int(found[1]) + 1}L"
    return ",".join(WEEKDAYS[day] for day in sorted(_days(weekday, text)))
