"""What clients see of schedules and fires."""

from __future__ import annotations

from ..lease.instants import from_ms
from ..lease.payload import unpack_args
from ..scheduler.backfill import Backfilled, BackfillPlan, Missed
from ..scheduler.cron_words import Language
from ..scheduler.definition import Definition
from ..scheduler.dry_run import Decision, DryRun
from ..scheduler.execution_log import LogEntry
from ..scheduler.fire_record import Fire
from ..scheduler.job_key import JobKey
from ..scheduler.preview import Preview
from ..scheduler.schedules import ScheduleView
from ..scheduler.trigger import Trigger
from ..scheduler.upcoming import ClockChange, Upcoming
from .plain import Json, escaped, instant, jsonable
from .views import page

LANGUAGES: tuple[Language, ...] = ("en", "zh")


def schedule(view: ScheduleView) -> Json:
    definition = view.definition
    args, kwargs = unpack_args(definition.args)
    return {
        "jobKey": str(view.job_key),
        "tenant": view.tenant,
        "revision": view.revision,
        "task": definition.task,
        "args": jsonable(args),
        "kwargs": jsonable(kwargs),
        "triggers": [trigger(one, view) for one in definition.triggers],
        "misfire": definition.misfire.stored(),
        "overlap": definition.overlap,
        "paused": _paused(view),
        "declared": None if view.code is None else definition_of(view.code),
        "override": definition_of(definition) if view.overridden else None,
        "effective": definition_of(definition),
        "exhausted": view.exhausted,
    }


def definition_of(one: Definition) -> Json:
    """What is declared, put or in force, without how it stands."""
    args, kwargs = unpack_args(one.args)
    return {
        "task": one.task,
        "args": jsonable(args),
        "kwargs": jsonable(kwargs),
        "triggers": [_plan_of(trigger) for trigger in one.triggers],
        "misfire": one.misfire.stored(),
        "overlap": one.overlap,
    }


def trigger(one: Trigger, view: ScheduleView) -> Json:
    return {
        **_plan_of(one),
        "nextFire": instant(view.next_fires.get(one.name)),
        "lastFire": instant(view.last_fires.get(one.name)),
    }


def _plan_of(one: Trigger) -> Json:
    return {
        "name": one.name,
        _camel(one.kind): getattr(one, one.kind),
        "tz": one.tz,
        "dst": one.dst,
        "start": one.start,
        "end": one.end,
        "calendar": one.calendar,
        "jitter": one.jitter,
        "priority": one.priority,
    }


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


def preview(trigger: Trigger, found: Preview) -> Json:
    words = None if trigger.cron is None else {one: trigger.expression().describe(one) for one in LANGUAGES}
    return {
        "trigger": found.trigger,
        "nextFires": [instant(one.fire_time) for one in found.fires],
        "clockChanges": [clock_change(one) for one in found.clock_changes],
        "description": words,
        "outage": found.outage and dry_run(found.outage),
    }


def _paused(view: ScheduleView) -> Json | None:
    if view.paused is None:
        return None
    return {"reason": view.paused.reason, "by": view.paused.by, "since": instant(view.paused.since)}


def next_fires(view: ScheduleView, count: int, now: int) -> Json:
    """A schedule's next fires, as a page that is the last, what the clocks do to it, and what keeps it from firing."""
    changes = [{"trigger": one.trigger, **clock_change(one)} for one in view.clock_changes(now)]
    return {
        **page([_planned(one) for one in view.upcoming(count)], None),
        "clockChanges": changes,
        "paused": _paused(view),
        "schedulingDisabled": view.disabled,
    }


def _planned(one: Upcoming) -> Json:
    """`mark` and `nominal`, the reading it is planned by, are null but where the clocks change."""
    return {
        "trigger": one.trigger,
        "fireTime": instant(one.fire_time),
        "mark": one.odd and one.odd.mark,
        "nominal": one.odd and _reading(one.odd.nominal),
    }


def clock_change(one: ClockChange) -> Json:
    """What a change of the clocks does to planned instants from `at` to `until`, `count` of them."""
    return {
        "at": instant(one.first.at),
        "until": instant(one.last.at),
        "count": one.count,
        "nominal": _reading(one.first.nominal),
        "mark": one.first.mark,
        "skipped": one.first.skipped,
        "text": one.text,
    }


def _reading(ms: int) -> str:
    return from_ms(ms).replace(tzinfo=None).isoformat()


def log_entry(one: LogEntry) -> Json:
    """An entry of the execution log; `until` and `count` stand where it is a range."""
    entry: Json = {
        "eventId": one.event_id,
        "jobKey": str(one.job_key),
        "trigger": one.trigger,
        "fireTime": instant(one.fire_time),
        "status": one.status,
        "executed": one.executed,
        "reason": one.reason,
        "message": None if one.message is None else escaped(one.message, lines=True),
        "jobId": one.job_id,
        "createTime": instant(one.created_at),
    }
    return entry if one.until is None else {**entry, "until": instant(one.until), "count": one.count}


def ran(key: JobKey, job_id: str) -> Json:
    """The job of a run by hand."""
    return {"jobId": job_id, "jobKey": str(key)}


def backfill_plan(plan: BackfillPlan) -> Json:
    """What has no job yet, as a page that is the last, and what is left to the scheduler."""
    return {**page([_missed(one) for one in plan.missed], None), "owed": [_missed(one) for one in plan.owed]}


def backfilled(key: JobKey, done: Backfilled) -> Json:
    """The jobs of a backfill, and what is left to the scheduler."""
    owed = [_missed(one) for one in done.owed]
    return {"jobKey": str(key), "made": [*done.made], "there": [*done.there], "owed": owed}


def _missed(one: Missed) -> Json:
    """A planned instant that did not run, and what its record says."""
    return {
        "trigger": one.trigger,
        "fireTime": instant(one.instant),
        "revision": one.revision,
        "outcome": one.outcome,
    }


def dry_run(found: DryRun) -> Json:
    """What would become of each instant; `until` and `count` stand where it is a range."""
    return {
        "trigger": found.trigger,
        "at": instant(found.at),
        "decisions": [_decision(one) for one in found.decisions],
        "nextFire": instant(found.following),
        "note": found.note,
    }


def _decision(one: Decision) -> Json:
    said: Json = {
        "fireTime": instant(one.fire_time),
        "outcome": one.outcome,
        "reason": one.reason or None,
        "dueAt": instant(one.due_at),
        "priority": one.priority,
    }
    return said if one.until is None else {**said, "until": instant(one.until), "count": one.count}


def fire(job_key: JobKey, one: Fire) -> Json:
    """A fire record; `until` and `count` stand where it is a range."""
    record: Json = {
        "jobKey": str(job_key),
        "trigger": one.trigger,
        "fireTime": instant(one.fire_time),
        "outcome": one.outcome,
        "reason": one.reason,
        "jobId": one.job_id,
        "at": instant(one.at),
        "lagMs": one.at - one.fire_time,
        "scheduler": one.scheduler,
    }
    return record if one.until is None else {**record, "until": instant(one.until), "count": one.count}
