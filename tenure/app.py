"""The application object: where tasks are registered and jobs enqueued. It opens nothing before first use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast, overload

from .api.hints import Hints
from .bindings import Bindings, May, Writer
from .calendar_book import CalendarBook
from .handles import Job, Registers, TaskCall, TaskOptions
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
from .lease.loop import Loop
from .lease.loss import LossWatch
from .lease.notices import Teller
from .lease.pools import PoolPlan
from .lease.redaction import check_secrets
from .lease.requests import Options, new_job
from .lease.retry import Retry
from .lease.sweep import Sweep
from .lease.tasks import DEFAULT_POOL, Registry, Task, check_key, check_pool
from .notices import Notifier, Notifiers
from .opened import Opened
from .schedule_book import Declared, ScheduleBook
from .scheduler.cron import Dst
from .scheduler.job_key import JobKey
from .scheduler.schedules import DEFAULT_TRIGGER
from .scheduler.trigger import Trigger
from .scripts.errors import BadInput, StoreUnreachable, TenureError
from .scripts.kinds import of_kind
from .settings import Settings
from .store_check import StoreCheck
from .tenant_book import TenantBook

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from .api.progress_app import Authorize

R = TypeVar("R")
W = TypeVar("W", bound=Writer)


class Tenure(Opened):
    """An application: its tasks and schedules, and its way to the store."""

    def __init__(self, settings: Settings | None = None) -> None:
        super().__init__(settings)
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
        but True refuses it, and what it raises too (RightsUnknown). Raises BadInput.
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
            Loop(StoreCheck(self.store.facts, self.check_store), "tenure-store-check"),
        ]
        if pool is not None:
            loops.append(Loop(Teller(ledgers, pool), "tenure-teller"))
        if self.bindings.writers:
            loops.append(Loop(Binder(ledgers, self.bindings.writers, self.registry), "tenure-binder"))
        return loops

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
        is shown; for anything but True there is no such task, and where it fails the user is told no more than that.
        What it serves is told in `api/progress_app.py`.
        """
        from .api.progress_app import create_progress  # only web processes load Starlette

        return create_progress(self, authorize)


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
