"""`tenure chain`: all jobs of a trace."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import click

from ..api import views
from ..api.bundle import bundle as make_bundle
from ..api.chain import LINES
from ..app import Tenure
from ..lease.chain import MOST, Link
from ..lease.chain import chain as chain_of
from ..scripts.errors import Conflict
from .job_list import say_more
from .options import find_app, opened, output_option, read_settings, tenant_option
from .output import clean_line, cut, lasted, local_time, print_json, print_table, say

LONGEST_ERROR = 60
trace_argument = click.argument("trace", metavar="TRACE")


@click.group()
def chain() -> None:
    """Show all jobs of a trace, or make a bundle of them to hand on."""


@chain.command()
@trace_argument
@tenant_option
@click.option("--limit", type=click.IntRange(1, MOST), default=MOST, show_default=True)
@click.option("--cursor", help="Where the part before ended.")
@output_option
def show(trace: str, tenant: str, limit: int, cursor: str | None, as_json: bool) -> None:
    """Show the jobs of TRACE as a tree: below each those that it has made. A job's own id is the trace it began."""
    with opened() as app:
        found = app.jobs.chain(trace, limit=limit, cursor=cursor, tenant=tenant)
    if as_json:
        print_json(views.chain(found))
        return
    print_table(("JOB", "STATUS", "CREATED", "TOOK", "TASK", "ERROR"), map(_row, found.links))
    say_more(found.next_cursor)


@chain.command()
@trace_argument
@tenant_option
@click.option(
    "--app", "app_name", metavar="MODULE:APP", help="Where the tasks are registered; or TENURE_APP."
)
@click.option(
    "--file", "path", type=click.Path(path_type=Path), help="Where to write it; it must not exist yet."
)
def bundle(trace: str, tenant: str, app_name: str | None, path: Path | None) -> None:
    """Write a zip of all that is known of the jobs of TRACE, without secrets.

    Secrets are known by the names of arguments, so name the application: of tasks that are not registered, positional
    arguments are left out.
    """
    with _application(app_name) as app:
        found = chain_of(app.ledger(tenant), trace, lines=LINES)
        data = make_bundle(found, app.registry, app.about())
    path = path or Path(f"tenure-chain-{re.sub('[^A-Za-z0-9._-]', '_', trace)}.zip")
    try:
        with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(data)
    except FileExistsError:
        raise Conflict(f"{path} is there already", hint="remove it, or add --file NAME.zip") from None
    click.echo(path)
    more = ", and there are more" if found.next_cursor else ""
    say(f"{len(found.jobs)} jobs{more}; look into it before you hand it on")


@contextmanager
def _application(name: str | None) -> Generator[Tenure, None, None]:
    """The application with its tasks, if it is named anywhere; else one without tasks."""
    if name or read_settings().app:
        app = find_app(name)
        try:
            yield app
        finally:
            app.close()
    else:
        with opened() as app:
            yield app


def _row(link: Link) -> tuple[str, ...]:
    job = link.job
    began, over = job.started_at, job.finished_at
    error = job.error.error if job.error and job.status != "succeeded" else None
    return (
        f"{'·' * min(link.depth, 20)} {job.id}",
        job.status,
        local_time(job.created_at),
        "" if began is None or over is None else lasted(over - began),
        job.task,
        cut(clean_line(error or ""), LONGEST_ERROR),
    )
