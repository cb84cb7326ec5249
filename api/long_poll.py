"""GET /background-tasks/{id}: the task as it is, or, with `waitMs` and `since`, as soon as it is another.

    ?waitMs=30000&since=17    at once if its revision is not 17, else when that changes, after 30 s at the latest

A task that has ended, and a request without `since`, are answered at once. A client asks again with the revision it
got; waiting costs a watcher of the hub, and no connection to the store.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ..lease.jobs import JobView
from ..scheduler.history import find_job
from .background import LOG_LINES, of_background
from .fields import Fields
from .hints import Watched
from .hub import Hub, Snapshot
from .jobs import MOST
from .needs import App

LONGEST_MS = 60_000


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for: how long to wait, and for another revision than which."""

    tenant: str
    wait_ms: int
    since: int | None

    @classmethod
    def of(cls, request: Request) -> Asked:
        query = Fields.of_query(request.query_params.multi_items(), ("tenant", "waitMs", "since"))
        asked = cls(
            query.tenant(), query.number("waitMs", 0, 0, LONGEST_MS), query.optional_number("since", 0, MOST)
        )
        query.done()
        return asked


class LongPoll:
    def __init__(self, app: App, hub: Hub) -> None:
        self._app = app
        self._hub = hub

    async def get(self, request: Request) -> Response:
        asked, snapshot = await run_in_threadpool(self._first, request)
        return await polled(self._hub, request, asked, snapshot)

    def _first(self, request: Request) -> tuple[Asked, Snapshot]:
        asked = Asked.of(request)
        return asked, self._hub.shown(read_task(self._app, asked.tenant, request.path_params["id"]))


def read_task(app: App, tenant: str, job_id: str) -> JobView:
    """The background task, from the archive if it is there. Raises NotFound."""
    return of_background(find_job(app.ledger(tenant), app.archive, job_id, LOG_LINES))


async def polled(hub: Hub, request: Request, asked: Asked, first: Snapshot) -> Response:
    """The task that was just read as `first`, or as it is once it has changed."""
    snapshot = first
    if asked.wait_ms and first.revision == asked.since and not first.ended and request.method == "GET":
        snapshot = await _changed(
            hub, request, (asked.tenant, request.path_params["id"]), first, asked.wait_ms / 1000
        )
    return Response(snapshot.data, media_type="application/json")


async def _changed(hub: Hub, request: Request, watched: Watched, seen: Snapshot, wait_s: float) -> Snapshot:
    """The next snapshot; the one that was seen if none came in time, the client went, or the server stops."""
    with hub.watch(watched, seen) as feed:
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
