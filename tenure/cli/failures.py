"""`tenure failures`: what went wrong, gathered."""

from __future__ import annotations

from collections.abc import Iterator

import click

from ..api.failure_views import failure_page
from ..lease.failures import BY, MOST_MEMBERS, FailureGroup
from .job_list import say_more
from .options import opened, output_option, tenant_option
from .output import clean_line, cut, local_time, print_json, print_table, say

LONGEST = 80
OPTIONS = {"reason": "--fingerprint", "type": "--type", "instance": "--instance", "trace": "--trace"}


@click.group()
def failures() -> None:
    """See what dead and failed jobs have in common."""


@failures.command(name="list")
@click.option("--by", type=click.Choice(BY), default="reason", show_default=True, help="What they share.")
@click.option("--key", help="Only this one: a fingerprint, a task, an instance, a trace.")
@click.option(
    "--members",
    type=click.IntRange(0, MOST_MEMBERS),
    default=3,
    show_default=True,
    help="Newest jobs of each.",
)
@click.option("--limit", type=click.IntRange(1, 100), default=50, show_default=True)
@click.option("--cursor", help="Where the page before ended.")
@tenant_option
@output_option
def list_(
    by: str, key: str | None, members: int, limit: int, cursor: str | None, tenant: str, as_json: bool
) -> None:
    """List dead and failed jobs by what they died of, by task, by instance or by trace."""
    with opened() as app:
        page = app.jobs.failures(by, key=key, limit=limit, cursor=cursor, members=members, tenant=tenant)
    if as_json:
        print_json(failure_page(page))
        return
    heads = ("COUNT", "FIRST SEEN", "LAST SEEN", by.upper(), *(("WHAT", "WHERE") if by == "reason" else ()))
    print_table(heads, map(_row, page.items), stretch=4 if by == "reason" else 3)
    if any(group.members for group in page.items):
        click.echo()
        print_table((by.upper(), "ID", "STATUS", "AT", "TASK", "ERROR"), _members(page.items))
    if page.scanned is not None:
        say(f"counted are the jobs of this page: {page.scanned:,} were looked at, the newest first")
    say_more(page.next_cursor)
    if page.items:
        say(f"to retry one of these: tenure replay preview {OPTIONS[by]} {page.items[0].key}")


def _row(group: FailureGroup) -> tuple[str, ...]:
    row = (str(group.count), local_time(group.first_seen), local_time(group.last_seen), group.key)
    if group.by != "reason":
        return row
    what = f"{group.exception}: {group.template or ''}" if group.exception else group.template or ""
    return (*row, clean_line(what), group.frame or "")


def _members(groups: list[FailureGroup]) -> Iterator[tuple[str, ...]]:
    for group in groups:
        for job in group.members:
            error = cut(clean_line(job.error), LONGEST)
            yield group.key, job.id, job.status, local_time(job.at), job.task, error
