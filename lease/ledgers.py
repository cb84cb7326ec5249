"""The ledgers of all tenants on one server, and the index over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ..scripts import Keys, Scripts
from .index import TenantIndex
from .ledger import LEASE_MS, Ledger

KEPT = 1_000
"""Ledgers that are kept for the next call: those of the tenants used last."""


@dataclass(frozen=True)
class Ledgers:
    """What a process needs to work with jobs: `of(tenant)` is that tenant's ledger."""

    scripts: Scripts
    namespace: str
    lease_ms: int = LEASE_MS

    @cached_property
    def index(self) -> TenantIndex:
        return TenantIndex(self.scripts, self.namespace)

    def of(self, tenant: str) -> Ledger:
        """The ledger of a tenant. Raises BadInput for one that is no slug."""
        return self._of(tenant) if isinstance(tenant, str) else self._new(tenant)  # pyright: ignore[reportUnnecessaryIsInstance]

    @cached_property
    def _of(self) -> Callable[[str], Ledger]:
        return lru_cache(KEPT)(self._new)

    def _new(self, tenant: str) -> Ledger:
        return Ledger(self.scripts, Keys(self.namespace, tenant), self.index, self.lease_ms)
