"""The one subscription of a process: it hears which background tasks have changed. What it misses, a re-read finds."""

from __future__ import annotations

import threading
from collections.abc import Callable

from redis.exceptions import RedisError

from ..lease.loop import Loop
from ..lease.waits import Subscription
from ..scripts.keys import watch_channel
from ..scripts.store_errors import store_error
from .needs import App

POLL_S = 0.5

Watched = tuple[str, str]
"""Tenant and id of a background task."""


class Hints:
    """Calls `changed(watched)` from a thread of its own, as long as somebody wants it.

    `changed(None)` says that anything may have changed: it listens only from now on.
    """

    def __init__(self, app: App, changed: Callable[[Watched | None], None]) -> None:
        self._app = app
        self._changed = changed
        self._lock = threading.Lock()
        self._wanted = False
        self._loop: Loop | None = None
        self._subscription: Subscription | None = None

    def want(self, wanted: bool) -> None:
        """Begin to listen, or end it within a moment.

        A thread that has not ended yet is used again: there is never a second one.
        """
        with self._lock:
            self._wanted = wanted
            if self._loop:
                self._loop.wake()
            elif wanted:
                self._loop = Loop(self, "tenure-hints")
                self._loop.start()

    def round(self) -> float:
        """Wait a moment for one message."""
        if self._ended():
            return 0.0
        try:
            self._listen()
        except Exception as exc:
            self._hang_up()
            if not self._wanted:
                return 0.0  # the application was closed under us, and nobody minds
            if isinstance(exc, RedisError):
                raise store_error(exc, "the store") from exc
            raise
        return 0.0

    def _ended(self) -> bool:
        with self._lock:
            if self._wanted or self._loop is None:
                return False
            self._hang_up()
            self._loop.stop()
            self._loop = None
            return True

    def _listen(self) -> None:
        if self._subscription is None:
            channel = watch_channel(self._app.ledgers().namespace)
            self._subscription = Subscription(self._app.blocking_redis(), channel)
        message = self._subscription.next(POLL_S)
        if message and message["type"] == "message":
            tenant, job_id, _revision = message["data"].decode().split(" ")
            self._changed((tenant, job_id))
        elif message:
            self._changed(None)

    def _hang_up(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            subscription.close()
