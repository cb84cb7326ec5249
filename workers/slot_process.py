"""The process of a slot: takes tickets, runs them one at a time, says what came of each.

It has no connection to the store: whatever it wants to write goes to its worker, who holds the lease. So a task that
hangs, dies or fills the memory takes nothing with it but itself.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any

from ..lease.outcome import Fail, Outcome
from ..lease.tasks import Registry
from ..scripts.errors import Canceled, LeaseLost, StaleFence, UnknownTask
from ..scripts.states import Cause
from .attempt import Attempts
from .interrupts import Interrupts
from .orphans import kill_group
from .wire import DATAGRAM, Reader, Say, Tell, Ticket, Why, decode, encode, outcome_frame

MEMORY_EVERY = 64


@dataclass(frozen=True, slots=True)
class Ends:
    """A slot's ends of its three sockets."""

    tickets: socket.socket
    stream: socket.socket
    control: socket.socket


class SlotProcess:
    def __init__(self, registry: Registry, ends: Ends) -> None:
        self._registry = registry
        self._ends = ends
        self._interrupts = Interrupts()
        self._stream = Reader(ends.stream)
        self._writing = threading.Lock()
        self._attempts = Attempts(self, self._interrupts)
        self._current = 0
        self._why: Why | None = None
        self._held_until = 0.0
        self._done = 0
        self._pid = os.getpid()

    def run(self) -> None:
        """Work until the worker sends an empty ticket. Does not return when the worker dies: nor does the process."""
        faulthandler.enable()
        self._interrupts.install()
        threading.Thread(target=self._listen, name="tenure-control", daemon=True).start()
        while data := self._ends.tickets.recv(DATAGRAM):
            ticket = Ticket(*decode(data))
            if time.monotonic() > ticket.start_by:
                self._say(Say.BACK, ticket.number)
            else:
                self._work(ticket)

    def _work(self, ticket: Ticket) -> None:
        self._why, self._held_until = None, ticket.held_until
        self._current = ticket.number
        started = time.perf_counter()
        if ticket.args is None:
            ticket = self._whole(ticket)
        outcome = self._attempt(ticket)
        if os.getpid() != self._pid:
            os._exit(
                0
            )  # the task forked, and this is its child, come to the end of the function: it is no slot
        seconds = time.perf_counter() - started
        self._current = 0
        frame = None if self._nobody_to_tell(outcome) else outcome_frame(outcome)
        self._done += 1
        memory = 0 if self._done % MEMORY_EVERY else _memory_kb()
        self._say(Say.END, ticket.number, seconds, frame, memory)

    def _attempt(self, ticket: Ticket) -> Outcome:
        try:
            task = self._registry.get(ticket.task)
        except UnknownTask as exc:  # its worker asks first, so this is a registry that changed while it ran
            return Fail(str(exc), Cause.RAISED)
        return self._attempts.run(task, ticket)

    def _nobody_to_tell(self, outcome: Outcome) -> bool:
        """A job that was told to stop and did not come to its end has no outcome: who told it knows what happened."""
        return self._why is not None and isinstance(outcome, Fail)

    # The link of the context.

    def stopped(self, ticket: Ticket) -> Why | None:
        if ticket.number != self._current:
            return Why.LOST  # a thread that outlived its job
        if self._why is None and time.monotonic() > self._held_until:
            return Why.LOST
        return self._why

    def report(
        self, ticket: Ticket, doing: int | None, total: int | None, message: str, lines: list[str]
    ) -> None:
        if ticket.background and ticket.number == self._current:
            self._say(Say.REPORT, ticket.number, doing, total, message, lines)

    def note(self, ticket: Ticket, request: str, response: str) -> None:
        if ticket.number == self._current:
            self._say(Say.NOTE, ticket.number, request, response)

    def checkpoint(
        self, ticket: Ticket, cursor: bytes, done: int | None, total: int | None, message: str
    ) -> None:
        self._say(Say.CHECKPOINT, ticket.number, cursor, done, total, message)
        refused = self._answer(ticket)
        if refused is None:
            return
        text = f"checkpoint of job {ticket.id} refused: {refused}"
        if self._why is Why.CANCELED:
            raise Canceled(text)
        raise LeaseLost(text) if self._why else StaleFence(text)

    # Speaking with the worker.

    def _whole(self, ticket: Ticket) -> Ticket:
        self._say(Say.NEED, ticket.number)
        args, cursor = self._answer(ticket)
        return ticket._replace(args=args, cursor=cursor)

    def _answer(self, ticket: Ticket) -> Any:
        """Wait for the answer to what was asked for this ticket; late ones to older tickets are passed over."""
        while True:
            for number, answer in self._stream.wait():
                if number == ticket.number:
                    return answer

    def _say(self, kind: Say, *parts: Any) -> None:
        with self._writing:
            self._ends.stream.sendall(encode([kind, *parts]))

    def _listen(self) -> None:
        control = Reader(self._ends.control)
        try:
            while True:
                for kind, number, value in control.wait():
                    if number == self._current:
                        self._hear(kind, value)
        except (EOFError, OSError):
            kill_group(os.getpid())  # the worker is gone, and with it the lease
            os._exit(1)

    def _hear(self, kind: int, value: Any) -> None:
        if kind == Tell.STOP:
            self._why = Why(value)
            self._interrupts.allow_stop()
        elif kind == Tell.HELD:
            self._held_until = value


def _memory_kb() -> int:
    """The most memory this process ever had, in KB (macOS counts bytes)."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most // 1024 if os.uname().sysname == "Darwin" else most
