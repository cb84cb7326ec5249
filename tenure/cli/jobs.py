"""`tenure jobs`: the ledger's jobs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import click

from ..api import views
from ..api.plain import jsonable
from ..lease.jobs import Attempt, BoundTo, Deed, JobView
from ..lease.payload import unpack
from ..lease.redaction import masked_names
from ..lease.tasks import Registry
from ..lease.who import whoami
from ..scheduler.history import find_job
from ..scripts.states import State
from .by_hand import confirm, reschedule, retry, skip, was
from .job_list import list_
from .options import job_view, known_tasks, opened, output_option, tenant_option
from .output import (
    clean,
    clean_line,
    cut,
    lasted,
    local_time,
    print_fields,
    print_json,
    print_table,
)
from .progress import describe
from .register import say_unserved
from .watch import watch as watch_job

LONGEST_VALUE = 500
LONGEST_ERROR = 100


@click.group()
def jobs() -> None:
    """List, show and watch jobs; retry, skip, cancel, reschedule and confirm them."""


for command in (list_, retry, skip, reschedule, confirm):
    jobs.add_command(command)


@jobs.command()
@click.argument("job_id", metavar="ID")
@tenant_option
@click.option(
    "--lines", type=click.IntRange(0, 1000), default=10, show_default=True, help="Newest log lines."
)
@output_option
def show(job_id: str, tenant: str, lines: int, as_json: bool) -> None:
    """Show one job with its attempts, what people did to it, its error and its log."""
    with opened() as app:
        job = find_job(app.ledger(tenant), app.archive, job_id, lines)
        say_unserved(app, job)
    if as_json:
        print_json(views.job_with_attempts(job, known_tasks()))
        return
    print_fields(_fields(job, known_tasks()))
    if job.attempts:
        click.echo()
        print_table(
            ("#", "STATUS", "CAUSE", "WORKER", "FENCE", "STARTED", "LASTED", "ERROR"),
            map(_attempt_row, job.attempts),
        )
    if job.history:
        click.echo()
        print_table(("DONE BY HAND", "AT", "BY", "REASON"), map(_deed_row, job.history))
    if job.error and (job.error.stack or _brief(job.error) != job.error.error):
        # the stack of a crossed budget tells where the task was, and not what to change
        said = job.error.error if job.error.limit or not job.error.stack else None
        whole = "\n".join(clean(text).rstrip() for text in (said, job.error.stack) if text)
        click.echo(f"\nthe error of attempt {job.error.number}\n{whole}")
    for attempt in job.attempts:
        for what, text in (("asked", attempt.request), ("was answered", attempt.response)):
            if text:
                click.echo(f"\nwhat attempt {attempt.number} {what}\n{clean(text).rstrip()}")
    if job.progress and job.progress.lines:
        click.echo()
        for number, at, text in job.progress.lines:
            click.echo(f"{number:>6}  {local_time(at)}  {clean_line(text)}")


@jobs.command()
@click.argument("job_id", metavar="ID")
@tenant_option
@output_option
def watch(job_id: str, tenant: str, as_json: bool) -> None:
    """Watch a job until it has ended; exit code 1 unless it succeeded."""
    with opened() as app:
        watch_job(app, tenant, job_id, job_view() if as_json else None)


@jobs.command()
@click.argument("job_id", metavar="ID")
@tenant_option
@click.option("--reason", default="", help="Kept with the job.")
@output_option
def cancel(job_id: str, tenant: str, reason: str, as_json: bool) -> None:
    """Cancel a job that has not succeeded; a running one is told to stop and may write nothing more."""
    with opened() as app:
        ledger = app.ledger(tenant)
        before = ledger.cancel(job_id, reason, whoami())
        job = ledger.get(job_id)
    print_canceled(job, before, job_view() if as_json else None)


def print_canceled(job: JobView, before: str, view: Callable[[JobView], object] | None) -> None:
    if view:
        print_json(view(job))
    else:
        click.echo(f"{job.id} is {job.status}; {was(before)}")


def _fields(job: JobView, registry: Registry | None) -> Iterator[tuple[str, str | int | None]]:
    reason = job.why_dead or job.reason
    yield "id", job.id
    yield "tenant", job.tenant
    yield "task", job.task
    yield "status", f"{job.status} ({reason})" if reason else job.status
    yield "waits for", None if job.ended or job.status is State.RUNNING else job.blocker
    yield "died of", job.fingerprint
    yield "progress", describe(job) if job.progress else None
    yield "message", job.progress.message or None if job.progress else None
    yield "created", local_time(job.created_at)
    yield "due", local_time(job.run_at) if job.status is State.PENDING else None
    yield "time left", None if job.remaining_ms is None else f"{lasted(job.remaining_ms)}, when it is resumed"
    yield "instance", job.instance
    yield "start by", _time(job.start_by)
    yield "started", _time(job.started_at)
    yield "finished", _time(job.finished_at)
    yield "worker", job.worker
    yield "lease until", _time(job.lease_until)
    yield "fence", job.fence
    yield "pool", f"{job.pool}, priority {job.priority}"
    yield "failures", f"{job.failures} of {job.max_attempts} attempts, {job.losses} of {job.max_lost} lost"
    yield "time-out", lasted(job.timeout_ms)
    yield "fire", f"{job.fire} planned for {_time(job.fire_time)}" if job.fire else None
    yield "key", job.idempotency_key
    yield "concurrency key", job.concurrency_key or ("alone in its instance" if job.exclusive else None)
    yield from context_of(job)
    yield "binding", _binding(job.bound, job.revision) if job.bound else None
    yield "arguments", _arguments(job, registry)
    yield "result", _value(views.result(job)) if job.result else None
    yield "cursor", _value(masked_names(unpack(job.cursor))) if job.cursor else None


def context_of(job: JobView) -> Iterator[tuple[str, str | None]]:
    """What a job belongs to, as far as it was said."""
    yield "source", job.source
    yield "trace", job.trace if job.trace != job.id else None
    yield "parent", job.parent
    yield "repeats", job.repeat_rule
    yield "instance", job.instance
    yield "node", _named(job.node, job.node_name)
    yield "definition", _named(job.definition, job.definition_version)
    yield "execution", job.execution
    yield "work item", job.work_item
    yield "record", " ".join(job.record) if job.record else None
    yield "labels", ", ".join(f"{name}={value}" for name, value in job.labels.items()) or None


def _binding(bound: BoundTo, revision: int) -> str:
    """How the business row follows."""
    if bound.superseded:
        return f"{bound.binding}: its row tells of a later task"
    if bound.error is not None:
        times = "once" if bound.tries == 1 else f"{bound.tries} times"
        return f"{bound.binding}: not written, tried {times}, and again soon: {bound.error}"
    if bound.revision == revision:
        return f"{bound.binding}: written"
    return f"{bound.binding}: about to be written"


def _named(what: str | None, more: str | None) -> str | None:
    return f"{what or '-'} ({more})" if more else what


def _attempt_row(attempt: Attempt) -> tuple[str, ...]:
    return (
        str(attempt.number),
        attempt.status,
        attempt.cause or "",
        attempt.worker,
        str(attempt.fence),
        local_time(attempt.started_at),
        "" if attempt.ended_at is None else lasted(attempt.ended_at - attempt.started_at),
        _brief(attempt),
    )


def _deed_row(deed: Deed) -> tuple[str, ...]:
    return deed.verb, local_time(deed.at), deed.by or "-", cut(clean_line(deed.reason), LONGEST_ERROR)


def _brief(attempt: Attempt) -> str:
    """An error as a table has room for it; below the table, and in JSON, it stands whole."""
    return cut(clean_line(attempt.error or ""), LONGEST_ERROR)


def _arguments(job: JobView, registry: Registry | None) -> str | None:
    args, kwargs = views.shown_arguments(job, registry)
    shown = [_value(value) for value in args] + [f"{name}={_value(value)}" for name, value in kwargs.items()]
    return ", ".join(shown) or None


def _value(value: object) -> str:
    text = json.dumps(jsonable(value), ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}… ({len(text):,} characters)"


def _time(ms: int | None) -> str | None:
    return None if ms is None else local_time(ms)
