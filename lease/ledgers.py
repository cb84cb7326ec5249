"""The ledgers of all tenants on one server, and the index over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar

from ..scripts import Keys, Scripts
from ..scripts.errors import StoreError
from .index import TenantIndex
from .ledger import LEASE_MS, Ledger

T = TypeVar("T")
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

    def each(self, tenants: Iterable[str], do: Callable[[Ledger], T]) -> list[T]:
        """Do it for the ledgers of all, also when the store fails for some; then raise the first failure."""
        done: list[T] = []
        failure: StoreError | None = None
        for tenant in tenants:
            try:
                done.append(do(self.of(tenant)))
            except StoreError as exc:
                failure = failure or exc
        if failure is not None:
            raise failure
        return done

    def _new(self, tenant: str) -> Ledger:
        return Ledger(self.scripts, Keys(self.namespace, tenant), self.index, self.lease_ms)
