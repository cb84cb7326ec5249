"""The sweep: a slow walk over all tenants that puts into the index what the ledgers say, so a lost hint only delays."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable

from ..scripts.errors import StoreUnreachable, TenureError
from .jobs import News
from .ledgers import Ledgers

TENANTS = 100
PAUSE_MS = 500
ROUND_MS = 10_000
STAND_BY_S = 5.0
log = logging.getLogger("tenure.sweep")


class Sweep:
    """Takes pages of the walk, which all processes on one store share: it takes 10 s up to 2,000 tenants and 50 s for
    10,000, however many processes there are, and never asks more than 200 tenants in a second.
    """

    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers
        self._troubled: dict[str, str] = {}

    def round(self) -> float:
        page = self._ledgers.index.sweep(TENANTS, PAUSE_MS, ROUND_MS)
        if not page.tenants:  # another process walks; should it end, one that stands by goes on
            return page.wait_ms / 1000 + random.uniform(0, STAND_BY_S)
        calls = [self._ledgers.of(tenant).standing_call() for tenant in page.tenants]
        answers = self._ledgers.scripts.run_all(calls)
        news = [self._standing(*pair) for pair in zip(page.tenants, answers, strict=True)]
        self._ledgers.index.put(item for items in news for item in items)
        return page.wait_ms / 1000

    def _standing(self, tenant: str, answer: Iterable[News] | TenureError) -> Iterable[News]:
        """What a tenant wants; nothing from one that cannot be read, which is said once."""
        if not isinstance(answer, TenureError):
            self._troubled.pop(tenant, None)
            return answer
        if isinstance(answer, StoreUnreachable):
            raise answer
        if self._troubled.get(tenant) != str(answer):
            log.error("tenant %s cannot be read, so work of it may be passed over: %s", tenant, answer)
        self._troubled[tenant] = str(answer)
        return ()
