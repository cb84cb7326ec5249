"""What of a runtime status wants a look now: each in a sentence, with the command that goes on from there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .durations import span
from .status import PoolStatus, RuntimeStatus

STUCK_MS = 60_000
"""The reaper comes every second; what is stuck for so long, nobody takes back."""
WAIT_MS = 60_000
"""Jobs that have waited for so long are worth a word."""


@dataclass(frozen=True, slots=True)
class Alarm:
    text: str
    do: str


def alarms(status: RuntimeStatus) -> list[Alarm]:
    """The worst first; none when all is well."""
    return [*_stuck(status), *_unserved(status), *_full(status), *_dead(status)]


def _stuck(status: RuntimeStatus) -> Iterator[Alarm]:
    if status.stuck_for_ms is not None and status.stuck_for_ms >= STUCK_MS:
        since = span(status.stuck_for_ms)
        yield Alarm(
            f"{_jobs(status.stuck)} stuck: the lease is gone, the first since {since}, and no worker takes it back",
            _list(status, "running"),
        )


def _unserved(status: RuntimeStatus) -> Iterator[Alarm]:
    for name in status.unserved:
        pool = status.pools[name]
        due = f"{_jobs(pool.backlog)} due" if pool.backlog else f"{_jobs(pool.pending)} waiting there"
        yield Alarm(f"no live worker serves pool {name!r}, {due}", f"tenure worker --pool {name}")


def _full(status: RuntimeStatus) -> Iterator[Alarm]:
    for name, pool in status.pools.items():
        if pool.workers and _waits_long(pool):
            used = f"{pool.slots.used} of {pool.slots.offered} slots are used"
            yield Alarm(
                f"{_jobs(pool.backlog)} due in pool {name!r}, the oldest for {span(pool.oldest_wait_ms or 0)}; {used}",
                _list(status, "pending"),
            )


def _waits_long(pool: PoolStatus) -> bool:
    return pool.backlog > 0 and (pool.oldest_wait_ms or 0) >= WAIT_MS


def _dead(status: RuntimeStatus) -> Iterator[Alarm]:
    if status.dead:
        yield Alarm(
            f"{_jobs(status.dead)} dead and {'waits' if status.dead == 1 else 'wait'} for a person",
            _list(status, "dead"),
        )


def _jobs(number: int) -> str:
    return "1 job is" if number == 1 else f"{number:,} jobs are"


def _list(status: RuntimeStatus, state: str) -> str:
    tenant = "" if status.tenant == "default" else f" --tenant {status.tenant}"
    return f"tenure jobs list --status {state}{tenant}"
