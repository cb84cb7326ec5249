"""Why a schedule did or did not fire at an instant, or when it fires next: from records, plan and switch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..lease.instants import rfc3339
from ..lease.ledger import Ledger
from ..lease.why import Check, Why, tenant_option
from ..scripts.errors import NotFound
from .backfill import by_hand_id
from .due import Unread
from .fire_record import Fire
from .job_key import JobKey
from .plan import month
from .schedules import Schedules, ScheduleView, check_trigger_name
from .skips import DISABLED, DST_GAP, SENTENCES, ZONE_UNAVAILABLE
from .switch import Scheduling, Switch
from .trigger import Trigger
from .upcoming import clock_text
from .zones import UNAVAILABLE

LATE_MS = 10_000
"""A due instant without a record is nobody's fault for so long: schedulers come by every second."""

RUN = "tenure cron run "
OF_A_TENANT = ("tenure cron ", "tenure jobs ", "tenure why ", "tenure calendars ", "tenure status")
"""The commands that act on tenant `default` if they name none."""

INSTALL = (
    "Install or update the tz database where schedulers run (`pip install tzdata`), or start one that has it."
)

VERDICTS = (
    *("fired", "misfired", "not_planned", "not_due", "no_record", "overdue"),
    *("disabled", "paused", "exhausted", ZONE_UNAVAILABLE, *(f"skipped_{reason}" for reason in SENTENCES)),
)


def why(
    schedules: Schedules, job_key: JobKey | str, *, at: int | None = None, trigger: str | None = None
) -> Why:
    """Of a schedule as it stands, or of a planned instant `at` (epoch ms) of one of its triggers.

    Of a deleted schedule, what is on record of an instant. Raises NotFound, BadInput for a trigger it does not have.
    """
    found = _why(schedules, job_key, at, trigger)
    return replace(found, do=_commands(schedules.ledger, found.do))


def _commands(ledger: Ledger, do: Sequence[str]) -> tuple[str, ...]:
    """The same commands for the schedule's tenant. While that is disabled a run by hand is refused: enable it first."""
    if any(one.startswith(RUN) for one in do) and not Scheduling(ledger).get().enabled:
        enable = f"tenure tenants enable-scheduling {ledger.tenant}"
        do = tuple(dict.fromkeys(enable if one.startswith(RUN) else one for one in do))
    of = tenant_option(ledger.tenant)
    return tuple(f"{one}{of}" if one.startswith(OF_A_TENANT) else one for one in do)


def _why(schedules: Schedules, job_key: JobKey | str, at: int | None, trigger: str | None) -> Why:
    key = JobKey.parse(job_key)
    try:
        view = schedules.get(key)
    except NotFound:
        if at is None or (deleted := _deleted(schedules, key, at, trigger)) is None:
            raise
        return deleted
    now = schedules.ledger.index.now_ms()
    if at is None:
        return _now(view, Scheduling(schedules.ledger).get(), now)
    triggers = [view.definition.trigger(trigger)] if trigger else view.definition.triggers
    known = () if trigger else schedules.records.triggers(key)
    names = list(dict.fromkeys([*(one.name for one in triggers), *known]))
    record = _record(schedules, key, names, at)
    try:
        said = (
            _recorded(schedules, key, at, record, view)
            if record
            else _unrecorded(view, triggers, Scheduling(schedules.ledger).get(), at, now)
        )
    except UNAVAILABLE as exc:
        said = _unreadable_here(view, at, exc)
    return _made_up_for(schedules, key, names, at, said)


def _deleted(schedules: Schedules, key: JobKey, at: int, trigger: str | None) -> Why | None:
    """What is on record of an instant of a schedule that is not stored any more; None if nothing is."""
    names = [check_trigger_name(trigger)] if trigger else schedules.records.triggers(key)
    record = _record(schedules, key, names, at)
    if record is None:
        return None
    found = _recorded(schedules, key, at, record)
    logs = f"tenure cron logs {key} --month {month(at)}"
    ends = [one for one in schedules.revisions(key) if one.verb == "delete"][:1]
    how = "".join(f": {rfc3339(one.at)}{_by(one.by)}{_because(one.reason)}" for one in ends)
    found = replace(
        found,
        text=f"{found.text} The schedule is deleted since{how}.",
        checks=(*found.checks, Check("stored", "no", "the schedule is deleted")),
        do=(logs,) if record.job_id is None else (*found.do, logs),
    )
    return _made_up_for(schedules, key, names, at, found)


def _record(schedules: Schedules, key: JobKey, triggers: Sequence[str], at: int) -> Fire | None:
    return next((found for name in triggers if (found := schedules.records.at(key, name, at))), None)


def _made_up_for(schedules: Schedules, key: JobKey, triggers: Sequence[str], at: int, found: Why) -> Why:
    """The same, with the job of a backfill of the instant, as long as the ledger has it."""
    ids = [by_hand_id(schedules.ledger.tenant, key, name, at) for name in triggers]
    for job in schedules.ledger.get_many(ids):
        said = f"job {job.id} is {job.status}"
        return replace(
            found,
            text=f"{found.text} It was backfilled: {said}.",
            checks=(*found.checks, Check("backfilled", "ok", said)),
            do=(f"tenure jobs show {job.id}", f"tenure why {job.id}"),
        )
    return found


def _now(view: ScheduleView, switch: Switch, now: int) -> Why:
    key = str(view.job_key)
    first = min(view.next_fires.values(), default=None)
    checks = _standing(view, switch)
    if not switch.enabled:
        return _disabled(view, switch, f"schedule {key}", checks)
    if view.paused:
        who = f"{_by(view.paused.by)}{_because(view.paused.reason)}"
        text = f"It is paused{who}: nothing of it fires until it is resumed."
        return Why(
            _of(view),
            "paused",
            view.paused.since,
            view.paused.by,
            text,
            checks,
            None,
            (f"tenure cron resume {key}",),
        )
    if first is None:
        last = max(view.last_fires.values(), default=None)
        text = "It has no planned instant any more" + (
            f": the last one was {rfc3339(last)}." if last else "."
        )
        return Why(_of(view), "exhausted", last, None, text, checks, None, (f"tenure cron show {key}",))
    if first > now:
        text = f"It fires next at {rfc3339(first)}."
        return Why(
            _of(view),
            "not_due",
            None,
            None,
            text,
            checks,
            first,
            (f"tenure cron next {key}", f"tenure cron run {key}"),
        )
    return _overdue(view, first, now, checks)


def _recorded(
    schedules: Schedules, key: JobKey, at: int, fire: Fire, view: ScheduleView | None = None
) -> Why:
    subject = f"schedule {key} at {rfc3339(at)}"
    do: tuple[str, ...] = (f"tenure cron show {key}",)
    if fire.job_id is None:
        many = f" (one of {fire.count} on one record)" if fire.count > 1 else ""
        text = f"It did not fire: {SENTENCES.get(fire.reason or '', fire.reason)}{many}."
        verdict = f"skipped_{fire.reason}"
        do = (f"tenure cron run {key} --at {rfc3339(at)}",)
        if fire.reason == DISABLED:
            do = (f"tenure tenants show {schedules.ledger.tenant}", *do)
    else:
        verdict = fire.outcome
        late = (
            f", {(fire.at - fire.fire_time) / 1000:.1f} s after its time"
            if fire.outcome == "misfired"
            else ""
        )
        moved = f" {_moved(view, fire)}" if fire.reason == DST_GAP else ""
        text = f"It fired{late}: job {fire.job_id} {_job(schedules, fire.job_id)}.{moved}"
        do = (f"tenure jobs show {fire.job_id}", f"tenure why {fire.job_id}")
    checks = (
        Check("recorded", "ok", f"{fire.outcome} at {rfc3339(fire.at)} by {fire.scheduler or 'an operator'}"),
    )
    return Why(subject, verdict, fire.at, fire.scheduler, text, checks, None, do)


def _moved(view: ScheduleView | None, fire: Fire) -> str:
    """What the clocks left out, so that it fired after the gap: by name, if the schedule still plans it so."""
    gap, shown = "its time", ""
    try:
        trigger = view and next((one for one in view.definition.triggers if one.name == fire.trigger), None)
        if view and trigger:
            odd = next(view.times(trigger).odd_ms(fire.fire_time, fire.fire_time + 1, only="moved"), None)
            if odd:
                gap, shown = clock_text(odd.nominal), f", at {clock_text(odd.shown)}"
    except UNAVAILABLE:
        pass  # the record says enough
    return f"The clocks went forward and left out {gap}: it fired at the first instant after that{shown}."


def _job(schedules: Schedules, job_id: str) -> str:
    try:
        return f"is {schedules.ledger.get(job_id).status}"
    except NotFound:
        return "has ended, and its retention is over"


def _unrecorded(view: ScheduleView, triggers: Sequence[Trigger], switch: Switch, at: int, now: int) -> Why:
    subject = f"schedule {view.job_key} at {rfc3339(at)}"
    planned = [one for one in triggers if view.times(one).next_ms(at - 1) == at]
    checks = (
        Check(
            "planned",
            "ok" if planned else "no",
            f"{rfc3339(at)} is {'' if planned else 'not '}a planned instant",
        ),
        *_standing(view, switch),
    )
    if not planned:
        excluded = next((one for one in triggers if _excluded(view, one, at)), None)
        near = [
            moment
            for one in triggers
            for moment in (view.times(one).prev_ms(at), view.times(one).next_ms(at))
            if moment
        ]
        text = "It is not a planned instant of this revision" + (
            f": {_calendar(excluded)} excludes it" if excluded else ""
        )
        text += f"; near it are {', '.join(map(rfc3339, sorted(near)))}." if near else "."
        do = [f"tenure cron show {view.job_key}"]
        if excluded and excluded.named_calendar:
            do.insert(0, f"tenure calendars show {excluded.named_calendar}")
        return Why(subject, "not_planned", None, None, text, checks, None, tuple(do))
    if at > now:
        text = (
            f"Its time has not come: it fires at {rfc3339(at)}"
            + ("" if switch.enabled and not view.paused else ", if it may by then")
            + "."
        )
        return Why(subject, "not_due", None, None, text, checks, at, (f"tenure cron run {view.job_key}",))
    if not switch.enabled:
        return _disabled(view, switch, subject, checks)
    if view.paused:
        who = f"{_by(view.paused.by)}{_because(view.paused.reason)}"
        text = f"The schedule is paused{who}; its record comes with the resume."
        return Why(
            subject,
            "paused",
            view.paused.since,
            view.paused.by,
            text,
            checks,
            None,
            (f"tenure cron resume {view.job_key}",),
        )
    if min((view.next_fires.get(one.name, at + 1) for one in planned), default=at + 1) <= at:
        return _overdue(view, at, now, checks)
    text = (
        "There is no record of it: it was before the schedule was stored with this plan, or its record has gone. "
        "The schedule goes on from its next instant."
    )
    return Why(
        subject,
        "no_record",
        None,
        None,
        text,
        checks,
        None,
        (f"tenure cron run {view.job_key} --at {rfc3339(at)}",),
    )


def _unreadable_here(view: ScheduleView, at: int, exc: Exception) -> Why:
    """What was planned cannot be told where the zone cannot be read."""
    text = f"Whether it was planned cannot be told here: {exc}. {INSTALL}"
    subject, check = f"schedule {view.job_key} at {rfc3339(at)}", Check("zone", "no", str(exc))
    do = (f"tenure cron fires {view.job_key}",)
    return Why(subject, ZONE_UNAVAILABLE, None, None, text, (check,), None, do)


def _unread(view: ScheduleView, trigger: Trigger, unread: Unread, checks: tuple[Check, ...]) -> Why:
    said = (
        f"scheduler {unread.scheduler} cannot read the time zone {trigger.tz!r} of trigger {trigger.name!r}"
    )
    text = (
        f"It is due, {said}, and none that can has come by. {INSTALL} What passes until then is recorded as skipped, "
        f"{ZONE_UNAVAILABLE}, but for what the misfire policy lets run."
    )
    found = (*checks, Check("zone", "no", said))
    do = ("pip install tzdata", f"tenure cron show {view.job_key}")
    return Why(_of(view), ZONE_UNAVAILABLE, unread.since, unread.scheduler, text, found, None, do)


def _excluded(view: ScheduleView, trigger: Trigger, at: int) -> bool:
    """Whether an instant that it does not plan would be planned without its calendar."""
    if trigger.calendar is None:
        return False
    return view.times(replace(trigger, calendar=None)).next_ms(at - 1) == at


def _calendar(trigger: Trigger) -> str:
    named = trigger.named_calendar
    return f"calendar {named!r}" if named else f"the calendar in trigger {trigger.name!r}"


def _overdue(view: ScheduleView, first: int, now: int, checks: tuple[Check, ...]) -> Why:
    for trigger in view.definition.triggers:
        if unread := view.unread.get(trigger.name):
            return _unread(view, trigger, unread, checks)
    late = (now - first) / 1000
    text = f"It is due since {rfc3339(first)}, {late:.1f} s ago, and no scheduler has come by."
    if now - first > LATE_MS:
        text += " Is one running, and can it read this schedule? Its log says what it cannot plan."
    return Why(
        _of(view),
        "overdue",
        first,
        None,
        text,
        checks,
        None,
        ("tenure scheduler MODULE:APP", "tenure status"),
    )


def _disabled(view: ScheduleView, switch: Switch, subject: str, checks: tuple[Check, ...]) -> Why:
    who = f"{_by(switch.by)}{_because(switch.reason)}"
    text = f"Scheduling of tenant {view.tenant} is disabled{who}: nothing of it fires, and nothing planned moves."
    if switch.trouble:
        text = f"{switch.trouble[0].upper()}{switch.trouble[1:]}."
    do = (f"tenure tenants enable-scheduling {view.tenant}",)
    return Why(subject, "disabled", switch.since, switch.by or None, text, checks, switch.until, do)


def _standing(view: ScheduleView, switch: Switch) -> tuple[Check, ...]:
    """The questions of a scheduler, in its order."""
    found: list[Check] = []
    for name, no, text in (
        (
            "switch",
            not switch.enabled,
            f"scheduling of tenant {view.tenant} is {'enabled' if switch.enabled else 'disabled'}",
        ),
        (
            "paused",
            view.paused is not None,
            "the schedule is paused" if view.paused else "the schedule is not paused",
        ),
        (
            "planned",
            view.exhausted,
            _next(view),
        ),
    ):
        said_no = any(one.state == "no" for one in found)
        found.append(Check(name, "not_reached" if said_no else "no" if no else "ok", text))
    return tuple(found)


def _next(view: ScheduleView) -> str:
    return "no instant is planned" if view.exhausted else f"next: {rfc3339(min(view.next_fires.values()))}"


def _of(view: ScheduleView) -> str:
    return f"schedule {view.job_key}"


def _by(who: str) -> str:
    return f" by {who}" if who else ""


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""
