"""What becomes of an old job here: a schedule, or a reason why it cannot be one. Pure but for the registry of tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..lease.context import MOST_LABELS, check_labels
from ..lease.instants import rfc3339
from ..lease.ledger import NewJob
from ..lease.payload import pack_args
from ..lease.requests import Options, row_fields
from ..lease.tasks import Registry, Task, check_pool
from ..scripts.errors import BadInput, BadPayload
from .backfill import by_hand_id
from .job_key import JobKey
from .misfire import THRESHOLD_MS
from .rq_cron_text import CronText, of_rq_scheduler
from .rq_job import OldJob
from .schedules import DEFAULT_TRIGGER
from .times import Times
from .trigger import Trigger
from .zones import zone

MOST_FIRES = 10_000
"""How many more fires of a cron job with `repeat` are counted."""
MOST_DUE = 100
Translate = Callable[[str], CronText]


@dataclass(frozen=True, slots=True)
class Reading:
    """How old jobs are read: `tz`, the zone of the host that runs the old scheduler; the task of a function and the
    pool of a queue, where they have other names here; only these queues, or all.
    """

    tz: str
    tasks: Mapping[str, str] = field(default_factory=dict[str, str])
    pools: Mapping[str, str] = field(default_factory=dict[str, str])
    queues: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        zone(self.tz)
        for pool in self.pools.values():
            check_pool(pool)

    def packed(self) -> str:
        return json.dumps([self.tz, dict(self.tasks), dict(self.pools), list(self.queues)])

    @classmethod
    def unpacked(cls, text: str) -> Reading:
        tz, tasks, pools, queues = json.loads(text)
        return cls(tz, tasks, pools, tuple(queues))

    def wants(self, job: OldJob) -> bool:
        return not self.queues or job.queue in self.queues


@dataclass(frozen=True, slots=True)
class Move:
    """One schedule out of one old job, or out of several that are the same. `problem` says why it is none; without a
    trigger it has fired for the last time.
    """

    jobs: tuple[OldJob, ...]
    task: Task | None = None
    trigger: Trigger | None = None
    options: Options | None = None
    problem: str = ""
    notes: tuple[str, ...] = ()

    @property
    def old(self) -> OldJob:
        return self.jobs[0]

    @property
    def key(self) -> JobKey:
        return self.old.key

    @property
    def times(self) -> Times:
        """When it fires from its next instant on, as far as that counts."""
        assert self.trigger is not None
        return self.trigger.times(0)

    def over_at(self, now: int) -> bool:
        """Whether it has no instant after `now`."""
        return self.trigger is None or self.times.next_ms(now) is None

    def due(self, until: int) -> Sequence[int]:
        """The instants that came due up to `until` and that the old scheduler did not get to: each of the last minute;
        of older ones, as after any outage, the newest, and only if none is younger. Those of an interval that come
        after the first are none: there it begins anew with each run.
        """
        first = self.old.next_ms
        if self.trigger is None or first > until:
            return []
        if self.old.cron is None:
            return [first]
        times, found = self.times, list[int]()
        at = times.prev_ms(until + 1)
        while at is not None and at >= first and len(found) < MOST_DUE:
            if found and until - at > THRESHOLD_MS:
                break
            found.append(at)
            at = times.prev_ms(at)
        return found[::-1]

    def job(self, tenant: str, instant: int) -> NewJob:
        """A job for one of its instants, for when no schedule is stored. It is the same however often it is made."""
        assert self.task is not None
        assert self.options is not None
        return NewJob(
            task=self.task.key,
            args=pack_args(*self.task.bind(tuple(self.old.args), dict(self.old.kwargs))),
            pool=self.options.pool or self.task.pool,
            fields={
                **row_fields(self.task, replace(self.options, source="cron")),
                "fire_time": instant,
                "reason": "taken over from rq-scheduler",
            },
            id=by_hand_id(tenant, self.key, DEFAULT_TRIGGER, instant),
        )


def moves(
    jobs: Sequence[OldJob], reading: Reading, registry: Registry, translate: Translate = of_rq_scheduler
) -> Sequence[Move]:
    """What becomes of the jobs, in their order; those that are the same become one."""
    same: dict[JobKey, list[OldJob]] = {}
    for job in jobs:
        same.setdefault(job.key, []).append(job)
    return [_move(tuple(group), reading, registry, translate) for group in same.values()]


def _move(jobs: tuple[OldJob, ...], reading: Reading, registry: Registry, translate: Translate) -> Move:
    old, notes = jobs[0], [note for job in jobs for note in job.notes]
    if len(jobs) > 1:
        notes.append(f"the same is planned {len(jobs)} times: it becomes one")
    problem = next((job.problem for job in jobs if job.problem), "")
    if not problem and any(not _same(job, old) for job in jobs):
        problem = f"jobs {', '.join(job.id for job in jobs)} have one JobKey and are not the same"
    if problem:
        return Move(jobs, problem=problem, notes=tuple(notes))
    try:
        task = registry.get(reading.tasks.get(old.function, old.function))
        args, kwargs = task.bind(tuple(old.args), dict(old.kwargs))
        pack_args(args, kwargs, what="its arguments", names=task.parameter_names)
        trigger = None if old.fires == 0 else trigger_of(old, reading.tz, translate)
        options = _options(old, reading, notes)
    except (BadInput, BadPayload) as exc:
        return Move(jobs, problem=f"{exc}{f' ({exc.hint})' if exc.hint else ''}", notes=tuple(notes))
    wrong = "" if trigger is None else _disagrees(old, trigger, reading.tz)
    return Move(jobs, task, trigger, options, wrong, tuple(notes))


def _same(one: OldJob, other: OldJob) -> bool:
    varies: dict[str, Any] = {"id": "", "due_ms": 0, "fired_ms": 0, "repeat": None, "status": "", "notes": ()}
    return replace(one, **varies) == replace(other, **varies)


def trigger_of(old: OldJob, tz: str, translate: Translate) -> Trigger:
    """When it fires here, from its next instant on. Raises BadInput."""
    start, fires = rfc3339(old.next_ms), old.fires
    if old.cron is not None:
        found = translate(old.cron)
        trigger = Trigger(DEFAULT_TRIGGER, cron=found.cron, tz=tz, calendar=found.calendar)
        return (
            trigger
            if fires is None
            else replace(trigger, end=rfc3339(_nth(trigger.times(0), old.next_ms, fires)))
        )
    if fires == 1:
        return Trigger(DEFAULT_TRIGGER, at=start)
    if fires is None:
        return Trigger(DEFAULT_TRIGGER, every=f"{old.interval_s}s", start=start)
    return Trigger(DEFAULT_TRIGGER, repeat=f"R{fires}/{start}/PT{old.interval_s}S")


def _nth(times: Times, first: int, fires: int) -> int:
    if fires > MOST_FIRES:
        raise BadInput(
            f"it repeats {fires:,} more times, over {MOST_FIRES:,}", hint="as often as that is for ever"
        )
    at = first - 1
    for _ in range(fires):
        at = times.next_ms(at) or at
    return at


def _disagrees(old: OldJob, trigger: Trigger, tz: str) -> str:
    """The old scheduler's own next instant must be one of ours: so a wrong zone is found before it does harm."""
    ours = replace(trigger, end=None).times(0).next_ms(old.due_ms - 1)
    if old.cron is None or ours == old.due_ms:
        return ""
    said = "never" if ours is None else rfc3339(ours)
    return (
        f"the old scheduler fires it next at {rfc3339(old.due_ms)}, and {old.cron!r} on the clock of {tz} would at "
        f"{said} (is that the zone of the old scheduler's host? --tz)"
    )


def _options(old: OldJob, reading: Reading, notes: list[str]) -> Options:
    labels = dict(_labels(old, notes))
    return Options(
        pool=reading.pools.get(old.queue),
        timeout=None if old.timeout_s is None else f"{old.timeout_s}s",
        labels=labels,
    )


def _labels(old: OldJob, notes: list[str]) -> Iterator[tuple[str, str]]:
    """The queue and the user's meta, as far as labels hold them; what they do not is said."""
    left, lost = MOST_LABELS, list[str]()
    for name, value in {
        "rq.queue": old.queue,
        **{f"meta.{name}": value for name, value in old.meta.items()},
    }.items():
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        if left and _may_be_label(name, text):
            left -= 1
            yield name, text
        else:
            lost.append(name)
    if lost:
        notes.append(f"not carried over: {', '.join(sorted(lost))}")


def _may_be_label(name: str, text: str) -> bool:
    try:
        check_labels({name: text})
    except BadInput:
        return False
    return True
