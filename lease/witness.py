"""What a process remembers of the tenant clocks it saw."""

from __future__ import annotations

import random
import threading

LIMIT = 10_000


class Witness:
    """The first and the highest clock of each tenant that this process saw; of the latest 10,000 tenants."""

    def __init__(self) -> None:
        self._saw: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def saw(self, tenant: str, clock: int) -> None:
        with self._lock:
            first, highest = self._saw.pop(tenant, (clock, clock))
            self._saw[tenant] = min(first, clock), max(highest, clock)
            if len(self._saw) > LIMIT:
                del self._saw[next(iter(self._saw))]

    def some(self, limit: int) -> list[tuple[str, int, int]]:
        """Any of the tenants: (tenant, first, highest)."""
        with self._lock:
            all_of_them = [(tenant, *seen) for tenant, seen in self._saw.items()]
        return random.sample(all_of_them, min(limit, len(all_of_them)))

    def begin_anew(self, tenant: str, clock: int) -> None:
        """What was seen before is gone; the tenant stands at `clock` now (0: it is no more)."""
        with self._lock:
            self._saw.pop(tenant, None)
            if clock:
                self._saw[tenant] = clock, clock
