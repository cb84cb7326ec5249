"""`tenure jobs list`."""

from __future__ import annotations

from typing import Any

import click

from ..api import views
from ..lease.jobs import Page
from ..scripts.errors import BadInput
from ..scripts.states import State
from .arguments import read_instant
from .options import job_view, opened, output_option, tenant_option
from .output import local_time, print_json, print_table, say


def _record(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[str, str] | None:
    kind, _, name = (value or "").partition(":")
    return None if value is None else (kind, name)


def _labels(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, str] | None:
    for value in values:
        if "=" not in value:
            raise BadInput(f"label {value!r:.60} has no '='", hint="--label team=billing")
    labels = {name: text for name, _, text in (value.partition("=") for value in values)}
    if len(labels) < len(set(values)):
        raise BadInput("one label is named with two values: no job has both", hint="leave one out")
    return labels or None


@click.command(name="list")
@tenant_option
@click.option("--status", metavar="STATE", help=f"Only those: {', '.join(State)}.")
@click.option("--task", help="Only jobs of this task.")
@click.option("--instance", metavar="ID", help="Only jobs of this workflow instance.")
@click.option("--node", metavar="ID", help="Only jobs of this workflow node.")
@click.option("--trace", metavar="ID", help="Only jobs of this trace.")
@click.option("--record", metavar="TYPE:ID", callback=_record, help="Only jobs that work for this record.")
@click.option(
    "--label",
    "labels",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_labels,
    help="Only jobs so labelled; again for more.",
)
@click.option("-q", "--query", "q", metavar="TEXT", help="An id, an idempotency key, or words of an error.")
@click.option("--fingerprint", metavar="KEY", help="Only jobs that died of this: tenure failures list.")
@click.option("--created-from", metavar="INSTANT", callback=read_instant, help="Only jobs made since then.")
@click.option("--created-to", metavar="INSTANT", callback=read_instant, help="Only jobs made before then.")
@click.option("--limit", type=click.IntRange(1, 100), default=50, show_default=True)
@click.option("--cursor", help="Where the page before ended.")
@output_option
def list_(as_json: bool, **filters: Any) -> None:
    """List jobs, newest first; pending ones by the time they are due."""
    with opened() as app:
        page = app.jobs.list(**filters)
    if as_json:
        print_json(views.jobs_page(page, job_view()))
        return
    due = filters["status"] == State.PENDING
    rows = [
        (job.id, job.status, local_time(job.run_at if due else job.created_at), job.task)
        for job in page.items
    ]
    print_table(("ID", "STATUS", "DUE" if due else "CREATED", "TASK"), rows)
    if page.next_cursor and len(page.items) < filters["limit"]:
        say(f"{len(page.items)} found among the first {page.scanned:,}")
    say_left_out(page)
    say_more(page.next_cursor)


def say_left_out(page: Page) -> None:
    if page.redis_only:
        say(
            "only what Redis has was searched: of an archive, `tenure jobs list` takes --status and --task alone"
        )


def say_more(cursor: str | None) -> None:
    if cursor:
        say(f"there are more: the same with --cursor {cursor}")
