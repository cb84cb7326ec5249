"""`app.schedules`: schedules over all tenants, by JobKey; and those declared in code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .lease.requests import Options
from .scheduler.cron import Dst
from .scheduler.definition import Trigger
from .scheduler.job_key import JobKey
from .scheduler.schedules import DEFAULT_TRIGGER, Fire, Put, Schedules, ScheduleView

if TYPE_CHECKING:
    from .app import Tenure


@dataclass(frozen=True, slots=True)
class Declared:
    """A schedule declared by `@app.cron`."""

    job_key: JobKey
    task: str
    trigger: Trigger
    misfire: str
    overlap: str
    tenant: str


class ScheduleBook:
    def __init__(self, app: Tenure) -> None:
        self._app = app
        self._declared: list[Declared] = []

    def declare_later(
        self, task: str, expression: str, tz: str, dst: Dst, misfire: str, overlap: str, tenant: str
    ) -> None:
        """Remember a schedule; its expression is checked now, so a mistake shows where it stands."""
        trigger = Trigger(DEFAULT_TRIGGER, expression, tz, dst)
        trigger.expression()
        self._declared.append(Declared(JobKey.parse(task), task, trigger, misfire, overlap, tenant))

    def declare(self) -> Sequence[tuple[str, JobKey, Put]]:
        """Store what the code declares; what is stored already changes nothing."""
        return [(one.tenant, one.job_key, self._put_declared(one)) for one in self._declared]

    def _put_declared(self, one: Declared) -> Put:
        task = self._app.registry.get(one.task)
        schedules = self.of(one.tenant)
        return schedules.put(one.job_key, task, [one.trigger], misfire=one.misfire, overlap=one.overlap)

    def of(self, tenant: str = "default") -> Schedules:
        return Schedules(self._app.ledger(tenant))

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
        misfire: str = "fire_once",
        overlap: str = "allow",
        expected_revision: int | None = None,
        **options: Any,
    ) -> Put:
        """Store a schedule under its JobKey; the same again changes nothing. See Schedules.put."""
        chosen = list(triggers) if cron is None else [*triggers, Trigger(DEFAULT_TRIGGER, cron, tz, dst)]
        return self.of(tenant).put(
            job_key,
            self._app.registry.get(task),
            chosen,
            args=args,
            kwargs=kwargs,
            options=Options(tenant=tenant).but(**options),
            misfire=misfire,
            overlap=overlap,
            expected_revision=expected_revision,
        )

    def get(self, job_key: JobKey | str, tenant: str = "default") -> ScheduleView:
        return self.of(tenant).get(job_key)

    def list(
        self, tenant: str = "default", limit: int = 50, after: str | None = None
    ) -> Sequence[ScheduleView]:
        return self.of(tenant).list(limit, after)

    def next(
        self, job_key: JobKey | str, count: int = 5, tenant: str = "default"
    ) -> Sequence[tuple[str, int]]:
        return self.of(tenant).next(job_key, count)

    def fires(
        self, job_key: JobKey | str, *, month: str, tenant: str = "default", limit: int = 50
    ) -> Sequence[Fire]:
        return self.of(tenant).fires(job_key, month=month, limit=limit)[0]
