"""`tenure background`: tasks that work in chunks and show progress."""

from __future__ import annotations

from collections.abc import Callable

import click

from ..api import views
from ..lease.context import Record, check_record
from ..lease.filters import Filters
from ..lease.jobs import JobView
from ..lease.ledger import Ledger
from ..lease.requests import Options
from ..lease.who import whoami
from ..scheduler.history import find_job
from ..scheduler.job_pages import find_jobs
from ..scripts.errors import BadInput, NotFound
from .arguments import read_arguments
from .by_hand import after_option, from_start_option
from .job_list import say_left_out, say_more
from .jobs import print_canceled
from .options import find_app, opened, output_option, tenant_option
from .output import print_json, print_table, say
from .progress import describe
from .watch import watch as watch_job

RECORD_HINT = "--record order:4711"


@click.group()
def background() -> None:
    """Start, list, watch, cancel and retry background tasks."""


@background.command()
@click.argument("task")
@click.argument("arguments", metavar="[JSON]", required=False)
@click.option(
    "--key", help="Idempotency key: while a task with this key is active, starting again answers that one."
)
@click.option(
    "--key-field",
    "key_fields",
    metavar="NAME",
    multiple=True,
    help="Make the idempotency key of this argument; again for more.",
)
@click.option("--concurrency-key", help="Of the jobs with this key, only so many run at a time.")
@click.option("--record", metavar="TYPE:ID", help="The business record it works for.")
@click.option("--binding", help="The binding by which the record's row follows it.")
@click.option("--app", "app_name", metavar="MODULE:APP", help="Where the task is registered; or TENURE_APP.")
@tenant_option
@output_option
def start(
    task: str,
    arguments: str | None,
    key: str | None,
    key_fields: tuple[str, ...],
    concurrency_key: str | None,
    record: str | None,
    binding: str | None,
    app_name: str | None,
    tenant: str,
    as_json: bool,
) -> None:
    """Start TASK. JSON is an object of named arguments, or an array of positional ones.

    tenure background start orders.sync '{"shop": "berlin"}' --app shop.jobs:app
    """
    args, kwargs = read_arguments(arguments)
    bound_to = _record(record)
    if key is not None and key_fields:
        raise BadInput("--key and --key-field are both given", hint="leave one of the two out")
    if binding is not None and bound_to is None:
        raise BadInput(
            f"--binding {binding:.60} is given and no --record",
            hint=f"{RECORD_HINT} says which row it writes",
        )
    app = find_app(app_name, give="add --app shop.jobs:app")
    try:
        found = app.registry.get(task)
        if not found.background:
            raise BadInput(
                f"task {found.key!r} is no background task",
                hint=f'register it with @app.background("{found.key}")',
            )
        options = Options(
            tenant=tenant,
            idempotency_key=key,
            idempotency_fields=key_fields or None,
            concurrency_key=concurrency_key,
            record=bound_to,
            binding=binding,
        )
        job = app.enqueue(found, args, kwargs, options)
        view = job.get()
    finally:
        app.close()
    if as_json:
        print_json({"id": job.id, "created": job.created, "status": view.status})
        return
    click.echo(job.id)
    say(
        f"{found.key} {'is started' if job.created else 'was started before'}; tenure background watch {job.id}"
    )


@background.command(name="list")
@tenant_option
@click.option("--task", help="Only runs of this task.")
@click.option("--record", metavar="TYPE:ID", help="Only those that work for this record.")
@click.option("--limit", type=click.IntRange(1, 100), default=50, show_default=True)
@click.option("--cursor", help="Where the page before ended.")
@output_option
def list_(
    tenant: str, task: str | None, record: str | None, limit: int, cursor: str | None, as_json: bool
) -> None:
    """List background tasks, newest first."""
    wanted = _record(record)
    with opened() as app:
        ledger = app.ledger(tenant)
        # those of a task that was a plain one once have other jobs between them
        tasks = ledger.background_tasks() if task is None else [task]
        filters = Filters(tasks=tasks, record=wanted, background=True)
        page = find_jobs(ledger, app.archive, filters, limit=limit, cursor=cursor)
    if as_json:
        print_json(views.jobs_page(page, lambda one: views.background_task(one, log=False)))
        return
    rows = [(one.id, one.task, describe(one)) for one in page.items]
    print_table(("ID", "TASK", "PROGRESS"), rows)
    say_left_out(page)
    say_more(page.next_cursor)


@background.command()
@click.argument("job_id", metavar="ID")
@tenant_option
@output_option
def watch(job_id: str, tenant: str, as_json: bool) -> None:
    """Watch percent, rate and ETA until it has ended; exit code 1 unless it succeeded."""
    with opened() as app:
        _of_background(lambda: find_job(app.ledger(tenant), app.archive, job_id))
        watch_job(app, tenant, job_id, views.background_task if as_json else None)


@background.command()
@click.argument("job_id", metavar="ID")
@tenant_option
@click.option("--reason", default="", help="Kept with the task.")
@output_option
def cancel(job_id: str, tenant: str, reason: str, as_json: bool) -> None:
    """Cancel a task; what it has committed stays."""
    with opened() as app:
        ledger = app.ledger(tenant)
        _get(ledger, job_id)
        before = ledger.cancel(job_id, reason, whoami())
        job = ledger.get(job_id)
    print_canceled(job, before, views.background_task if as_json else None)


@background.command()
@click.argument("job_id", metavar="ID")
@from_start_option
@after_option
@click.option("--reason", default="", help="Kept with the task.")
@tenant_option
@output_option
def retry(job_id: str, from_start: bool, after: str | None, reason: str, tenant: str, as_json: bool) -> None:
    """Begin a new round of a task that failed, is dead or was canceled, from its last checkpoint."""
    with opened() as app:
        _get(app.ledger(tenant), job_id)
        round_begun = app.jobs.retry(job_id, from_start=from_start, after=after, reason=reason, tenant=tenant)
        job = app.jobs.get(job_id, tenant)
    if as_json:
        print_json(views.background_task(job))
        return
    click.echo(f"{job.id} is {job.status}; round {round_begun} begins")


def _record(text: str | None) -> Record | None:
    if text is None:
        return None
    kind, _, name = text.partition(":")
    try:
        check_record((kind, name))
    except BadInput:
        raise BadInput(
            f"record {text!r:.80} is not TYPE:ID: a type of letters, digits, '_', '.' and '-', at most 64, and an id "
            "without control characters",
            hint=RECORD_HINT,
        ) from None
    return kind, name


def _get(ledger: Ledger, job_id: str) -> JobView:
    """The background task of that id. Raises NotFound, also for another kind of job."""
    return _of_background(lambda: ledger.get(job_id))


def _of_background(read: Callable[[], JobView]) -> JobView:
    try:
        job = read()
    except NotFound as exc:
        raise NotFound(str(exc), hint="tenure background list, with --tenant for those of another") from exc
    if not job.background:
        raise NotFound(f"job {job.id} is no background task", hint=f"tenure jobs show {job.id}")
    return job
