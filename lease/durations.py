"""Durations as people write them: "30s", "5m", "1h30m", "250ms", timedelta, or a number of seconds."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from ..scripts.errors import BadInput

Duration = str | int | float | timedelta

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d)")
LONGEST_MS = 10 * 365 * 86_400_000


def duration_ms(value: Duration, *, what: str = "duration", least_ms: int = 0) -> int:
    """`value` in milliseconds.

    Raises BadInput for a text of another form, a negative one, NaN, over ten years, or under `least_ms`.
    """
    ms = _parse(value, what)
    if not 0 <= ms <= LONGEST_MS:
        raise BadInput(
            f"{what} {value!r:.60} is out of range: from 0 to ten years",
            hint="write it like '30s', '5m', '1h30m' or '250ms'",
        )
    if round(ms) < least_ms:
        raise BadInput(
            f"{what} {value!r:.60} is too short: at least {least_ms} ms", hint="write it like '30s'"
        )
    return round(ms)


def span(ms: int) -> str:
    """A duration in its two largest units: `1h02m`, `3m05s`, `12s`."""
    seconds = round(ms / 1000)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if days:
        return f"{days}d{hours % 24:02}h"
    if hours:
        return f"{hours}h{minutes % 60:02}m"
    return f"{minutes}m{seconds % 60:02}s" if minutes else f"{seconds}s"


def _parse(value: Duration, what: str) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds() * 1000
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return value * 1000
    if isinstance(value, str) and len(value) <= 64:
        text = value.strip().replace(" ", "")
        parts = _PART.findall(text)
        if parts and "".join(number + unit for number, unit in parts) == text:
            return sum(float(number) * _UNITS[unit] for number, unit in parts)
    raise BadInput(
        f"{what} {value!r:.60} is not a duration", hint="write it like '30s', '5m', '1h30m' or '250ms'"
    )
