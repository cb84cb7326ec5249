"""What an application gives for a function that is registered and for what is asked of it: tasks, calls, jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from .lease.budgets import Budgets
from .lease.durations import Duration, duration_ms
from .lease.jobs import JobView
from .lease.ledger import NewJob
from .lease.outcome import Continue, Done, Skip
from .lease.requests import JobOptions, Options, new_job
from .lease.retry import Retry
from .lease.tasks import Task
from .schedule_book import Declared
from .scripts.errors import BadInput, JobFailed

if TYPE_CHECKING:
    from .app import Tenure
    from .workers.ctx import Ctx

P = ParamSpec("P")
"""What a task is enqueued with: the parameters of its function, without the context."""
Q = ParamSpec("Q")
"""All parameters of its function."""
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
"""What its function returns, or, of a coroutine function, what that comes to."""
C_co = TypeVar("C_co", covariant=True)
"""What a call of its function gives: `R_co`, or a coroutine."""


@dataclass(frozen=True)
class Job(Generic[R_co]):
    """An enqueued job. `created` is False when its idempotency key already had one."""

    app: Tenure
    tenant: str
    id: str
    created: bool = True
    durability: str = ""

    def get(self) -> JobView:
        """The job as it stands. Raises NotFound when its retention is over."""
        return self.app.jobs.get(self.id, self.tenant)

    def cancel(self, reason: str = "") -> None:
        """Cancel it; raises WrongState when it has succeeded."""
        self.app.jobs.cancel(self.id, reason, self.tenant)

    def wait(self, timeout: Duration | None = None) -> JobView:
        """Block until the job has ended. Raises TimeoutError."""
        until = None if timeout is None else time.monotonic() + duration_ms(timeout, what="timeout") / 1000
        pause = 0.005
        while True:
            view = self.get()
            if view.ended:
                return view
            if until is not None and time.monotonic() >= until:
                raise TimeoutError(f"job {self.id} is still {view.status} after {timeout}")
            time.sleep(pause if until is None else max(0.0, min(pause, until - time.monotonic())))
            pause = min(pause * 1.5, 0.25)

    def result(self, timeout: Duration | None = None) -> R_co:
        """What the task returned; waits for it. Raises JobFailed when it did not succeed, TimeoutError."""
        view = self.wait(timeout)
        if view.status != "succeeded":
            error = view.error.error if view.error else view.reason
            raise JobFailed(
                f"job {self.id} of {view.task} is {view.status} ({view.dead_reason or 'by hand'}): {error}"
            )
        return cast(R_co, view.value)

    async def await_(self, timeout: Duration | None = None) -> JobView:
        """`wait` for async code."""
        return await asyncio.to_thread(self.wait, timeout)

    async def aresult(self, timeout: Duration | None = None) -> R_co:
        """`result` for async code."""
        return await asyncio.to_thread(self.result, timeout)


@dataclass(frozen=True)
class TaskCall(Generic[R_co]):
    """One request to run a task, checked and not yet enqueued; `app.enqueue_many` and an outbox take it.

    It has its job's id already: however often it is enqueued, it is one job.
    """

    app: Tenure
    tenant: str
    job: NewJob

    @property
    def id(self) -> str:
        return self.job.id


@dataclass(frozen=True)
class TaskHandle(Generic[P, R_co]):
    """A task and the options of its next jobs. The result of a job is what its function returned at last: of
    `Continue | Done[int]` the int.
    """

    app: Tenure
    task: Task
    options: Options

    def using(self, **options: Unpack[JobOptions]) -> TaskHandle[P, R_co]:
        """The same task with other options: tenant, idempotency_key, priority, pool, after, at, timeout, ..."""
        return TaskHandle(self.app, self.task, self.options.but(**options))

    @overload
    def enqueue(
        self: TaskHandle[P, Continue | Done[R] | Skip], *args: P.args, **kwargs: P.kwargs
    ) -> Job[R]: ...
    @overload
    def enqueue(self: TaskHandle[P, R | Continue | Skip], *args: P.args, **kwargs: P.kwargs) -> Job[R]: ...
    def enqueue(self, *args: Any, **kwargs: Any) -> Job[Any]:
        """Make a job. Raises BadInput, KeyReused, StoreError."""
        return self.app.enqueue(self.task, args, kwargs, self.options)

    @overload
    async def aenqueue(
        self: TaskHandle[P, Continue | Done[R] | Skip], *args: P.args, **kwargs: P.kwargs
    ) -> Job[R]: ...
    @overload
    async def aenqueue(
        self: TaskHandle[P, R | Continue | Skip], *args: P.args, **kwargs: P.kwargs
    ) -> Job[R]: ...
    async def aenqueue(self, *args: Any, **kwargs: Any) -> Job[Any]:
        """`enqueue` for async code."""
        return await asyncio.to_thread(self.app.enqueue, self.task, args, kwargs, self.options)

    @overload
    def call(
        self: TaskHandle[P, Continue | Done[R] | Skip], *args: P.args, **kwargs: P.kwargs
    ) -> TaskCall[R]: ...
    @overload
    def call(self: TaskHandle[P, R | Continue | Skip], *args: P.args, **kwargs: P.kwargs) -> TaskCall[R]: ...
    def call(self, *args: Any, **kwargs: Any) -> TaskCall[Any]:
        """A call to enqueue later, with others or in a transaction of yours. Raises BadInput, NotAllowed where a
        binding says no, and RightsUnknown where its `may` fails; asks no store.
        """
        self.app.bindings.admit(self.options)
        return TaskCall(self.app, self.options.tenant, new_job(self.task, args, kwargs, self.options))


@dataclass(frozen=True)
class TaskFunction(TaskHandle[P, R_co], Generic[P, R_co, Q, C_co]):
    """A registered function: call it as the plain function it is, or enqueue it."""

    def __call__(self, *args: Q.args, **kwargs: Q.kwargs) -> C_co:
        return cast(C_co, self.task.function(*args, **kwargs))


class TaskOptions(TypedDict, total=False):
    """The options of `app.task` that `app.background` and `app.cron` take too."""

    pool: str
    priority: int
    timeout: Duration
    retry: Retry | None
    aliases: Sequence[str]
    startable: bool
    pausable: bool
    cleared_on_end: bool
    concurrency_key: str | None
    concurrency_limit: int
    exclusive: bool
    rate: str | None
    owner: str
    budgets: Budgets | None
    unit: str


class Registers:
    """What `app.task(...)` gives: put it on a function."""

    def __init__(
        self, app: Tenure, make: Callable[[Callable[..., Any]], Task], declared: Declared | None = None
    ) -> None:
        self._app = app
        self.make = make
        self._declared = declared

    @overload
    def __call__(
        self, function: Callable[Concatenate[Ctx, P], Coroutine[Any, Any, R]]
    ) -> TaskFunction[P, R, Concatenate[Ctx, P], Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Ctx, P], R]
    ) -> TaskFunction[P, R, Concatenate[Ctx, P], R]: ...
    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]]
    ) -> TaskFunction[P, R, P, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> TaskFunction[P, R, P, R]: ...
    def __call__(self, function: Callable[..., Any]) -> TaskFunction[Any, Any, Any, Any]:
        if isinstance(function, TaskHandle):
            raise BadInput(
                f"{cast('TaskHandle[..., Any]', function).task.key} is a task already, it cannot be another one",
                hint="register the plain function; one task has any number of schedules by app.schedules.put",
            )
        task = self._app.registry.add(self.make(function))
        if self._declared:
            self._app.schedules.declare_later(self._declared, task)
        return TaskFunction(self._app, task, Options())
