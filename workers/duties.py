"""What every worker does beside its jobs: take back what others lost, and ask for the time."""

from __future__ import annotations

from collections.abc import Callable

from ..lease.jobs import REAP
from ..lease.ledgers import Ledgers
from ..scripts.errors import StoreError
from .clock import ServerClock

REAP_S = 1.0
REAP_TENANTS = 100


class Reaper:
    """Visits the tenants that have leases to take back. Any number of reapers share the work by the index."""

    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers

    def round(self) -> float:
        visit = self._ledgers.index.take(REAP, REAP_TENANTS, int(REAP_S * 1000))
        _each(visit.tenants, lambda tenant: self._ledgers.of(tenant).reap())
        return 0.0 if len(visit.tenants) == REAP_TENANTS else REAP_S


class ClockCheck:
    """Asks the server's clock now and then."""

    def __init__(self, clock: ServerClock, ledgers: Ledgers, every_s: float) -> None:
        self._clock = clock
        self._ledgers = ledgers
        self._every_s = every_s

    def round(self) -> float:
        scripts = self._ledgers.scripts
        self._clock.ask(scripts.redis, scripts.address)
        return self._every_s


def _each(tenants: list[str], do: Callable[[str], object]) -> None:
    """Do it for all, also when it fails for some; then raise the first failure."""
    failure: StoreError | None = None
    for tenant in tenants:
        try:
            do(tenant)
        except StoreError as exc:
            failure = failure or exc
    if failure is not None:
        raise failure
