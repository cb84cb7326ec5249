"""How the values of a trigger are written: instants, intervals by the calendar, intervals of a day."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from ..lease.durations import duration_ms
from ..scripts.errors import BadInput
from .calendar_interval import UNITS
from .daily_interval import DailyInterval
from .times import LAST_MS, SECOND_MS
from .wall import WEEKDAYS, read_time_of_day, read_weekday, wall

LEAST_MS = 1_000
LONGEST_INTERVAL = 1_000
_INTERVAL = re.compile(r"(\d{1,4}) ?(day|week|month|year)s?")


def at_least(ms: int, value: object) -> int:
    """Return an interval in milliseconds that is long enough, else refuse it."""
    if ms < LEAST_MS:
        raise BadInput(f"{value!s:.40} is too short: an interval is at least a second", hint="every='30s'")
    return ms


def instant_ms(value: object, tz: str) -> int:
    """An instant in epoch ms: a datetime or RFC 3339 text; one without an offset is read on the clock of `tz`.

    A reading that the clock leaves out is the first instant after the gap, a doubled one the first of the two.
    """
    moment = _moment(value)
    if moment is None:
        raise BadInput(f"{value!r:.60} is not an instant", hint="write it like '2026-12-24T18:00:00+01:00'")
    if moment.tzinfo is None:
        day = moment.toordinal() - datetime(1970, 1, 1).toordinal()
        second = (moment.hour * 60 + moment.minute) * 60 + moment.second
        ms = wall(tz).first_at(day, second) * SECOND_MS + moment.microsecond // 1000
    else:
        ms = round(moment.timestamp() * 1000)
    if not 0 <= ms < LAST_MS:
        raise BadInput(f"{value!s:.60} is out of range: from 1970 to 2125")
    return ms


def _moment(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def read_interval(value: object) -> tuple[str, int]:
    """`1 month`, `2 weeks`: the unit and how many of it. Raises BadInput."""
    found = _INTERVAL.fullmatch(value) if isinstance(value, str) else None
    if found is None or not 1 <= int(found[1]) <= LONGEST_INTERVAL:
        raise BadInput(
            f"{value!r:.60} is not an interval of the calendar: 1 to {LONGEST_INTERVAL} of {', '.join(UNITS)}",
            hint="write it like '1 month' or '2 weeks'; for elapsed time there is every='36h'",
        )
    return found[2], int(found[1])


def read_daily(value: object, tz: str) -> DailyInterval:
    """`{"every": "45m", "from": "08:00", "to": "17:00", "days": ["MON"]}`; without days each day. Raises BadInput."""
    parts = cast("dict[str, Any]", value) if isinstance(value, Mapping) else {}
    if not {"every", "from", "to"} <= set(parts) <= {"every", "from", "to", "days"}:
        raise BadInput(
            f"{value!r:.80} is not an interval of a day",
            hint='write it like {"every": "45m", "from": "08:00", "to": "17:00", "days": ["MON", "FRI"]}',
        )
    first, last = read_time_of_day(parts["from"], "from"), read_time_of_day(parts["to"], "to")
    if last < first:
        raise BadInput(
            f"to {parts['to']} is before from {parts['from']}",
            hint="use two triggers for a time over midnight",
        )
    days = parts.get("days", WEEKDAYS)
    if not isinstance(days, (list, tuple)) or not days:
        raise BadInput(f"days {days!r:.60} is not a list of weekdays", hint='["MON", "FRI"]')
    ms = at_least(duration_ms(parts["every"], what="every"), parts["every"])
    weekdays = frozenset(read_weekday(day, "days") for day in cast("list[object]", days))
    return DailyInterval(wall(tz), ms, first, last, weekdays)
