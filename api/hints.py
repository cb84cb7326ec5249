"""The one subscription of a process: it hears which background tasks have changed. What it misses, a re-read finds."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from redis.exceptions import RedisError

from ..lease.loop import retry_after
from ..scripts.errors import TenureError
from ..scripts.keys import watch_channel
from .needs import App

POLL_S = 0.5
log = logging.getLogger("tenure.api")


class Hints:
    """Calls `changed(tenant, id)` from a thread of its own, as long as somebody wants it."""

    def __init__(self, app: App, changed: Callable[[str, str], None]) -> None:
        self._app = app
        self._changed = changed
        self._lock = threading.Lock()
        self._wanted = False
        self._thread: threading.Thread | None = None

    def want(self, wanted: bool) -> None:
        """Begin to listen, or end it within a moment; a thread that has not ended yet is used again."""
        with self._lock:
            self._wanted = wanted
            if wanted and self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tenure-hints", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        failures = 0
        while not self._over():
            try:
                self._listen()
                failures = 0
            except (RedisError, TenureError, OSError) as exc:
                failures += 1
                if failures == 1:
                    log.warning("hints of changed tasks are away, tasks are re-read by the clock: %s", exc)
                threading.Event().wait(min(retry_after(failures), 2.0))

    def _over(self) -> bool:
        with self._lock:
            if not self._wanted:
                self._thread = None
            return not self._wanted

    def _listen(self) -> None:
        client: Any = self._app.blocking_redis()
        pubsub = client.pubsub(ignore_subscribe_messages=True)
        try:
            pubsub.subscribe(watch_channel(self._app.ledgers().namespace))
            while self._wanted:
                message = pubsub.get_message(timeout=POLL_S)
                if message:
                    tenant, job_id, _revision = message["data"].decode().split(" ")
                    self._changed(tenant, job_id)
        finally:
            pubsub.close()
