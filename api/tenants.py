"""Tenants, and the switch of each."""

from __future__ import annotations

import logging

from starlette.requests import Request
from starlette.responses import Response

from ..lease import cursors
from ..lease.instants import parse_instant
from ..lease.requests import epoch_ms
from ..scheduler.switch import Scheduling, Switch
from . import views
from .fields import Fields
from .needs import App
from .paging import read_cursor
from .plain import Json, escaped, instant
from .routing import answer
from .who import who

log = logging.getLogger("tenure.api")

OF = ("tenants",)


class Tenants:
    def __init__(self, app: App) -> None:
        self._app = app

    def list(self, request: Request) -> Response:
        query = Fields.of_query(request.query_params.multi_items(), ("limit", "cursor"))
        limit, after = query.number("limit", 50, 1, 100), read_cursor(query, OF)
        query.done()
        names = [name for name in self._app.ledgers().index.tenants() if after is None or name > after]
        found, last = cursors.cut(names, limit, str)
        more = last and cursors.write(last, OF)
        return answer(views.page([{"tenant": name} for name in found], more))

    def get(self, request: Request) -> Response:
        Fields.of_query(request.query_params.multi_items(), ()).done()
        return answer(switch(self._of(request).get()))

    def put(self, request: Request, body: bytes) -> Response:
        """Disable the tenant's scheduling, or enable it; as it stands already changes nothing."""
        fields = Fields.of_body(body, ("enabled", "reason", "until"))
        if not fields.given("enabled"):
            fields.refuse("enabled", "must be given: true or false")
        enabled, reason, until = fields.flag("enabled"), fields.reason() or "", None
        if (text := fields.text("until")) is not None:
            if enabled:
                fields.refuse("until", "stands beside enabled: true; it says how long scheduling is disabled")
            with fields.checking("until"):
                until = epoch_ms(parse_instant(text, what="until"), what="until")
        fields.done()
        found = self._of(request).set(enabled=enabled, by=who(request), reason=reason, until=until)
        log.info(
            "scheduling of tenant %s is %s: %s",
            found.tenant,
            "enabled" if enabled else "disabled",
            escaped(reason or "no reason given"),
        )
        return answer(switch(found))

    def _of(self, request: Request) -> Scheduling:
        return Scheduling(self._app.ledger(request.path_params["tenant"]))


def switch(found: Switch) -> Json:
    return {
        "tenant": found.tenant,
        "enabled": found.enabled,
        "reason": found.trouble or found.reason or None,
        "by": found.by or None,
        "since": instant(found.since),
        "until": instant(found.until),
        "revision": found.revision,
    }
