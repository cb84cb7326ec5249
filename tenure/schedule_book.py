"""`app.schedules`: schedules over all tenants, by JobKey; and those declared in code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from .lease.durations import Duration
from .lease.requests import Options, epoch_ms
from .lease.tasks import Task
from .lease.who import who
from .lease.why import Why
from .scheduler import pausing
from .scheduler.backfill import RATE, Backfilled, BackfillPlan, backfill, backfill_plan
from .scheduler.cron import Dst
from .scheduler.definition import check_overlap
from .scheduler.dry_run import DryRun, dry_run
from .scheduler.execution_log import LogPage
from .scheduler.fire_record import Fire
from .scheduler.job_key import JobKey
from .scheduler.misfire import read_misfire
from .scheduler.preview import Preview, preview
from .scheduler.put import Put
from .scheduler.schedules import DEFAULT_TRIGGER, Revision, Schedules, ScheduleView
from .scheduler.trigger import Trigger
from .scheduler.upcoming import ClockChange, Upcoming
from .scheduler.why import why
from .scripts.errors import BadInput, NotFound, StoreUnreachable, TenureError
from .scripts.keys import check_tenant
from .scripts.kinds import checked

if TYPE_CHECKING:
    from .app import Tenure


@dataclass(frozen=True, slots=True)
class Declared:
    """A schedule declared by `@app.cron`. Raises BadInput for what could never be stored."""

    job_key: JobKey
    trigger: Trigger
    misfire: object
    overlap: str
    tenant: str

    def __post_init__(self) -> None:
        read_misfire(self.misfire)
        check_overlap(self.overlap)
        check_tenant(self.tenant)


@dataclass(frozen=True, slots=True)
class Declaration:
    """What became of a declared schedule: `put` is the answer, or None when `problem` kept it from being stored."""

    tenant: str
    job_key: JobKey
    put: Put | None
    problem: Exception | None = None

    @property
    def hint(self) -> str:
        """What to do about the problem."""
        return self.problem.hint if isinstance(self.problem, TenureError) else ""


class FireOptions(TypedDict, total=False):
    """How the jobs of a schedule differ from their task's defaults."""

    pool: str
    priority: int
    timeout: Duration
    trace: str


def _one_of(job_key: JobKey | str | None, group: str | None) -> bool:
    """Whether a group is meant. Raises BadInput unless it is either that or one schedule."""
    if (job_key is None) == (group is None):
        raise BadInput(
            "give a JobKey or a group, one of the two", hint="pause('reports.daily'), pause(group='reports')"
        )
    return group is not None


def _chosen(cron: str | None, triggers: Sequence[Trigger], tz: str, dst: Dst) -> list[Trigger]:
    """The triggers as given, and an expression as one more."""
    return list(triggers) if cron is None else [*triggers, Trigger(DEFAULT_TRIGGER, cron, tz, dst)]


@checked
class ScheduleBook:
    def __init__(self, app: Tenure) -> None:
        self._app = app
        self._declared: dict[tuple[str, JobKey], tuple[Declared, str]] = {}

    def declare_later(self, one: Declared, task: Task) -> None:
        """Remember a schedule of the code. Raises BadInput if its task needs arguments, or its name is taken."""
        try:
            task.bind((), {})
        except BadInput as exc:
            raise BadInput(
                f"{exc}: its schedule would fire it without any",
                hint="give the parameters defaults, or use app.task and app.schedules.put(..., args=[...])",
            ) from None
        known = self._declared.setdefault((one.tenant, one.job_key), (one, task.key))
        if known != (one, task.key):
            raise BadInput(
                f"schedule {one.job_key} of tenant {one.tenant} is declared twice: {known[0].trigger.rule!r} and "
                f"{one.trigger.rule!r}",
                hint="give one of the two another key",
            )

    def declare(self) -> Sequence[Declaration]:
        """Store what the code declares; what is stored already changes nothing.

        Answers what became of each: one that cannot be stored (it is in the past, say) holds up none of the others.
        Raises StoreUnreachable.
        """
        return [self._put_declared(one, task) for one, task in self._declared.values()]

    def undeclared(self) -> Sequence[tuple[str, JobKey]]:
        """What is stored as declared in code, of all tenants, and is not in this code: (tenant, JobKey)."""
        index = self._app.ledgers().index
        found: list[tuple[str, JobKey]] = []
        for member in index.declared():
            tenant, _, name = member.partition(":")
            job_key = JobKey.parse(name)
            if (tenant, job_key) in self._declared:
                continue
            try:
                stored = self.get(job_key, tenant).declared
            except NotFound:
                stored = False
            except StoreUnreachable:
                raise
            except (TenureError, ValueError, TypeError):
                continue  # it cannot be read; the scheduler tells of that
            if stored:
                found.append((tenant, job_key))
            else:
                index.declared(drop=[member])
        return found

    def _put_declared(self, one: Declared, task: str) -> Declaration:
        try:
            put = self.of(one.tenant).put(
                one.job_key,
                self._app.registry.get(task),
                [one.trigger],
                misfire=one.misfire,
                overlap=one.overlap,
                declared=True,
            )
        except StoreUnreachable:
            raise
        except (TenureError, ValueError, TypeError) as exc:
            return Declaration(one.tenant, one.job_key, None, exc)
        return Declaration(one.tenant, one.job_key, put)

    def of(self, tenant: str = "default") -> Schedules:
        return Schedules(self._app.ledger(tenant), self._app.archive)

    def put(
        self,
        job_key: JobKey | str,
        *,
        task: str,
        cron: str | None = None,
        triggers: Sequence[Trigger] = (),
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        tz: str = "UTC",
        dst: Dst = "standard",
        tenant: str = "default",
        misfire: object = "fire_once",
        overlap: str = "allow",
        enabled: bool | None = None,
        expected_revision: int | None = None,
        **options: Unpack[FireOptions],
    ) -> Put:
        """Store a schedule under its JobKey; the same again changes nothing. With `enabled=False` it is stored paused,
        with True it is not paused any more, and without it stays as it was. See Schedules.put.
        """
        for name in options:
            if name not in FireOptions.__annotations__:
                raise BadInput(
                    f"{name!r:.60} is not an option of a schedule",
                    hint=f"the options of its jobs are: {', '.join(FireOptions.__annotations__)}",
                )
        return self.of(tenant).put(
            job_key,
            self._app.registry.get(task),
            _chosen(cron, triggers, tz, dst),
            args=args,
            kwargs=kwargs,
            options=Options(tenant=tenant).but(**options),
            misfire=misfire,
            overlap=overlap,
            enabled=enabled,
            expected_revision=expected_revision,
        )

    def delete(
        self,
        job_key: JobKey | str,
        tenant: str = "default",
        *,
        reason: str = "",
        by: str | None = None,
        expected_revision: int | None = None,
    ) -> bool:
        """Delete a schedule, so that it fires no more; answers whether there was one. See Schedules.delete.

        One that `@app.cron` declares comes back with the next registration (a scheduler starts, or `declare()` is
        called): take it out of the code first, or pause it instead, which a registration leaves as it is.
        """
        deleted = self.of(tenant).delete(
            job_key, expected_revision=expected_revision, by=who(by), reason=reason
        )
        return deleted is not None

    def pause(
        self,
        job_key: JobKey | str | None = None,
        *,
        group: str | None = None,
        reason: str = "",
        by: str | None = None,
        tenant: str = "default",
        expected_revision: int | None = None,
    ) -> int:
        """Let nothing fire of a schedule, or of a whole group and what is stored in it later; answers how many did
        until now. What is planned in the meantime is recorded as skipped, `paused`.
        """
        if _one_of(job_key, group):
            return pausing.pause_group(self.of(tenant), group or "", by=who(by), reason=reason)
        return pausing.pause(
            self.of(tenant), job_key or "", by=who(by), reason=reason, expected=expected_revision
        )

    def resume(
        self,
        job_key: JobKey | str | None = None,
        *,
        group: str | None = None,
        reason: str = "",
        by: str | None = None,
        tenant: str = "default",
        expected_revision: int | None = None,
    ) -> int:
        """Let a schedule, or a whole group, fire again what is planned after now; answers how many were paused."""
        if _one_of(job_key, group):
            return pausing.resume_group(self.of(tenant), group or "", by=who(by), reason=reason)
        return pausing.resume(
            self.of(tenant), job_key or "", by=who(by), reason=reason, expected=expected_revision
        )

    def run(
        self,
        job_key: JobKey | str,
        *,
        trigger: str | None = None,
        at: datetime | None = None,
        reason: str = "",
        by: str | None = None,
        tenant: str = "default",
        expected_revision: int | None = None,
    ) -> str:
        """Make a job of a schedule now, or for a planned instant of it, by hand; answers its id. Plan and records stay.

        Raises BadInput for an instant that is not planned, SchedulingDisabled, StalePlan when `expected_revision` is
        not the stored one.
        """
        instant = None if at is None else epoch_ms(at, what="at")
        return pausing.run(
            self.of(tenant),
            job_key,
            trigger=trigger,
            at=instant,
            by=who(by),
            reason=reason,
            expected=expected_revision,
        )

    def backfill(
        self,
        job_key: JobKey | str,
        start: datetime,
        end: datetime,
        *,
        trigger: str | None = None,
        rate: int = RATE,
        reason: str = "",
        by: str | None = None,
        dry_run: bool = False,
        tenant: str = "default",
    ) -> BackfillPlan | Backfilled:
        """Make jobs for the planned instants of a past range that did not run, by the revision in force at each, and
        answer the ids of those it made and of those that were there already; with `dry_run`, answer only which instants
        have none yet. Instants that the scheduler still owes are left to it, and named (`owed`). See backfill.
        """
        schedules = self.of(tenant)
        low, high = epoch_ms(start, what="start"), epoch_ms(end, what="end")
        if dry_run:
            return backfill_plan(schedules, job_key, low, high, trigger=trigger)
        return backfill(schedules, job_key, low, high, trigger=trigger, rate=rate, by=who(by), reason=reason)

    def dry_run(
        self,
        job_key: JobKey | str,
        *,
        start: datetime | None = None,
        end: datetime | None = None,
        misfire: object = None,
        tenant: str = "default",
    ) -> Sequence[DryRun]:
        """What the policies for misfires and overlap would make of an outage from `start` to `end` (now, if not given),
        or of what is due now and has not fired yet; with `misfire`, by that policy. Nothing is changed. See dry_run.
        """
        low = None if start is None else epoch_ms(start, what="start")
        high = None if end is None else epoch_ms(end, what="end")
        policy = None if misfire is None else read_misfire(misfire)
        return dry_run(self.of(tenant), job_key, start=low, end=high, misfire=policy)

    def why(
        self,
        job_key: JobKey | str,
        *,
        at: datetime | None = None,
        trigger: str | None = None,
        tenant: str = "default",
    ) -> Why:
        """Why a schedule did or did not fire at a planned instant; without one, when it fires next or why not."""
        instant = None if at is None else epoch_ms(at, what="at")
        return why(self.of(tenant), job_key, at=instant, trigger=trigger)

    def follow_code(
        self, job_key: JobKey | str, tenant: str = "default", *, by: str | None = None, reason: str = ""
    ) -> Put:
        """Put back what code declares, where somebody had put something else. See Schedules.follow_code."""
        return self.of(tenant).follow_code(job_key, by=who(by), reason=reason)

    def revisions(self, job_key: JobKey | str, tenant: str = "default") -> Sequence[Revision]:
        """What became of a schedule, newest first."""
        return self.of(tenant).revisions(job_key)

    def get(self, job_key: JobKey | str, tenant: str = "default") -> ScheduleView:
        return self.of(tenant).get(job_key)

    def list(
        self, tenant: str = "default", limit: int = 50, after: str | None = None
    ) -> Sequence[ScheduleView]:
        return self.of(tenant).list(limit, after)

    def next(self, job_key: JobKey | str, count: int = 5, tenant: str = "default") -> Sequence[Upcoming]:
        """The next planned fires of all its triggers (`fire_time` in epoch ms). `odd` says of one that a change of the
        clocks moves or doubles, by which reading it is planned and which mark it has: `gap` or `overlap`.
        """
        return self.of(tenant).next(job_key, count)

    def clock_changes(self, job_key: JobKey | str, tenant: str = "default") -> Sequence[ClockChange]:
        """What changes of the clocks do to a schedule in the year from now on: what they move, double and take out."""
        return self.get(job_key, tenant).clock_changes(self._app.ledgers().index.now_ms())

    def preview(
        self,
        *,
        cron: str | None = None,
        triggers: Sequence[Trigger] = (),
        tz: str = "UTC",
        dst: Dst = "standard",
        count: int = 5,
        tenant: str = "default",
    ) -> Sequence[Preview]:
        """When triggers would fire, each with what changes of the clocks do to it in the year from now on. Nothing is
        stored. Raises BadInput for a named calendar that the tenant does not have.
        """
        return preview(self.of(tenant), _chosen(cron, triggers, tz, dst), count)

    def fires(
        self,
        job_key: JobKey | str,
        *,
        month: str,
        trigger: str | None = None,
        tenant: str = "default",
        limit: int = 50,
    ) -> Sequence[Fire]:
        """The newest fire records of a UTC month (YYYYMM), of one trigger or of all; also of what is no more."""
        return self.of(tenant).fires(job_key, trigger=trigger, month=month, limit=limit)[0]

    def logs(
        self,
        job_key: JobKey | str,
        *,
        month: str,
        limit: int = 50,
        cursor: str | None = None,
        tenant: str = "default",
    ) -> LogPage:
        """The execution log of a UTC month (YYYYMM): what was executed, failed and was skipped, newest first."""
        return self.of(tenant).logs(job_key, month=month, limit=limit, cursor=cursor)
