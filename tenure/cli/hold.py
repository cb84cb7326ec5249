"""`tenure hold`: keep jobs of a tenant, a pool or a task from being claimed."""

from __future__ import annotations

from datetime import datetime, timedelta

import click

from ..api.holds import hold as as_json_object
from ..lease.durations import duration_ms
from ..lease.holds import Hold
from ..lease.instants import parse_instant
from ..scripts.errors import BadInput
from .options import opened, output_option, tenant_option
from .output import clean_line, local_time, print_json, print_table, say

pool_option = click.option("--pool", help="Jobs of this pool.")
task_option = click.option("--task", help="Jobs of this task.")
all_option = click.option("--all", "all_jobs", is_flag=True, help="All jobs of the tenant.")


@click.group()
def hold() -> None:
    """Hold jobs of a pool or a task, or all of a tenant: they are not claimed until a release."""


@hold.command()
@pool_option
@task_option
@all_option
@click.option("--reason", default="", help="Why; shown to whoever asks why a job does not run.")
@click.option("--until", metavar="INSTANT", help="Released by itself then, like 2026-12-24T18:00:00Z.")
@click.option("--for", "lasting", metavar="DURATION", help="Released by itself after that: 2h.")
@tenant_option
@output_option
def add(
    pool: str | None,
    task: str | None,
    all_jobs: bool,
    reason: str,
    until: str | None,
    lasting: str | None,
    tenant: str,
    as_json: bool,
) -> None:
    """Hold them. What runs goes on; what a worker has claimed and not begun goes back.

    tenure hold add --task reports.daily --reason "wrong numbers" --for 2h
    """
    _check(pool, task, all_jobs)
    ends = _until(until, lasting)
    with opened() as app:
        found = app.hold(pool=pool, task=task, tenant=tenant, reason=reason, until=ends)
    if as_json:
        print_json(as_json_object(found))
        return
    till = "until it is released" if found.until is None else f"until {local_time(found.until)}"
    click.echo(clean_line(f"{found.what} is held since {local_time(found.since)}, {till}"))


@hold.command(name="list")
@tenant_option
@output_option
def list_(tenant: str, as_json: bool) -> None:
    """List what is held."""
    with opened() as app:
        found = app.holds(tenant)
    if as_json:
        print_json({"items": [as_json_object(one) for one in found], "nextCursor": None, "hasMore": False})
        return
    if not found:
        say(f"nothing is held in tenant {tenant}")
        return
    print_table(("HELD", "SINCE", "UNTIL", "BY", "REASON"), [_row(one) for one in found])


@hold.command()
@pool_option
@task_option
@all_option
@tenant_option
def remove(pool: str | None, task: str | None, all_jobs: bool, tenant: str) -> None:
    """Release them."""
    _check(pool, task, all_jobs)
    with opened() as app:
        held = app.release(pool=pool, task=task, tenant=tenant)
    what = f"tenant {tenant}" if all_jobs else f"pool {pool}" if pool else f"task {task}"
    say(f"{what} {'is released' if held else 'was not held'}")


def _check(pool: str | None, task: str | None, all_jobs: bool) -> None:
    if [pool is not None, task is not None, all_jobs].count(True) != 1:
        raise BadInput("one of --pool, --task and --all says what is meant", hint="tenure hold --help")


def _until(until: str | None, lasting: str | None) -> datetime | timedelta | None:
    if until is not None and lasting is not None:
        raise BadInput("--until and --for are both given: a hold has one end", hint="leave one out")
    if lasting is not None:
        return timedelta(milliseconds=duration_ms(lasting, what="--for", least_ms=1))
    return None if until is None else parse_instant(until, what="--until")


def _row(found: Hold) -> tuple[str, ...]:
    until = local_time(found.until) if found.until else ""
    return found.what, local_time(found.since), until, clean_line(found.by), clean_line(found.reason)
