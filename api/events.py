"""GET /background-tasks/{id}/events: the task as it changes, as server-sent events.

Each event is a whole snapshot; its id is the task's revision, and the number of the last log line if it shows any:
`17`, `17-203`. A client that comes back with Last-Event-ID gets the current one if it is another, else at once a
comment; an id that is none of ours counts as none. The stream ends when the task has ended; who then reconnects, as
browsers do, gets 204, which tells them to stop. `gap` is sent before a snapshot whose log no longer joins on to the one
that the client had before, also by its Last-Event-ID.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from .hints import Watched
from .hub import Feed, Hub, Snapshot
from .jobs import ledger_of
from .long_poll import read_task
from .needs import App

HEARTBEAT_S = 15.0
RETRY_MS = 2000
_ID = re.compile(r"([0-9]{1,15})(?:-([0-9]{1,15}))?")


class Seen(NamedTuple):
    """What a client has: of which revision, and up to which line of the log."""

    revision: int | None = None
    line: int | None = None


class Events:
    def __init__(self, app: App, hub: Hub) -> None:
        self._app = app
        self._hub = hub

    async def follow(self, request: Request) -> Response:
        watched, first = await run_in_threadpool(self._first, request)
        seen = last_event_id(request)
        if first.ended and first.revision == seen.revision:
            return Response(status_code=204)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return EventStream(self._hub, watched, first, seen)

    def _first(self, request: Request) -> tuple[Watched, Snapshot]:
        ledger, job_id = ledger_of(self._app, request), request.path_params["id"]
        return (ledger.tenant, job_id), self._hub.shown(read_task(self._app, ledger.tenant, job_id))


class EventStream(StreamingResponse):
    """A stream that watches for exactly as long as it is sent."""

    def __init__(self, hub: Hub, watched: Watched, first: Snapshot, seen: Seen) -> None:
        super().__init__(_nothing(), headers={"X-Accel-Buffering": "no"}, media_type="text/event-stream")
        self._hub = hub
        self._watched = watched
        self._first = first
        self._seen = seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._hub.watch(self._watched, self._first) as feed:
            self.body_iterator = events(feed, self._seen, self.going_on)
            await super().__call__(scope, receive, send)

    def going_on(self) -> bool:
        """Whether more is sent, asked before each event."""
        return True


async def events(feed: Feed, seen: Seen, going_on: Callable[[], bool]) -> AsyncIterator[bytes]:
    """What is sent, piece by piece."""
    yield b"retry: %d\n\n" % RETRY_MS
    if feed.latest.revision == seen.revision:
        yield b": nothing new\n\n"  # so who was away knows at once that what it shows is not old
    last_line = seen.line
    async for snapshot in feed.follow(seen.revision, HEARTBEAT_S):
        if not going_on():
            return
        if snapshot is None:
            yield b": still here\n\n"
            continue
        named = b"%d" % snapshot.revision
        if snapshot.lines:
            first, last = snapshot.lines
            if last_line is not None and first > last_line + 1:
                gap = json.dumps({"from": last_line + 1, "to": first - 1})
                yield f"event: gap\ndata: {gap}\n\n".encode()
            last_line = last
            named += b"-%d" % last
        yield b"id: %b\ndata: %b\n\n" % (named, snapshot.data)


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


def last_event_id(request: Request) -> Seen:
    found = _ID.fullmatch(request.headers.get("last-event-id", ""))
    return Seen(int(found[1]), int(found[2]) if found[2] else None) if found else Seen()
