"""One verb for many jobs: retry or skip them by their ids, and see what became of each."""

from __future__ import annotations

import logging

from starlette.requests import Request
from starlette.responses import Response

from ..lease.batches import FASTEST, RATE, Batch, Batches, check_batch, check_batch_id
from . import views
from .batch_views import batch_view, batch_with_jobs
from .fields import Fields
from .jobs import ledger_of
from .needs import App
from .plain import escaped
from .routing import answer
from .who import who

BATCH = ("tenant", "reason", "ids", "token")
log = logging.getLogger("tenure.api")


class BatchResource:
    def __init__(self, app: App) -> None:
        self._app = app

    def retry(self, request: Request, body: bytes) -> Response:
        """Begin a new round of each job, at most `rate` a second."""
        fields = Fields.of_body(body, (*BATCH, "rate"))
        rate = read_rate(fields)
        ids, tenant, reason, token = _read(fields)
        batches = Batches(self._app.ledger(tenant))
        done = batches.retry(ids, rate=rate, reason=reason, by=who(request), batch_id=token)
        return _said(done)

    def skip(self, request: Request, body: bytes) -> Response:
        """Cancel each job because it need not be done any more."""
        ids, tenant, reason, token = _read(Fields.of_body(body, BATCH))
        batches = Batches(self._app.ledger(tenant))
        return _said(batches.skip(ids, reason=reason, by=who(request), batch_id=token))

    def list(self, request: Request) -> Response:
        """The newest ones, by ids or by conditions; no more than these are kept."""
        found = Batches(ledger_of(self._app, request)).newest()
        return answer(views.page([batch_view(batch) for batch in found], None))

    def get(self, request: Request) -> Response:
        batch = Batches(ledger_of(self._app, request)).get(request.path_params["id"])
        return answer(batch_with_jobs(batch))


def read_rate(fields: Fields) -> int:
    return fields.number("rate", RATE, 1, FASTEST)


def read_token(fields: Fields) -> str | None:
    """The name of a batch that its sender has given it, so that it can be sent again."""
    token = fields.text("token")
    if token is not None:
        with fields.checking("token"):
            check_batch_id(token)
    return token


def _read(fields: Fields) -> tuple[list[str], str, str, str | None]:
    """Ids, tenant, reason and token of a body."""
    ids, tenant, reason, token = (
        fields.texts("ids"),
        fields.tenant(),
        fields.reason(),
        read_token(fields),
    )
    if not fields.given("ids"):
        fields.refuse("ids", "must be given: an array of ids of jobs")
    if fields.fine("ids"):
        with fields.checking("ids"):
            check_batch(ids or [])
    fields.done()
    return ids or [], tenant, reason or "", token


def _said(batch: Batch) -> Response:
    log.info(
        "%s of %d jobs: %d accepted, %d skipped, %s",
        batch.deed,
        batch.total,
        batch.success,
        batch.skipped,
        escaped(batch.reason or "no reason given"),
    )
    return answer(batch_with_jobs(batch))
