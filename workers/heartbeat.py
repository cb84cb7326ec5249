"""A worker's heartbeat: every 15 s, and soon after a change, it tells the register which slots it offers and uses."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from .. import __version__
from ..lease.index import TenantIndex
from ..lease.workers import BEAT_S, Heartbeat, Slots, WorkerState
from ..scripts.errors import StoreError
from .claims import Claims
from .crew import Crew
from .pool import Pool

LOOK_S = 2.0
"""How often a worker looks whether what it told has changed."""
FAREWELL_S = 1.0
"""How long an ended worker waits for the store to hear of it; else it is missed after 90 s."""


class Heartbeats:
    def __init__(
        self,
        index: TenantIndex,
        worker: str,
        crew: Crew,
        claims: Claims,
        tasks: int,
        suspended: Callable[[], bool],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._index = index
        self._worker = worker
        self._crew = crew
        self._claims = claims
        self._tasks = tasks
        self._suspended = suspended
        self._monotonic = monotonic
        self._began = monotonic()
        self._told: tuple[str, Mapping[str, Slots]] | None = None
        self._beat_at = self._began

    def round(self) -> float:
        said, now = self._said(self._state()), self._monotonic()
        if now >= self._beat_at or (said.state, said.pools) != self._told:
            self._index.beat(self._worker, said)
            self._told, self._beat_at = (said.state, said.pools), now + BEAT_S
        return LOOK_S

    def farewell(self) -> None:
        """Say that the worker has ended. Waits for a store that is away for a second at most."""
        last = threading.Thread(target=self._say_ended, name="tenure-farewell", daemon=True)
        last.start()
        last.join(FAREWELL_S)

    def _say_ended(self) -> None:
        with suppress(StoreError):
            self._index.beat(self._worker, self._said(WorkerState.ENDED))

    def _state(self) -> WorkerState:
        if self._crew.stopping:
            return WorkerState.STOPPING
        return WorkerState.SUSPENDED if self._suspended() else WorkerState.ACTIVE

    def _said(self, state: WorkerState) -> Heartbeat:
        now, claimed, tally = self._monotonic(), self._claims.last_at, self._crew.tally
        return Heartbeat(
            host=socket.gethostname(),
            pid=os.getpid(),
            version=__version__,
            state=state,
            pools={pool.name: _slots(pool, state) for pool in self._crew.pools},
            tasks=self._tasks,
            succeeded=tally.succeeded,
            failed=tally.failed,
            age_ms=_ms(now - self._began),
            claimed_ms=None if claimed is None else _ms(now - claimed),
        )


def _slots(pool: Pool, state: WorkerState) -> Slots:
    """A worker that claims nothing more offers only what is still in use."""
    if state is WorkerState.ENDED:
        return Slots()
    # the loop's thread changes the slots meanwhile: `list` takes them in one step
    used = sum(len(slot.running) for share in pool.shares for slot in list(share.slots))
    return Slots(used, max(used, pool.size * pool.width) if state is WorkerState.ACTIVE else used)


def _ms(seconds: float) -> int:
    return max(0, round(seconds * 1000))
