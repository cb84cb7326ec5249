"""Errors as `application/problem+json` (RFC 9457), and the one table from errors to statuses."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..scripts.errors import (
    ArchiveUnreachable,
    BadInput,
    Conflict,
    LeaseLost,
    LeaseTaken,
    MissingExtra,
    NotAllowed,
    NotFound,
    PayloadTooLarge,
    RightsUnknown,
    StaleFence,
    StoreError,
    TenureError,
)
from . import refusals
from .next_steps import over_http
from .plain import escaped

log = logging.getLogger("tenure.api")

STATUSES: dict[type[TenureError], int] = {
    BadInput: 400,
    refusals.LoopbackOnly: 403,
    refusals.WrongHost: 403,
    refusals.CrossOrigin: 403,
    refusals.NotStartable: 403,
    NotAllowed: 403,
    NotFound: 404,
    refusals.NoSuchPath: 404,
    refusals.MethodNotAllowed: 405,
    refusals.BodyTooSlow: 408,
    Conflict: 409,
    StaleFence: 409,
    LeaseLost: 409,
    LeaseTaken: 409,
    refusals.PreconditionFailed: 412,
    refusals.BodyTooLarge: 413,
    PayloadTooLarge: 413,
    refusals.NotJson: 415,
    refusals.Encoded: 415,
    TenureError: 500,
    RightsUnknown: 500,
    StoreError: 503,
    MissingExtra: 503,
    ArchiveUnreachable: 503,
}
RETRY_AFTER_S = 2


def status_of(kind: type[TenureError]) -> int:
    """The status of an error: its own row, else that of its nearest base."""
    return next(STATUSES[base] for base in kind.__mro__ if base in STATUSES)


def problem(exc: TenureError, headers: Mapping[str, str] | None = None) -> Response:
    """The answer that tells of `exc`. One of ours or the store's gets a traceId, which stands in the log too; so does
    where the application's own code failed.
    """
    status = status_of(type(exc))
    trace = os.urandom(8).hex() if status >= 500 else None
    if trace:
        theirs = exc.__cause__ if isinstance(exc, RightsUnknown) else None
        log.warning("problem %s: %s: %s", trace, exc.code, escaped(str(exc)), exc_info=theirs)
    code = exc.shared_code if isinstance(exc, refusals.BadFields) else exc.code
    wrong = exc.wrong if isinstance(exc, (refusals.BadJson, refusals.BadFields)) else ()
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": escaped(str(exc)),
        "hint": escaped(over_http(exc.hint)) or f"tenure explain {code}",
        "errors": [{"pointer": one.pointer, "message": escaped(one.message)} for one in wrong],
        "traceId": trace,
    }
    waiting = {"Retry-After": str(RETRY_AFTER_S)} if status == 503 else {}
    return Response(
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace"),
        status,
        {**waiting, **(headers or {})},
        "application/problem+json",
    )


async def on_error(_request: Request, exc: Exception) -> Response:
    """Starlette's handler of what we raise on purpose. Waits for no thread: all may be waiting for the store."""
    assert isinstance(exc, TenureError)
    return problem(exc)


def on_http_error(beginning: str) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Starlette's handler of what its router refuses: an unknown path, a method the path does not have.

    `beginning` is a path below the application's root that is there, for who looks for one.
    """

    async def answer(request: Request, exc: Exception) -> Response:
        assert isinstance(exc, HTTPException)
        path = request.url.path
        if exc.status_code == 405:
            allowed = (exc.headers or {}).get("Allow", "")
            refused = refusals.MethodNotAllowed(
                f"{request.method} is not a method of {path!r:.120}", hint=f"it has {allowed}"
            )
            return problem(refused, exc.headers)
        first = f"{request.scope.get('root_path', '')}{beginning}"
        return problem(
            refusals.NoSuchPath(f"there is nothing at {path!r:.120}", hint=f"GET {first} is a beginning")
        )

    return answer


class CatchAll:
    """What nobody raised on purpose becomes a problem without details; the log has them, under its traceId."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except ClientDisconnect:
            return
        except Exception:
            log.exception("%s %s failed", scope.get("method"), escaped(str(scope.get("path"))))
            if begun:
                raise  # the server cuts the connection: half an answer must not look like a whole one
            sorry = refusals.Internal("this is a mistake of ours", hint="the log of the API has it")
            await problem(sorry)(scope, receive, send)
