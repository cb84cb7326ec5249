"""Watch one job until it has ended: a line drawn over itself in a terminal, plain lines or JSON elsewhere."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable

import click

from ..app import Tenure
from ..lease.jobs import JobView
from ..scheduler.history import find_job
from ..scripts.errors import JobFailed
from ..scripts.states import State
from .output import cut, say
from .progress import Steps, describe, shown
from .register import say_unserved

PAUSE_S = 0.25
Json = Callable[[JobView], object]


def watch(app: Tenure, tenant: str, job_id: str, as_json: Json | None = None) -> None:
    """Show a job until it has ended; an archived one, once. Raises JobFailed unless it succeeded, NotFound."""
    ledger = app.ledger(tenant)
    show = _jsonl(as_json) if as_json else _drawn if sys.stdout.isatty() else _plain()
    try:
        job = find_job(ledger, app.archive, job_id)
        say_unserved(app, job)
        show(job)
        while not job.ended:
            time.sleep(PAUSE_S)
            job = ledger.get(job_id)
            show(job)
    except KeyboardInterrupt:
        say(f"\nno longer watched; job {job_id} goes on: tenure jobs watch {job_id}")
        raise
    if sys.stdout.isatty() and not as_json:
        click.echo()
    if job.status is not State.SUCCEEDED:
        error = f": {job.error.error}" if job.error else ""
        raise JobFailed(
            f"job {job.id} of {job.task} is {job.status} ({job.why_dead or job.reason or 'by hand'}){error}",
            hint=f"tenure jobs show {job.id}",
        )


def _drawn(job: JobView) -> None:
    columns = shutil.get_terminal_size().columns - 1
    text = cut(describe(job, columns), columns)
    click.echo(f"\r\x1b[2K{text}", nl=False)


def _plain() -> Callable[[JobView], None]:
    steps = Steps()

    def show(job: JobView) -> None:
        if steps.is_news(shown(job)):
            click.echo(describe(job))

    return show


def _jsonl(view: Json) -> Callable[[JobView], None]:
    """One object a line, each time something has changed."""
    last = -1

    def show(job: JobView) -> None:
        nonlocal last
        if job.revision != last:
            last = job.revision
            click.echo(json.dumps(view(job)))

    return show
