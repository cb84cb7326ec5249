"""All jobs of a trace: as a tree, and as a bundle to hand on."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ..lease.chain import MOST, chain
from . import views
from .bundle import bundle
from .fields import Fields
from .needs import App
from .routing import answer

CURSOR_LIMIT = 200
LINES = 100


class ChainResource:
    def __init__(self, app: App) -> None:
        self._app = app

    def get(self, request: Request) -> Response:
        query = Fields.of_query(request.query_params.multi_items(), ("tenant", "limit", "cursor"))
        tenant, limit = query.tenant(), query.number("limit", MOST, 1, MOST)
        cursor = query.text("cursor", CURSOR_LIMIT)
        query.done()
        found = chain(self._app.ledger(tenant), request.path_params["trace"], limit=limit, cursor=cursor)
        return answer(views.chain(found))

    def bundle(self, request: Request) -> Response:
        query = Fields.of_query(request.query_params.multi_items(), ("tenant",))
        tenant = query.tenant()
        query.done()
        found = chain(self._app.ledger(tenant), request.path_params["trace"], lines=LINES)
        return Response(
            bundle(found, self._app.registry, self._app.about()),
            media_type="application/zip",
            headers={"content-disposition": 'attachment; filename="tenure-chain.zip"'},
        )
