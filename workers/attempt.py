"""One attempt: run the task and turn what happened into an outcome."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import random
import time
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from ..lease.budgets import LimitCrossed
from ..lease.durations import duration_ms
from ..lease.origin import Origin, running_job
from ..lease.outcome import (
    Continue,
    Done,
    Fail,
    NextChunk,
    Outcome,
    Permanent,
    RetryAfter,
    Skip,
    SkipRest,
    Succeed,
)
from ..lease.payload import pack_cursor, pack_result, unpack_args
from ..lease.redaction import Redaction
from ..lease.reports import MESSAGE_LIMIT, check_count, checked_text, cut, storable
from ..lease.tasks import Task
from ..scripts.errors import BadPayload, PayloadTooLarge
from ..scripts.states import Cause
from .ctx import Ctx, Link
from .fingerprint import failure, own_frame
from .interrupts import Interrupts, OutOfTime
from .wire import Ticket

SUMMARY_LIMIT = 4_000
STACK_LIMIT = 16_000
Clean = Callable[[str, int], str]
"""Gives a text without secrets, in at most so many characters."""
NO_SECRETS: Clean = Redaction().beginning
"""Where none are known; what looks like one is masked."""
_OURS = (os.path.dirname(__file__), os.path.dirname(asyncio.__file__))


class Attempts:
    """Runs attempts one after the other in the process of a slot; one kept event loop serves the coroutines."""

    def __init__(self, link: Link, interrupts: Interrupts, secrets: Redaction) -> None:
        self._link = link
        self._interrupts = interrupts
        self._secrets = secrets
        self._loop: asyncio.Runner | None = None

    def run(self, task: Task, ticket: Ticket) -> Outcome:
        ctx = Ctx(ticket, self._link, self._secrets, task.budgets, task.parameter_names)
        try:
            try:
                self._interrupts.arm(begin(ctx, ticket, self._interrupts.press))
                # a context of its own: what a job sets in context variables is not the next one's
                value = contextvars.copy_context().run(self._call, task, ticket, ctx)
            finally:
                self._interrupts.disarm()
        except BaseException as exc:
            self._interrupts.disarm()  # it may have broken into the line above
            ended = self._interrupts.raised or exc
            return after_error(ended, task, ticket.failures, ctx)
        return after_return(value, task, ticket.failures, ctx)

    def _call(self, task: Task, ticket: Ticket, ctx: Ctx) -> Any:
        with ctx.meter.recursion():
            value = called(task, ticket, ctx)
        return self._await(value, ctx) if inspect.iscoroutine(value) else value

    def _await(self, coroutine: Coroutine[Any, Any, Any], ctx: Ctx) -> Any:
        if self._loop is None:
            self._loop = asyncio.Runner()
        try:
            return self._loop.run(self._watched(coroutine, ctx), context=contextvars.copy_context())
        except (SystemExit, KeyboardInterrupt):
            self._loop = None  # these leave it in the middle of a step
            raise

    async def _watched(self, coroutine: Coroutine[Any, Any, Any], ctx: Ctx) -> Any:
        current = cast("asyncio.Task[Any]", asyncio.current_task())
        self._interrupts.running(current)
        try:
            with ctx.meter.recursion():
                return await coroutine
        finally:
            await _end_all_but(current)


async def _end_all_but(current: asyncio.Task[Any]) -> None:
    """What a job leaves running would go on in the next one's time."""
    others = asyncio.all_tasks() - {current}
    for other in others:
        other.cancel()
    if others:
        await asyncio.gather(*others, return_exceptions=True)


def called(task: Task, ticket: Ticket, ctx: Ctx) -> Any:
    """Call the task's function, with its context if it takes one, in a contextvars context that is the job's own.

    Answers what it gives: perhaps a coroutine.
    """
    running_job.set(Origin(ticket.id, ticket.trace, ctx.meter.below))
    args, kwargs = unpack_args(ticket.args or b"")
    if task.takes_ctx:
        args.insert(0, ctx)
    return task.function(*args, **kwargs)


def begin(ctx: Ctx, ticket: Ticket, stop: Callable[[], None]) -> float:
    """The task is about to run; `stop` is how it is told, from another thread. Answers when its time is up."""
    ctx.meter.begin(ctx.over, stop)
    return ctx.meter.limit_at(ticket.limit_at, time.monotonic())


def after_return(value: Any, task: Task, failures: int, ctx: Ctx) -> Outcome:
    """The outcome of an attempt whose task came to its end, as it may be told."""
    ctx.tell_steps()
    crossed = ctx.meter.ended_by(None)
    if crossed is not None:
        return masked(limited(crossed, task, failures), ctx)
    clean = ctx.without_secrets
    return masked(made(lambda: returned(ctx.end_of_chunk(value), clean), task, failures, clean), ctx)


def after_error(exc: BaseException, task: Task, failures: int, ctx: Ctx) -> Outcome:
    """The outcome of an attempt in whose task something was raised, as it may be told."""
    ctx.tell_steps()
    crossed = ctx.meter.ended_by(exc)
    if crossed is not None:
        return masked(limited(crossed, task, failures, exc), ctx)
    clean = ctx.without_secrets
    return masked(made(lambda: failed(exc, task, failures, clean), task, failures, clean), ctx)


def masked(outcome: Outcome, ctx: Ctx) -> Outcome:
    """An outcome whose stack, and what of a failure is no task's text, are without secrets too."""
    if not isinstance(outcome, Fail):
        return outcome
    return replace(
        outcome,
        summary=ctx.secrets.without_known(outcome.summary),
        stack=ctx.secrets.end(outcome.stack, STACK_LIMIT),
        failure=ctx.secrets.without_known(outcome.failure),
    )


def made(outcome: Callable[[], Outcome], task: Task, failures: int, clean: Clean) -> Outcome:
    """The outcome; if it cannot be made, because what the task gave or raised is odd, the failure that says so.

    So nothing a task leaves behind ends the process, which would count as lost and say nothing.
    """
    try:
        return outcome()
    except BaseException as exc:  # looking at a value runs its own code, which may raise anything
        said = _sentence(exc, clean)
        return Fail(
            _cut(f"its outcome cannot be told: {said}"),
            Cause.RAISED,
            backoff(task, failures),
            stack=_stack(exc),
            failure=_failure(exc, said, task),
        )


def returned(value: Any, clean: Clean = NO_SECRETS) -> Outcome:
    """The outcome of a task that came to its end."""
    if value is None:
        return Succeed()
    try:
        match value:
            case Continue(cursor, done, total, delay, message):
                check_count(done, "done")  # again, as a class derived from it may have left that out
                check_count(total, "total")
                said = clean(checked_text(message), MESSAGE_LIMIT)
                return NextChunk(pack_cursor(cursor), done, total, duration_ms(delay), said)
            case Done():
                return Succeed(pack_result(cast("Done[object]", value).result))
            case Skip():
                return SkipRest(_summary(value.reason, clean))
            case _:
                return Succeed(pack_result(value))
    except PayloadTooLarge as exc:  # the work is done: to do it again would end the same way
        return Fail(_summary(f"{exc.code}: {exc}. {exc.hint}", clean), Cause.TOO_LARGE, permanent=True)
    except BadPayload as exc:
        said = _summary(f"{exc}. {exc.hint}", clean)
        return Fail(said, Cause.RAISED, permanent=True, failure=_failure(exc, _sentence(exc, clean)))


def failed(exc: BaseException, task: Task, failures: int, clean: Clean = NO_SECRETS) -> Outcome:
    """The outcome of a task that something was raised in."""
    match exc:
        case Skip():
            return SkipRest(_summary(exc.reason, clean))
        case RetryAfter():
            said = _sentence(exc, clean)
            return Fail(_cut(said), Cause.REFUSED, _delay_ms(exc), failure=_failure(exc, said, task))
        case OutOfTime():
            return Fail("told that its time is up", Cause.TIMEOUT, backoff(task, failures), stack=_stack(exc))
        case _:
            said = _sentence(exc, clean)
            return Fail(
                _cut(said),
                Cause.RAISED,
                backoff(task, failures),
                permanent=isinstance(exc, Permanent) or task.retry.is_permanent(exc),
                stack=_stack(exc),
                failure=_failure(exc, said, task),
            )


def limited(crossed: LimitCrossed, task: Task, failures: int, exc: BaseException | None = None) -> Fail:
    """The outcome of an attempt that has crossed a budget; `exc` is what that raised in the task."""
    return Fail(
        _cut(crossed.summary),
        Cause.LIMIT,
        backoff(task, failures),
        permanent=task.retry.is_permanent(crossed),
        stack=_stack(exc or crossed),
        failure=failure(crossed.limit, "", str(crossed).partition("\n")[0]),
    )


def backoff(task: Task, failures: int) -> int:
    """How long the job waits after one more failure."""
    return task.retry.backoff_ms(failures + 1, _chance)


_chance = random.SystemRandom()  # a plain one would be the same in every fork


def _delay_ms(exc: RetryAfter) -> int:
    return duration_ms(timedelta(milliseconds=exc.delay_ms), what="delay")


def _sentence(exc: BaseException, clean: Clean) -> str:
    name = _name_of(type(exc))
    try:  # its text alone is cleaned: `TokenExpired: at noon` gives no token away
        said = f"{name}: {_summary(str(exc), clean)}"
    except BaseException as second:  # a text that cannot be made must not hide what was raised
        said = f"{name}: (its text raised {_name_of(type(second))})"
    return said if len(said) > len(name) + 2 else name


_name_of = cast("Callable[[type], str]", type.__dict__["__name__"].__get__)
"""A class's own name: its metaclass may answer another one, or raise."""


def _failure(exc: BaseException, said: str, task: Task | None = None) -> str:
    """What the error has in common with others of its kind; `said` is its sentence."""
    kind = _name_of(type(exc))
    try:
        home = str(task.function.__module__).partition(".")[0] if task else ""
        frame = own_frame(exc.__traceback__, home)
    except BaseException:  # a class may answer anything for its traceback
        frame = ""
    return failure(kind, frame, said[len(kind) + 2 :])


def _stack(exc: BaseException) -> str:
    try:
        trace = exc.__traceback__
        while trace and trace.tb_next and trace.tb_frame.f_code.co_filename.startswith(_OURS):
            trace = trace.tb_next
        text = "".join(traceback.format_exception(type(exc), exc, trace, limit=-50))
    except BaseException as second:
        text = f"(its traceback raised {_name_of(type(second))})"
    return storable(text)


def _summary(text: str, clean: Clean) -> str:
    return clean(storable(str(text)), SUMMARY_LIMIT)


def _cut(text: str) -> str:
    return cut(storable(text), SUMMARY_LIMIT)
