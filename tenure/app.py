"""The application object: where tasks are registered, jobs enqueued, leases held.

It opens nothing before first use.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from redis import Redis

from .connection import Client, ServerFacts, Store, connect
from .job_book import JobBook
from .lease.bulk import enqueue_all
from .lease.census import Census
from .lease.durations import Duration, duration_ms
from .lease.jobs import JobView
from .lease.leases import Leases, NamedLease
from .lease.ledger import Ledger, NewJob
from .lease.ledgers import Ledgers
from .lease.loop import Loop
from .lease.loss import LossWatch
from .lease.payload import unpack
from .lease.requests import Options, new_job
from .lease.retry import Retry
from .lease.sweep import Sweep
from .lease.tasks import DEFAULT_POOL, Registry, Task
from .schedule_book import ScheduleBook
from .scheduler.cron import Dst
from .scripts import Scripts
from .scripts.errors import BadInput, JobFailed, TenureError
from .scripts.keys import check_tenant
from .settings import Settings
from .store_check import StoreCheck

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from .workers.ctx import Ctx

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True)
class Job(Generic[R]):
    """An enqueued job. `created` is False when its idempotency key already had one."""

    app: Tenure
    tenant: str
    id: str
    created: bool = True
    durability: str = ""

    def get(self) -> JobView:
        """The job as it stands. Raises NotFound when its retention is over."""
        return self.app.ledger(self.tenant).get(self.id)

    def cancel(self, reason: str = "") -> None:
        """Cancel it; raises WrongState when it has succeeded."""
        self.app.ledger(self.tenant).cancel(self.id, reason)

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

    def result(self, timeout: Duration | None = None) -> R:
        """What the task returned; waits for it. Raises JobFailed when it did not succeed, TimeoutError."""
        view = self.wait(timeout)
        if view.status != "succeeded":
            error = view.error.error if view.error else view.reason
            raise JobFailed(
                f"job {self.id} of {view.task} is {view.status} ({view.dead_reason or 'by hand'}): {error}"
            )
        return cast(R, unpack(view.result) if view.result else None)

    async def await_(self, timeout: Duration | None = None) -> JobView:
        """`wait` for async code."""
        return await asyncio.to_thread(self.wait, timeout)


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
class TaskHandle(Generic[P, R]):
    """A registered task: call it as the plain function, or enqueue it."""

    app: Tenure
    task: Task
    options: Options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.task.function(*args, **kwargs)

    def using(self, **options: Any) -> TaskHandle[P, R]:
        """The same task with other options: tenant, idempotency_key, priority, pool, after, at, timeout, ..."""
        return TaskHandle(self.app, self.task, self.options.but(**options))

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Make a job. Raises BadInput, KeyReused, StoreError."""
        return cast("Job[R]", self.app.enqueue(self.task, args, kwargs, self.options))

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """`enqueue` for async code."""
        return await asyncio.to_thread(self.enqueue, *args, **kwargs)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> TaskCall[R]:
        """A call to enqueue later, with others or in a transaction of yours. Raises BadInput; asks no store."""
        tenant = check_tenant(self.options.tenant)
        return TaskCall(self.app, tenant, new_job(self.task, args, kwargs, self.options))


class Registers:
    """What `app.task(...)` gives: put it on a function."""

    def __init__(self, app: Tenure, make: Callable[[Callable[..., Any]], Task]) -> None:
        self._app = app
        self._make = make

    @overload
    def __call__(self, function: Callable[Concatenate[Ctx, P], Awaitable[R]]) -> TaskHandle[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Ctx, P], R]) -> TaskHandle[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Awaitable[R]]) -> TaskHandle[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> TaskHandle[P, R]: ...
    def __call__(self, function: Callable[..., Any]) -> TaskHandle[Any, Any]:
        task = self._app.registry.add(self._make(function))
        return TaskHandle(self._app, task, Options())


class Tenure:
    """An application: its tasks and schedules, and its way to the store.

    Settings come from the argument, else from `TENURE_*` and `tenure.toml`, at first use. Threads may share
    it, and a fork may carry it over: each process opens clients of its own.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings
        self._store: Store | None = None
        self._store_pid = 0
        self._lock = threading.RLock()
        self._ledgers: Ledgers | None = None
        self._leases: dict[str, Leases] = {}
        self.registry = Registry()
        self.schedules = ScheduleBook(self)
        self.jobs = JobBook(self)

    @property
    def settings(self) -> Settings:
        if self._settings is None:
            self._settings = Settings.load(os.environ, Path.cwd())
        return self._settings

    # -- tasks ----------------------------------------------------------------------------------------------------

    def task(
        self,
        key: str,
        *,
        pool: str = DEFAULT_POOL,
        priority: int = 5,
        timeout: Duration = "10m",
        retry: Retry | None = None,
        aliases: Sequence[str] = (),
        startable: bool = False,
        background: bool = False,
    ) -> Registers:
        """Register a function as the task `key`. Raises BadInput for a key that is taken or not allowed."""

        def make(function: Callable[..., Any]) -> Task:
            return Task(
                key=key,
                function=function,
                pool=pool,
                priority=priority,
                timeout_ms=duration_ms(timeout, what="timeout"),
                retry=retry or Retry(),
                aliases=tuple(aliases),
                startable=startable,
                background=background,
            )

        return Registers(self, make)

    def background(self, key: str, **options: Any) -> Registers:
        """Register a background task: one that works in chunks and shows progress. Options as for `task`."""
        return self.task(key, background=True, **options)

    def cron(
        self,
        job_key: str,
        expression: str,
        *,
        tz: str = "UTC",
        dst: Dst = "standard",
        misfire: str = "fire_once",
        overlap: str = "allow",
        tenant: str = "default",
        **options: Any,
    ) -> Registers:
        """Register a task and declare a schedule for it, stored by `schedules.declare()` when a scheduler
        starts.
        """
        registers = self.task(job_key, **options)
        self.schedules.declare_later(job_key, expression, tz, dst, misfire, overlap, tenant)
        return registers

    def enqueue(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any], options: Options
    ) -> Job[Any]:
        """Make a job of a task; `TaskHandle.enqueue` is the typed way."""
        job = new_job(task, args, kwargs, options)
        ledger = self.ledger(options.tenant)
        answer = ledger.enqueue(job)
        return Job(self, options.tenant, answer.id, answer.created, self.store.facts.durability)

    def enqueue_many(self, calls: Iterable[TaskCall[R]]) -> list[Job[R] | TenureError]:
        """Make many jobs, 1,000 to a round trip; the answers stand in the order of the calls, and so do the jobs.

            app.enqueue_many(rebuild.call(customer) for customer in customers)

        What breaks a rule is refused by `call`, before anything is sent. A job the ledger refuses (KeyReused) stands in
        the answer as its error, and the others are made. Raises StoreError when the store failed on the way; the same
        calls sent again make those that are missing, and none twice.
        """
        calls = [self.check_own(call) for call in calls]
        if not calls:
            return []
        answers = enqueue_all(self.ledgers(), [(call.tenant, call.job) for call in calls])
        durability = self.store.facts.durability
        return [
            answer
            if isinstance(answer, TenureError)
            else Job(self, call.tenant, answer.id, answer.created, durability)
            for call, answer in zip(calls, answers, strict=True)
        ]

    async def aenqueue_many(self, calls: Iterable[TaskCall[R]]) -> list[Job[R] | TenureError]:
        """`enqueue_many` for async code."""
        return await asyncio.to_thread(self.enqueue_many, calls)

    def check_own(self, call: TaskCall[R]) -> TaskCall[R]:
        """Answer `call` if it is a call of a task of this application, else refuse it."""
        if not isinstance(call, TaskCall):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(f"{call!r:.80} is no call of a task", hint="write task.call(...) for each job")
        if call.app is not self:
            raise BadInput(
                f"the call of {call.job.task} belongs to another application",
                hint="enqueue it with the application that registered its task",
            )
        return call

    # -- the way to the store -------------------------------------------------------------------------------------

    @property
    def store(self) -> Store:
        """The open store of this process. Raises a StoreError that says what is wrong with it."""
        with self._lock:
            if self._store is None or self._store_pid != os.getpid():
                self._store = connect(self.settings)
                self._store_pid = os.getpid()
                self._leases = {}
                self._ledgers = None
            return self._store

    def redis(self) -> Client:
        return self.store.redis

    def blocking_redis(self) -> Client:
        """A client for calls that wait: pub/sub, blocking pops."""
        return self.store.blocking

    def rq_redis(self) -> Redis:
        """A new client for RQ, of the server its tools look at. Raises BadInput when that is a Redis Cluster."""
        return self.store.for_rq()

    def ledgers(self) -> Ledgers:
        """The ledgers of all tenants, over this process's clients."""
        with self._lock:
            store = self.store
            if self._ledgers is None:
                scripts = Scripts(store.redis, address=store.address)
                self._ledgers = Ledgers(scripts, self.settings.namespace, self.settings.lease_ms)
            return self._ledgers

    def upkeep(self, lost: Callable[[], object] | None = None) -> Sequence[Loop]:
        """What every process that stays does for the store: sweep, count the tenants, look whether it is fit and whole.

        Loops to be started; `lost` is called when the store has lost data.
        """
        ledgers = self.ledgers()
        return [
            Loop(Sweep(ledgers), "tenure-sweep"),
            Loop(Census(ledgers), "tenure-census"),
            Loop(LossWatch(ledgers, lost), "tenure-loss-watch"),
            Loop(StoreCheck(self.store.facts, self._check_store), "tenure-store-check"),
        ]

    def _check_store(self) -> ServerFacts:
        """Ask the server again; what a job's answer says of its durability is then as it was found."""
        store = self.store
        facts = store.check()
        with self._lock:
            if self._store is store:
                self._store = replace(store, facts=facts)
        return facts

    def ledger(self, tenant: str = "default") -> Ledger:
        return self.ledgers().of(tenant)

    def lease(
        self, name: str, ttl: Duration = "30s", wait: Duration = 0, tenant: str = "default"
    ) -> AbstractContextManager[NamedLease]:
        """Hold a named lease while a `with` block runs.

        Raises LeaseTaken when it is not free within `wait`.
        """
        ledger = self.ledger(tenant)
        with self._lock:
            if tenant not in self._leases:
                self._leases[tenant] = Leases(ledger.scripts, ledger.keys, ledger.index, self.blocking_redis)
            leases = self._leases[tenant]
        return leases.hold(name, ttl, wait)

    def api(self) -> Starlette:
        """The HTTP API as an ASGI application, to mount where you like."""
        from .api import create_api  # only web processes load Starlette

        return create_api(self)

    def close(self) -> None:
        """Close what this process opened; the last user of an embedded server ends it."""
        with self._lock:
            if self._store is not None and self._store_pid == os.getpid():
                self._store.close()
            self._store = None
