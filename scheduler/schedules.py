"""The schedules of one tenant: put, get, list, next, fires."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..lease.index import FIRE
from ..lease.jobs import News
from ..lease.ledger import Ledger
from ..lease.payload import pack_args
from ..lease.requests import Options, row_fields
from ..lease.tasks import Task
from ..lease.views import pairs
from ..scripts import Call
from ..scripts.errors import BadInput, NotFound, StalePlan
from ..scripts.loader import Arg, texts
from .definition import Definition, Trigger, month
from .job_key import JobKey

_TRIGGER = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
DEFAULT_TRIGGER = "default"
PUT_TRIES = 5


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """A schedule as it stands; next and last fires by trigger, in epoch ms."""

    tenant: str
    job_key: JobKey
    revision: int
    definition: Definition
    next_fires: Mapping[str, int]
    last_fires: Mapping[str, int]

    @property
    def exhausted(self) -> bool:
        return not self.next_fires


@dataclass(frozen=True, slots=True)
class Fire:
    """The record of one planned instant, or of `count` of them from `fire_time` to `until` (epoch ms)."""

    trigger: str
    fire_time: int
    outcome: str
    reason: str | None
    job_id: str | None
    at: int
    scheduler: str | None
    until: int | None
    count: int


@dataclass(frozen=True, slots=True)
class Put:
    """The answer to a put; `changed` is False when the same definition was already stored."""

    revision: int
    changed: bool


class Schedules:
    """Operations on the schedules of one tenant."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def put(
        self,
        job_key: JobKey | str,
        task: Task,
        triggers: Sequence[Trigger],
        *,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: Options | None = None,
        misfire: str = "fire_once",
        overlap: str = "allow",
        expected_revision: int | None = None,
    ) -> Put:
        """Store a schedule. The same definition again changes nothing. Raises BadInput for a trigger that
        never fires again, StalePlan when `expected_revision` is not the stored one."""
        key = JobKey.parse(job_key)
        chosen = options or Options()
        bound_args, bound_kwargs = task.bind(tuple(args), dict(kwargs or {}))
        definition = Definition(
            task=task.key,
            args=pack_args(bound_args, bound_kwargs, what=f"the arguments of {task.key}"),
            pool=chosen.pool or task.pool,
            fields={name: str(value) for name, value in row_fields(task, chosen.but(source="cron")).items()},
            triggers=tuple(triggers),
            misfire=misfire,
            overlap=overlap,
        )
        check_triggers(triggers)
        for left in reversed(range(PUT_TRIES)):
            try:
                return self._put(key, definition, expected_revision)
            except StalePlan:
                # a first instant has passed since it was computed; or the revision is not the expected one
                if not left or expected_revision not in (None, self._revision(key)):
                    raise
        raise AssertionError("unreachable")

    def _put(self, key: JobKey, definition: Definition, expected_revision: int | None) -> Put:
        moment = self.ledger.index.take(FIRE, 0).now_ms
        last = self._read(f"[{key}", f"[{key}", 1)
        rest: list[str | int] = []
        for trigger in definition.triggers:
            after = max(moment, last[0].last_fires.get(trigger.name, 0) if last else 0)
            rest += [trigger.name, _first(key, trigger, after)]
        self.ledger.index.register(self.ledger.tenant)
        revision, changed, earliest, version = self._run(
            "schedule_put",
            rest,
            job_key=str(key),
            definition=definition.packed(),
            digest=definition.digest,
            expected="" if expected_revision is None else expected_revision,
            month=month(moment),
        )
        self.tell(earliest, version)
        return Put(int(revision), changed == "1")

    def _revision(self, key: JobKey) -> int:
        found = self._read(f"[{key}", f"[{key}", 1)
        return found[0].revision if found else 0

    def get(self, job_key: JobKey | str) -> ScheduleView:
        """One schedule. Raises NotFound."""
        name = str(JobKey.parse(job_key))
        found = self._read(f"[{name}", f"[{name}", 1)
        if not found:
            raise NotFound(
                f"schedule {name!r} is not stored in tenant {self.ledger.tenant}", hint="tenure cron list"
            )
        return found[0]

    def list(self, limit: int = 50, after: str | None = None) -> Sequence[ScheduleView]:
        """Schedules in the order of their names, from the one after `after` on."""
        return self._read(f"({after}" if after else "-", "+", limit)

    def next(self, job_key: JobKey | str, count: int = 5) -> Sequence[tuple[str, int]]:
        """The next planned instants of all its triggers: (trigger, epoch ms)."""
        view = self.get(job_key)
        planned: list[tuple[str, int]] = []
        for trigger in view.definition.triggers:
            at = view.next_fires.get(trigger.name)
            expression = trigger.expression()
            for _ in range(count):
                if at is None:
                    break
                planned.append((trigger.name, at))
                at = expression.next_ms(at)
        return sorted(planned, key=lambda pair: pair[1])[:count]

    def fires(
        self,
        job_key: JobKey | str,
        *,
        trigger: str | None = None,
        month: str,
        limit: int = 50,
        before: int = -1,
    ) -> tuple[Sequence[Fire], int | None]:
        """Fire records of one trigger in a UTC month (YYYYMM), newest first, and where the next page starts."""
        view = self.get(job_key)
        name = trigger or view.definition.triggers[0].name
        reply = self._run(
            "fires_read", (), job_key=str(view.job_key), trigger=name, month=month, before=before, limit=limit
        )
        return [_fire(name, record) for record in reply[1:]], int(reply[0]) if reply[0] else None

    def tell(self, earliest: str, version: str) -> None:
        """Let the tenant index know when the next trigger is due."""
        due = int(earliest) if earliest else None
        self.ledger.index.put([News(self.ledger.tenant, FIRE, due, int(version))])

    def _run(self, script: str, rest: Sequence[Any] = (), **args: Any) -> Sequence[str]:
        return self.ledger.scripts.run(Call(script, self.ledger.keys.home, args, texts, rest))

    def _read(self, start: str, end: str, limit: int) -> Sequence[ScheduleView]:
        args: dict[str, Arg] = {"from": start, "to": end, "limit": limit}
        call: Call[Any] = Call("schedules_read", self.ledger.keys.home, args, _as_is)
        return [_view(self.ledger.tenant, key, flat) for key, flat in self.ledger.scripts.run(call)]


def check_triggers(triggers: Sequence[Trigger]) -> Sequence[Trigger]:
    """Return `triggers` if there are some and their names may stand side by side, else refuse them."""
    names = [trigger.name for trigger in triggers]
    if not names or len(set(names)) < len(names):
        raise BadInput(
            f"triggers {names} must be at least one, with names of their own", hint="name them 'a', 'b', ..."
        )
    for name in names:
        if not _TRIGGER.fullmatch(name):
            raise BadInput(
                f"trigger name {name!r:.60} is not allowed: lower-case letters, digits, '_' and '-', at most 63",
                hint="leave it out for 'default'",
            )
    return triggers


def _first(key: JobKey, trigger: Trigger, now: int) -> int:
    first = trigger.expression().next_ms(now)
    if first is None:
        raise BadInput(
            f"trigger {trigger.name!r} of {key} never fires again: {trigger.cron!r}",
            hint="tenure cron explain",
        )
    return first


def _as_is(reply: Any) -> Any:
    return reply


def _view(tenant: str, job_key: bytes, flat: list[bytes]) -> ScheduleView:
    fields = {name.decode(): value for name, value in pairs(flat)}
    return ScheduleView(
        tenant=tenant,
        job_key=JobKey.parse(job_key.decode()),
        revision=int(fields["revision"]),
        definition=Definition.unpacked(fields["definition"]),
        next_fires={name[5:]: int(value) for name, value in fields.items() if name.startswith("next:")},
        last_fires={name[5:]: int(value) for name, value in fields.items() if name.startswith("last:")},
    )


def _fire(trigger: str, record: str) -> Fire:
    instant, outcome, reason, job_id, at, scheduler, until, count = (
        None if part == "-" else part for part in record.split(" ")
    )
    return Fire(
        trigger=trigger,
        fire_time=int(instant or 0),
        outcome=outcome or "",
        reason=reason,
        job_id=job_id,
        at=int(at or 0),
        scheduler=scheduler,
        until=int(until) if until else None,
        count=int(count or 1),
    )
