"""How an instance stands: what a person said of it, and what its jobs do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ..scripts.states import State


class InstanceState(StrEnum):
    NORMAL = "normal"
    SUSPENDED = "suspended"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class InstanceFlag:
    """What a person said of an instance, and since when. A normal one has no `since`; `walking` is whether some of its
    jobs have yet to follow.
    """

    state: InstanceState
    since: int | None
    by: str | None
    reason: str | None
    walking: bool


@dataclass(frozen=True, slots=True)
class InstanceView:
    """An instance as it stood at `read_at` (server clock, epoch ms). It has so many `jobs`; of the newest 500 of them
    `states`, `next_due` and `job` tell, or of those among them that belong to `node`.
    """

    tenant: str
    id: str
    node: str | None
    flag: InstanceFlag
    jobs: int
    states: Mapping[State, int]
    next_due: int | None
    """The earliest instant at which one of its pending jobs is due."""
    job: str | None
    """The newest of its jobs that has not ended, else the newest."""
    read_at: int
