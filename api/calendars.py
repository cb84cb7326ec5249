"""Calendars by name: see them, store one, delete one that no schedule uses."""

from __future__ import annotations

import logging

from starlette.requests import Request
from starlette.responses import Response

from ..lease import cursors
from ..scheduler.calendar_store import Calendars, CalendarView
from ..scheduler.calendars import PARTS, BadCalendar, check_name, read_calendar
from ..scripts.errors import NotFound
from . import views
from .fields import Fields
from .needs import App
from .paging import read_cursor
from .plain import Json, escaped, instant, jsonable
from .preconditions import asked_for, etag, expected_revision, seen_revision
from .routing import answer, link
from .who import who

log = logging.getLogger("tenure.api")


class CalendarResource:
    def __init__(self, app: App) -> None:
        self._app = app

    def list(self, request: Request) -> Response:
        query = Fields.of_query(request.query_params.multi_items(), ("tenant", "limit", "cursor"))
        tenant, limit = query.tenant(), query.number("limit", 50, 1, 100)
        of = ("calendars", tenant)
        after = read_cursor(query, of)
        query.done()
        found, last = cursors.cut(self._of(tenant).list(limit + 1, after), limit, lambda one: one.name)
        more = last and cursors.write(last, of)
        return answer(views.page([calendar(one) for one in found], more))

    def get(self, request: Request) -> Response:
        query = Fields.of_query(request.query_params.multi_items(), ("tenant",))
        tenant = query.tenant()
        query.done()
        found = self._of(tenant).get(request.path_params["name"])
        return answer(calendar(found), ETag=etag(found.revision))

    def put(self, request: Request, body: bytes) -> Response:
        """Store a calendar; the same again changes nothing. Its triggers are planned anew."""
        name = check_name(request.path_params["name"])
        fields = Fields.of_body(body, ("calendar", "tenant", "reason"))
        data, tenant, reason = _data(fields), fields.tenant(), fields.reason() or ""
        fields.done()
        calendars = self._of(tenant)
        with asked_for(request):
            expected = seen_revision(request, lambda: calendars.get(name).revision)
            put = calendars.put(name, data, expected_revision=expected, by=who(request), reason=reason)
        log.info(
            "calendar %s is at revision %s: %s", name, put.revision, escaped(reason or "no reason given")
        )
        found = calendars.get(name)
        return answer(
            calendar(found),
            201 if put.created else 200,
            ETag=etag(found.revision),
            location=link(request, ("calendars", str(name)), {"tenant": tenant}),
        )

    def delete(self, request: Request) -> Response:
        """Delete a calendar that no schedule uses."""
        query = Fields.of_query(request.query_params.multi_items(), ("tenant", "reason"))
        tenant, reason = query.tenant(), query.reason()
        query.done()
        name = request.path_params["name"]
        with asked_for(request):
            found = self._of(tenant).delete(name, expected_revision=expected_revision(request))
        if not found:
            raise NotFound(f"calendar {name!r} is not stored in tenant {tenant}", hint="GET /calendars")
        log.info("calendar %s is deleted: %s", name, escaped(reason or "no reason given"))
        return Response(status_code=204)

    def _of(self, tenant: str) -> Calendars:
        return Calendars(self._app.ledger(tenant))


def _data(fields: Fields) -> dict[str, object]:
    """The calendar of a body, each of its parts checked."""
    part = fields.part("calendar", PARTS)
    if part is None:
        if not fields.given("calendar"):
            fields.refuse("calendar", 'must be given, like {"weekdays": ["SAT", "SUN"]}')
        return {}
    data = {name: part.raw(name) for name in PARTS if part.given(name)}
    try:
        read_calendar(data, "UTC")
    except BadCalendar as exc:
        for name, error in exc.errors:
            with part.checking(name) if name else fields.checking("calendar"):
                raise error from None
    return data


def calendar(found: CalendarView) -> Json:
    return {
        "name": found.name,
        "tenant": found.tenant,
        "revision": found.revision,
        "calendar": jsonable(found.data),
        "usedBy": list(found.used_by),
        "storedAt": instant(found.stored),
        "by": escaped(found.by) or None,
        "reason": escaped(found.reason) or None,
    }
