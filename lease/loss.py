"""A store that has lost data is noticed by every process that has seen more of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from ..scripts import Call, Keys
from ..scripts.errors import StoreUnreachable, TenureError
from ..scripts.loader import texts
from .ledgers import Ledgers

log = logging.getLogger("tenure.witness")

TENANTS = 100
EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class Loss:
    """A tenant whose clock the store shows at `clock` (0: not at all) and begun at `born`, seen before up to `seen`."""

    tenant: str
    seen: int
    clock: int
    born: int

    def __str__(self) -> str:
        if not self.clock:
            return f"nothing is left of tenant {self.tenant}, which was seen at {_time(self.seen)}"
        if self.clock < self.seen:
            return f"tenant {self.tenant} is back at {_time(self.clock)}, after {_time(self.seen)} was seen"
        return f"tenant {self.tenant} was begun anew at {_time(self.born)}, after it was seen before"


class LossWatch:
    """Asks again for tenants that this process has seen, some in each round; says what is missing, once.

    `lost` makes good what it can; it is called again until it does not fail.
    """

    def __init__(self, ledgers: Ledgers, lost: Callable[[], object] | None = None) -> None:
        self._ledgers = ledgers
        self._lost = lost
        self._owing = False

    def round(self) -> float:
        losses = self._losses()
        if losses:
            log.error(
                "THE STORE HAS LOST DATA: %s%s. Jobs, outcomes and schedules of that time are gone, and a job whose "
                "end was lost runs again. Look in the server's log for a restart, a failover or a FLUSHALL; restore "
                "its data if you can, else enqueue again what is missing. Schedules declared in code are stored "
                "again by the schedulers, all others must be put again",
                losses[0],
                f" (and {len(losses) - 1} more tenants)" if len(losses) > 1 else "",
            )
            self._owing = self._lost is not None
        if self._owing and self._lost is not None:
            self._lost()
            self._owing = False
        return EVERY_S

    def _losses(self) -> list[Loss]:
        """The floors are taken before the store is asked, so what it answers may not be lower."""
        floors = self._ledgers.index.witness.some(TENANTS)
        namespace = self._ledgers.namespace
        calls = [Call("witness", Keys(namespace, tenant).home, {}, texts) for tenant, _, _ in floors]
        losses: list[Loss] = []
        for (tenant, first, seen), answer in zip(floors, self._ledgers.scripts.run_all(calls), strict=True):
            if isinstance(answer, StoreUnreachable):
                raise answer
            if isinstance(answer, TenureError):
                continue  # a tenant that cannot be read says nothing; the sweep tells of it
            clock, born = map(int, answer)
            if clock < seen or born > first:
                losses.append(Loss(tenant, seen, clock, born))
                self._ledgers.index.witness.begin_anew(tenant, clock)
        return losses


def _time(clock: int) -> str:
    return datetime.fromtimestamp(clock / 1_000_000, UTC).isoformat(timespec="milliseconds")
