"""POST /jobs/replay-preview and /jobs/replay-dead: dead or failed jobs, chosen by conditions, are retried at a pace."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from ..lease.batches import MOST_JOBS
from ..lease.durations import duration_ms
from ..lease.filters import FAILED, Filters
from ..lease.instants import parse_instant
from ..lease.replay import ReplayConditions, Replays
from .batch_views import batch_with_jobs, preview_view
from .batches import read_rate, read_token
from .fields import Fields
from .needs import App
from .plain import escaped
from .routing import answer
from .who import who

CONDITIONS = (
    *("status", "type", "instance", "traceId", "error", "fingerprint", "minAge", "maxAge", "endedFrom"),
    *("endedTo", "limit"),
)
log = logging.getLogger("tenure.api")


class ReplayResource:
    def __init__(self, app: App) -> None:
        self._app = app

    def preview(self, request: Request, body: bytes) -> Response:
        """Show what a replay would do, and under which token it does just that."""
        fields = Fields.of_body(body, ("tenant", "reason", *CONDITIONS))
        tenant, conditions, limit = fields.tenant(), _conditions(fields), _limit(fields)
        fields.reason()
        fields.done()
        return answer(preview_view(Replays(self._app.ledger(tenant)).preview(conditions, limit)))

    def apply(self, request: Request, body: bytes) -> Response:
        """Do what a preview has shown; or preview and do it at once, by conditions. Answers how it then stands."""
        fields = Fields.of_body(body, ("tenant", "reason", "token", "rate", *CONDITIONS))
        tenant, conditions, limit = fields.tenant(), _conditions(fields), _limit(fields)
        token, rate, reason = read_token(fields), read_rate(fields), fields.reason() or ""
        beside = [name for name in CONDITIONS if fields.given(name)]
        if fields.given("token") and beside:
            fields.refuse(beside[0], "stands beside a token, whose preview has its own; leave one out")
        fields.done()
        replays = Replays(self._app.ledger(tenant))
        token = token or replays.preview(conditions, limit).token
        done = replays.apply(token, rate=rate, reason=reason, by=who(request))
        said = escaped(reason or "no reason given")
        log.info("replay %s: %d accepted, %d skipped, %s", done.id, done.success, done.skipped, said)
        return answer(batch_with_jobs(done))


def _limit(fields: Fields) -> int:
    return fields.number("limit", MOST_JOBS, 1, MOST_JOBS)


def _conditions(fields: Fields) -> ReplayConditions:
    return {
        "status": fields.choice("status", FAILED, None),
        "task": fields.text("type"),
        "instance": _checked(fields, "instance", lambda text: Filters(instance=text)),
        "trace": _checked(fields, "traceId", lambda text: Filters(trace=text)),
        "error": _checked(fields, "error", lambda text: Filters(error=text)),
        "fingerprint": _checked(fields, "fingerprint", lambda text: Filters(fingerprint=text)),
        "min_age": _checked(fields, "minAge", lambda text: duration_ms(text, what="minAge")),
        "max_age": _checked(fields, "maxAge", lambda text: duration_ms(text, what="maxAge")),
        "ended_from": _instant(fields, "endedFrom"),
        "ended_to": _instant(fields, "endedTo"),
    }


def _checked(fields: Fields, name: str, check: Callable[[str], object]) -> str | None:
    text = fields.text(name)
    if text is not None:
        with fields.checking(name):
            check(text)
    return text


def _instant(fields: Fields, name: str) -> datetime | None:
    text = fields.text(name)
    if text is not None:
        with fields.checking(name):
            return parse_instant(text, what=name)
    return None
