"""Two clocks: the server's, in epoch milliseconds, decides; this machine's monotonic one, in seconds, measures."""

from __future__ import annotations

import time
from typing import Any, cast

from redis.exceptions import RedisClusterException, RedisError

from ..scripts.errors import StoreUnreachable
from ..scripts.loader import Client
from ..scripts.store_errors import store_error

NEVER = float("inf")
"""The instant that does not come."""


ASKS = 3
BELIEVED_S = 1.0
"""An answer that took longer says too little: it may be wrong by half of what it took."""
DRIFT_S = 0.002
"""How far the clocks may have gone apart since the server was asked."""


class ServerClock:
    """Turns instants of the server into instants of `time.monotonic()`. Ask it again now and then: clocks drift."""

    def __init__(self) -> None:
        self._offset = 0.0
        self._error_s = 0.0

    def ask(self, redis: Client, address: str = "the store") -> None:
        """Ask a few times: on a busy machine an answer can wait for its reader, and the quickest says most.

        Raises StoreUnreachable, and goes on as it did, when no answer was quick: the client sends a call again that is
        not answered, and then nobody knows which of the two the answer is for.
        """
        try:
            error_s, offset = min(_ask(redis) for _ in range(ASKS))
        except (RedisError, RedisClusterException, OSError) as exc:
            raise store_error(exc, address) from exc
        if 2 * error_s > BELIEVED_S:
            raise StoreUnreachable(
                f"{address} took {2 * error_s:.1f} s to say what time it is: too long to be believed",
                hint="look at its load (redis-cli --latency) and the network",
            )
        self._error_s, self._offset = error_s, offset

    @staticmethod
    def monotonic() -> float:
        return time.monotonic()

    def now_ms(self) -> int:
        """The server's time, now."""
        return int((time.monotonic() + self._offset) * 1000)

    def local(self, at_ms: int) -> float:
        """The local instant of a server instant."""
        return at_ms / 1000 - self._offset

    def may_be_past(self, at_ms: int, now: float) -> bool:
        """Whether a server instant may be past, as far as we know its clock."""
        return self.earliest(at_ms) <= now

    def earliest(self, at_ms: int) -> float:
        """The earliest local instant that a server instant may be."""
        return self.local(at_ms) - self._error_s - DRIFT_S


def _ask(redis: Client) -> tuple[float, float]:
    """How wrong the answer may be, and by how much the server's clock is ahead."""
    asked = time.monotonic()
    reply = cast(Any, redis).time()
    answered = time.monotonic()
    if isinstance(reply, dict):  # a cluster answers for each of its nodes
        reply = max(cast("dict[str, tuple[int, int]]", reply).values())
    seconds, micros = reply
    return (answered - asked) / 2, seconds + micros / 1e6 - (asked + answered) / 2
