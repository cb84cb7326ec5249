"""What `tenure jobs` does to one job on a person's word: retry, skip, reschedule, confirm."""

from __future__ import annotations

from datetime import datetime

import click

from ..api.batch_views import batch_with_jobs
from ..lease.batches import FASTEST, RATE, Batch
from ..lease.jobs import JobView
from ..lease.who import whoami
from ..scripts.errors import BadInput
from ..scripts.states import State
from .arguments import read_arguments, read_instant
from .options import find_app, job_view, opened, output_option, tenant_option
from .output import local_time, print_json, print_table, say

job_argument = click.argument("job_id", metavar="ID")
after_option = click.option("--after", metavar="DURATION", help="How long from now: 5m, 1h30m.")
at_option = click.option(
    "--at", metavar="INSTANT", callback=read_instant, help="An instant with its offset: 2026-09-21T14:00:00Z."
)

from_start_option = click.option(
    "--from-start", is_flag=True, help="From the beginning, not from its last checkpoint."
)
rate_option = click.option(
    "--rate", type=click.IntRange(1, FASTEST), help=f"So many are due in a second at most.  [default: {RATE}]"
)


@click.command()
@click.argument("words", metavar="ID [ID...] [JSON]", nargs=-1, required=True)
@click.option("--app", "app_name", metavar="MODULE:APP", help="Where the task is registered; or TENURE_APP.")
@from_start_option
@after_option
@at_option
@click.option("--generation", type=int, help="Only if it is still in this round.")
@click.option(
    "--force", is_flag=True, help="Also if its last call outside may have happened; needs a reason."
)
@rate_option
@click.option("--reason", default="", help="Kept with the job.")
@tenant_option
@output_option
def retry(
    words: tuple[str, ...],
    app_name: str | None,
    from_start: bool,
    after: str | None,
    at: datetime | None,
    generation: int | None,
    force: bool,
    rate: int | None,
    reason: str,
    tenant: str,
    as_json: bool,
) -> None:
    """Begin a new round of a job that failed, is dead or was canceled. All attempts are kept.

    It goes on from its last checkpoint. With JSON, an object of named arguments or an array of positional ones that
    replace all it had, it starts from the beginning; its task must be registered in the application.

    Of several jobs, at most 500, those that cannot be retried are skipped, and the exit code is 4 if there are any.
    """
    ids, arguments = _ids_and_arguments(words)
    job_id, edited = ids[0], arguments is not None
    if len(ids) > 1:
        if (
            edited
            or force
            or from_start
            or any(option is not None for option in (app_name, after, at, generation))
        ):
            raise BadInput(
                "of several jobs each is retried as it is, now: no JSON and no option but --rate and --reason",
                hint="retry that one job alone",
            )
        with opened() as app:
            print_batch(
                app.jobs.retry_many(ids, rate=RATE if rate is None else rate, reason=reason, tenant=tenant),
                as_json,
            )
        return
    if rate is not None:
        raise BadInput("--rate is for several jobs", hint="leave it out; --after says when one job is due")
    args, kwargs = read_arguments(arguments)
    with opened() as app:
        if edited:
            app.registry = find_app(app_name).registry
        round_begun = app.jobs.retry(
            job_id,
            args=args if edited else None,
            kwargs=kwargs if edited else None,
            from_start=from_start,
            after=after,
            at=at,
            generation=generation,
            reason=reason,
            force=force,
            tenant=tenant,
        )
        job = app.jobs.get(job_id, tenant)
    _print(job, as_json, f"round {round_begun} begins")


@click.command()
@click.argument("words", metavar="ID [ID...]", nargs=-1, required=True)
@click.option("--reason", default="", help="Kept with the job.")
@tenant_option
@output_option
def skip(words: tuple[str, ...], reason: str, tenant: str, as_json: bool) -> None:
    """Cancel a job because it need not be done any more; what it says then is `skipped`.

    Of several jobs, at most 500, those that have ended well or were canceled stay as they are, and the exit code is 4
    if there are any.
    """
    if len(words) > 1:
        with opened() as app:
            print_batch(app.jobs.skip_many(words, reason=reason, tenant=tenant), as_json)
        return
    job_id = next(iter(words))
    with opened() as app:
        before = app.ledger(tenant).skip(job_id, reason, whoami())
        job = app.jobs.get(job_id, tenant)
    _print(job, as_json, was(before))


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
    if not now and after is None and at is None and priority is None:
        raise BadInput(
            "nothing is asked for: neither a time nor a priority",
            hint="--now, --after 5m, --at 2026-09-21T14:00:00Z or --priority 0",
        )
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


def print_batch(batch: Batch, as_json: bool) -> None:
    """What became of each job; exit code 4 if there was one to which it was not done."""
    if as_json:
        print_json(batch_with_jobs(batch))
    else:
        print_table(
            ("ID", "OUTCOME", "REASON"),
            [(one.id, one.outcome or "", one.skipped or "") for one in batch.jobs],
        )
        say(f"{batch.deed} of {batch.total} jobs: {batch.success} accepted, {batch.skipped} skipped")
    if batch.skipped:
        raise click.exceptions.Exit(4)


def was(before: str) -> str:
    """What a job was before it was canceled."""
    return "it was so before" if before == State.CANCELED else f"it was {before}"


def _ids_and_arguments(words: tuple[str, ...]) -> tuple[tuple[str, ...], str | None]:
    """Ids, and the JSON after them, if the last word is some."""
    if len(words) > 1 and words[-1].lstrip()[:1] in ("{", "[", '"', ""):
        return words[:-1], words[-1]
    return words, None


def _print(job: JobView, as_json: bool, said: str) -> None:
    if as_json:
        print_json(job_view()(job))
    else:
        click.echo(f"{job.id} is {job.status}; {said}")
