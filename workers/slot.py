"""A slot, seen from the worker: what it was given, what it says, how it is told and ended."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from typing import Any

from .row import Row
from .wire import DATAGRAM, Reader, Tell, Why, decode, encode
from .zygote import Zygote

_BUFFER = 512 * 1024


class Slot:
    """One slot: its sockets, and the rows it was given in the order it runs them (the first is the one that runs)."""

    def __init__(self, key: int, pool: str, zygote: Zygote) -> None:
        self.key = key
        self.pool = pool
        self.rows: dict[int, Row] = {}
        self.pid: int | None = None
        self.jobs = self.memory_kb = 0
        self.head_since = self.made_at = time.monotonic()
        self.told: Why | None = None
        self.leaving = False
        self.doomed = False
        self.gone_at: float | None = None
        """When it was killed, or hung up: the fork server should say very soon that it has ended."""
        self._unsent = b""
        self._zygote = zygote
        self._interrupt_at = self._kill_at = 0.0
        self._tickets, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.stream, stream = socket.socketpair()
        self._control, control = socket.socketpair()
        for end in (self._tickets, self.stream):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        self._reader = Reader(self.stream)
        self._untaken = theirs.dup()  # the slot's end: with it, what the slot has not taken is taken back
        zygote.fork(key, [theirs, stream, control])

    @property
    def head(self) -> Row | None:
        """The row that runs, or is about to."""
        return next(iter(self.rows.values()), None)

    @property
    def open(self) -> bool:
        """Whether it may be given more. Not before it is born: a fork server that is stopped bears nobody."""
        going = self.leaving or self.doomed or self.gone_at is not None
        return self.pid is not None and self.told is None and not going

    def quiet_for(self, now: float) -> float:
        """For how many seconds the running row has been running; 0 when none is."""
        return now - self.head_since if self.rows else 0.0

    def give(self, row: Row, now: float) -> bool:
        """Hand a row over; False when its socket is full."""
        try:
            self._tickets.send(row.ticket(), socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        if not self.rows:
            self.head_since = now
        self.rows[row.number] = row
        return True

    def take_back(self) -> list[Row]:
        """The rows it has not begun; it never will."""
        found: list[Row] = []
        while self.rows:
            try:
                data = self._untaken.recv(DATAGRAM, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            row = self.rows.pop(decode(data)[0], None) if data else None
            if row is not None:
                found.append(row)
        return found

    def said(self) -> Iterator[Any]:
        """What it has said since; nothing if nothing."""
        try:
            return self._reader.take()
        except BlockingIOError:
            return iter(())
        except (EOFError, ConnectionResetError):
            # its end is told by the fork server, which knows better than a socket that others may hold
            self.gone_at = self.gone_at or time.monotonic()
            return iter(())

    def last_words(self) -> Iterator[Any]:
        """All that a dead slot has said."""
        try:
            while True:
                yield from self._reader.take()
        except (BlockingIOError, EOFError, ConnectionResetError):
            return

    def finish(self, row: Row, now: float) -> None:
        """A row it was given has ended, or came back."""
        del self.rows[row.number]
        self.head_since = now
        if not self.doomed:
            self.told = None

    def answer(self, number: int, answer: object) -> None:
        """Answer what it asked and waits for."""
        self._unsent += encode([number, answer])
        self.push()

    def push(self) -> bool:
        """Send what is left of the answers, as far as it goes without waiting. Answers whether all is sent."""
        if self._unsent:
            self._unsent = self._unsent[_send(self.stream, self._unsent) :]
        return not self._unsent

    def held(self, row: Row) -> None:
        """Let it know that the lease of the running row was prolonged."""
        _send(self._control, encode([Tell.HELD, row.number, row.held_until]))

    def tell(self, why: Why, now: float, grace: float) -> None:
        """Tell the running job to stop: first by word, after a quarter of the grace by force, then it is killed."""
        row = self.head
        if row is None or self.told is not None:
            return
        self.told = why
        self._interrupt_at, self._kill_at = now + grace / 4, now + grace
        _send(self._control, encode([Tell.STOP, row.number, int(why)]))

    def kill(self, why: Why) -> None:
        """End it now."""
        if self.told is None:
            self.told = why
        self.doomed = True
        self._interrupt_at = self._kill_at = float("inf")
        self.gone_at = self.gone_at or time.monotonic()
        self._zygote.kill(self.key, signal.SIGKILL)

    def press(self, now: float) -> float:
        """Do what is due to one that was told to stop, and say when to come again."""
        if now >= self._kill_at:
            self.kill(Why.KILLED)
        elif now >= self._interrupt_at:
            self._interrupt_at = float("inf")
            self._zygote.kill(self.key, signal.SIGTERM)
        return min(self._interrupt_at, self._kill_at)

    def leave(self) -> None:
        """Let it end after what it has."""
        self.leaving = True
        self._tickets.send(b"", socket.MSG_DONTWAIT)

    def close(self) -> None:
        for end in (self._tickets, self._untaken, self.stream, self._control):
            end.close()


def _send(end: socket.socket, data: bytes) -> int:
    """How much of `data` went without waiting."""
    try:
        return end.send(data, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return 0
    except (BrokenPipeError, ConnectionResetError):
        return len(data)  # it died; the fork server will say so
