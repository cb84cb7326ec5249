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


Listener = Callable[[Watched | None], None]


class Hints:
    """Calls all listeners from a thread of its own, as long as there are any: one subscription for a whole process.

    They are told what has changed; None says that anything may have: it listens only from now on.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._listeners: tuple[Listener, ...] = ()
        self._loop: Loop | None = None
        self._subscription: Subscription | None = None

    def listen(self, listener: Listener) -> None:
        """Begin to tell it. A thread that has not ended yet is used again: there is never a second one."""
        with self._lock:
            if listener in self._listeners:
                return
            self._listeners = (*self._listeners, listener)
            if self._loop:
                self._loop.wake()
            else:
                self._loop = Loop(self, "tenure-hints")
                self._loop.start()

    def leave(self, listener: Listener) -> None:
        """Tell it no more; with the last one the subscription ends within a moment."""
        with self._lock:
            self._listeners = tuple(one for one in self._listeners if one != listener)
            if self._loop:
                self._loop.wake()

    def round(self) -> float:
        """Wait a moment for one message."""
        if self._ended():
            return 0.0
        try:
            self._listen()
        except Exception as exc:
            self._hang_up()
            if not self._listeners:
                return 0.0  # the application was closed under us, and nobody minds
            if isinstance(exc, RedisError):
                raise store_error(exc, "the store") from exc
            raise
        return 0.0

    def _ended(self) -> bool:
        with self._lock:
            if self._listeners or self._loop is None:
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
            self._tell((tenant, job_id))
        elif message:
            self._tell(None)

    def _tell(self, watched: Watched | None) -> None:
        for listener in self._listeners:
            listener(watched)

    def _hang_up(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            subscription.close()
