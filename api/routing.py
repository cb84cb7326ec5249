"""One path, its methods, and a handler for each: handlers are plain functions and run in threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote, unquote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

from .body import pointed, read_body, refuse_body
from .refusals import BadFields, Wrong

Read = Callable[[Request], Response]
Change = Callable[[Request, bytes], Response]


def resource(
    path: str,
    *,
    get: Read | None = None,
    put: Change | None = None,
    post: Change | None = None,
    patch: Change | None = None,
    delete: Read | None = None,
) -> Route:
    """The route of a path. What reads or deletes gets the request; what else changes gets its body too, and takes no
    query string.
    """
    plain = {method: read for method, read in (("GET", get), ("HEAD", get), ("DELETE", delete)) if read}
    changes = {
        method: change for method, change in (("PUT", put), ("POST", post), ("PATCH", patch)) if change
    }

    async def endpoint(request: Request) -> Response:
        change = changes.get(request.method)
        if change:
            _refuse_query(request)
            return await run_in_threadpool(change, request, await read_body(request))
        refuse_body(request)
        return await run_in_threadpool(plain[request.method], request)

    return BySegments(path, endpoint, methods=[*changes, *plain])


def _refuse_query(request: Request) -> None:
    """What changes something is told all in its body."""
    message = f"a {request.method} takes nothing from the query string; say it in the body"
    names = dict.fromkeys(request.query_params.keys())
    if names:
        raise BadFields([Wrong(f"?{pointed(name)}", f'{message}: {{"{name:.60}": ...}}') for name in names])


class BySegments(Route):
    """A route that is chosen by its path alone: a method it does not have is refused here, and goes to no other path
    that fits too, as `/jobs/{id}` fits `/jobs/batch-retry`.

    The path is divided as it was sent, so that an id may have any character, a slash (`%2F`) too.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        wanted, found = self.path.split("/")[1:], _segments(scope)
        if scope["type"] != "http" or len(wanted) != len(found):
            return Match.NONE, {}
        named: dict[str, str] = {}
        for want, segment in zip(wanted, found, strict=True):
            if want.startswith("{") and segment:
                named[want[1:-1]] = segment
            elif want != segment:
                return Match.NONE, {}
        return Match.FULL, {"endpoint": self.endpoint, "path_params": named}


def _segments(scope: Scope) -> list[str]:
    """What stands between the slashes of a path below where this API is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    raw: bytes | None = scope.get("raw_path")
    sent = quote(path) if raw is None else raw.decode("ascii", "replace")
    above = root.strip("/").count("/") + 1 if root.strip("/") and path.startswith(root) else 0
    return [unquote(segment, errors="surrogateescape") for segment in sent.split("/")[1 + above :]]


def answer(content: object, status: int = 200, **headers: str) -> Response:
    return JSONResponse(content, status, {name.replace("_", "-"): value for name, value in headers.items()})


def link(request: Request, path: Sequence[str], query: Mapping[str, str]) -> str:
    """The path of another resource of this API by its segments, wherever it is mounted; `tenant=default` goes without
    saying.
    """
    told = {name: value for name, value in query.items() if (name, value) != ("tenant", "default")}
    root = quote(request.scope.get("root_path", ""))
    return (
        root
        + "".join(f"/{quote(segment, safe='')}" for segment in path)
        + (f"?{urlencode(told)}" if told else "")
    )
