"""One path, its methods, and a handler for each: handlers are plain functions and run in threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import quote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

from .body import read_body
from .fields import Fields

Read = Callable[[Request], Response]
Change = Callable[[Request, bytes], Response]


def resource(
    path: str,
    *,
    get: Read | None = None,
    put: Change | None = None,
    post: Change | None = None,
    delete: Read | None = None,
) -> Route:
    """The route of a path. What reads or deletes gets the request; what else changes gets its body too, and takes no
    query string.
    """
    plain = {method: read for method, read in (("GET", get), ("HEAD", get), ("DELETE", delete)) if read}
    changes = {method: change for method, change in (("PUT", put), ("POST", post)) if change}

    async def endpoint(request: Request) -> Response:
        change = changes.get(request.method)
        if change:
            Fields.of_query(request.query_params.multi_items(), ()).done()
            return await run_in_threadpool(change, request, await read_body(request))
        return await run_in_threadpool(plain[request.method], request)

    return _Resource(path, endpoint, methods=[*changes, *plain])


class _Resource(Route):
    """A route that is chosen by its path alone: a method it does not have is refused here, and goes to no other path
    that fits too, as `/jobs/{id}` fits `/jobs/batch-retry`.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        return (Match.FULL if match is Match.PARTIAL else match), child


def answer(content: object, status: int = 200, **headers: str) -> Response:
    return JSONResponse(content, status, {name.replace("_", "-"): value for name, value in headers.items()})


def link(request: Request, path: str, query: Mapping[str, str]) -> str:
    """The path of another resource of this API, wherever it is mounted; `tenant=default` goes without saying."""
    told = {name: value for name, value in query.items() if (name, value) != ("tenant", "default")}
    root = quote(request.scope.get("root_path", ""))
    return root + quote(path) + (f"?{urlencode(told)}" if told else "")
