"""Pools and their lanes: in how many processes the jobs of a pool run, and how many at a time in each.

`exclusive`   each slot is a process that runs one job at a time
`async(50)`   each slot is a process that runs up to 50 `async def` jobs at a time, in one event loop
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..scripts.errors import BadInput
from .tasks import check_pool

BUILT_IN = ("advance", "outbound")
EXCLUSIVE = "exclusive"
MOST_WIDE = 1000
MOST_SLOTS = 256
_ASYNC = re.compile(r"async\(([0-9]{1,9})\)")


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """What is said of a pool; None where nothing is."""

    lane: str | None = None
    slots: int | None = None

    def __post_init__(self) -> None:
        if self.lane is not None:
            width_of(self.lane)
        if self.slots is not None:
            check_slots(self.slots)


def width_of(lane: str) -> int:
    """How many jobs one slot of a lane runs at a time. Raises BadInput for what is no lane."""
    if lane == EXCLUSIVE:
        return 1
    found = _ASYNC.fullmatch(lane) if isinstance(lane, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
    if found is None:
        raise BadInput(
            f"lane {lane!r:.60} is not known: it is {EXCLUSIVE!r}, or 'async(n)' for n `async def` jobs at a time",
            hint="lane='async(50)'",
        )
    width = int(found[1])
    if not 1 <= width <= MOST_WIDE:
        raise BadInput(f"lane {lane!r} is out of range: n is from 1 to {MOST_WIDE}", hint="lane='async(50)'")
    return width


def check_slots(slots: object) -> None:
    """Return if there may be so many slots, else refuse."""
    if not isinstance(slots, int) or isinstance(slots, bool) or not 1 <= slots <= MOST_SLOTS:
        raise BadInput(f"slots is {slots!r:.40}: it must be from 1 to {MOST_SLOTS}", hint="slots=4")


def lanes_of(text: str) -> dict[str, str]:
    """Lanes by pool, written as `io=async(50), mail=exclusive`. Raises BadInput."""
    lanes: dict[str, str] = {}
    for part in text.split(","):
        pool, lane = lane_of(part)
        if lane is None:
            raise BadInput(f"lanes is {text!r:.120}: {part.strip()!r:.60} names no lane", hint=_EXAMPLE)
        if pool in lanes:
            raise BadInput(f"lanes is {text!r:.120}: it names pool {pool!r} twice", hint=_EXAMPLE)
        lanes[pool] = lane
    return lanes


def lane_of(text: str) -> tuple[str, str | None]:
    """A pool, and its lane if there is one: `io=async(50)`, or `io`. Raises BadInput."""
    pool, equals, lane = (part.strip() for part in text.partition("="))
    check_pool(pool)
    if not equals:
        return pool, None
    width_of(lane)
    return pool, lane


_EXAMPLE = "write it like io=async(50), mail=exclusive"


def check_known(lanes: Mapping[str, str], known: set[str], where: str) -> None:
    """Return if all pools that lanes are named for exist, else refuse: a misspelt one would do nothing."""
    for pool in lanes:
        if pool not in known:
            raise BadInput(
                f"{where} names a lane for the pool {pool!r}, which this application does not have",
                hint=f"its pools are {', '.join(sorted(known))}; declare another by app.pool({pool!r}, lane=...)",
            )
