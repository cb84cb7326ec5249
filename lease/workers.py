"""The register of workers: what each says of itself every 15 s, and what that makes of it when it is read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

BEAT_S = 15.0
LIVE_MS = 90_000
"""A worker lives while its last heartbeat is not older."""
SEEN_MS = 600_000
"""A worker is remembered so long after its last heartbeat."""


class WorkerState(StrEnum):
    ACTIVE = "active"
    SUSPENDED = "suspended"
    STOPPING = "stopping"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Slots:
    """Slots in use of those that jobs may be claimed for."""

    used: int = 0
    offered: int = 0

    def __add__(self, other: Slots) -> Slots:
        return Slots(self.used + other.used, self.offered + other.offered)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a worker says of itself. Its clock is no clock of ours, so it tells how long ago things were."""

    host: str
    pid: int
    version: str
    state: str
    pools: Mapping[str, Slots]
    tasks: int
    """How many it knows."""
    succeeded: int
    failed: int
    age_ms: int
    """Since it began."""
    claimed_ms: int | None
    """Since it last got a job; None if it never did."""

    def packed(self) -> str:
        return json.dumps(
            {
                "host": self.host,
                "pid": self.pid,
                "version": self.version,
                "state": self.state,
                "pools": {name: [slots.used, slots.offered] for name, slots in self.pools.items()},
                "tasks": self.tasks,
                "done": [self.succeeded, self.failed],
                "age": self.age_ms,
                "claimed": self.claimed_ms,
            },
            separators=(",", ":"),
        )


@dataclass(frozen=True, slots=True)
class WorkerView:
    """One worker as it was at its last heartbeat (`seen_at`), looked at `read_at`: all times on the server's clock."""

    name: str
    host: str
    pid: int
    version: str
    state: str
    pools: Mapping[str, Slots]
    tasks: int
    succeeded: int
    failed: int
    started_at: int
    seen_at: int
    last_claim_at: int | None
    read_at: int

    @property
    def live(self) -> bool:
        return self.state != WorkerState.ENDED and abs(self.read_at - self.seen_at) <= LIVE_MS

    @property
    def seen(self) -> bool:
        return abs(self.read_at - self.seen_at) <= SEEN_MS

    @property
    def slots(self) -> Slots:
        return sum(self.pools.values(), Slots())

    def serves(self, pool: str) -> bool:
        """Whether jobs of the pool can be its next."""
        return self.live and self.state != WorkerState.STOPPING and pool in self.pools


def read_page(reply: list[bytes]) -> tuple[str, list[WorkerView]]:
    """The next cursor, and the workers of a page. What cannot be read is passed over: the next heartbeat mends it."""
    now, cursor, *flat = reply
    entries = zip(flat[::2], flat[1::2], strict=True)
    found = (_worker(name.decode(), entry, int(now)) for name, entry in entries)
    return cursor.decode(), [worker for worker in found if worker is not None]


def unserved(pools: Iterable[str], workers: Iterable[WorkerView]) -> list[str]:
    """Those of the pools that no live worker serves."""
    workers = list(workers)
    return [pool for pool in pools if not any(worker.serves(pool) for worker in workers)]


def _worker(name: str, entry: bytes, now: int) -> WorkerView | None:
    try:
        heard, _, said = entry.decode().partition(" ")
        told: dict[str, Any] = json.loads(said)
        seen_at = int(heard)
        succeeded, failed = told["done"]
        return WorkerView(
            name=name,
            host=str(told["host"]),
            pid=int(told["pid"]),
            version=str(told["version"]),
            state=str(told["state"]),
            pools={pool: Slots(int(used), int(offered)) for pool, (used, offered) in told["pools"].items()},
            tasks=int(told["tasks"]),
            succeeded=int(succeeded),
            failed=int(failed),
            started_at=seen_at - int(told["age"]),
            seen_at=seen_at,
            last_claim_at=None if told["claimed"] is None else seen_at - int(told["claimed"]),
            read_at=now,
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
