"""ISO 8601 repetitions and durations: `R3/PT5M`, `R/2026-01-31T09:00:00Z/P1M`, `PT48H`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..scripts.errors import BadInput

_REPEAT = re.compile(r"R(?P<times>\d{0,9})/(?:(?P<start>[^/]+)/)?(?P<duration>P[^/]+)")
_DURATION = re.compile(
    r"P(?:(\d{1,4})Y)?(?:(\d{1,5})M)?(?:(\d{1,5})W)?(?:(\d{1,6})D)?"
    r"(?:T(?:(\d{1,6})H)?(?:(\d{1,8})M)?(?:(\d{1,9}(?:\.\d{1,3})?)S)?)?"
)
_HINT = (
    "write it like 'R3/PT5M' (three times), 'R/P1M' (every month), 'PT48H' (once, 48 hours on), or an instant"
)
LONGEST = 64


@dataclass(frozen=True, slots=True)
class Step:
    """A duration: so many milliseconds of elapsed time, or so many of a calendar `unit`."""

    ms: int = 0
    unit: str = ""
    n: int = 0


@dataclass(frozen=True, slots=True)
class Repeat:
    """`times` fires (None: without end), one each `step`, from `start` as it was written."""

    times: int | None
    step: Step
    start: str | None


def read_repeat(text: str) -> Repeat | None:
    """What a repetition or a duration says; None for a text that begins with neither R nor P. Raises BadInput."""
    if text[:1] not in ("R", "P"):
        return None
    if len(text) > LONGEST:
        raise BadInput(f"repeat {text!r:.80} is longer than {LONGEST} characters", hint=_HINT)
    if text.startswith("P"):
        return Repeat(1, _step(text, text), None)
    found = _REPEAT.fullmatch(text)
    if not found:
        raise BadInput(f"repeat {text!r} is not an ISO 8601 repetition", hint=_HINT)
    if found["times"] and int(found["times"]) < 1:
        raise BadInput(f"repeat {text!r} would never fire: R0", hint="R1 fires once, R without end")
    times = int(found["times"]) if found["times"] else None
    return Repeat(times, _step(found["duration"], text), found["start"])


def _step(duration: str, text: str) -> Step:
    found = _DURATION.fullmatch(duration)
    if not found or duration.endswith(("P", "T")):
        raise BadInput(f"repeat {text!r} is not understood at {duration!r}: no ISO 8601 duration", hint=_HINT)
    years, months, weeks, days, hours, minutes = (int(part or 0) for part in found.groups()[:6])
    ms = round(((hours * 60 + minutes) * 60 + float(found[7] or 0)) * 1000)
    months += 12 * years
    days += 7 * weeks
    if months and (days or ms):
        raise BadInput(
            f"repeat {text!r} mixes months with days or hours: how long that is depends on the month",
            hint="use months alone (P1M), or days and hours alone (P30DT2H)",
        )
    if months:
        return Step(unit="month", n=months)
    if days and not ms:
        return Step(unit="day", n=days)
    if not days and not ms:
        raise BadInput(f"repeat {text!r} is a duration of 0", hint=_HINT)
    return Step(ms=ms + days * 86_400_000)
