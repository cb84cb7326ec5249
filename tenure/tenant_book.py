"""`app.tenants`: the tenants of the store, and the switch of each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from .lease.requests import epoch_ms
from .scheduler.switch import Scheduling, Switch

if TYPE_CHECKING:
    from .app import Tenure


class TenantBook:
    def __init__(self, app: Tenure) -> None:
        self._app = app

    def list(self, limit: int = 50, after: str | None = None) -> Sequence[str]:
        """Tenants that ever had a job or a schedule, by name, from the one after `after` on."""
        names = self._app.ledgers().index.tenants()
        return [name for name in names if after is None or name > after][:limit]

    def scheduling(self, tenant: str) -> Switch:
        """How the tenant's switch stands."""
        return Scheduling(self._app.ledger(tenant)).get()

    def disable_scheduling(
        self, tenant: str, *, reason: str = "", by: str = "", until: datetime | None = None
    ) -> Switch:
        """Nothing planned of the tenant fires, until that instant or until it is enabled: no next fire time moves, and
        what comes due is recorded as skipped. Jobs that run go on, and so do retries and background tasks.
        """
        ends = None if until is None else epoch_ms(until, what="until")
        return Scheduling(self._app.ledger(tenant)).set(enabled=False, by=by, reason=reason, until=ends)

    def enable_scheduling(self, tenant: str, *, reason: str = "", by: str = "") -> Switch:
        """The tenant's schedules fire again, from their first instants after now on; what was skipped is not run."""
        return Scheduling(self._app.ledger(tenant)).set(enabled=True, by=by, reason=reason)
