"""Who watches which background task: each watched task is read once, however many watch it.

    hint, or 2 s ──> Feed reads the task ──> its watchers wake and take the newest snapshot

A feed reads at most four times a second. A watcher that is slow misses snapshots, never the last one.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import anyio
import anyio.to_thread

from ..lease.jobs import JobView
from ..scripts.errors import NotFound, StoreError
from . import views
from .background import background_task
from .hints import Watched
from .needs import App
from .plain import Json
from .stopping import server_stops

GAP_S = 0.25
RECHECK_S = 2.0
STOP_POLL_S = 0.25
READERS = 8
Render = Callable[[JobView], Json]
log = logging.getLogger("tenure.api")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A background task as all its watchers are sent it. `lines` are the numbers of its log lines, first and last, if
    it shows them.
    """

    revision: int
    ended: bool
    lines: tuple[int, int] | None
    data: bytes

    @classmethod
    def of(cls, view: JobView, render: Render = views.background_task) -> Snapshot:
        shown = render(view)
        lines = view.progress.lines if view.progress and shown.get("log") else ()
        text = json.dumps(shown, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return cls(
            revision=view.revision,
            ended=view.ended,
            lines=(lines[0][0], lines[-1][0]) if lines else None,
            data=text.encode("utf-8", "backslashreplace"),
        )


class Feed:
    """One watched task: reads it again when it may have changed, until it has ended."""

    def __init__(self, first: Snapshot, read: Callable[[], Snapshot], limiter: anyio.CapacityLimiter) -> None:
        self.latest = first
        self.over = False
        self.watchers = 0
        self._read = read
        self._limiter = limiter
        self._loop = asyncio.get_running_loop()
        self._hint = asyncio.Event()
        self._news = asyncio.Event()
        self._task = self._loop.create_task(self._run())

    async def follow(self, seen: int | None, patience_s: float) -> AsyncIterator[Snapshot | None]:
        """The newest snapshot each time it is another than the one `seen`; None when nothing came for `patience_s`."""
        while True:
            news = self._news
            if self.latest.revision != seen:
                seen = self.latest.revision
                yield self.latest
            elif self.over:
                return
            else:
                try:
                    async with asyncio.timeout(patience_s):
                        await news.wait()
                except TimeoutError:
                    yield None

    def hint(self) -> None:
        """It has changed. From any thread."""
        with suppress(RuntimeError):  # the loop is closed: nobody watches any more
            self._loop.call_soon_threadsafe(self._hint.set)

    def publish(self, snapshot: Snapshot) -> None:
        self.latest = snapshot
        self._wake()

    def end(self) -> None:
        """Let all watchers take the last snapshot and go."""
        self.over = True
        self._task.cancel()
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _run(self) -> None:
        try:
            while not self.latest.ended:
                await self._pause()
                with suppress(StoreError):  # it comes back, and then its watchers see how things are
                    snapshot = await anyio.to_thread.run_sync(
                        self._read, abandon_on_cancel=True, limiter=self._limiter
                    )
                    if snapshot.revision != self.latest.revision:
                        self.publish(snapshot)
        except NotFound:
            pass  # its retention is over
        except Exception:
            log.exception("a watched task cannot be read")
        finally:
            self.over = True
            self._wake()

    async def _pause(self) -> None:
        """Wait for a hint, but not for ever: a hint may be lost."""
        await asyncio.sleep(GAP_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(RECHECK_S - GAP_S):
                await self._hint.wait()
        self._hint.clear()


class Hub:
    """The feeds of one process, each sent as `render` shows it. It serves one event loop."""

    def __init__(self, app: App, render: Render = views.background_task) -> None:
        self._app = app
        self._render = render
        self._feeds: dict[Watched, Feed] = {}
        self._readers = anyio.CapacityLimiter(READERS)
        self._sentry: asyncio.Task[None] | None = None

    @contextmanager
    def watch(self, watched: Watched, first: Snapshot) -> Generator[Feed]:
        """The feed of a task that was just read as `first`; it is kept while somebody is in here."""
        feed = self._feed(watched, first)
        feed.watchers += 1
        try:
            yield feed
        finally:
            feed.watchers -= 1
            if not feed.watchers:
                feed.end()
                if self._feeds.get(watched) is feed:
                    del self._feeds[watched]
            if not self._feeds:
                self._app.hints.leave(self.changed)

    def close(self) -> None:
        """End all streams."""
        for feed in self._feeds.values():
            feed.end()

    def _feed(self, watched: Watched, first: Snapshot) -> Feed:
        feed = self._feeds.get(watched)
        if feed is None or feed.over:
            feed = self._feeds[watched] = Feed(first, lambda: self._read(watched), self._readers)
            self._app.hints.listen(self.changed)
            self._watch_server()
        elif first.revision > feed.latest.revision:
            feed.publish(first)
        return feed

    def _read(self, watched: Watched) -> Snapshot:
        tenant, job_id = watched
        return self.shown(background_task(self._app.ledger(tenant), job_id))

    def shown(self, view: JobView) -> Snapshot:
        return Snapshot.of(view, self._render)

    def changed(self, watched: Watched | None) -> None:
        """From the thread of the hints."""
        for feed in [self._feeds.get(watched)] if watched else list(self._feeds.values()):
            if feed:
                feed.hint()

    def _watch_server(self) -> None:
        if self._sentry is None or self._sentry.done():
            self._sentry = asyncio.get_running_loop().create_task(self._close_with_server())

    async def _close_with_server(self) -> None:
        while self._feeds and not server_stops():
            await asyncio.sleep(STOP_POLL_S)
        self.close()
