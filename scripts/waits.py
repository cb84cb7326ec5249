"""The buckets in which queue waits are counted: fixed and geometric. Lua counts by them, Python reads by them."""

from __future__ import annotations

import math
from collections.abc import Mapping

RATIO = 2**0.25
LONGEST_MS = 1 << 32
"""Waits from here on (50 days) share the last bucket."""

BOUNDS = (0, *sorted({math.ceil(RATIO**step) for step in range(4 * 32 + 1)}))
"""The least wait of each bucket, in ms: zero, and the next whole number from each power of `RATIO` on."""


def percentile(counts: Mapping[int, int], percent: int) -> int | None:
    """The wait (ms) that `percent` of the samples do not pass, counted by bucket number; None without samples.

    It is the longest wait of the bucket that this sample is in: never less than the true percentile, and less than 19 %
    over it (`RATIO`). Under 8 ms it is exact; over 50 days it is told as 50 days.
    """
    total = sum(counts.values())
    passed = 0
    for bucket in sorted(counts):
        passed += counts[bucket]
        if passed and passed * 100 >= percent * total:
            return BOUNDS[bucket + 1] - 1 if bucket + 1 < len(BOUNDS) else LONGEST_MS
    return None


def lua_waits() -> str:
    """The bounds as a Lua table, for the scripts' prelude."""
    return f"local WAIT_BOUNDS = {{{', '.join(map(str, BOUNDS))}}}"
