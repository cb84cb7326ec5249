"""GET /background-tasks/{id}: the task as it is, or, with `waitMs` and `since`, as soon as it is another.

    ?waitMs=30000&since=17    at once if its revision is not 17, else when that changes, after 30 s at the latest

A task that has ended, and a request without `since`, are answered at once. A client asks again with the revision it
got; waiting costs a watcher of the hub, and no connection to the store.
"""

from __future__ import annotations

import asyncio

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ..scheduler.history import find_job
from .background import LOG_LINES, of_background
from .fields import Fields
from .hints import Watched
from .hub import Hub, Snapshot
from .jobs import MOST
from .needs import App

LONGEST_MS = 60_000


class LongPoll:
    def __init__(self, app: App, hub: Hub) -> None:
        self._app = app
        self._hub = hub

    async def get(self, request: Request) -> Response:
        watched, snapshot, wait_ms, since = await run_in_threadpool(self._first, request)
        if wait_ms and snapshot.revision == since and not snapshot.ended and request.method == "GET":
            snapshot = await self._changed(request, watched, snapshot, wait_ms / 1000)
        return Response(snapshot.data, media_type="application/json")

    def _first(self, request: Request) -> tuple[Watched, Snapshot, int, int | None]:
        query = Fields.of_query(request.query_params.multi_items(), ("tenant", "waitMs", "since"))
        tenant, wait_ms = query.tenant(), query.number("waitMs", 0, 0, LONGEST_MS)
        since = query.optional_number("since", 0, MOST)
        query.done()
        job_id = request.path_params["id"]
        return (
            (tenant, job_id),
            Snapshot.of(
                of_background(find_job(self._app.ledger(tenant), self._app.archive, job_id, LOG_LINES))
            ),
            wait_ms,
            since,
        )

    async def _changed(self, request: Request, watched: Watched, seen: Snapshot, wait_s: float) -> Snapshot:
        """The next snapshot; the one that was seen if none came in time, the client went, or the server stops."""
        with self._hub.watch(watched, seen) as feed:
            news = asyncio.ensure_future(anext(feed.follow(seen.revision, wait_s), None))
            gone = asyncio.ensure_future(_gone(request))
            try:
                await asyncio.wait((news, gone), return_when=asyncio.FIRST_COMPLETED)
                return (news.result() if news.done() else None) or feed.latest
            finally:
                news.cancel()
                gone.cancel()


async def _gone(request: Request) -> None:
    """Return when the client has hung up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
