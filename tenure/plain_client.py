"""The client of a plain server: a call of a script without what redis-py does around each command.

Connections are redis-py's own, from its pool: how they connect, authenticate, time out and try again is as it was.
Left out around a script call are the pool's book-keeping, metrics, and a look whether the connection is still alive:
one that is not costs a second try, and each script may be sent twice.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, cast

import hiredis
from redis import Redis
from redis.exceptions import ResponseError

_pack: Callable[[tuple[Any, ...]], bytes] = cast(Any, hiredis).pack_command
SPARE = 16
"""Connections kept at hand for the next calls; more than these go back to the pool, where pipelines find them."""


class PlainClient(Redis):
    """Threads may share it, and a fork may carry it over."""

    def __init__(self, **options: Any) -> None:
        cast(Any, super()).__init__(**options)
        self._spare: deque[Any] = deque()
        self._pid = os.getpid()

    def execute_command(self, *args: Any, **options: Any) -> Any:
        if args[0] != "FCALL" or options:
            return cast(Any, super()).execute_command(*args, **options)
        return self._ask(lambda connection: _ask(connection, args))

    def ask_all(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """The replies to calls of scripts that are sent together; one that is an error stands among them."""
        return cast("list[Any]", self._ask(lambda connection: _ask_all(connection, commands)))

    def _ask(self, ask: Callable[[Any], Any]) -> Any:
        connection = self._take()

        def hang_up(_error: Exception) -> None:
            connection.disconnect()

        whole = False
        try:
            reply = connection.retry.call_with_retry(lambda: ask(connection), hang_up)
            whole = True
            return reply
        except ResponseError:
            whole = True
            raise
        finally:
            if not whole:  # the rest of a reply would be read as that of the next call
                connection.disconnect()
            self._give_back(connection)

    def _take(self) -> Any:
        if self._pid != os.getpid():  # what a fork carried over belongs to its parent
            self._spare, self._pid = deque(), os.getpid()
        try:
            return self._spare.pop()
        except IndexError:
            return cast(Any, self.connection_pool).get_connection()

    def _give_back(self, connection: Any) -> None:
        if len(self._spare) < SPARE:
            self._spare.append(connection)
        else:
            self.connection_pool.release(connection)


def _ask(connection: Any, command: tuple[Any, ...]) -> Any:
    connection.send_packed_command([_pack(command)])
    return connection.read_response()


def _ask_all(connection: Any, commands: Sequence[Sequence[Any]]) -> list[Any]:
    connection.send_packed_command([b"".join([_pack(tuple(command)) for command in commands])])
    return [_reply(connection) for _ in commands]


def _reply(connection: Any) -> Any:
    try:
        return connection.read_response()
    except ResponseError as exc:
        return exc
