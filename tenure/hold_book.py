"""`app.hold`, `app.release`, `app.holds`: keep jobs of a tenant, a pool or a task from being claimed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from .lease.durations import Duration
from .lease.holds import Hold, Holds
from .lease.who import who
from .scripts.errors import BadInput

if TYPE_CHECKING:
    from .app import Tenure


class HoldBook:
    def __init__(self, app: Tenure) -> None:
        self._app = app

    def add(
        self,
        *,
        pool: str | None = None,
        task: str | None = None,
        tenant: str | None = None,
        reason: str = "",
        until: Duration | datetime | None = None,
        by: str | None = None,
    ) -> Hold:
        """See `Tenure.hold`."""
        holds = self._of(pool, task, tenant)
        return holds.add(pool=pool, task=task, reason=reason, until=until, by=who(by))[0]

    def remove(self, *, pool: str | None = None, task: str | None = None, tenant: str | None = None) -> bool:
        """See `Tenure.release`."""
        return self._of(pool, task, tenant).remove(pool=pool, task=task)

    def list(self, tenant: str = "default") -> Sequence[Hold]:
        """See `Tenure.holds`."""
        return Holds(self._app.ledger(tenant)).list()

    def _of(self, pool: str | None, task: str | None, tenant: str | None) -> Holds:
        if pool is None and task is None and tenant is None:
            raise BadInput(
                "nothing is named: neither a pool nor a task, nor a tenant whose jobs are meant all",
                hint="pool='outbound', task='reports.daily' or tenant='acme'",
            )
        return Holds(self._app.ledger(tenant or "default"))
