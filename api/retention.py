"""How long the jobs of a tenant stay."""

from __future__ import annotations

import logging

from starlette.requests import Request
from starlette.responses import Response

from ..lease.durations import LONGEST_MS, Duration
from ..lease.retention import DEFAULT, MOST, RESTING, Keep, Retention
from ..scripts.keys import check_tenant
from . import views
from .fields import Fields
from .needs import App
from .plain import escaped
from .routing import answer
from .who import who

KEEP = ("afterMs", "most")
log = logging.getLogger("tenure.api")


class RetentionResource:
    def __init__(self, app: App) -> None:
        self._app = app

    def get(self, request: Request) -> Response:
        Fields.of_query(request.query_params.multi_items(), ()).done()
        return answer(views.retention(self._of(request).get()))

    def put(self, request: Request, body: bytes) -> Response:
        """Say for each state how long its jobs stay; of a state that is not named the default holds."""
        fields = Fields.of_body(body, (*RESTING, "reason"))
        reason = fields.reason()
        said: dict[str, Keep | Duration] = {state: _keep(fields, state) for state in RESTING}
        fields.done()
        found = self._of(request).set(said)
        log.info(
            "retention of tenant %s set by %s: %s",
            request.path_params["tenant"],
            escaped(who(request)),
            escaped(reason or "no reason given"),
        )
        return answer(views.retention(found))

    def _of(self, request: Request) -> Retention:
        return Retention(self._app.ledger(check_tenant(request.path_params["tenant"])))


def _keep(fields: Fields, state: str) -> Keep | Duration:
    told = fields.part(state, KEEP)
    if told is None:
        return DEFAULT
    return Keep(told.optional_number("afterMs", 1, LONGEST_MS), told.optional_number("most", 1, MOST))
