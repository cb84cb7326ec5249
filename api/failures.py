"""GET /jobs/failure-clusters: what went wrong, gathered."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ..lease.failures import BY, MOST_MEMBERS, Failures
from .failure_views import failure_page
from .fields import Fields
from .job_filters import CURSOR_LIMIT
from .needs import App
from .routing import answer

QUERY = ("tenant", "by", "key", "members", "limit", "cursor")


class FailureResource:
    def __init__(self, app: App) -> None:
        self._app = app

    def list(self, request: Request) -> Response:
        query = Fields.of_query(request.query_params.multi_items(), QUERY)
        tenant, by, key = query.tenant(), query.choice("by", BY, "reason"), query.text("key")
        members, limit = query.number("members", 3, 0, MOST_MEMBERS), query.number("limit", 50, 1, 100)
        cursor = query.text("cursor", CURSOR_LIMIT)
        query.done()
        found = Failures(self._app.ledger(tenant))
        return answer(failure_page(found.groups(by, key=key, limit=limit, cursor=cursor, members=members)))
