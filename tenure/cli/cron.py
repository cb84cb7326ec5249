"""`tenure cron`: schedules as they are stored, and cron expressions in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import cast

import click

from ..api import schedule_views, views
from ..api.body import parse
from ..api.fields import Fields
from ..api.plain import instant
from ..api.schedule_body import LATER, PARTS, Wanted, patched, read_patched, read_schedule
from ..lease.cursors import cut
from ..lease.durations import duration_ms
from ..lease.instants import parse_instant
from ..lease.jobs import FIRE
from ..lease.requests import epoch_ms
from ..lease.who import whoami
from ..scheduler.backfill import FASTEST, RATE, Missed, backfill_plan
from ..scheduler.backfill import backfill as make_backfill
from ..scheduler.calendar_store import Calendars
from ..scheduler.cron import CronExpression, Dst
from ..scheduler.dry_run import Decision, dry_run
from ..scheduler.execution_log import LONGEST, LogEntry
from ..scheduler.fire_pages import Place, recent_fires
from ..scheduler.fire_record import Fire
from ..scheduler.job_key import JobKey
from ..scheduler.misfire import read_misfire
from ..scheduler.plan import month as month_of
from ..scheduler.schedules import COMES_BACK, DEFAULT_TRIGGER, Schedules, ScheduleView, check_trigger_name
from ..scheduler.times import Odd
from ..scheduler.trigger import Trigger
from ..scheduler.upcoming import ClockChange, clock_changes
from ..scheduler.zones import zone
from ..scripts.errors import BadInput, NotFound
from .job_list import say_more
from .options import find_app, opened, output_option, tenant_option
from .output import clock_time, local_time, print_fields, print_json, print_table, say

FIRES = 5
FIRE_COLUMNS = ("FIRE TIME", "TRIGGER", "OUTCOME", "REASON", "JOB")


@click.group()
def cron() -> None:
    """List, show, store, change, pause, resume, run and delete schedules; explain cron expressions."""


@cron.command(name="list")
@tenant_option
@click.option("--limit", type=click.IntRange(1, 100), default=50, show_default=True)
@click.option("--cursor", metavar="JOBKEY", help="Where the page before ended.")
@output_option
def list_(tenant: str, limit: int, cursor: str | None, as_json: bool) -> None:
    """List schedules by JobKey."""
    with opened() as app:
        listed = app.schedules.list(tenant, limit + 1, cursor)
    items, more = cut(listed, limit, lambda one: str(one.job_key))
    if as_json:
        print_json(views.page([schedule_views.schedule(one) for one in items], more))
        return
    print_table(("JOBKEY", "NEXT FIRE", "CRON", "TASK"), map(_row, items))
    say_more(more)


@cron.command()
@click.argument("job_key", metavar="JOBKEY")
@tenant_option
@output_option
def show(job_key: str, tenant: str, as_json: bool) -> None:
    """Show one schedule and its latest fires."""
    with opened() as app:
        schedules = app.schedules.of(tenant)
        view = schedules.get(job_key)
        fires, _ = recent_fires(schedules, view.job_key, None, FIRES, None)
    if as_json:
        print_json(schedule_views.schedule(view))
        return
    print_fields([("jobKey", str(view.job_key)), *_fields(view)])
    if fires:
        click.echo()
        print_table(
            FIRE_COLUMNS,
            map(_fire_row, fires),
            stretch=3,
        )


@cron.command()
@click.argument("job_key", metavar="JOBKEY")
@click.option("--month", metavar="YYYYMM", help="In UTC; else this month.")
@click.option("--limit", type=click.IntRange(1, LONGEST), default=50, show_default=True)
@click.option("--cursor", help="Where the page before ended.")
@tenant_option
@output_option
def logs(job_key: str, month: str | None, limit: int, cursor: str | None, tenant: str, as_json: bool) -> None:
    """Show what became of the planned fires of a month, newest first: executed, failed, skipped."""
    with opened() as app:
        wanted = month or month_of(app.ledgers().index.take(FIRE, 0).now_ms)
        page = app.schedules.logs(job_key, month=wanted, limit=limit, cursor=cursor, tenant=tenant)
    if as_json:
        print_json(views.page([schedule_views.log_entry(one) for one in page.items], page.next_cursor))
        return
    print_table(("TIME", "FIRE TIME", "STATUS", "WHY", "JOB"), map(_log_row, page.items), stretch=3)
    say_more(page.next_cursor)


@cron.command(name="fires")
@click.argument("job_key", metavar="JOBKEY")
@click.option("--trigger", help="Of this trigger; else of all.")
@click.option("--limit", type=click.IntRange(1, 100), default=50, show_default=True)
@click.option("--cursor", help="Where the page before ended.")
@tenant_option
@output_option
def fires_(
    job_key: str, trigger: str | None, limit: int, cursor: str | None, tenant: str, as_json: bool
) -> None:
    """Show the fire records of a schedule, newest first; also of a deleted one."""
    key, place = JobKey.parse(job_key), None if cursor is None else Place.parse(cursor)
    if cursor is not None and place is None:
        raise BadInput(
            f"cursor {cursor!r:.40} is not one this list gave", hint="start again without a cursor"
        )
    with opened() as app:
        schedules = app.schedules.of(tenant)
        if trigger is not None:
            check_trigger_name(trigger)
        found, more = recent_fires(schedules, key, trigger, limit, place)
    following = None if more is None else str(more)
    if as_json:
        print_json(views.page([schedule_views.fire(key, one) for one in found], following))
        return
    print_table(FIRE_COLUMNS, map(_fire_row, found), stretch=3)
    say_more(following)


change_options = (
    click.argument("job_key", metavar="JOBKEY"),
    click.argument("body", metavar="JSON"),
    click.option(
        "--app", "app_name", metavar="MODULE:APP", help="Where its task is registered; or TENURE_APP."
    ),
    click.option("--revision", type=click.IntRange(0), help="Only if it is still at this revision."),
    click.option("--reason", default="", help="Kept with the revision."),
    tenant_option,
    output_option,
)


def _change_command(change: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(change_options):
        change = option(change)
    return change


@cron.command()
@_change_command
def put(
    job_key: str,
    body: str,
    app_name: str | None,
    revision: int | None,
    reason: str,
    tenant: str,
    as_json: bool,
) -> None:
    """Store a schedule under its JobKey, as PUT /schedules/{jobKey} does. With "enabled": false it is stored paused.

    tenure cron put reports.daily '{"task": "reports.daily", "triggers": [{"cron": "0 0 2 * * ?"}]}'
    """
    app = find_app(app_name, give="add --app shop.jobs:app")
    try:
        fields = Fields.of_body(body.encode(), PARTS, later=LATER)
        wanted = read_schedule(fields, app.registry, lambda: Calendars(app.ledger(tenant)))
        _store(app.schedules.of(tenant), job_key, wanted, revision, reason, as_json)
    finally:
        app.close()


@cron.command()
@_change_command
def patch(
    job_key: str,
    body: str,
    app_name: str | None,
    revision: int | None,
    reason: str,
    tenant: str,
    as_json: bool,
) -> None:
    """Change what JSON names of a stored schedule, as PATCH /schedules/{jobKey} does: a null takes a part back.

    tenure cron patch reports.daily '{"misfire": "skip", "enabled": false}'
    """
    app = find_app(app_name, give="add --app shop.jobs:app")
    try:
        schedules, said = app.schedules.of(tenant), parse(body.encode())
        view = schedules.get(job_key)
        merged = Fields(patched(said, view.definition), PARTS, later=LATER)
        wanted = read_patched(
            merged, said, view.definition, app.registry, lambda: Calendars(app.ledger(tenant))
        )
        _store(schedules, job_key, wanted, view.revision if revision is None else revision, reason, as_json)
    finally:
        app.close()


def _store(
    schedules: Schedules, job_key: str, wanted: Wanted, expected: int | None, reason: str, as_json: bool
) -> None:
    key = JobKey.parse(job_key)
    put = schedules.put_definition(
        key,
        wanted.definition,
        expected_revision=expected,
        enabled=wanted.enabled,
        by=whoami(),
        reason=reason,
    )
    view = schedules.get(key)
    if as_json:
        print_json(schedule_views.schedule(view))
        return
    print_fields([("jobKey", str(key)), *_fields(view)])
    say(f"schedule {key} is at revision {put.revision}{'' if put.changed else ', as it was'}")


@cron.command()
@click.argument("job_key", metavar="JOBKEY")
@tenant_option
@click.option("--revision", type=click.IntRange(1), help="Only if it is still at this revision.")
@click.option("--reason", default="", help="Kept as long as its fire records.")
def delete(job_key: str, tenant: str, revision: int | None, reason: str) -> None:
    """Delete a schedule: it fires no more. Its jobs and fire records stay.

    One that @app.cron declares comes back with the next registration: take it out of the code first, or pause it.
    """
    with opened() as app:
        schedules = app.schedules.of(tenant)
        deleted = schedules.delete(job_key, expected_revision=revision, by=whoami(), reason=reason)
    if deleted is None:
        raise NotFound(f"schedule {job_key!r:.200} is not stored in tenant {tenant}", hint="tenure cron list")
    say(f"schedule {job_key} of tenant {tenant} is deleted")
    if deleted.declared:
        say(f"warning: {COMES_BACK}")


@cron.command()
@click.argument("job_key", metavar="[JOBKEY]", required=False)
@click.option("--group", help="All schedules of a group instead, and those stored in it later.")
@click.option("--reason", default="", help="Kept with the schedule.")
@tenant_option
def pause(job_key: str | None, group: str | None, reason: str, tenant: str) -> None:
    """Let nothing of a schedule fire until it is resumed. What is planned meanwhile is recorded as skipped."""
    with opened() as app:
        turned = app.schedules.pause(job_key, group=group, reason=reason, by=whoami(), tenant=tenant)
    say(_turned(job_key, group, "paused", turned))


@cron.command()
@click.argument("job_key", metavar="[JOBKEY]", required=False)
@click.option("--group", help="All schedules of a group instead.")
@click.option("--reason", default="", help="Kept in the log.")
@tenant_option
def resume(job_key: str | None, group: str | None, reason: str, tenant: str) -> None:
    """Let a paused schedule fire again, from its first instant after now."""
    with opened() as app:
        turned = app.schedules.resume(job_key, group=group, reason=reason, by=whoami(), tenant=tenant)
    say(_turned(job_key, group, "resumed", turned))


def _turned(job_key: str | None, group: str | None, done: str, many: int) -> str:
    if group is not None:
        return f"{many} schedules of group {group} are {done}"
    return f"schedule {job_key} is {done}" if many else f"schedule {job_key} was so already"


@cron.command()
@click.argument("job_key", metavar="JOBKEY")
@click.option("--at", metavar="INSTANT", help="For this planned instant of it, like 2026-12-24T18:00:00Z.")
@click.option("--trigger", help="Of this trigger; else of its first.")
@click.option("--reason", default="", help="Kept with the job.")
@click.option("--revision", type=click.IntRange(1), help="Only if it is still at this revision.")
@tenant_option
@output_option
def run(
    job_key: str,
    at: str | None,
    trigger: str | None,
    reason: str,
    revision: int | None,
    tenant: str,
    as_json: bool,
) -> None:
    """Make a job of a schedule now, by hand. Its plan and its fire records stay as they are."""
    instant = None if at is None else parse_instant(at, what="--at")
    with opened() as app:
        job_id = app.schedules.run(
            job_key,
            trigger=trigger,
            at=instant,
            reason=reason,
            by=whoami(),
            tenant=tenant,
            expected_revision=revision,
        )
    if as_json:
        print_json(schedule_views.ran(JobKey.parse(job_key), job_id))
        return
    click.echo(job_id)


@cron.command()
@click.argument("job_key", metavar="JOBKEY")
@click.option("--from", "start", metavar="INSTANT", required=True, help="Like 2026-12-01T00:00:00Z.")
@click.option("--to", "end", metavar="INSTANT", required=True, help="Up to before this one.")
@click.option("--trigger", help="Of this trigger; else of all.")
@click.option(
    "--rate", type=click.IntRange(1, FASTEST), default=RATE, show_default=True, help="Jobs due in a second."
)
@click.option(
    "--apply", is_flag=True, help="Make the jobs; without it, only show which instants did not run."
)
@click.option("--reason", default="", help="Kept with the jobs.")
@tenant_option
@output_option
def backfill(
    job_key: str,
    start: str,
    end: str,
    trigger: str | None,
    rate: int,
    apply: bool,
    reason: str,
    tenant: str,
    as_json: bool,
) -> None:
    """Make jobs for planned instants of the past that did not run, by the revision in force at each.

    One that has its job from a backfill before is left out, and so is what the scheduler still owes.
    """
    low, high = (
        epoch_ms(parse_instant(text, what=what), what=what)
        for text, what in ((start, "--from"), (end, "--to"))
    )
    with opened() as app:
        schedules = app.schedules.of(tenant)
        if apply:
            done = make_backfill(
                schedules, job_key, low, high, trigger=trigger, rate=rate, by=whoami(), reason=reason
            )
            if as_json:
                print_json(schedule_views.backfilled(JobKey.parse(job_key), done))
                return
            there = f"; {len(done.there)} were there already" if done.there else ""
            say(f"{len(done.made)} jobs are made, {rate} of them due in a second{there}")
            _say_owed(done.owed)
            return
        plan = backfill_plan(schedules, job_key, low, high, trigger=trigger)
    if as_json:
        print_json(schedule_views.backfill_plan(plan))
        return
    rows = [
        (local_time(one.instant), one.trigger, one.outcome, str(one.revision))
        for one in (*plan.missed, *plan.owed)
    ]
    print_table(("FIRE TIME", "TRIGGER", "RECORD", "REVISION"), rows)
    more = "; --apply makes their jobs" if plan.missed else ""
    say(f"{len(plan.missed)} planned instants did not run and have no job{more}")
    _say_owed(plan.owed)


def _say_owed(owed: Sequence[Missed]) -> None:
    if owed:
        say(
            f"{len(owed)} planned instants from {local_time(owed[0].instant)} on are owed and left out: the scheduler "
            "decides on them by the misfire policy when it comes by (of a paused schedule, the resume does)"
        )


@cron.command()
@tenant_option
@output_option
def diff(tenant: str, as_json: bool) -> None:
    """Show the schedules in whose place somebody has put something else than code declares."""
    with opened() as app:
        odd = [one for one in _all(app.schedules.of(tenant)) if one.overridden]
    if as_json:
        print_json(views.page([schedule_views.schedule(one) for one in odd], None))
        return
    rows = [
        (str(one.job_key), part, f"{declared}", f"{effective}")
        for one in odd
        for part, declared, effective in _parts(one)
    ]
    print_table(("JOBKEY", "PART", "DECLARED", "IN FORCE"), rows, stretch=3)
    if odd:
        say("what code declares comes back with: tenure cron follow JOBKEY")


@cron.command()
@click.argument("job_key", metavar="JOBKEY")
@click.option("--reason", default="", help="Kept with the revision.")
@tenant_option
def follow(job_key: str, reason: str, tenant: str) -> None:
    """Put back what code declares, where somebody had put something else."""
    with opened() as app:
        put = app.schedules.follow_code(job_key, tenant, by=whoami(), reason=reason)
    say(f"schedule {job_key} is as code declares it, at revision {put.revision}")


def _all(schedules: Schedules) -> Iterator[ScheduleView]:
    after = None
    while page := schedules.list(100, after):
        yield from page
        after = str(page[-1].job_key)


def _parts(view: ScheduleView) -> Iterator[tuple[str, object, object]]:
    """Where what is declared and what is in force differ."""
    assert view.code is not None
    declared, effective = (schedule_views.definition_of(one) for one in (view.code, view.definition))
    for part in declared:
        if declared[part] != effective[part]:
            yield part, _short(declared[part]), _short(effective[part])


def _short(value: object) -> object:
    """A trigger in a line: what is given of it."""
    if not isinstance(value, list):
        return value
    parts = cast("list[object]", value)
    triggers = [cast("dict[str, object]", one) for one in parts if isinstance(one, dict)]
    lines = (" ".join(f"{name}={part}" for name, part in one.items() if part is not None) for one in triggers)
    return "; ".join(lines) or parts


@cron.command(name="next")
@click.argument("job_key", metavar="JOBKEY")
@tenant_option
@click.option("-n", "--count", type=click.IntRange(1, 100), default=5, show_default=True)
@output_option
def next_(job_key: str, tenant: str, count: int, as_json: bool) -> None:
    """Show when a schedule fires next, and what changes of the clocks do to it in the year from now on."""
    with opened() as app:
        view, now = app.schedules.get(job_key, tenant), app.ledgers().index.now_ms()
    if as_json:
        print_json(schedule_views.next_fires(view, count, now))
        _say_idle(view)
        return
    rows = [(local_time(one.fire_time), one.trigger, _mark(one.odd)) for one in view.upcoming(count)]
    print_table(("FIRE TIME", "TRIGGER", "CLOCKS"), rows)
    changes = view.clock_changes(now)
    for trigger in view.definition.triggers:
        _print_changes([one for one in changes if one.trigger == trigger.name], trigger)
    _say_idle(view)


def _say_idle(view: ScheduleView) -> None:
    """Say why nothing of it fires, whatever is planned."""
    if view.disabled:
        say(f"scheduling of tenant {view.tenant} is disabled: nothing of it fires until it is enabled again")
    if view.paused:
        who = f" by {view.paused.by}" if view.paused.by else ""
        why = f": {view.paused.reason}" if view.paused.reason else ""
        say(
            f"paused since {local_time(view.paused.since)}{who}{why}; nothing of it fires until it is resumed"
        )


def _mark(odd: Odd | None) -> str:
    return "" if odd is None else odd.mark


def _print_changes(changes: Sequence[ClockChange], trigger: Trigger) -> None:
    """The days on which the clocks change, on the clock of the trigger."""
    if changes:
        click.echo(f"\nwhere the clocks change (tz: {trigger.tz}, dst: {trigger.dst})")
    for one in changes:
        at = datetime.fromtimestamp(one.first.at / 1000, zone(trigger.tz).tz)
        click.echo(f"  {clock_time(at)}  {one.text}")


class Explain(click.Command):
    """An expression may begin with a dash, as a mistake: it is ours to explain, and no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        odd = [arg for arg in args if arg.startswith("-") and " " in arg]
        rest = [arg for arg in args if arg not in odd]
        return super().parse_args(ctx, [*rest, "--", *odd] if odd and "--" not in args else args)


@cron.command(cls=Explain)
@click.argument("expression", metavar="EXPRESSION|JOBKEY")
@click.option(
    "--outage",
    metavar="DURATION",
    help="What becomes of the schedule JOBKEY when no scheduler ran for so long, as 2h.",
)
@click.option("--misfire", help="With --outage: by this policy, not by the schedule's own.")
@tenant_option
@click.option("--tz", default="UTC", show_default=True, help="The zone on whose clock it is read.")
@click.option(
    "--dst", type=click.Choice(["standard", "skip", "quartz"]), default="standard", show_default=True
)
@click.option("--zh", is_flag=True, help="Describe it in Chinese.")
@click.option("-n", "--count", type=click.IntRange(1, 100), default=5, show_default=True)
@output_option
def explain(
    expression: str,
    outage: str | None,
    misfire: str | None,
    tenant: str,
    tz: str,
    dst: Dst,
    zh: bool,
    count: int,
    as_json: bool,
) -> None:
    """Say in words when EXPRESSION is due, its next fires, and the days on which the clocks change.

    Six or seven fields are Quartz, five are crontab. It needs no server. With --outage, say what the policies
    of the stored schedule JOBKEY would make of an outage that ends now; 0s: of what is due now.
    """
    if outage is not None:
        _explain_outage(expression, duration_ms(outage, what="--outage"), misfire, tenant, as_json)
        return
    parsed = CronExpression(expression, tz=tz, dst=dst)
    now = datetime.now(UTC)
    fires = list(islice(_fires(parsed, now), count))
    changes = clock_changes(DEFAULT_TRIGGER, parsed, _ms(now))
    if as_json:
        print_json(
            {
                "expression": parsed.text,
                "tz": tz,
                "dst": dst,
                "description": parsed.describe("zh" if zh else "en"),
                "nextFires": [instant(_ms(fire)) for fire in fires],
                "clockChanges": [schedule_views.clock_change(one) for one in changes],
            }
        )
        return
    click.echo(parsed.describe("zh" if zh else "en"))
    click.echo(f"\nnext fires in {tz}" if fires else "\nit never fires again")
    for fire in fires:
        click.echo(f"  {clock_time(fire)}  {fire:%a}")
    _print_changes(changes, Trigger(DEFAULT_TRIGGER, parsed.text, tz, dst))


def _explain_outage(job_key: str, lasted: int, misfire: str | None, tenant: str, as_json: bool) -> None:
    with opened() as app:
        end = app.ledgers().index.take(FIRE, 0).now_ms
        policy = None if misfire is None else read_misfire(misfire)
        span = {"start": end - lasted, "end": end} if lasted else {}
        found = dry_run(app.schedules.of(tenant), job_key, **span, misfire=policy)
    if as_json:
        print_json(views.page([schedule_views.dry_run(one) for one in found], None))
        return
    rows = [_decision_row(run.trigger, one) for run in found for one in run.decisions]
    print_table(("FIRE TIME", "TRIGGER", "OUTCOME", "REASON", "JOB DUE"), rows)
    for run in found:
        say(f"then trigger {run.trigger} fires next at {local_time(run.following)}")
    for note in dict.fromkeys(run.note for run in found if run.note):
        say(note)


def _decision_row(trigger: str, one: Decision) -> tuple[str, ...]:
    until = f" … {local_time(one.until)} ({one.count})" if one.until else ""
    due = local_time(one.due_at) if one.due_at else ""
    return local_time(one.fire_time) + until, trigger, one.outcome, one.reason, due


def _fires(expression: CronExpression, after: datetime) -> Iterator[datetime]:
    fire = expression.next(after)
    while fire is not None:
        yield fire
        fire = expression.next(fire)


def _row(view: ScheduleView) -> tuple[str, str, str, str]:
    first = min(view.next_fires.values(), default=None)
    rules = "; ".join(trigger.rule for trigger in view.definition.triggers)
    state = "exhausted" if first is None else "paused" if view.paused else local_time(first)
    return str(view.job_key), state, rules, view.definition.task


def _fields(view: ScheduleView) -> Iterator[tuple[str, str | int]]:
    yield "tenant", view.tenant
    yield "task", view.definition.task
    yield "pool", view.definition.pool
    yield "misfire", str(view.definition.misfire.stored())
    yield "overlap", view.definition.overlap
    yield "revision", view.revision
    yield (
        "declared",
        "no" if view.code is None else "in code, and overridden" if view.overridden else "in code",
    )
    if view.paused:
        yield "paused", f"since {local_time(view.paused.since)} by {view.paused.by}: {view.paused.reason}"
    if view.disabled:
        yield "scheduling", f"disabled for the tenant: tenure tenants show {view.tenant}"
    for trigger in view.definition.triggers:
        yield (
            f"trigger {trigger.name}",
            f"{getattr(trigger, trigger.kind)}  tz={trigger.tz} dst={trigger.dst}",
        )
        if trigger.cron:
            yield "  means", trigger.expression().describe()
        yield "  next fire", local_time(view.next_fires.get(trigger.name))
        if unread := view.unread.get(trigger.name):
            yield "  zone", f"not readable for scheduler {unread.scheduler}, since {local_time(unread.since)}"
        yield "  last fire", local_time(view.last_fires.get(trigger.name))


def _fire_row(fire: Fire) -> tuple[str, ...]:
    until = f" … {local_time(fire.until)} ({fire.count})" if fire.until else ""
    at = local_time(fire.fire_time) + until
    return at, fire.trigger, fire.outcome, fire.reason or "", fire.job_id or ""


def _log_row(one: LogEntry) -> tuple[str, str, str, str, str]:
    until = f" … {local_time(one.until)} ({one.count})" if one.until else ""
    why = ": ".join(part for part in (one.reason, one.message) if part)
    return local_time(one.created_at), local_time(one.fire_time) + until, one.status, why, one.job_id or ""


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
