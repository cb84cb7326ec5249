"""A lane: coroutines side by side in the process of one slot, an event loop for all, each as an attempt of its own."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import socket
import weakref
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, cast

from ..lease.outcome import Fail, Outcome
from ..lease.tasks import Registry, Task
from ..scripts.errors import UnknownTask
from ..scripts.states import Cause
from .attempt import after_error, after_return, begin, called
from .ctx import Ctx
from .interrupts import OutOfTime, Stopped
from .line import Line
from .wire import DATAGRAM, Ticket, decode

_own: contextvars.ContextVar[Beside] = contextvars.ContextVar("tenure_attempt")
"""The attempt that a piece of code belongs to: what it starts inherits this."""


class Lane:
    def __init__(self, registry: Registry, line: Line) -> None:
        self._registry = registry
        self._line = line
        self._loop = asyncio.new_event_loop()
        self._attempts: dict[int, Beside] = {}
        self._leaving = False

    def run(self) -> None:
        """Until an empty ticket comes, and what runs then has ended."""
        asyncio.set_event_loop(self._loop)
        self._loop.set_task_factory(cast(Any, _task_of_its_attempt))
        self._line.blocker = self._blocker
        self._loop.add_reader(self._line.ends.tickets, self._take)
        # a task that forks comes back to the loop in two processes; the second one must not go on with all that runs
        os.register_at_fork(after_in_child=self._loop.stop)
        while self._attempts or not self._leaving:
            with suppress(SystemExit, KeyboardInterrupt):  # raised in what a task had started beside itself
                self._loop.run_forever()
            self._line.leave_if_forked()

    def _take(self) -> None:
        self._line.leave_if_forked()
        while not self._leaving:
            try:
                data = self._line.ends.tickets.recv(DATAGRAM, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            if data:
                self._begin(Ticket(*decode(data)))
            else:
                self._leave()

    def _leave(self) -> None:
        self._leaving = True
        self._loop.remove_reader(self._line.ends.tickets)
        self._stop_if_over()

    def _stop_if_over(self) -> None:
        if self._leaving and not self._attempts:
            self._loop.stop()

    def _begin(self, ticket: Ticket) -> None:
        if self._line.refuse(ticket):
            return
        attempt = Beside(ticket, self._loop)
        self._attempts[ticket.number] = attempt
        self._line.begin(ticket, partial(self._loop.call_soon_threadsafe, attempt.interrupt, Stopped()))
        attempt.start(self._work(attempt))

    async def _work(self, attempt: Beside) -> None:
        outcome = await self._outcome(attempt)
        del self._attempts[attempt.ticket.number]
        self._line.end(attempt.ticket, outcome)
        self._stop_if_over()

    def _blocker(self, number: int) -> int:
        """Called in another thread. The loop is blocked if the alarm of one that is out of time has not gone off."""
        late = self._attempts.get(number)
        current = asyncio.current_task(self._loop)
        blocked = late is not None and late.waits_for_alarm
        return current.owner.ticket.number if blocked and isinstance(current, OwnedTask) else 0

    async def _outcome(self, attempt: Beside) -> Outcome:
        ticket = attempt.ticket
        try:
            task = self._registry.get(ticket.task)
        except UnknownTask as exc:  # its worker asks first, so this is a registry that changed while it ran
            return Fail(str(exc), Cause.RAISED)
        ctx = Ctx(ticket, self._line, self._registry.secrets, task.budgets, task.parameter_names)
        try:
            attempt.arm(begin(ctx, ticket, _nothing))
            value = await self._call(task, ticket, ctx)
        except BaseException as exc:
            ended = attempt.raised or exc
            return after_error(ended, task, ticket.failures, ctx)
        finally:
            await attempt.close()
        return after_return(value, task, ticket.failures, ctx)

    async def _call(self, task: Task, ticket: Ticket, ctx: Ctx) -> Any:
        whole = await self._line.awhole(ticket)
        ctx.takes(whole)
        value = called(task, whole, ctx)
        return await value if inspect.iscoroutine(value) else value


def _nothing() -> None:
    """A task that is watched from another thread has a process of its own, and is not here."""


class Beside:
    """One attempt beside others: its coroutine, and the asyncio tasks that this has started."""

    def __init__(self, ticket: Ticket, loop: asyncio.AbstractEventLoop) -> None:
        self.ticket = ticket
        self.raised: BaseException | None = None
        """What broke into it."""
        self.tasks: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()
        self._loop = loop
        self._coroutine: asyncio.Task[Any] | None = None
        self._alarm: asyncio.TimerHandle | None = None

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        # a context of its own: what a job sets in context variables is not another one's
        context = contextvars.copy_context()
        context.run(_own.set, self)
        self._coroutine = self._loop.create_task(work, context=context)

    def arm(self, limit_at: float) -> None:
        """From here on it may be interrupted, and is when its time is up. Raises what came before."""
        if self.raised is not None:
            raise self.raised
        self._alarm = self._loop.call_at(limit_at, self.interrupt, OutOfTime())

    @property
    def waits_for_alarm(self) -> bool:
        return self._alarm is not None and self.raised is None

    def interrupt(self, error: BaseException) -> None:
        """Cancel the coroutine, once: what it makes of that is its own affair, as long as it ends."""
        if self.raised is not None:
            return
        self.raised = error
        if self._alarm is not None:
            cast("asyncio.Task[Any]", self._coroutine).cancel()

    async def close(self) -> None:
        """It has ended. What it leaves running would go on in the time of others."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        while others := [task for task in self.tasks if not (task.done() or task is self._coroutine)]:
            for other in others:
                other.cancel()
            await asyncio.gather(*others, return_exceptions=True)


class OwnedTask(asyncio.Task[Any]):
    owner: Beside
    """The attempt that started it."""


def _task_of_its_attempt(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
) -> asyncio.Task[Any]:
    """Makes an asyncio task that knows whose it is."""
    context: contextvars.Context | None = options.get("context")
    owner = _own.get(None) if context is None else context.get(_own)
    if owner is None:
        return asyncio.Task(coroutine, loop=loop, **options)
    task = OwnedTask(coroutine, loop=loop, **options)
    task.owner = owner
    owner.tasks.add(task)
    return task
