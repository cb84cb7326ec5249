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
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as NoAnswer

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
        return self.begin(commands).replies()

    def begin(self, commands: Sequence[Sequence[Any]]) -> Sent:
        """Send calls of scripts together and do not wait: their replies are asked for later, or dropped."""
        return Sent(self.take(), commands, self.give_back)

    def _ask(self, ask: Callable[[Any], Any]) -> Any:
        connection = self.take()
        whole = False
        try:
            reply = _patiently(connection, lambda: ask(connection))
            whole = True
            return reply
        except ResponseError:
            whole = True
            raise
        finally:
            self.give_back(connection, whole)

    def take(self) -> Any:
        """A connection, which is to be given back."""
        if self._pid != os.getpid():  # what a fork carried over belongs to its parent
            self._spare, self._pid = deque(), os.getpid()
        try:
            return self._spare.pop()
        except IndexError:
            return cast(Any, self.connection_pool).get_connection()

    def give_back(self, connection: Any, whole: bool) -> None:
        """Unless all replies were read, `whole`, it is closed: the rest would be read as those of the next call."""
        if not whole:
            connection.disconnect()
        if len(self._spare) < SPARE:
            self._spare.append(connection)
        else:
            self.connection_pool.release(connection)


def _ask(connection: Any, command: tuple[Any, ...]) -> Any:
    connection.send_packed_command([_pack(command)])
    return connection.read_response()


class Sent:
    """Calls of scripts that are under way. Either `replies` or `drop` has to be called, once."""

    def __init__(
        self, connection: Any, commands: Sequence[Sequence[Any]], give_back: Callable[[Any, bool], None]
    ) -> None:
        self._connection = connection
        self._packed = b"".join([_pack(tuple(command)) for command in commands])
        self._many = len(commands)
        self._give_back = give_back
        self._under_way = False
        try:
            self._send()
        except (NoConnection, NoAnswer):
            connection.disconnect()  # `replies` tries again
        except BaseException:
            self.drop()
            raise

    def replies(self) -> list[Any]:
        """Wait for the replies; one that is an error stands among them. What is lost is sent again, as often as the
        connection's options say.
        """
        whole = False
        try:
            replies = _patiently(self._connection, self._read)
            whole = True
            return cast("list[Any]", replies)
        finally:
            self._give_back(self._connection, whole)

    def drop(self) -> None:
        """The calls may be applied, and nobody hears of it."""
        self._give_back(self._connection, False)

    def _send(self) -> None:
        self._connection.send_packed_command([self._packed])
        self._under_way = True

    def _read(self) -> list[Any]:
        if not self._under_way:
            self._send()
        self._under_way = False
        return [_reply(self._connection) for _ in range(self._many)]


def _patiently(connection: Any, ask: Callable[[], Any]) -> Any:
    """Ask as often as the connection's options say, each time on a new one."""

    def hang_up(_error: Exception) -> None:
        connection.disconnect()

    return connection.retry.call_with_retry(ask, hang_up)


def _reply(connection: Any) -> Any:
    try:
        return connection.read_response()
    except ResponseError as exc:
        return exc
