"""Calendars as data: what a trigger leaves out, written down as plain values.

    {"weekdays": ["SAT", "SUN"], "dates": ["2026-12-25"], "window": {"from": "08:00", "to": "17:00"},
     "cron": ["* * * 1 1 ?"], "tz": "Europe/Berlin"}

Everything named is excluded. A window with `"outside": true` excludes all other times of day instead. Quartz's monthly
and annual calendars are cron expressions here: `* * * 13 * ?` is each 13th, `* * * 25 12 ?` each 25 December.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any, cast

from ..lease.payload import unpack
from ..scripts.errors import BadInput
from .cron import CronExpression
from .exclusion import Days, Rule, Seconds, Window
from .wall import Wall, read_time_of_day, read_weekday, wall

PARTS = ("dates", "weekdays", "window", "cron", "tz")
MOST = 1_000
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


class BadCalendar(BadInput):
    """A calendar that breaks rules; `errors` are all of them, as (part, what is wrong)."""

    def __init__(self, errors: Sequence[tuple[str, BadInput]]) -> None:
        super().__init__("; ".join(str(error) for _, error in errors), hint=errors[0][1].hint)
        self.errors = errors


@dataclass(frozen=True, slots=True)
class Calendar:
    """A stored calendar, as triggers use it: its name, its revision and its data, packed."""

    name: str
    revision: int
    packed: bytes

    def rules(self, tz: str) -> tuple[Rule, ...]:
        """Its rules; `tz` is its zone if it names none of its own."""
        return _unpacked(self.packed, tz)


@lru_cache(maxsize=256)
def _unpacked(packed: bytes, tz: str) -> tuple[Rule, ...]:
    """A calendar is read once, however many triggers of a round stand in it."""
    return read_calendar(unpack(packed), tz)


def check_name(name: object) -> str:
    """Return `name` if a calendar may have it, else refuse it."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadInput(
            f"calendar name {name!r:.60} is not allowed: lower-case letters, digits, '_' and '-', at most 63",
            hint="choose one such as 'holidays'",
        )
    return name


def read_calendar(data: object, tz: str) -> tuple[Rule, ...]:
    """The rules of a calendar; `tz` is its zone if it names none of its own. Raises BadCalendar naming all that is
    wrong.
    """
    if not isinstance(data, Mapping) or not data:
        hint = 'write it like {"weekdays": ["SAT", "SUN"]}'
        raise BadCalendar([("", BadInput(f"calendar {data!r:.60} is not a calendar", hint=hint))])
    parts, errors = cast("Mapping[str, Any]", data), list[tuple[str, BadInput]]()
    for name in parts:
        with _noting(errors, name):
            if name not in PARTS:
                raise BadInput(
                    f"calendar has no part {name!r:.40}", hint=f"its parts are: {', '.join(PARTS)}"
                )
    zone = "UTC"
    with _noting(errors, "tz"):
        wall(parts.get("tz", tz))
        zone = parts.get("tz", tz)
    rules = tuple(_rules(parts, zone, errors))
    if not rules and not errors:
        errors.append(("", BadInput("calendar excludes nothing", hint=f"name some: {', '.join(PARTS[:-1])}")))
    if errors:
        raise BadCalendar(errors)
    return rules


def _rules(parts: Mapping[str, Any], tz: str, errors: list[tuple[str, BadInput]]) -> Generator[Rule]:
    """The rules of all parts; what is wrong with one is noted, and the others are read."""
    clock = wall(tz)
    weekdays, dates = frozenset[int](), tuple[int, ...]()
    with _noting(errors, "weekdays"):
        weekdays = frozenset(_each(parts, "weekdays", read_weekday))
        if len(weekdays) == 7:
            raise BadInput(
                "calendar weekdays are all seven: it leaves nothing", hint="pause the schedule instead"
            )
    with _noting(errors, "dates"):
        dates = tuple(sorted(set(_each(parts, "dates", _read_date))))
    if weekdays or dates:
        yield Days(clock, weekdays, dates)
    with _noting(errors, "window"):
        yield from _each(parts, "window", lambda value, what: _read_window(value, what, clock))
    with _noting(errors, "cron"):
        yield from _each(parts, "cron", lambda value, what: _read_cron(value, what, tz))


@contextmanager
def _noting(errors: list[tuple[str, BadInput]], part: str) -> Generator[None]:
    """What the block raises as BadInput is what is wrong with that part."""
    try:
        yield
    except BadInput as exc:
        errors.append((part, exc))


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
