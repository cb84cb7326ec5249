"""The ledgers of all tenants on one server, and the index over them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..scripts import Keys, Scripts
from .index import TenantIndex
from .ledger import LEASE_MS, Ledger


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
        return Ledger(self.scripts, Keys(self.namespace, tenant), self.index, self.lease_ms)
