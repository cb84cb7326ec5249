"""`app.tenants`: the tenants of the store, the switch of each, and how long the jobs of each stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from .lease.durations import Duration
from .lease.requests import epoch_ms
from .lease.retention import Keep, Retention
from .lease.who import who
from .scheduler.switch import Scheduling, Switch
from .scripts.kinds import checked
from .scripts.states import State

if TYPE_CHECKING:
    from .app import Tenure


@checked
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

    def switches(self, limit: int = 50, after: str | None = None) -> Sequence[Switch]:
        """As `list`, with how the switch of each stands; one that cannot be read now says so in its `trouble`."""
        return [Scheduling(self._app.ledger(name)).glance() for name in self.list(limit, after)]

    def disable_scheduling(
        self, tenant: str, *, reason: str = "", by: str | None = None, until: datetime | None = None
    ) -> Switch:
        """Nothing planned of the tenant fires, until that instant or until it is enabled: no next fire time moves, and
        what comes due is recorded as skipped. Jobs that run go on, and so do retries and background tasks.
        """
        ends = None if until is None else epoch_ms(until, what="until")
        return Scheduling(self._app.ledger(tenant)).set(enabled=False, by=who(by), reason=reason, until=ends)

    def enable_scheduling(self, tenant: str, *, reason: str = "", by: str | None = None) -> Switch:
        """The tenant's schedules fire again, from their first instants after now on; what was skipped is not run."""
        return Scheduling(self._app.ledger(tenant)).set(enabled=True, by=who(by), reason=reason)

    def retention(self, tenant: str = "default") -> Mapping[State, Keep]:
        """How long jobs stay after they came to rest, and how many at most, by state."""
        return Retention(self._app.ledger(tenant)).get()

    def keep(self, tenant: str = "default", **states: Keep | Duration) -> Mapping[State, Keep]:
        """Change it for the states that are named, and answer what then holds for all.

            app.tenants.keep("acme", dead="90d", succeeded=Keep(after_ms=3_600_000, most=1_000_000), failed="forever")

        "default" takes a word back. By default succeeded and canceled jobs go after a day, and the oldest when there
        are over 100,000; failed, dead and paused ones stay. What goes, goes whole. Raises BadInput.
        """
        return Retention(self._app.ledger(tenant)).set(states)
