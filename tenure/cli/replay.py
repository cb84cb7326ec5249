"""`tenure replay`: retry many dead or failed jobs, chosen by conditions, after a look at which they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ..api import views
from ..api.batch_views import batch_view, batch_with_jobs, conditions_view, preview_view
from ..lease.batches import FASTEST, MOST_JOBS, RATE, Batch, BatchState
from ..lease.filters import FAILED
from ..lease.replay import ReplayPreview
from ..scripts.errors import BadInput
from .arguments import read_instant
from .options import opened, output_option, tenant_option
from .output import clean_line, cut, local_time, print_fields, print_json, print_table, say

F = TypeVar("F", bound=Callable[..., Any])
LONGEST = 80


def condition_options(command: F) -> F:
    """The options that choose jobs; the function gets them by the names of ReplayConditions, and `limit`."""
    options = (
        click.option(
            "--status",
            type=click.Choice([str(state) for state in FAILED]),
            help=f"Which of the two.  [default: {FAILED[0]}]",
        ),
        click.option("--type", "task", metavar="TASK", help="Only jobs of this task."),
        click.option("--instance", metavar="ID", help="Only jobs of this workflow instance."),
        click.option("--trace", metavar="ID", help="Only jobs of this trace."),
        click.option("--error", metavar="TEXT", help="Only those with these words in their newest error."),
        click.option("--fingerprint", metavar="KEY", help="Only what died of this: tenure failures list."),
        click.option("--min-age", metavar="DURATION", help="Only jobs made so long ago, or earlier: 2h."),
        click.option("--max-age", metavar="DURATION", help="Only jobs made since so long ago: 3d."),
        click.option(
            "--ended-from", metavar="INSTANT", callback=read_instant, help="Only what ended since then."
        ),
        click.option(
            "--ended-to", metavar="INSTANT", callback=read_instant, help="Only what ended before then."
        ),
        click.option(
            "--limit", type=click.IntRange(1, MOST_JOBS), help=f"So many at most.  [default: {MOST_JOBS}]"
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group()
def replay() -> None:
    """Retry many dead or failed jobs at a pace, chosen by conditions."""


@replay.command()
@condition_options
@tenant_option
@output_option
def preview(limit: int | None, tenant: str, as_json: bool, **conditions: Any) -> None:
    """Show which jobs a replay would retry, and which not, and why. It changes none of them."""
    with opened() as app:
        found = app.jobs.replay_preview(limit=limit or MOST_JOBS, tenant=tenant, **conditions)
    if as_json:
        print_json(preview_view(found))
        return
    rows = [
        (job.id, job.task, local_time(job.at), job.refused or "", cut(clean_line(job.error), LONGEST))
        for job in (*found.jobs, *found.skipped)
    ]
    print_table(("ID", "TASK", "ENDED", "SKIPPED", "ERROR"), rows)
    _say_preview(found)


@replay.command()
@click.argument("token", required=False)
@condition_options
@click.option(
    "--rate",
    type=click.IntRange(1, FASTEST),
    default=RATE,
    show_default=True,
    help="So many are due in a second.",
)
@click.option("--reason", default="", help="Kept with the jobs and the replay.")
@tenant_option
@output_option
def apply(
    token: str | None,
    limit: int | None,
    rate: int,
    reason: str,
    tenant: str,
    as_json: bool,
    **conditions: Any,
) -> None:
    """Do what the preview TOKEN has shown; without one, choose jobs by the options and replay them at once.

    Sent again with the same TOKEN it is the same replay.
    """
    given = {name: value for name, value in conditions.items() if value is not None}
    if token is not None and limit is not None:
        raise BadInput("--limit is given beside a preview, which has its own", hint="leave one out")
    with opened() as app:
        batch = app.jobs.replay(
            token, rate=rate, reason=reason, limit=limit or MOST_JOBS, tenant=tenant, **given
        )
    _print_batch(batch, as_json)


@replay.command(name="list")
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True)
@tenant_option
@output_option
def list_(limit: int, tenant: str, as_json: bool) -> None:
    """List what was done to many jobs at once, the newest first; the newest 100 are kept."""
    with opened() as app:
        found = app.jobs.batches(limit, tenant)
    if as_json:
        print_json(views.page([batch_view(batch) for batch in found], None))
        return
    rows = [
        (
            batch.id,
            batch.deed,
            batch.state,
            local_time(batch.made_at),
            f"{batch.success} of {batch.total}",
            str(batch.skipped),
            batch.by or "-",
            batch.reason,
        )
        for batch in found
    ]
    print_table(("ID", "VERB", "STATUS", "MADE", "ACCEPTED", "SKIPPED", "BY", "REASON"), rows)


@replay.command()
@click.argument("batch_id", metavar="ID")
@tenant_option
@output_option
def show(batch_id: str, tenant: str, as_json: bool) -> None:
    """Show how a replay or another batch stands, and what became of each of its jobs."""
    with opened() as app:
        _print_batch(app.jobs.batch(batch_id, tenant), as_json)


def _print_batch(batch: Batch, as_json: bool) -> None:
    if as_json:
        print_json(batch_with_jobs(batch))
        return
    chosen = " ".join(f"{name}={value}" for name, value in conditions_view(batch.conditions or {}).items())
    print_fields(
        [
            ("id", batch.id),
            ("verb", batch.deed),
            ("status", batch.state),
            ("chosen by", chosen or "ids"),
            ("accepted", f"{batch.success} of {batch.total}"),
            ("skipped", " ".join(f"{code}={count}" for code, count in batch.reasons.items()) or "0"),
            ("rate", None if batch.rate is None else f"{batch.rate} a second"),
            ("by", batch.by),
            ("reason", batch.reason or None),
            ("made", local_time(batch.made_at)),
            ("begun", None if batch.begun_at is None else local_time(batch.begun_at)),
            ("finished", None if batch.finished_at is None else local_time(batch.finished_at)),
        ]
    )
    click.echo()
    print_table(
        ("ID", "OUTCOME", "REASON"), [(one.id, one.outcome or "", one.skipped or "") for one in batch.jobs]
    )
    if batch.state is BatchState.PLANNED:
        say(f"nothing of it is done yet: tenure replay apply {batch.id}")


def _say_preview(found: ReplayPreview) -> None:
    said = f"jobs to retry: {len(found.jobs)}, to skip: {len(found.skipped)}"
    say(f"{said}; there may be more" if found.more else said)
    if found.jobs:
        say(f"to do that: tenure replay apply {found.token}")
