"""`tenure why`: what stands between a job and its start, and what to do about it."""

from __future__ import annotations

import click

from ..api import views
from ..lease.ids import is_id
from ..lease.instants import parse_instant
from ..scripts.errors import BadInput
from .options import opened, output_option, tenant_option
from .output import clean_line, local_time, print_fields, print_json, print_table


@click.command()
@click.argument("subject", metavar="[ID|JOBKEY]", required=False)
@click.option(
    "--at", metavar="INSTANT", help="Of a schedule: at this planned instant, like 2026-12-24T18:00:00Z."
)
@click.option("--instance", help="Of a workflow instance, in place of a job.")
@click.option("--node", help="Of a node of that instance: of its newest unfinished job.")
@tenant_option
@output_option
def why(
    subject: str | None, at: str | None, instance: str | None, node: str | None, tenant: str, as_json: bool
) -> None:
    """Say why the job ID does not run now, as the claim itself judges it, and what would change that.

    Of a schedule: why it did or did not fire at an instant, or when it fires next.

    With --instance: how that stands, and what its jobs wait for.
    """
    if (subject is None) == (instance is None) or (node is not None and instance is None):
        raise BadInput(
            "why of what? It takes the ID of a job, the JOBKEY of a schedule, or --instance INSTANCE",
            hint="tenure why ID, tenure why reports.daily --at 2026-12-24T18:00:00Z, tenure why --instance order-7",
        )
    with opened() as app:
        if instance is not None:
            found = app.instances.why(instance, node, tenant)
        elif subject is not None and is_id(subject):
            found = app.jobs.why(subject, tenant)
        else:
            instant = None if at is None else parse_instant(at, what="--at")
            found = app.schedules.why(subject or "", at=instant, tenant=tenant)
    if as_json:
        print_json(views.why(found))
        return
    click.echo(clean_line(found.text))
    click.echo()
    fields = [("verdict", found.verdict), ("since", local_time(found.since)), ("by", found.by)]
    print_fields([*fields, ("until", None if found.next is None else local_time(found.next))])
    click.echo()
    print_table(("CHECK", "STATE", "SAYS"), [(one.name, one.state, one.text) for one in found.checks])
    if found.do:
        click.echo("\nwhat you can do")
    for command in found.do:
        click.echo(f"  {clean_line(command)}")
