"""GET /workers: the workers heard in the last ten minutes, of all tenants."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ..lease import cursors
from . import views
from .fields import Fields
from .needs import App
from .paging import read_cursor
from .routing import answer

OF = ("workers",)


class Workers:
    def __init__(self, app: App) -> None:
        self._app = app

    def list(self, request: Request) -> Response:
        query = Fields.of_query(request.query_params.multi_items(), ("limit", "cursor"))
        limit, after = query.number("limit", 50, 1, 100), read_cursor(query, OF)
        query.done()
        rest = [
            worker for worker in self._app.ledgers().index.workers() if after is None or worker.name > after
        ]
        more = cursors.write(rest[limit - 1].name, OF) if len(rest) > limit else None
        return answer(views.page([views.worker(worker) for worker in rest[:limit]], more))
