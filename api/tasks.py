"""GET /tasks: what is registered, and what of it may be started over HTTP."""

from __future__ import annotations

from itertools import islice

from starlette.requests import Request
from starlette.responses import Response

from ..lease import cursors
from . import views
from .fields import Fields
from .needs import App
from .paging import read_cursor
from .routing import answer

OF = ("tasks",)


class Tasks:
    def __init__(self, app: App) -> None:
        self._app = app

    def list(self, request: Request) -> Response:
        query = Fields.of_query(request.query_params.multi_items(), ("limit", "cursor"))
        limit, after = query.number("limit", 50, 1, 100), read_cursor(query, OF)
        query.done()
        rest = (task for task in self._app.registry if after is None or task.key > after)
        found, last = cursors.cut(list(islice(rest, limit + 1)), limit, lambda task: task.key)
        more = last and cursors.write(last, OF)
        return answer(views.page([views.task(task) for task in found], more))
