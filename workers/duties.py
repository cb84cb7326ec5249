"""What every worker does beside its jobs: take back what others lost, and ask for the time."""

from __future__ import annotations

from ..lease.jobs import REAP
from ..lease.ledger import Ledger
from ..lease.ledgers import Ledgers
from .clock import ServerClock

REAP_S = 1.0
REAP_TENANTS = 100


class Reaper:
    """Visits the tenants that have leases to take back. Any number of reapers share the work by the index."""

    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers

    def round(self) -> float:
        visit = self._ledgers.index.take(REAP, REAP_TENANTS, int(REAP_S * 1000))
        self._ledgers.each(visit.tenants, Ledger.reap)
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
