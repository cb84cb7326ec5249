"""`app.progress(authorize=...)`: tasks for users to watch, mounted in the user's own application. Read-only.

    GET tenure-progress.js     the element <tenure-progress>, an ES module without imports
    GET tasks/{id}             the task; with `waitMs` and `since` once it has changed, as in the API
    GET tasks/{id}/events      the task as it changes, as `GET /background-tasks/{id}/events` of the API sends it
    GET tasks/{id}/page        a page with the element, for who has none; with it goes `page.css`

Who may see a task is asked at each request, and a stream ends after some minutes so that its client asks again. What is
not to be seen is not there: one answer for both. Where `authorize` itself fails, nothing is shown. Results, logs and
what a binding says are for operators, not shown.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from hashlib import blake2b
from html import escape
from importlib.resources import files
from typing import cast

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ..lease.jobs import JobView
from ..scripts.errors import BadInput, NotAllowed, NotFound, RightsUnknown, TenureError
from . import views
from .events import EventStream, Seen, last_event_id
from .guard import AnswerHeaders
from .hints import Watched
from .hub import Hub, Snapshot
from .long_poll import Asked, polled, read_task
from .needs import App
from .plain import Json
from .problems import CatchAll, on_error, on_http_error
from .routing import BySegments

Authorize = Callable[[Request, Json], bool | Awaitable[bool]]

LONGEST_S = 300.0
SHOWN = (
    *(
        "id",
        "tenant",
        "task",
        "status",
        "deadReason",
        "stage",
        "done",
        "doing",
        "total",
        "unit",
        "percent",
        "message",
    ),
    *("warnings", "chunk", "attempt", "eta", "record", "error"),
    *("createdAt", "startedAt", "updatedAt", "finishedAt", "revision"),
)
PAGE_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'"
)
PAGE = """<!doctype html>
<html lang="{lang}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="stylesheet" href="../../page.css">
<script type="module" src="../../tenure-progress.js"></script>
<main><tenure-progress task="{id}" tenant="{tenant}"></tenure-progress></main>
</html>
"""


def shown(view: JobView) -> Json:
    """A task as users see it."""
    whole = views.background_task(view, log=False)
    return {name: whole[name] for name in SHOWN}


def create_progress(app: App, authorize: Authorize) -> Starlette:
    """The application that `app.progress` gives. Raises BadInput for what cannot be asked."""
    if not callable(authorize):
        raise BadInput(
            f"authorize {authorize!r:.80} cannot be called",
            hint="app.progress(authorize=lambda request, task: ...), True for who may see the task",
        )
    hub = Hub(app, shown)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        yield
        hub.close()

    web = Starlette(
        routes=routes(app, hub, authorize),
        middleware=[Middleware(AnswerHeaders), Middleware(CatchAll)],
        exception_handlers={TenureError: on_error, HTTPException: on_http_error("/tasks/{id}")},
        lifespan=lifespan,
    )
    web.router.redirect_slashes = False
    web.state.hub = hub
    return web


def routes(app: App, hub: Hub, authorize: Authorize) -> list[BaseRoute]:
    tasks = Tasks(app, hub, authorize)
    return [
        BySegments("/tenure-progress.js", static("tenure-progress.js", "text/javascript")),
        BySegments("/page.css", static("page.css", "text/css")),
        BySegments("/tasks/{id}", tasks.get),
        BySegments("/tasks/{id}/events", tasks.follow),
        BySegments("/tasks/{id}/page", tasks.page),
    ]


def everyone(_request: Request, _task: Json) -> bool:
    """For where whoever may come in may see all."""
    return True


class Tasks:
    def __init__(self, app: App, hub: Hub, authorize: Authorize) -> None:
        self._app = app
        self._hub = hub
        self._authorize = authorize

    async def get(self, request: Request) -> Response:
        asked, view = await self._seen(request)
        return await polled(self._hub, request, asked, self._hub.shown(view))

    async def follow(self, request: Request) -> Response:
        asked, view = await self._seen(request)
        first, seen = self._hub.shown(view), last_event_id(request)
        if first.ended and first.revision == seen.revision:
            return Response(status_code=204)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return _Stream(self._hub, (asked.tenant, view.id), first, seen)

    async def page(self, request: Request) -> Response:
        _, view = await self._seen(request)
        wanted = request.headers.get("accept-language", "")
        text = PAGE.format(
            lang="zh" if wanted.lower().startswith("zh") else "en",
            title=escape(view.task),
            id=escape(view.id),
            tenant=escape(view.tenant),
        )
        return Response(text, media_type="text/html", headers={"content-security-policy": PAGE_CSP})

    async def _seen(self, request: Request) -> tuple[Asked, JobView]:
        """The task, if there is one and the user may see it. Raises NotFound, the same for both."""
        asked, job_id = Asked.of(request), request.path_params["id"]
        nothing = NotFound(
            f"there is no task {job_id!r:.60}", hint="it may be over for long, or somebody else's"
        )
        try:
            view = await run_in_threadpool(read_task, self._app, asked.tenant, job_id)
        except NotFound:
            raise nothing from None
        if await self._may(request, shown(view)) is not True:
            raise nothing
        return asked, view

    async def _may(self, request: Request, task: Json) -> object:
        """What `authorize` says. Raises RightsUnknown if it fails; the error is for the log, not for the user."""
        try:
            return await self._asked(request, task)
        except Exception as exc:
            if isinstance(exc, NotAllowed) or (isinstance(exc, HTTPException) and exc.status_code < 500):
                return False  # a no in the words of its framework
            raise RightsUnknown(
                "whether you may see this task cannot be told now: the application failed to answer",
                hint="try again later; the application's log has the error under the traceId",
            ) from exc

    async def _asked(self, request: Request, task: Json) -> object:
        if inspect.iscoroutinefunction(self._authorize):
            return await cast(Awaitable[object], self._authorize(request, task))
        said: object = await run_in_threadpool(self._authorize, request, task)
        return await said if inspect.isawaitable(said) else said


class _Stream(EventStream):
    """A stream that ends after some minutes; its client comes again, and is asked again who it is."""

    def __init__(self, hub: Hub, watched: Watched, first: Snapshot, seen: Seen) -> None:
        super().__init__(hub, watched, first, seen)
        self._until = time.monotonic() + LONGEST_S

    def going_on(self) -> bool:
        return time.monotonic() < self._until


def static(name: str, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    """A file of ours; a browser asks each time whether it is still the same."""
    content = files(__package__).joinpath("static", name).read_bytes()
    tag = f'"{blake2b(content, digest_size=8).hexdigest()}"'
    headers = {"etag": tag, "cache-control": "no-cache"}

    async def serve(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=media_type, headers=headers)

    return serve
