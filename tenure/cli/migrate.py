"""`tenure migrate`: schedules come over from rq-scheduler or `rq cron`, which run on until it is switched over."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from ..lease.instants import rfc3339
from ..lease.who import whoami
from ..scheduler.rq_cron_text import of_rq_cron
from ..scheduler.rq_hand_over import Given, HandOver, Over, Read
from ..scheduler.rq_moves import Move, Reading, moves
from ..scheduler.rq_store import OldStore
from ..scripts.errors import BadInput
from .options import find_app, output_option, tenant_option
from .output import local_time, print_fields, print_json, print_table, say

F = TypeVar("F", bound=Callable[..., Any])

app_option = click.option(
    "--app", "app_name", metavar="MODULE:APP", help="Where the tasks are registered; or TENURE_APP."
)


def local_zone() -> str:
    """The zone of this machine's clock: TZ, or the link /etc/localtime; UTC if neither names one."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if named:
        return named
    _, found, name = os.path.realpath("/etc/localtime").partition("zoneinfo/")
    return name if found else "UTC"


def _pairs(_ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    for name, equals, other in pairs:
        if not (name and equals and other):
            raise BadInput(f"--{param.name} {name!r:.60} is no pair", hint=f"--{param.name} OLD=NEW")
    return {name: other for name, _, other in pairs}


def _lines(_ctx: click.Context, _param: click.Parameter, path: Path | None) -> dict[str, str]:
    """A table of functions and tasks: two words a line; empty lines and those after # say nothing."""
    if path is None:
        return {}
    table: dict[str, str] = {}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        words = line.partition("#")[0].split()
        if len(words) not in (0, 2):
            raise BadInput(
                f"{path}, line {number}: {line!r:.60} is not a function and a task",
                hint="shop.send mail.send",
            )
        if words:
            table[words[0]] = words[1]
    return table


def reading_options(command: F) -> F:
    """How old jobs are read."""
    for option in (
        click.option(
            "--tz",
            metavar="ZONE",
            help="On whose clock the old scheduler reads cron: its host's.  [default: this machine's]",
        ),
        click.option(
            "--task",
            multiple=True,
            callback=_pairs,
            metavar="FUNCTION=TASK",
            help="The task of a function that has another name here; may be given again.",
        ),
        click.option(
            "--tasks",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            callback=_lines,
            help="A file of such pairs, `FUNCTION TASK` a line.",
        ),
        click.option(
            "--pool",
            multiple=True,
            callback=_pairs,
            metavar="QUEUE=POOL",
            help="The pool for jobs of an old queue; may be given again.  [default: their task's]",
        ),
    ):
        command = option(command)
    return command


@click.group()
def migrate() -> None:
    """Take schedules over from another scheduler on the same Redis."""


@migrate.group(name="rq-scheduler", invoke_without_command=True)
@click.option("--dry-run", is_flag=True, help="Show what would become of each job; change nothing.")
@click.option("--queue", "queues", multiple=True, help="Only jobs of this queue; may be given again.")
@reading_options
@app_option
@tenant_option
@output_option
@click.pass_context
def rq_scheduler(
    ctx: click.Context,
    dry_run: bool,
    queues: tuple[str, ...],
    tz: str | None,
    task: dict[str, str],
    tasks: dict[str, str],
    pool: dict[str, str],
    app_name: str | None,
    tenant: str,
    as_json: bool,
) -> None:
    """Read the jobs of a running rq-scheduler into schedules of a tenant, whose scheduling is disabled first.

    The old scheduler goes on firing, and Tenure records skips. Then: `over`, which lets Tenure fire, and `back`. A job
    that cannot be taken over is listed with the reason, and then nothing is: exit 4.
    """
    if ctx.invoked_subcommand is not None:
        return
    reading = Reading(tz or local_zone(), {**tasks, **task}, pool, queues)
    with _opened(app_name, tenant) as hand_over:
        found = hand_over.plan(reading) if dry_run else hand_over.read(reading)
    _print_read(found, reading, as_json)
    if dry_run and found.refused:
        ctx.exit(4)
    if not dry_run:
        say(
            f"tenant {tenant} is disabled, {len(found.moves)} schedules are stored; next: {_command('over', tenant)}"
        )


@rq_scheduler.command()
@click.option(
    "--gated",
    is_flag=True,
    help="The old scheduler lives on for other jobs, and is asked whether it is gated.",
)
@app_option
@tenant_option
@output_option
def over(gated: bool, app_name: str | None, tenant: str, as_json: bool) -> None:
    """Let Tenure fire, from now on. Refused while an old scheduler lives or its jobs run, unless it is gated.

    What came due since the old scheduler stopped is made up for. Where nothing is left to the old scheduler it is kept
    from firing by its own lock, also if somebody starts it.
    """
    from ..scheduler.rq_gate import ask

    with _opened(app_name, tenant) as hand_over:
        done = hand_over.over(partial(ask, hand_over.store.redis) if gated else None)
    _print_over(done, as_json)
    say(
        f"tenure fires {len(done.schedules)} schedules of tenant {tenant}; back again: {_command('back', tenant)}"
    )
    if done.others:
        say(f"{done.others} jobs of other queues stay with the old scheduler: start it again, with a gate")


@rq_scheduler.command()
@app_option
@tenant_option
@output_option
def back(app_name: str | None, tenant: str, as_json: bool) -> None:
    """Let the old scheduler fire again: it gets each job back with the first instant that Tenure has not fired."""
    with _opened(app_name, tenant) as hand_over:
        given = hand_over.back()
        living = hand_over.store.processes()
    if as_json:
        print_json({"items": [_given(one) for one in given]})
    else:
        print_table(("OLD JOB", "JOBKEY", "NEXT FIRE", "NOTE"), map(_given_row, given), stretch=3)
    say(f"tenant {tenant} is disabled; its jobs that run may end")
    if not living:
        say("no old scheduler lives: start it")


@rq_scheduler.command()
@app_option
@tenant_option
@output_option
def status(app_name: str | None, tenant: str, as_json: bool) -> None:
    """Show who is in charge, which old schedulers live, and which jobs each has."""
    with _opened(app_name, tenant) as hand_over:
        store = hand_over.store
        living, planned, parked = store.processes(), store.jobs(), store.parked()
        enabled = hand_over.schedules_fire
        state, lock = hand_over.state, store.lock_is()
    fields = {
        "tenant": tenant,
        "state": {
            "": "nothing is read",
            "read": "the old scheduler fires",
            "parked": "half way over",
            "over": "tenure fires",
        }[state],
        "scheduling": "enabled" if enabled else "disabled",
        "oldSchedulers": [one.name for one in living],
        "lock": lock,
        "oldJobs": len(planned),
        "handedOver": len(parked),
        "active": [job.id for job in planned if job.active],
    }
    if as_json:
        print_json(fields)
        return
    print_fields(
        [
            (name, ", ".join(value) if isinstance(value, list) else str(value))
            for name, value in fields.items()
        ]
    )


@migrate.command(name="rq-cron")
@click.argument("config")
@click.option("--dry-run", is_flag=True, help="Show what would become of each job; change nothing.")
@reading_options
@app_option
@tenant_option
@output_option
@click.pass_context
def rq_cron(
    ctx: click.Context,
    config: str,
    dry_run: bool,
    tz: str | None,
    task: dict[str, str],
    tasks: dict[str, str],
    pool: dict[str, str],
    app_name: str | None,
    tenant: str,
    as_json: bool,
) -> None:
    """Read the jobs of `rq cron CONFIG`, a file or a module, into schedules of a tenant, which is disabled first.

    To switch over, stop `rq cron` and enable the tenant's scheduling; to switch back, disable it and start `rq cron`.
    """
    from ..scheduler.rq_own_cron import processes, read_file

    reading = Reading(tz or local_zone(), {**tasks, **task}, pool)
    with _opened(app_name, tenant, "cron") as hand_over:
        redis = hand_over.store.redis
        jobs = read_file(redis, config, reading.tz, hand_over.now())
        living = processes(redis)
        found = hand_over.compared(moves(jobs, reading, hand_over.registry, of_rq_cron))
        if not dry_run:
            hand_over.take(found, reading)
    _print_read(found, reading, as_json)
    for name in living:
        say(f"`rq cron` lives: {name}")
    if dry_run and found.refused:
        ctx.exit(4)
    if not dry_run:
        say(
            f"tenant {tenant} is disabled, {len(found.moves)} schedules are stored; next: stop `rq cron`, then tenure "
            f"tenants enable-scheduling {tenant}"
        )


@contextmanager
def _opened(app_name: str | None, tenant: str, book: str = "scheduler") -> Generator[HandOver, None, None]:
    app = find_app(app_name, give="add --app shop.jobs:app")
    try:
        with app.lease("tenure migrate rq-scheduler", ttl="60s", tenant=tenant):  # one operator at a time
            store = OldStore(app.rq_redis(), tenant, book)
            yield HandOver(store, app.schedules.of(tenant), app.registry, whoami())
    finally:
        app.close()


def _command(verb: str, tenant: str) -> str:
    return f"tenure migrate rq-scheduler {verb}{'' if tenant == 'default' else f' --tenant {tenant}'}"


def _print_read(found: Read, reading: Reading, as_json: bool) -> None:
    if as_json:
        print_json({"tz": reading.tz, "items": [_move(move) for move in found.moves], "others": found.others})
        return
    print_table(
        ("OLD JOB", "JOBKEY", "QUEUE", "FIRES", "NEXT FIRE", "TASK", "NOTE"),
        map(_move_row, found.moves),
        stretch=6,
    )
    say(f"cron is read on the clock of {reading.tz}")
    if found.others:
        say(f"{found.others} jobs of other queues are left alone")
    if found.refused:
        say(f"{len(found.refused)} of {len(found.moves)} cannot be taken over")


def _move(move: Move) -> dict[str, object]:
    old = move.old
    return {
        "jobs": [job.id for job in move.jobs],
        "jobKey": str(move.key),
        "queue": old.queue,
        "function": old.function,
        "fires": old.says,
        "nextFire": rfc3339(old.due_ms),
        "task": move.task.key if move.task else None,
        "trigger": move.trigger.stored() if move.trigger else None,
        "problem": move.problem or None,
        "notes": list(move.notes),
    }


def _move_row(move: Move) -> tuple[str, ...]:
    old = move.old
    more = f" and {len(move.jobs) - 1} more" if len(move.jobs) > 1 else ""
    task = move.task.key if move.task else old.function or "-"
    note = f"REFUSED: {move.problem}" if move.problem else "; ".join(move.notes)
    return f"{old.id}{more}", str(move.key), old.queue, old.says, local_time(old.due_ms), task, note


def _print_over(done: Over, as_json: bool) -> None:
    if as_json:
        made = [{"jobKey": key, "fireTime": rfc3339(at)} for key, at in done.made_up]
        print_json({"schedules": list(done.schedules), "madeUp": made, "others": done.others})
        return
    print_table(("JOBKEY", "MADE UP FOR"), [(key, local_time(at)) for key, at in done.made_up])


def _given(one: Given) -> dict[str, object]:
    due = None if one.due_ms is None else rfc3339(one.due_ms)
    return {"job": one.job_id, "jobKey": one.key, "nextFire": due, "note": one.why or None}


def _given_row(one: Given) -> tuple[str, ...]:
    return one.job_id, one.key, local_time(one.due_ms), one.why
