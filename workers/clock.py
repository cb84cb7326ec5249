"""Two clocks: the server's, in epoch milliseconds, decides; this machine's monotonic one, in seconds, measures."""

from __future__ import annotations

import time
from typing import Any, cast

from ..scripts.loader import Client

NEVER = float("inf")
"""The instant that does not come."""


class ServerClock:
    """Turns instants of the server into instants of `time.monotonic()`. Ask it again now and then: clocks drift."""

    def __init__(self) -> None:
        self._offset = 0.0

    def ask(self, redis: Client) -> None:
        asked = time.monotonic()
        reply = cast(Any, redis).time()
        answered = time.monotonic()
        if isinstance(reply, dict):  # a cluster answers for each of its nodes
            reply = max(cast("dict[str, tuple[int, int]]", reply).values())
        seconds, micros = reply
        self._offset = seconds + micros / 1e6 - (asked + answered) / 2

    @staticmethod
    def monotonic() -> float:
        return time.monotonic()

    def now_ms(self) -> int:
        """The server's time, now."""
        return int((time.monotonic() + self._offset) * 1000)

    def local(self, at_ms: int) -> float:
        """The local instant of a server instant."""
        return at_ms / 1000 - self._offset
