"""The process of a slot: takes tickets, runs them, says what came of each."""

from __future__ import annotations

import faulthandler

from ..lease.outcome import Fail, Outcome
from ..lease.tasks import Registry
from ..scripts.errors import UnknownTask
from ..scripts.states import Cause
from .attempt import Attempts
from .interrupts import Interrupts
from .lane import Lane
from .line import Ends, Line
from .wire import DATAGRAM, Ticket, decode

__all__ = ["Ends", "SlotProcess"]


class SlotProcess:
    """Runs `width` jobs at a time: one after the other in the main thread, or coroutines side by side in a lane."""

    def __init__(self, registry: Registry, ends: Ends, width: int = 1) -> None:
        self._registry = registry
        self._line = Line(ends)
        self._width = width
        self._interrupts = Interrupts()
        self._attempts = Attempts(self._line, self._interrupts, registry.secrets)

    def run(self) -> None:
        """Work until the worker sends an empty ticket. Does not return when the worker dies: nor does the process."""
        faulthandler.enable()
        self._interrupts.install()
        self._line.listen()
        if self._width > 1:
            Lane(self._registry, self._line).run()
        else:
            self._run_one_by_one()

    def _run_one_by_one(self) -> None:
        while data := self._line.ends.tickets.recv(DATAGRAM):
            ticket = Ticket(*decode(data))
            if not self._line.refuse(ticket):
                self._line.begin(ticket, self._interrupts.allow_stop)
                self._line.end(ticket, self._attempt(self._line.whole(ticket)))

    def _attempt(self, ticket: Ticket) -> Outcome:
        try:
            task = self._registry.get(ticket.task)
        except UnknownTask as exc:  # its worker asks first, so this is a registry that changed while it ran
            return Fail(str(exc), Cause.RAISED)
        return self._attempts.run(task, ticket)
