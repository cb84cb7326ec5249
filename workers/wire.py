"""What a worker and its slots say to each other: msgpack lists, the kind first.

A ticket (one job to run) is one datagram: as long as the slot has not taken it out of the socket, the worker can take
it back, and the kernel decides which of the two gets it. Everything else goes over a stream.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any, NamedTuple, cast

import msgpack  # pyright: ignore[reportMissingTypeStubs]

from ..lease.outcome import Fail, GiveBack, Lose, NextChunk, Outcome, SkipRest, Stopped, Succeed
from ..scripts.states import Cause

_codec = cast(Any, msgpack)

INLINE = 4096
"""Longer arguments and cursors are asked for when the job starts, so that a ticket always fits its datagram."""
DATAGRAM = 16 * 1024


class Ticket(NamedTuple):
    """One job for a slot. The instants are seconds of the machine's monotonic clock, which all its processes share."""

    number: int
    id: str
    tenant: str
    task: str
    fence: int
    attempt: int
    chunk: int
    edit: int
    failures: int
    background: bool
    fire: str
    fire_time: int | None
    limit_at: float
    """When the job is told that its time is up."""
    start_by: float
    """A ticket taken out later than this goes back: the job may have been canceled since it was claimed."""
    held_until: float
    """When the lease ends, if it is not renewed."""
    args: bytes | None
    """None: ask for it."""
    cursor: bytes
    trace: str = ""
    lineage: str = ""
    spent: int = 0


class Report(NamedTuple):
    """What a task says of its progress between two checkpoints; None, 0 and "" say nothing."""

    doing: int | None = None
    total: int | None = None
    message: str = ""
    lines: list[str] = []  # noqa: RUF012  a tuple's default, never changed
    stage: str = ""
    warnings: int = 0
    steps: int = 0
    root: str = ""
    """The job whose budget counts the steps."""


class Say(IntEnum):
    """From a slot to its worker."""

    END = 1  # number, seconds, outcome or nothing (the lease was lost, so there is nobody to tell), memory in KB
    BACK = 2  # number: not started
    NEED = 3  # number: send arguments and cursor
    REPORT = 4  # number, and the fields of a Report
    CHECKPOINT = 5  # number, cursor, done, total, message: answer when it is committed
    NOTE = 6  # number, request, response
    OVER = 8  # number: it has crossed its budget of memory, and was told
    BLOCKER = 7  # number, number of the job that holds the event loop meanwhile or 0


class Tell(IntEnum):
    """From a worker to a slot, beside its work: heard by a thread while the job runs."""

    STOP = 1  # number, why
    HELD = 2  # number, until when
    SPENT = 4  # number, how many steps its call tree has counted
    WHO = 3  # number, nothing: could it be told that its time is up? If not, who holds the event loop?


class Why(IntEnum):
    """Why a running job is told to stop."""

    CANCELED = 1
    LOST = 2
    RELEASED = 3
    TIMEOUT = 4
    KILLED = 5
    PAUSED = 6
    MEMORY = 8  # its budget is crossed
    BLOCKING = 7  # it held the event loop, and so others ran out of time


def encode(frame: object) -> bytes:
    return cast(bytes, _codec.packb(frame))


def decode(data: bytes) -> Any:
    return _codec.unpackb(data, strict_map_key=False)


class Reader:
    """Takes frames out of a stream, however they were cut."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        self._parts = _codec.Unpacker(strict_map_key=False, max_buffer_size=64 * 1024 * 1024)

    def wait(self) -> Iterator[Any]:
        """The next frames; blocks until there is something to read. Raises EOFError when the other side is gone."""
        data = self._stream.recv(65536)
        if not data:
            raise EOFError
        return self._feed(data)

    def take(self) -> Iterator[Any]:
        """The frames that have arrived. Raises BlockingIOError if there are none, EOFError as `wait` does."""
        data = self._stream.recv(65536, socket.MSG_DONTWAIT)
        if not data:
            raise EOFError
        return self._feed(data)

    def _feed(self, data: bytes) -> Iterator[Any]:
        self._parts.feed(data)
        return iter(self._parts)


class Outgoing:
    """Frames on their way into a stream: what does not fit waits, and nobody waits for it."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        self._unsent = b""

    def put(self, frame: object) -> None:
        self._unsent += encode(frame)
        self.push()

    def push(self) -> bool:
        """Send as far as it goes without waiting. Answers whether all is sent."""
        if self._unsent:
            self._unsent = self._unsent[self._send(self._unsent) :]
        return not self._unsent

    def _send(self, data: bytes) -> int:
        try:
            return self._stream.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0
        except (BrokenPipeError, ConnectionResetError):
            return len(data)  # the other side died; who watches it will say so


_KINDS: list[Callable[..., Any]] = [Succeed, SkipRest, NextChunk, Fail, Lose, GiveBack, Stopped]


def outcome_frame(outcome: Outcome) -> list[Any]:
    """An outcome as it travels: which kind, then its fields in order."""
    return [_KINDS.index(type(outcome)), *(getattr(outcome, name) for name in outcome.__slots__)]


def outcome_of(frame: list[Any]) -> Outcome:
    kind = _KINDS[int(frame[0])]
    if kind in (Fail, Lose):
        frame[2] = Cause(frame[2])
    return cast(Outcome, kind(*frame[1:]))
