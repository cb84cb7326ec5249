"""Calendars as data: what a trigger leaves out, written down as plain values.

    {"weekdays": ["SAT", "SUN"], "dates": ["2026-12-25"], "window": {"from": "08:00", "to": "17:00"},
     "cron": ["* * * 1 1 ?"], "tz": "Europe/Berlin"}

Everything named is excluded. A window with `"outside": true` excludes all other times of day instead. Quartz's monthly
and annual calendars are cron expressions here: `* * * 13 * ?` is each 13th, `* * * 25 12 ?` each 25 December.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, cast

from ..scripts.errors import BadInput
from .cron import CronExpression
from .exclusion import Days, Rule, Seconds, Window
from .wall import Wall, read_time_of_day, read_weekday, wall

PARTS = ("dates", "weekdays", "window", "cron", "tz")
MOST = 1_000
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def read_calendar(data: object, tz: str) -> tuple[Rule, ...]:
    """The rules of a calendar; `tz` is its zone if it names none of its own. Raises BadInput naming the part."""
    if not isinstance(data, Mapping) or not data:
        raise BadInput(
            f"calendar {data!r:.60} is not a calendar", hint='write it like {"weekdays": ["SAT", "SUN"]}'
        )
    parts = cast("Mapping[str, Any]", data)
    for name in parts:
        if name not in PARTS:
            raise BadInput(f"calendar has no part {name!r:.40}", hint=f"its parts are: {', '.join(PARTS)}")
    clock = wall(parts.get("tz", tz))
    rules: list[Rule] = []
    weekdays = frozenset(_each(parts, "weekdays", read_weekday))
    dates = tuple(sorted(set(_each(parts, "dates", _read_date))))
    if len(weekdays) == 7:
        raise BadInput(
            "calendar weekdays are all seven: it leaves nothing", hint="pause the schedule instead"
        )
    if weekdays or dates:
        rules.append(Days(clock, weekdays, dates))
    rules += _each(parts, "window", lambda value, what: _read_window(value, what, clock))
    rules += _each(parts, "cron", lambda value, what: _read_cron(value, what, parts.get("tz", tz)))
    if not rules:
        raise BadInput("calendar excludes nothing", hint=f"name some: {', '.join(PARTS[:-1])}")
    return tuple(rules)


def _each(parts: Mapping[str, Any], name: str, read: Callable[[object, str], Any]) -> list[Any]:
    """The values of a part, which may be one or a list."""
    given = parts.get(name, ())
    values: Sequence[object] = given if isinstance(given, (list, tuple)) else (given,)
    if len(values) > MOST:
        raise BadInput(f"calendar {name} has {len(values):,} values, at most {MOST:,} are allowed")
    return [read(value, f"calendar {name}") for value in values]


def _read_date(text: object, what: str) -> int:
    try:
        return date.fromisoformat(cast(str, text)).toordinal() - _EPOCH_DAY
    except (TypeError, ValueError):
        raise BadInput(f"{what} {text!r:.40} is not a date", hint="write it like '2026-12-25'") from None


def _read_window(value: object, what: str, clock: Wall) -> Window:
    parts = cast("dict[str, Any]", value) if isinstance(value, Mapping) else {}
    if not {"from", "to"} <= set(parts) <= {"from", "to", "outside"}:
        raise BadInput(
            f"{what} {value!r:.60} is not a window", hint='write it like {"from": "08:00", "to": "17:00"}'
        )
    if not isinstance(parts.get("outside", False), bool):
        raise BadInput(f"{what} outside {parts['outside']!r:.40} is not true or false")
    first, last = read_time_of_day(parts["from"], what), read_time_of_day(parts["to"], what)
    return Window(clock, first, last, parts.get("outside", False))


def _read_cron(value: object, what: str, tz: str) -> Seconds:
    try:
        return Seconds(*CronExpression(cast(str, value), tz=tz).seconds())
    except BadInput as exc:
        raise BadInput(f"{what}: {exc}", hint=exc.hint) from None
