"""GET /jobs and /jobs/{id}."""

from __future__ import annotations

from collections.abc import Collection

from starlette.requests import Request
from starlette.responses import Response

from ..lease.jobs import Page
from ..lease.ledger import Ledger
from ..lease.listing import list_jobs
from ..scripts.states import State
from . import views
from .fields import Fields
from .needs import App
from .routing import answer

CURSOR_LIMIT = 16_000
FILTERS = ("tenant", "status", "task", "limit", "cursor")


class Jobs:
    def __init__(self, app: App) -> None:
        self._app = app

    def list(self, request: Request) -> Response:
        query = Fields.of_query(request.query_params.multi_items(), FILTERS)
        task = query.text("task")
        found = read_page(self._app, query, None if task is None else {task})
        return answer(views.page([views.job(job) for job in found.items], found.next_cursor))

    def get(self, request: Request) -> Response:
        return answer(views.job_with_attempts(ledger_of(self._app, request).get(request.path_params["id"])))


def ledger_of(app: App, request: Request) -> Ledger:
    """The ledger of the tenant that a request without other parameters names."""
    query = Fields.of_query(request.query_params.multi_items(), ("tenant",))
    tenant = query.tenant()
    query.done()
    return app.ledger(tenant)


def read_page(app: App, query: Fields, tasks: Collection[str] | None) -> Page:
    """The page of jobs of `tasks` (None: of all) that a query string with `FILTERS` asks for."""
    tenant, status = query.tenant(), query.choice("status", tuple(State), None)
    limit, cursor = query.number("limit", 50, 1, 100), query.text("cursor", CURSOR_LIMIT)
    query.done()
    return list_jobs(app.ledger(tenant), status=status, tasks=tasks, limit=limit, cursor=cursor)
