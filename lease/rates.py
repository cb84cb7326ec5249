"""Rate limits: at most so many starts in any period, over all workers of a tenant."""

from __future__ import annotations

import re

from ..scripts.errors import BadInput

_RATE = re.compile(r"([1-9]\d{0,6})/([1-9]\d{0,4})?(s|m|h|d)")
_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
NO_RATE = "0"


def packed_rate(rate: object) -> str:
    """A rate limit such as "100/m" or "5/10s" as the scripts take it. Raises BadInput."""
    found = _RATE.fullmatch(rate) if isinstance(rate, str) else None
    period = int(found[2] or 1) * _UNITS[found[3]] if found else 0
    if found is None or period > _UNITS["d"]:
        raise BadInput(
            f"rate {rate!r:.60} is not allowed: so many starts in a period of a second to a day",
            hint="rate='100/m'; or '10/s', '5/10s', '1000/h'",
        )
    return f"{found[1]} {period}"


def rate_in_words(many: int, period_ms: int) -> str:
    """As a person says it: `100 in 1 m`."""
    for unit, ms in sorted(_UNITS.items(), key=lambda pair: -pair[1]):
        if period_ms % ms == 0:
            return f"{many} in {period_ms // ms} {unit}"
    return f"{many} in {period_ms} ms"
