"""A slot, seen from the worker: what it was given, what it says, how it is told and ended."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from .clock import NEVER
from .row import Row
from .wire import DATAGRAM, Outgoing, Reader, Tell, Why, decode
from .zygote import Zygote

_BUFFER = 512 * 1024


@dataclass(slots=True)
class Told:
    """A running job was told to stop."""

    why: Why
    press_at: float = NEVER
    """When it is told again, with force."""
    kill_at: float = NEVER


class Slot:
    """One slot: its sockets, and the rows it was given in the order it takes them."""

    def __init__(self, key: int, pool: str, zygote: Zygote, width: int = 1) -> None:
        self.key = key
        self.pool = pool
        self.width = width
        """How many rows it runs at a time: one in its main thread, or coroutines side by side in a lane."""
        self.rows: dict[int, Row] = {}
        self.told: dict[int, Told] = {}
        """By the numbers of rows."""
        self.pressed: set[int] = set()
        """By number, those that were told again."""
        self.blamed: set[int] = set()
        """By number, who held its event loop each time it was asked for a job that is out of time; 0: nobody."""
        self.pid: int | None = None
        self.jobs = self.memory_kb = 0
        self.moved_at = self.made_at = time.monotonic()
        """Since when nothing has ended in it."""
        self.looked_at = 0.0
        """When its jobs were last looked through for what must end."""
        self.leaving = False
        self.doomed = False
        self.stalled_until = 0.0
        """Until then nothing more is given to it: it did not take what it was given."""
        self.gone_at: float | None = None
        """When it was killed, or hung up: the fork server should say very soon that it has ended."""
        self._sent_off = False
        self._zygote = zygote
        self._tickets, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.stream, stream = socket.socketpair()
        self._control, control = socket.socketpair()
        for end in (self._tickets, self.stream, self._control):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        self._answers, self._words = Outgoing(self.stream), Outgoing(self._control)
        self._reader = Reader(self.stream)
        self._untaken = theirs.dup()  # the slot's end: with it, what the slot has not taken is taken back
        zygote.fork(key, [theirs, stream, control], width)

    @property
    def running(self) -> list[Row]:
        """The rows that run, or are about to: its first ones. May be asked for in any thread."""
        return list(self.rows.values())[: self.width]  # `list` takes them in one step

    def began(self, row: Row) -> float:
        """When a running row began: in a lane as soon as it was given, else when the one before it had ended."""
        return row.given_at if self.width > 1 else max(row.given_at, self.moved_at)

    def runs(self, row: Row) -> bool:
        """Whether a row runs, or is about to."""
        return row.number in self.rows and (len(self.rows) <= self.width or row in self.running)

    @property
    def open(self) -> bool:
        """Whether it may be given more. Not before it is born: a fork server that is stopped bears nobody. Not while a
        job in it does not stop though it was told to: it may have to be killed for that, with all that it runs."""
        going = self.leaving or self.doomed or self.gone_at is not None
        stuck = self.pressed if self.width > 1 else self.told
        return self.pid is not None and not (going or stuck or self.stalled_until)

    @property
    def free(self) -> int:
        """How many more rows it could begin at once."""
        return max(0, self.width - len(self.rows)) if self.open else 0

    def quiet_for(self, now: float) -> float:
        """For how many seconds nothing has ended in it; 0 when nothing runs."""
        return now - self.moved_at if self.rows else 0.0

    def give(self, row: Row, now: float) -> bool:
        """Hand a row over; False when its socket is full."""
        try:
            self._tickets.send(row.ticket(), socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        if not self.rows:
            self.moved_at = now
        row.given_at = now
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

    def untaken_for(self, now: float) -> float:
        """How long a row has been waiting that it was given and has not taken; 0 when none is."""
        try:
            data = self._untaken.recv(DATAGRAM, socket.MSG_DONTWAIT | socket.MSG_PEEK)
        except BlockingIOError:
            return 0.0
        row = self.rows.get(decode(data)[0]) if data else None
        return now - row.given_at if row is not None else 0.0

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
        self.told.pop(row.number, None)
        self.pressed.discard(row.number)
        self.blamed.clear()
        self.moved_at = now

    def answer(self, number: int, answer: object) -> None:
        """Answer what it asked and waits for."""
        self._answers.put([number, answer])

    def push(self) -> bool:
        """Send what is left of answers and words, as far as it goes without waiting. Answers whether all is sent."""
        return self._answers.push() & self._words.push()

    def held(self, row: Row) -> None:
        """Let it know that the lease of a running row was prolonged."""
        self._words.put([Tell.HELD, row.number, row.held_until])

    def spent(self, row: Row, steps: int) -> None:
        """Let it know how many steps the call tree of a running row has counted."""
        if self.runs(row):
            self._words.put([Tell.SPENT, row.number, steps])

    def why(self, row: Row) -> Why | None:
        """Why a row was told to stop; None when it was not."""
        told = self.told.get(row.number)
        return None if told is None else told.why

    def tell(self, row: Row, why: Why, now: float, grace: float) -> None:
        """Tell a running job to stop: first by word, after a quarter of the grace by force, then the slot is killed.

        In a lane the word itself is the force: it cancels the coroutine.
        """
        if row.number not in self.told:
            self.told[row.number] = Told(why, now + grace / 4, now + grace)
            self._words.put([Tell.STOP, row.number, why])

    def ask_who_blocks(self, row: Row) -> None:
        """Ask whether a row that is out of time could be told, and who holds the event loop if not."""
        self._words.put([Tell.WHO, row.number, 0])

    @property
    def blocker(self) -> Row | None:
        """Who holds the event loop, by every answer."""
        return self.rows.get(next(iter(self.blamed))) if len(self.blamed) == 1 else None

    def kill(self, why: Why, of: Collection[Row] | None = None) -> None:
        """End it now, because of some of its rows (None: of all). The others are handed back, uncharged."""
        for row in self.rows.values():
            guilty = of is None or row in of
            self.told.setdefault(row.number, Told(why if guilty else Why.RELEASED))
        self.doomed = True
        self.gone_at = self.gone_at or time.monotonic()
        self._zygote.kill(self.key, signal.SIGKILL)

    def press(self, now: float) -> float:
        """Do what is due to jobs that were told to stop, and say when to come again."""
        for number, told in self.told.items():
            if now >= told.kill_at:
                self.kill(Why.RELEASED)
                return NEVER
            if now >= told.press_at:
                told.press_at = NEVER
                self.pressed.add(number)
                self._words.put([Tell.STOP, number, told.why])
                if self.width == 1:
                    self._zygote.kill(self.key, signal.SIGTERM)
        return min((min(told.press_at, told.kill_at) for told in self.told.values()), default=NEVER)

    def leave(self) -> None:
        """Let it end after what it has taken. Again: nothing."""
        if not self._sent_off:
            self._sent_off = True
            self._tickets.send(b"", socket.MSG_DONTWAIT)

    def close(self) -> None:
        for end in (self._tickets, self._untaken, self.stream, self._control):
            end.close()
