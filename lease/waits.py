"""Waits for word of the store, but never for ever: a connection that says nothing may have nobody at its other end.

Both waits are for the blocking client, whose own time-out is for connecting and for single answers.
"""

from __future__ import annotations

import time
from typing import Any, cast

from redis import RedisCluster
from redis.exceptions import TimeoutError

from ..scripts.loader import Client

SPARE_S = 1.0
"""How much later than it should the server may end a wait."""
QUIET_S = 5.0
"""After so long a silence the server is asked whether it is there."""
ANSWER_S = 3.0
"""How long it may take to answer that."""


def pop(client: Client, key: str, seconds: float) -> bool:
    """Wait for an element of a list and take it; False when none came within `seconds`.

    Raises RedisError, also when the server has not said by then that there is none; an element that was on its way then
    is lost.
    """
    any_client = cast(Any, client)
    if isinstance(client, RedisCluster):
        any_client = any_client.get_redis_connection(any_client.get_node_from_key(key))
    pool = any_client.connection_pool
    connection = pool.get_connection()
    try:
        connection.send_command("BLPOP", key, seconds)
        if not connection.can_read(timeout=seconds + SPARE_S):
            raise TimeoutError(f"no word of the server {SPARE_S:g} s after a wait of {seconds:g} s was over")
        return connection.read_response() is not None
    except BaseException:
        connection.disconnect()  # the answer may come yet, and must not be read as that to another call
        raise
    finally:
        pool.release(connection)


class Subscription:
    """Hears one channel, as long as the server is there. One that has raised is of no more use: close it."""

    def __init__(self, client: Client, channel: str) -> None:
        self._pubsub: Any = cast(Any, client).pubsub()
        self._asked = False
        self._due_at = time.monotonic() + QUIET_S
        try:
            self._pubsub.subscribe(channel)
        except BaseException:
            self._pubsub.close()
            raise

    def next(self, timeout: float) -> dict[str, Any] | None:
        """The next message as redis-py gives it; None when there was none within `timeout` seconds.

        The first is of the type `subscribe`: from then on all is heard. Raises RedisError or OSError when the
        connection broke, or when the server did not answer after a silence.
        """
        until = time.monotonic() + timeout
        while True:
            patience = min(until, self._due_at) - time.monotonic()
            message = cast("dict[str, Any] | None", self._pubsub.get_message(timeout=max(0.0, patience)))
            now = time.monotonic()
            if message is not None:
                self._asked, self._due_at = False, now + QUIET_S
                if message["type"] != "pong":
                    return message
            elif now >= self._due_at:
                self._ask(now)
            elif now >= until:
                return None

    def _ask(self, now: float) -> None:
        if self._asked:
            raise TimeoutError(f"after a silence the server did not answer within {ANSWER_S:g} s")
        self._pubsub.ping()
        self._asked, self._due_at = True, now + ANSWER_S

    def leave(self) -> None:
        """Ask for a last message, which ends the wait of another thread in `next`."""
        if self._pubsub.subscribed:
            self._pubsub.unsubscribe()

    def close(self) -> None:
        self._pubsub.close()
