"""The line from the process of a slot to its worker: what it says and hears of the jobs it runs.

It has no connection to the store: whatever a job wants to write goes to the worker, who holds the lease. So a task that
hangs, dies or fills the memory takes nothing with it but what runs in its own process.
"""

from __future__ import annotations

import asyncio
import os
import queue
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..lease.outcome import Fail, Outcome
from ..scripts.errors import Canceled, LeaseLost, StaleFence, TenureError
from .meter import most_kb
from .orphans import kill_group
from .wire import Reader, Report, Say, Tell, Ticket, Why, encode, outcome_frame

MEMORY_EVERY = 64

Reply = Callable[[Any], None]
"""Takes the answer to a question, in the thread that listens."""


@dataclass(frozen=True, slots=True)
class Ends:
    """A slot's ends of its three sockets."""

    tickets: socket.socket
    stream: socket.socket
    control: socket.socket


@dataclass(slots=True)
class Running:
    """A job that runs here, and how it is stopped."""

    ticket: Ticket
    stop: Callable[[], object]
    """Called once, in the thread that listens, when the worker says that the job must stop."""
    held_until: float
    started: float
    why: Why | None = None
    spent: int = 0
    """How many steps its call tree has counted, as it was last told."""


class Line:
    """One for each process. The jobs' contexts speak through it, from any thread."""

    def __init__(self, ends: Ends) -> None:
        self.ends = ends
        self._running: dict[int, Running] = {}
        self._asked: dict[int, deque[Reply]] = {}
        self._writing = threading.Lock()
        self.blocker: Callable[[int], int] = lambda number: 0
        """Who holds the event loop, so that a job cannot be told that its time is up; 0: nobody, or not known."""
        self._done = 0
        self._pid = os.getpid()

    def listen(self) -> None:
        """Begin to hear. The process does not outlive its worker from here on."""
        threading.Thread(target=self._listen, name="tenure-line", daemon=True).start()

    # The life of a job.

    def begin(self, ticket: Ticket, stop: Callable[[], object]) -> None:
        self._running[ticket.number] = Running(ticket, stop, ticket.held_until, time.perf_counter())

    def refuse(self, ticket: Ticket) -> bool:
        """Send a ticket back that was taken out too late to begin; False when it was not."""
        if time.monotonic() <= ticket.start_by:
            return False
        self._say(Say.BACK, ticket.number)
        return True

    def end(self, ticket: Ticket, outcome: Outcome) -> None:
        """Say what came of a job. Its context can write nothing more."""
        self.leave_if_forked()
        job = self._running.pop(ticket.number)
        self._forget(ticket.number)
        seconds = time.perf_counter() - job.started
        # A job that was told to stop and did not come to its end has no outcome: who told it knows what happened.
        nobody = job.why is not None and isinstance(outcome, Fail)
        self._done += 1
        memory = 0 if self._done % MEMORY_EVERY else most_kb()
        self._say(Say.END, ticket.number, seconds, None if nobody else outcome_frame(outcome), memory)

    def leave_if_forked(self) -> None:
        """End a process that a task forked and that came back here: it is no slot."""
        if os.getpid() != self._pid:
            os._exit(0)

    # The link of the contexts.

    def stopped(self, ticket: Ticket) -> Why | None:
        job = self._running.get(ticket.number)
        if job is None:
            return Why.LOST  # a thread that outlived its job
        if job.why is None and time.monotonic() > job.held_until:
            return Why.LOST
        return job.why

    def report(self, ticket: Ticket, report: Report) -> None:
        if (ticket.background or report.steps) and ticket.number in self._running:
            self._say(Say.REPORT, ticket.number, *report)

    def note(self, ticket: Ticket, request: str, response: str) -> None:
        if ticket.number in self._running:
            self._say(Say.NOTE, ticket.number, request, response)

    def checkpoint(
        self, ticket: Ticket, cursor: bytes, done: int | None, total: int | None, message: str
    ) -> None:
        self._committed(ticket, self._ask(Say.CHECKPOINT, ticket.number, cursor, done, total, message))

    async def acheckpoint(
        self, ticket: Ticket, cursor: bytes, done: int | None, total: int | None, message: str
    ) -> None:
        asked = self._aask(Say.CHECKPOINT, ticket.number, cursor, done, total, message)
        self._committed(ticket, await asked)

    def spent(self, ticket: Ticket) -> int:
        job = self._running.get(ticket.number)
        return job.spent if job else 0

    def over(self, ticket: Ticket) -> None:
        """Tell the worker, who kills what does not stop."""
        if ticket.number in self._running:
            self._say(Say.OVER, ticket.number)

    def _committed(self, ticket: Ticket, refused: str | None) -> None:
        if refused is None:
            return
        text = f"checkpoint of job {ticket.id} refused: {refused}"
        raise self._refusal(ticket, text)

    def _refusal(self, ticket: Ticket, text: str) -> TenureError:
        job = self._running.get(ticket.number)
        if job is None or job.why is None:
            return StaleFence(text)
        return Canceled(text) if job.why is Why.CANCELED else LeaseLost(text)

    # Arguments that were too long for a ticket.

    def whole(self, ticket: Ticket) -> Ticket:
        if ticket.args is not None:
            return ticket
        args, cursor = self._ask(Say.NEED, ticket.number)
        return ticket._replace(args=args, cursor=cursor)

    async def awhole(self, ticket: Ticket) -> Ticket:
        if ticket.args is not None:
            return ticket
        args, cursor = await self._aask(Say.NEED, ticket.number)
        return ticket._replace(args=args, cursor=cursor)

    # Speaking.

    def _ask(self, kind: Say, number: int, *parts: Any) -> Any:
        """Ask, and wait for the answer."""
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()  # no lock to be left held by what breaks in
        self._put(answers.put, kind, number, *parts)
        return answers.get()

    async def _aask(self, kind: Say, number: int, *parts: Any) -> Any:
        """Ask, and let others run until the answer comes."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._put(partial(_answer, loop, answer), kind, number, *parts)
        return await answer

    def _put(self, reply: Reply, kind: Say, number: int, *parts: Any) -> None:
        # the worker answers the questions of a job in their order; one that nobody waits for any more is answered, too
        self._asked.setdefault(number, deque()).append(reply)
        self._say(kind, number, *parts)
        if number not in self._running:  # a thread that outlived its job: the worker answers no more
            self._forget(number)

    def _say(self, kind: Say, *parts: Any) -> None:
        with self._writing:
            self.ends.stream.sendall(encode([kind, *parts]))

    def _forget(self, number: int) -> None:
        """Let nobody wait for answers to a job that has ended."""
        for reply in self._asked.pop(number, ()):
            reply("its job has ended")

    # Hearing.

    def _listen(self) -> None:
        hear = {self.ends.stream: self._hear_answer, self.ends.control: self._hear_word}
        try:
            with selectors.DefaultSelector() as selector:
                for end, heard in hear.items():
                    selector.register(end, selectors.EVENT_READ, (Reader(end), heard))
                while True:
                    for key, _ in selector.select():
                        reader, heard = key.data
                        for frame in reader.take():
                            heard(*frame)
        except (EOFError, OSError):
            kill_group(os.getpid())  # the worker is gone, and with it the lease
            os._exit(1)

    def _hear_answer(self, number: int, answer: Any) -> None:
        asked = self._asked.get(number)
        if asked:
            asked.popleft()(answer)

    def _hear_word(self, kind: int, number: int, value: Any) -> None:
        job = self._running.get(number)
        if job is None:
            return
        if kind == Tell.HELD:
            job.held_until = value
        elif kind == Tell.SPENT:
            job.spent = value
        elif kind == Tell.WHO:
            self._say(Say.BLOCKER, number, self.blocker(number))
        elif kind == Tell.STOP and job.why is None:
            job.why = Why(value)
            job.stop()


def _answer(loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], answer: Any) -> None:
    with suppress(
        RuntimeError
    ):  # its loop is closed: the task made one of its own, and nobody waits in it any more
        loop.call_soon_threadsafe(_settle, future, answer)


def _settle(future: asyncio.Future[Any], answer: Any) -> None:
    if not future.done():
        future.set_result(answer)
