"""The application object: where tasks are registered, jobs enqueued, leases held.

It opens nothing before first use.
"""

from __future__ import annotations

import asyncio
import os
import platform
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
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

import redis
from redis import Redis

from . import __version__
from .api.hints import Hints
from .bindings import Bindings, May, Writer
from .calendar_book import CalendarBook
from .connection import Client, ServerFacts, Store, connect
from .hold_book import HoldBook
from .instance_book import InstanceBook
from .job_book import JobBook
from .lease.bindings import Binder
from .lease.budgets import NONE as NO_BUDGETS
from .lease.budgets import Budgets
from .lease.bulk import enqueue_all
from .lease.census import Census
from .lease.durations import Duration, duration_ms
from .lease.holds import Hold
from .lease.jobs import JobView
from .lease.leases import Leases, NamedLease
from .lease.ledger import Ledger, NewJob
from .lease.ledgers import Ledgers
from .lease.loop import Loop
from .lease.loss import LossWatch
from .lease.notices import Teller
from .lease.outcome import Continue, Done, Skip
from .lease.pools import PoolPlan
from .lease.redaction import check_secrets
from .lease.requests import JobOptions, Options, new_job
from .lease.retry import Retry
from .lease.sweep import Sweep
from .lease.tasks import DEFAULT_POOL, Registry, Task, check_key, check_pool
from .notices import Notifier, Notifiers
from .schedule_book import Declared, ScheduleBook
from .scheduler.cron import Dst
from .scheduler.job_key import JobKey
from .scheduler.schedules import DEFAULT_TRIGGER
from .scheduler.trigger import Trigger
from .scripts import Scripts
from .scripts.errors import BadInput, JobFailed, StoreUnreachable, TenureError
from .scripts.kinds import of_kind
from .settings import Settings, safe_url
from .store_check import StoreCheck
from .tenant_book import TenantBook

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from .api.progress_app import Authorize
    from .archive import Archive, Archiver, Spool
    from .workers.ctx import Ctx

P = ParamSpec("P")
"""What a task is enqueued with: the parameters of its function, without the context."""
Q = ParamSpec("Q")
"""All parameters of its function."""
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
"""What its function returns, or, of a coroutine function, what that comes to."""
W = TypeVar("W", bound=Writer)
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
        """A call to enqueue later, with others or in a transaction of yours. Raises BadInput, and NotAllowed where a
        binding says no; asks no store.
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


class Tenure:
    """An application: its tasks and schedules, and its way to the store.

    Settings come from the argument, else from `TENURE_*` and `tenure.toml`, at first use. Threads may share
    it, and a fork may carry it over: each process opens clients of its own.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        if settings is not None and not isinstance(settings, Settings):  # pyright: ignore[reportUnnecessaryIsInstance]
            shown = safe_url(settings) if isinstance(settings, str) else repr(settings)
            raise BadInput(
                f"Tenure was given {shown!r:.80}, it takes a Settings",
                hint="Tenure(Settings(redis_url='redis://host:6379/0')), or Tenure() with TENURE_REDIS_URL set",
            )
        self._settings = settings
        self._store: Store | None = None
        self._store_pid = 0
        self._lock = threading.RLock()
        self._ledgers: Ledgers | None = None
        self._leases: dict[str, Leases] = {}
        self.registry = Registry()
        self.pools: dict[str, PoolPlan] = {}
        self.schedules = ScheduleBook(self)
        self.calendars = CalendarBook(self)
        self.jobs = JobBook(self)
        self.tenants = TenantBook(self)
        self.instances = InstanceBook(self)
        self.notifiers = Notifiers(self)
        self.bindings = Bindings(self)
        self._holds = HoldBook(self)
        self.hints = Hints(self)
        self._archive: tuple[int, Archive] | None = None

    @property
    def archive(self) -> Archive | None:
        """The archive that the settings name, if any; not opened before it is asked. Raises MissingExtra, BadInput."""
        url = self.settings.archive_url
        with self._lock:
            if url is not None and (self._archive is None or self._archive[0] != os.getpid()):
                from .archive import Archive  # only who has an archive loads SQLAlchemy

                self._archive = (os.getpid(), Archive.at(url))
            return self._archive[1] if url is not None and self._archive else None

    def archive_spool(self) -> Spool | None:
        """Where rows wait on this machine while the archive is away; None without a folder for it. Raises BadInput."""
        from .archive import Spool

        folder = self.settings.spool_folder
        return None if folder is None else Spool(folder)

    def archiver(self, spool: Spool | None = None) -> Archiver:
        """A duty that keeps the archive up to date, to be looped. Raises BadInput when there is no archive."""
        from .archive import Archiver

        if self.archive is None:
            raise BadInput(
                "there is no archive: archive_url is not set",
                hint="TENURE_ARCHIVE_URL=sqlite:////path/archive.db",
            )
        return Archiver(self.ledgers(), self.archive, spool)

    @property
    def settings(self) -> Settings:
        if self._settings is None:
            self._settings = Settings.load(os.environ, Path.cwd())
        return self._settings

    # -- pools and tasks ------------------------------------------------------------------------------------------

    def pool(self, name: str, *, lane: str | None = None, slots: int | None = None) -> None:
        """Say how workers run the jobs of a pool: `lane="async(50)"` runs up to 50 `async def` jobs at a time in each
        of `slots` processes, `"exclusive"`, the default, one. A worker's settings and options go before this.

        Raises BadInput for what is no lane, a number out of range, and a pool of which something else was said.
        """
        check_pool(name)
        plan = PoolPlan(lane, slots)
        if self.pools.setdefault(name, plan) != plan:
            raise BadInput(
                f"pool {name!r} is declared twice, and not alike", hint="keep one app.pool(...) for each pool"
            )

    def mask(self, values: str | bytes | Sequence[str | bytes]) -> None:
        """Let `values` stand in no message, log line, note or error of any task: `***` stands there instead.

            app.mask(os.environ["SHOP_TOKEN"])

        Call it where tasks are registered, so that it holds in every worker; a task masks what it learns by `ctx.mask`.
        What has a name like `password=`, or looks like a token, is masked in messages and logs anyway. Raises BadInput
        for what is no text, and for one under 6 characters.
        """
        check_secrets(values)
        self.registry.secrets.know(values)

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
        pausable: bool = False,
        cleared_on_end: bool = False,
        concurrency_key: str | None = None,
        concurrency_limit: int = 1,
        exclusive: bool = False,
        rate: str | None = None,
        owner: str = "",
        budgets: Budgets | None = None,
        unit: str = "",
    ) -> Registers:
        """Register a function as the task `key`. Raises BadInput for a key that is taken, and for a function or an
        option that a worker could not use.

        Jobs of a `pausable` task pause while their instance is suspended; those of a task that is `cleared_on_end` are
        canceled when it ends.

        At most `concurrency_limit` of a tenant's jobs with the same concurrency key run side by side, whatever their
        tasks and pools. `exclusive` jobs run alone among those of their instance. `rate`, such as "100/m", is how many
        of a tenant's jobs start in any period, attempts and chunks counted one by one: jobs of the task, or of its
        concurrency key if it has one. `owner` is whom a notifier is to tell of jobs gone dead. `budgets` are
        what one chunk may use, none by default. `unit` is what its progress counts, such as "rows".
        """
        _check_given_key(key, "task", "reports.daily")

        def make(function: Callable[..., Any]) -> Task:
            return Task(
                key=key,
                function=function,
                pool=pool,
                priority=priority,
                timeout_ms=duration_ms(timeout, what="timeout", least_ms=1),
                retry=Retry() if retry is None else retry,
                aliases=tuple(aliases) if isinstance(aliases, (list, tuple)) else cast(Any, aliases),
                startable=startable,
                background=background,
                pausable=pausable,
                cleared_on_end=cleared_on_end,
                concurrency_key=concurrency_key,
                concurrency_limit=concurrency_limit,
                exclusive=exclusive,
                rate=rate,
                owner=owner,
                budgets=NO_BUDGETS if budgets is None else budgets,
                unit=unit,
            )

        return Registers(self, make)

    def background(self, key: str, **options: Unpack[TaskOptions]) -> Registers:
        """Register a background task: one that works in chunks and shows progress. Options as for `task`."""
        _check_given_key(key, "background", "orders.sync")
        return self.task(key, background=True, **options)

    def cron(
        self,
        job_key: str,
        expression: str,
        *,
        tz: str = "UTC",
        dst: Dst = "standard",
        calendar: Mapping[str, Any] | str | None = None,
        misfire: object = "fire_once",
        overlap: str = "allow",
        tenant: str = "default",
        **options: Unpack[TaskOptions],
    ) -> Registers:
        """Register a task and declare a schedule for it, stored by `schedules.declare()` when a scheduler
        starts. `calendar` excludes times, as data or by the name of a stored one. Raises BadInput for what could
        never be stored.
        """
        _check_given_key(job_key, "cron", "reports.daily")
        trigger = Trigger(DEFAULT_TRIGGER, expression, tz, dst, calendar=calendar)
        declared = Declared(JobKey.parse(job_key), trigger, misfire, overlap, tenant)
        return Registers(self, self.task(job_key, **options).make, declared)

    def notifier(self, *, pool: str = "outbound") -> Callable[[Notifier], Notifier]:
        """Register a function, `def` or `async def`, that is told of jobs gone dead: it is given a Notice.

        Deaths are gathered by task and reason: the first is told ten seconds later, more of the kind at most once in
        five minutes. It is called in a job of `pool`, `tenure.notify`, and again when it raises; each notice comes at
        least once. What nobody is registered for is not told.
        """

        def register(notifier: Notifier) -> Notifier:
            self.notifiers.add(notifier, pool)
            return notifier

        return register

    @overload
    def binding(self, name: str, writer: W, *, may: May) -> W: ...
    @overload
    def binding(self, name: str, *, may: May) -> Callable[[W], W]: ...
    def binding(self, name: str, writer: Writer | None = None, *, may: May) -> Any:
        """Register how a business row follows the background tasks that are bound to it.

            app.binding("orders", BoundRow(engine, orders, key="id", status="import_status", ...), may=may_import)

        `writer` takes a Bound and writes one fixed place; `@app.binding("orders", may=...)` stands on a function. It is
        called at least once for the latest state, at most four times a second for a task, and again when it raises,
        which never changes what becomes of the task. `may(user, record)` is asked before a task is accepted: anything
        but True refuses it. Raises BadInput.
        """

        self.bindings.check_new(name, may)

        def register(writer: W) -> W:
            self.bindings.add(name, writer, may)
            return writer

        return register if writer is None else register(writer)

    @of_kind
    def check_binding(self, name: str) -> str:
        """Answer `name` if it is that of a binding. Raises UnknownBinding."""
        return self.bindings.check(name)

    def enqueue(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any], options: Options
    ) -> Job[Any]:
        """Make a job of a task; `TaskHandle.enqueue` is the typed way."""
        job = new_job(task, args, kwargs, options)
        self.bindings.admit(options)
        ledger = self.ledger(options.tenant)
        try:
            answer = ledger.enqueue(job)
        except StoreUnreachable as exc:
            said = f"whether job {job.id} was made is not known"
            raise _unknown_outcome(exc, said, _hint_of(job.id, options)) from exc
        if options.binding is not None and answer.created:
            self.bindings.mark(options.tenant, answer.id)
        return Job(self, options.tenant, answer.id, answer.created, self.store.facts.durability)

    @of_kind
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
        ledgers = self.ledgers()
        try:
            answers = enqueue_all(ledgers, [(call.tenant, call.job) for call in calls])
        except StoreUnreachable as exc:
            raise _unknown_outcome(
                exc,
                "which of the jobs were made is not known",
                "enqueue the same calls again: it makes those that are missing, and none twice",
            ) from exc
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
        """What every process that stays does for the store: sweep, count the tenants, look whether it is fit and whole,
        see to it that notifiers hear of deaths and that business rows follow, if there are any.

        Loops to be started; `lost` is called when the store has lost data.
        """
        ledgers, pool = self.ledgers(), self.notifiers.pool
        loops = [
            Loop(Sweep(ledgers), "tenure-sweep"),
            Loop(Census(ledgers), "tenure-census"),
            Loop(LossWatch(ledgers, lost), "tenure-loss-watch"),
            Loop(StoreCheck(self.store.facts, self._check_store), "tenure-store-check"),
        ]
        if pool is not None:
            loops.append(Loop(Teller(ledgers, pool), "tenure-teller"))
        if self.bindings.writers:
            loops.append(Loop(Binder(ledgers, self.bindings.writers), "tenure-binder"))
        return loops

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

    @of_kind
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

    def about(self) -> dict[str, dict[str, object]]:
        """What somebody who looks into a failure should know: versions, settings without secrets."""
        facts = self.store.facts
        return {
            "versions": {
                "tenure": __version__,
                "python": platform.python_version(),
                "platform": platform.platform(),
                "redis-py": redis.__version__,
                "server": f"{facts.product} {facts.version}",
                "durability": facts.durability,
                "cluster": facts.cluster,
            },
            "settings": {**self.settings.shown()},
        }

    @of_kind
    def hold(
        self,
        *,
        pool: str | None = None,
        task: str | None = None,
        tenant: str | None = None,
        reason: str = "",
        until: Duration | datetime | None = None,
        by: str | None = None,
    ) -> Hold:
        """Let no job of a pool or a task be claimed, or none of a tenant, until a release or `until`.

        What runs goes on; what a worker has claimed and not begun goes back. The same hold again changes nothing.
        `by` is who does it (this process's user and host if it is left out).
        """
        return self._holds.add(pool=pool, task=task, tenant=tenant, reason=reason, until=until, by=by)

    @of_kind
    def release(self, *, pool: str | None = None, task: str | None = None, tenant: str | None = None) -> bool:
        """End a hold: the jobs count again where they stand. Answers whether there was one."""
        return self._holds.remove(pool=pool, task=task, tenant=tenant)

    @of_kind
    def holds(self, tenant: str = "default") -> Sequence[Hold]:
        """What is held in a tenant."""
        return self._holds.list(tenant)

    def api(self) -> Starlette:
        """The HTTP API as an ASGI application, to mount where you like."""
        from .api import create_api  # only web processes load Starlette

        return create_api(self)

    def progress(self, *, authorize: Authorize) -> Starlette:
        """Background tasks for users to watch, to be mounted in your own application: read-only.

            Mount("/my/tasks", app.progress(authorize=lambda request, task: task["record"] in orders_of(request.user)))

        Each request asks `authorize(request, task)`, `def` or `async def`, with Starlette's request and the task as it
        is shown; for anything but True there is no such task. What it serves is told in `api/progress_app.py`.
        """
        from .api.progress_app import create_progress  # only web processes load Starlette

        return create_progress(self, authorize)

    def close(self) -> None:
        """Close what this process opened; the last user of an embedded server ends it."""
        with self._lock:
            if self._store is not None and self._store_pid == os.getpid():
                self._store.close()
            self._store = None
            if self._archive is not None and self._archive[0] == os.getpid():
                self._archive[1].close()
            self._archive = None


def _unknown_outcome(exc: StoreUnreachable, said: str, hint: str) -> StoreUnreachable:
    """What is raised instead of `exc`: a write whose answer was lost may have been done."""
    return StoreUnreachable(f"{exc}; {said}", hint=hint)


def _hint_of(job_id: str, options: Options) -> str:
    if options.idempotency_key is None and options.idempotency_fields is None:
        return (
            f"look with app.jobs.get({job_id!r}); enqueued with an idempotency_key, it could be sent again and make "
            "no second job"
        )
    return "enqueue it again with the same idempotency key: it makes no second job"


def _check_given_key(key: object, decorator: str, example: str) -> None:
    if callable(key):
        raise BadInput(
            f"@app.{decorator} stands on {key!r:.80} without a key",
            hint=f'write @app.{decorator}("{example}", ...)',
        )
    check_key(key)
