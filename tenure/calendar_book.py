"""`app.calendars`: times that triggers leave out, stored by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .lease.who import who
from .scheduler.calendar_store import Calendars, CalendarView
from .scheduler.put import Put
from .scripts.kinds import checked

if TYPE_CHECKING:
    from .app import Tenure


@checked
class CalendarBook:
    def __init__(self, app: Tenure) -> None:
        self._app = app

    def put(
        self,
        name: str,
        data: Mapping[str, Any],
        *,
        tenant: str = "default",
        expected_revision: int | None = None,
        reason: str = "",
        by: str | None = None,
    ) -> Put:
        """Store a calendar under its name; the same again changes nothing. Triggers name it: `calendar="holidays"`.

            app.calendars.put("holidays", {"dates": ["2026-12-25"], "weekdays": ["SAT", "SUN"]})

        From then on nothing fires at what it excludes, also what is due already. See Calendars.put.
        """
        return self._of(tenant).put(
            name, data, expected_revision=expected_revision, by=who(by), reason=reason
        )

    def get(self, name: str, tenant: str = "default") -> CalendarView:
        """One calendar. Raises NotFound."""
        return self._of(tenant).get(name)

    def list(
        self, tenant: str = "default", limit: int = 50, after: str | None = None
    ) -> Sequence[CalendarView]:
        """Calendars by name, from the one after `after` on."""
        return self._of(tenant).list(limit, after)

    def delete(self, name: str, tenant: str = "default", *, expected_revision: int | None = None) -> bool:
        """Delete a calendar; answers whether there was one. Raises InUse naming the schedules that use it."""
        return self._of(tenant).delete(name, expected_revision=expected_revision)

    def _of(self, tenant: str) -> Calendars:
        return Calendars(self._app.ledger(tenant))
