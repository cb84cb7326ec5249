"""Holds: keep the jobs of a tenant, a pool or a task from being claimed, release them, see what is held."""

from __future__ import annotations

import logging
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from ..lease.holds import Hold, Holds, target
from ..lease.instants import parse_instant
from ..lease.requests import epoch_ms
from ..lease.who import check_word
from . import views
from .fields import Fields
from .needs import App
from .plain import Json, escaped, instant
from .routing import answer
from .who import who

TARGET = ("tenant", "pool", "task")
log = logging.getLogger("tenure.api")


class HoldResource:
    def __init__(self, app: App) -> None:
        self._app = app

    def list(self, request: Request) -> Response:
        query = Fields.of_query(request.query_params.multi_items(), ("tenant",))
        tenant = query.tenant()
        query.done()
        return answer(views.page([hold(one) for one in Holds(self._app.ledger(tenant)).list()], None))

    def add(self, request: Request, body: bytes) -> Response:
        """Hold a pool or a task of a tenant, or all its jobs; what is held so already changes nothing."""
        fields = Fields.of_body(body, (*TARGET, "reason", "until"))
        tenant, pool, task = _target(fields)
        reason, until = fields.reason(limit=4_000) or "", _until(fields)
        with fields.checking("reason"):
            check_word("", reason)
        fields.done()
        found, changed = Holds(self._app.ledger(tenant)).add(
            pool=pool, task=task, reason=reason, until=until, by=who(request)
        )
        log.info("%s is held: %s", found.what, escaped(reason or "no reason given"))
        return answer(hold(found), 201 if changed else 200)

    def remove(self, request: Request) -> Response:
        """Release it; what is not held is released already."""
        query = Fields.of_query(request.query_params.multi_items(), (*TARGET, "reason"))
        tenant, pool, task = _target(query)
        reason = query.reason()
        query.done()
        if Holds(self._app.ledger(tenant)).remove(pool=pool, task=task):
            log.info("a hold of tenant %s is released: %s", tenant, escaped(reason or "no reason given"))
        return Response(status_code=204)


def _target(fields: Fields) -> tuple[str, str | None, str | None]:
    """Tenant, pool and task. All jobs of a tenant are meant only if it is named."""
    tenant, pool, task = fields.tenant(), fields.text("pool"), fields.text("task")
    if pool is None and task is None and not fields.given("tenant"):
        fields.refuse("pool", "nothing is named: give pool or task, or tenant for all its jobs")
    with fields.checking("pool" if pool is not None else "task"):
        target(pool, task)
    return tenant, pool, task


def _until(fields: Fields) -> datetime | None:
    text = fields.text("until")
    if text is not None:
        with fields.checking("until"):
            found = parse_instant(text, what="until")
            epoch_ms(found, what="until")
            return found
    return None


def hold(found: Hold) -> Json:
    return {
        "tenant": found.tenant,
        "pool": found.name if found.kind == "pool" else None,
        "task": found.name if found.kind == "task" else None,
        "reason": escaped(found.reason) or None,
        "by": escaped(found.by) or None,
        "since": instant(found.since),
        "until": instant(found.until),
    }
