"""What a worker offers of each of its pools: how many slots, and of which lane."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..lease.pools import BUILT_IN, EXCLUSIVE, check_known, lanes_of, width_of
from .application import Application
from .options import WorkerOptions

SLOTS = 4
"""Slots of a pool of which nothing else is said."""


@dataclass(frozen=True, slots=True)
class Offer:
    pool: str
    slots: int
    lane: str

    @property
    def width(self) -> int:
        """How many jobs each slot runs at a time."""
        return width_of(self.lane)

    def __str__(self) -> str:
        lane = "" if self.width == 1 else f" of {self.lane}"
        return f"{self.slots} slots{lane} in {self.pool}"


def offers_of(app: Application, pools: Iterable[str], options: WorkerOptions) -> list[Offer]:
    """The offers, each pool once. What the worker was told goes before the settings, and they before the code.

    Raises BadInput for a lane of a pool that there is not.
    """
    pools = list(dict.fromkeys(pools))
    settings = lanes_of(app.settings.lanes) if app.settings.lanes else {}
    known = {*BUILT_IN, *pools, *app.pools, *(task.pool for task in app.registry)}
    check_known(settings, known, "lanes")
    check_known(options.lanes, known, "the worker's options")
    declared = {name: plan.lane for name, plan in app.pools.items() if plan.lane}
    lanes = {**declared, **settings, **options.lanes}
    return [Offer(pool, _slots(app, pool, options), lanes.get(pool, EXCLUSIVE)) for pool in pools]


def _slots(app: Application, pool: str, options: WorkerOptions) -> int:
    plan = app.pools.get(pool)
    return options.slots or (plan.slots if plan else None) or SLOTS
