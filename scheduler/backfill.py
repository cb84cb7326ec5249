"""Backfill: jobs for planned instants of the past that have none, by the revision that was in force at each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..lease.ids import fire_id
from ..lease.who import check_word
from ..scripts.errors import BadInput
from .calendar_store import Calendars
from .definition import Definition
from .job_key import JobKey
from .misfire import LOWEST_PRIORITY
from .pausing import run_call
from .schedules import Revision, Schedules
from .times import Times
from .trigger import Trigger, names_of

MOST = 1_000
RATE, FASTEST = 10, 200
BATCH = 100


@dataclass(frozen=True, slots=True)
class Missed:
    """A planned instant (epoch ms) that did not run: what its record says (`no_record` if there is none;
    `owed` if it is left to the scheduler).
    """

    trigger: str
    instant: int
    revision: int
    outcome: str


OWED = "owed"
"""What is said in place of a record, where a scheduler has not decided yet."""


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """What a backfill would make jobs for (`missed`), and what it leaves to the scheduler (`owed`): instants on which
    that has not decided yet, and does so by the misfire policy when it comes by, or a resume if the schedule is paused.
    Both oldest first.
    """

    missed: Sequence[Missed]
    owed: Sequence[Missed]


@dataclass(frozen=True, slots=True)
class Backfilled:
    """The jobs of a backfill, by id: those that it made, and those that were `there` already. `owed` are the instants
    that it left to the scheduler.
    """

    made: Sequence[str]
    there: Sequence[str]
    owed: Sequence[Missed]


def backfill_plan(
    schedules: Schedules, job_key: JobKey | str, start: int, end: int, *, trigger: str | None = None
) -> BackfillPlan:
    """The planned instants from `start` up to before `end` (epoch ms) that did not run and that no backfill has made a
    job for, and those that the scheduler still owes. Named calendars are taken as they stand now.

    Raises NotFound, BadInput for a range that is not past or has over 1,000 planned instants, and for a trigger that
    the schedule never had.
    """
    key = JobKey.parse(job_key)
    plan = _planned(schedules, key, start, end, trigger)
    there = _there(schedules, [_id(schedules, key, one) for one in plan.missed])
    return replace(plan, missed=[one for one in plan.missed if _id(schedules, key, one) not in there])


def backfill(
    schedules: Schedules,
    job_key: JobKey | str,
    start: int,
    end: int,
    *,
    trigger: str | None = None,
    rate: int = RATE,
    by: str = "",
    reason: str = "",
) -> Backfilled:
    """Make a job for each instant of the plan, `rate` of them due in a second, after all live work. The same again
    makes none twice, as long as the ledger has the first. The fire records stay as they are.

    Raises as `backfill_plan`, and SchedulingDisabled, StalePlan if the scheduler owes again what it had decided.
    """
    if not 1 <= rate <= FASTEST:
        raise BadInput(f"rate {rate} is out of range: 1 to {FASTEST} a second", hint=f"the default is {RATE}")
    check_word(by, reason)
    key = JobKey.parse(job_key)
    definitions = {one.number: one.definition for one in schedules.revisions(key)}
    found = _planned(schedules, key, start, end, trigger)
    planned = {_id(schedules, key, one): one for one in found.missed}
    there = _there(schedules, list(planned))
    plan = [(id_, one) for id_, one in planned.items() if id_ not in there]
    made: set[str] = set()
    for at in range(0, len(plan), BATCH):
        calls = [
            run_call(
                schedules,
                key,
                _needed(definitions[one.revision]),
                one.trigger,
                id_,
                one.instant,
                by=by,
                reason=reason,
                decided=True,
                after_ms=(at + nth) * 1000 // rate,
                priority=LOWEST_PRIORITY,
            )
            for nth, (id_, one) in enumerate(plan[at : at + BATCH])
        ]
        made.update(id_ for id_, is_new in schedules.make(calls) if is_new)
    return Backfilled(
        made=[id_ for id_ in planned if id_ in made],
        there=[id_ for id_ in planned if id_ not in made],
        owed=found.owed,
    )


def _planned(schedules: Schedules, key: JobKey, start: int, end: int, trigger: str | None) -> BackfillPlan:
    """The planned instants that did not run, whether or not they were made up for since. What is decided is read
    before the records are: so what runs in between is owed, and not missed.
    """
    now = schedules.ledger.index.now_ms()
    if not start < end <= now:
        raise BadInput(
            f"the range from {start} to {end} is not a stretch of the past (now is {now})",
            hint="give a start before the end, and an end that has passed",
        )
    view, revisions = schedules.get(key), schedules.revisions(key)
    names = {
        one.name for revision in revisions if revision.definition for one in revision.definition.triggers
    }
    if trigger is not None and trigger not in names:
        raise BadInput(
            f"trigger {trigger!r:.60} is none of {key}, now or before",
            hint=f"they are: {', '.join(sorted(names))}",
        )
    found: list[Missed] = []
    for revision, low, high in _in_force(revisions, start, end):
        for one in _needed(revision.definition).triggers:
            if trigger in (None, one.name):
                calendars = Calendars(schedules.ledger).named(names_of([one]))
                times = one.times(view.anchors.get(one.name, 0) or revision.at, calendars)
                found += _missed(schedules, key, revision, one, times, low, high)
                _check_number(len(found))
    found.sort(key=lambda one: (one.instant, one.trigger))
    owed = [
        replace(one, outcome=OWED)
        for one in found
        if one.instant >= view.decided.get(one.trigger, one.instant + 1)
    ]
    decided = [one for one in found if one.instant < view.decided.get(one.trigger, one.instant + 1)]
    return BackfillPlan(decided, owed)


def _there(schedules: Schedules, ids: Sequence[str]) -> set[str]:
    """Those of these jobs that the ledger has."""
    batches = (ids[at : at + BATCH] for at in range(0, len(ids), BATCH))
    return {job.id for batch in batches for job in schedules.ledger.get_many(batch)}


def _id(schedules: Schedules, key: JobKey, one: Missed) -> str:
    return by_hand_id(schedules.ledger.tenant, key, one.trigger, one.instant)


def _in_force(revisions: Sequence[Revision], start: int, end: int) -> Iterator[tuple[Revision, int, int]]:
    """Each revision that changed the definition, with the part of the range in which it held."""
    changes = [one for one in reversed(revisions) if one.definition is not None]
    for one, after in zip(changes, [*changes[1:], None], strict=True):
        low, high = max(start, one.at), end if after is None else min(end, after.at)
        if low < high:
            yield one, low, high


def _missed(
    schedules: Schedules, key: JobKey, revision: Revision, trigger: Trigger, times: Times, low: int, high: int
) -> Iterator[Missed]:
    _check_number(times.count_ms(low, high))
    at = times.next_ms(low - 1)
    while at is not None and at < high:
        record = schedules.records.at(key, trigger.name, at)
        if record is None or record.job_id is None:
            said = "no_record" if record is None else f"{record.outcome}({record.reason})"
            yield Missed(trigger.name, at, revision.number, said)
        at = times.next_ms(at)


def _check_number(many: int) -> None:
    if many > MOST:
        raise BadInput(
            f"the range has {many:,} planned instants, at most {MOST:,} go in one backfill", hint="split it"
        )


def by_hand_id(tenant: str, key: JobKey, trigger: str, instant: int) -> str:
    """The job of an instant that is made up for: the same however often it is asked for, and another than a fire's."""
    return fire_id(tenant, str(key), f"{trigger}:backfill", instant)


def _needed(definition: Definition | None) -> Definition:
    assert definition is not None
    return definition
