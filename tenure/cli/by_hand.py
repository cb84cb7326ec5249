"""What `tenure jobs` does to one job on a person's word: retry, skip, reschedule, confirm."""

from __future__ import annotations

from datetime import datetime

import click

from ..api import views
from ..lease.jobs import JobView
from ..lease.who import whoami
from ..scripts.errors import BadInput
from .arguments import read_arguments, read_instant
from .options import find_app, opened, output_option, tenant_option
from .output import local_time, print_json

job_argument = click.argument("job_id", metavar="ID")
after_option = click.option("--after", metavar="DURATION", help="How long from now: 5m, 1h30m.")
at_option = click.option(
    "--at", metavar="INSTANT", callback=read_instant, help="An instant with its offset: 2026-09-21T14:00:00Z."
)


@click.command()
@job_argument
@click.argument("arguments", metavar="[JSON]", required=False)
@click.option("--app", "app_name", metavar="MODULE:APP", help="Where the task is registered; or TENURE_APP.")
@after_option
@at_option
@click.option("--generation", type=int, help="Only if it is still in this round.")
@click.option(
    "--force", is_flag=True, help="Also if its last call outside may have happened; needs a reason."
)
@click.option("--reason", default="", help="Kept with the job.")
@tenant_option
@output_option
def retry(
    job_id: str,
    arguments: str | None,
    app_name: str | None,
    after: str | None,
    at: datetime | None,
    generation: int | None,
    force: bool,
    reason: str,
    tenant: str,
    as_json: bool,
) -> None:
    """Begin a new round of a job that failed, is dead or was canceled. All attempts are kept.

    It goes on from its last checkpoint. With JSON, an object of named arguments or an array of positional ones that
    replace all it had, it starts from the beginning; its task must be registered in the application.
    """
    edited = arguments is not None
    args, kwargs = read_arguments(arguments)
    with opened() as app:
        if edited:
            app.registry = find_app(app_name).registry
        began = app.jobs.retry(
            job_id,
            args=args if edited else None,
            kwargs=kwargs if edited else None,
            after=after,
            at=at,
            generation=generation,
            reason=reason,
            force=force,
            tenant=tenant,
        )
        job = app.jobs.get(job_id, tenant)
    _print(job, as_json, f"round {job.generation} {'begins' if began else 'had begun before'}")


@click.command()
@job_argument
@click.option("--reason", default="", help="Kept with the job.")
@tenant_option
@output_option
def skip(job_id: str, reason: str, tenant: str, as_json: bool) -> None:
    """Cancel a job because it need not be done any more; what it says then is `skipped`."""
    with opened() as app:
        before = app.ledger(tenant).skip(job_id, reason, whoami())
        job = app.jobs.get(job_id, tenant)
    _print(job, as_json, f"it was {before}")


@click.command()
@job_argument
@click.option("--now", is_flag=True, help="Run it as soon as a slot is free.")
@after_option
@at_option
@click.option("--priority", type=click.IntRange(0, 9), help="0 is first, 9 is last.")
@click.option("--revision", type=int, help="Only if it is still at this revision.")
@click.option("--reason", default="", help="Kept with the job.")
@tenant_option
@output_option
def reschedule(
    job_id: str,
    now: bool,
    after: str | None,
    at: datetime | None,
    priority: int | None,
    revision: int | None,
    reason: str,
    tenant: str,
    as_json: bool,
) -> None:
    """Let a pending job run now, at another time, or with another priority."""
    with opened() as app:
        changed = app.jobs.reschedule(
            job_id,
            now=now,
            after=after,
            at=at,
            priority=priority,
            revision=revision,
            reason=reason,
            tenant=tenant,
        )
        job = app.jobs.get(job_id, tenant)
    due = f"due {local_time(job.run_at)}, priority {job.priority}"
    _print(job, as_json, due if changed else f"{due}, as before")


@click.command()
@job_argument
@click.option("--happened/--not-happened", default=None, help="Which of the two; one must be given.")
@click.option("--note", default="", help="How you know; kept in its history.")
@tenant_option
@output_option
def confirm(job_id: str, happened: bool | None, note: str, tenant: str, as_json: bool) -> None:
    """Say whether the last outside call of a job has happened, where Tenure cannot know it.

    Only one that has not happened may be retried without --force.
    """
    if happened is None:
        raise BadInput(
            "it is not said which: --happened or --not-happened", hint="find out on the other side first"
        )
    with opened() as app:
        news = app.jobs.confirm(job_id, happened, note=note, tenant=tenant)
        job = app.jobs.get(job_id, tenant)
    said = f"confirmed as {'' if happened else 'not '}happened{'' if news else ', as before'}"
    _print(job, as_json, said)


def _print(job: JobView, as_json: bool, said: str) -> None:
    if as_json:
        print_json(views.job(job))
    else:
        click.echo(f"{job.id} is {job.status}; {said}")
