"""Workflow instances of the user's own: suspend one, resume it, end it, see how it stands."""

from __future__ import annotations

import logging

from starlette.requests import Request
from starlette.responses import Response

from ..lease.instances import Instances
from . import views
from .fields import Fields
from .needs import App
from .plain import escaped
from .routing import answer
from .who import who

WORD = ("tenant", "reason")
log = logging.getLogger("tenure.api")


class InstanceResource:
    def __init__(self, app: App) -> None:
        self._app = app

    def get(self, request: Request) -> Response:
        """How it stands. Instances are not registered: one without jobs, of which nothing was said, is normal."""
        query = Fields.of_query(request.query_params.multi_items(), ("tenant",))
        tenant = query.tenant()
        query.done()
        found = Instances(self._app.ledger(tenant)).get(request.path_params["id"])
        return answer(views.instance(found))

    def why(self, request: Request) -> Response:
        """Why it does not go on; with `node`, why that node's newest unfinished job does not."""
        query = Fields.of_query(request.query_params.multi_items(), ("tenant", "node"))
        tenant, node = query.tenant(), query.text("node")
        query.done()
        found = Instances(self._app.ledger(tenant)).why(request.path_params["id"], node)
        return answer(views.why(found))

    def pause(self, request: Request, body: bytes) -> Response:
        return self._say("pause", request, body)

    def resume(self, request: Request, body: bytes) -> Response:
        return self._say("resume", request, body)

    def end(self, request: Request, body: bytes) -> Response:
        return self._say("end", request, body)

    def _say(self, verb: str, request: Request, body: bytes) -> Response:
        """Say it, and answer how the instance then stands; what it is already changes nothing."""
        fields = Fields.of_body(body, WORD)
        tenant, reason = fields.tenant(), fields.reason() or ""
        fields.done()
        instances, name = Instances(self._app.ledger(tenant)), request.path_params["id"]
        say = {"pause": instances.pause, "resume": instances.resume, "end": instances.end}[verb]
        found = say(name, reason, who(request))
        log.info("%s of instance %s: %s", verb, escaped(name), escaped(reason or "no reason given"))
        return answer(views.instance(found))
