"""`tenure why`: what stands between a job and its start, and what to do about it."""

from __future__ import annotations

import click

from ..api import views
from ..lease.ids import is_id
from ..scripts.errors import BadInput
from .options import opened, output_option, tenant_option
from .output import clean_line, local_time, print_fields, print_json, print_table


@click.command()
@click.argument("subject", metavar="[ID]", required=False)
@click.option("--instance", help="Of a workflow instance, in place of a job.")
@click.option("--node", help="Of a node of that instance: of its newest unfinished job.")
@tenant_option
@output_option
def why(subject: str | None, instance: str | None, node: str | None, tenant: str, as_json: bool) -> None:
    """Say why the job ID does not run now, as the claim itself judges it, and what would change that.

    With --instance: how that stands, and what its jobs wait for.
    """
    if (subject is None) == (instance is None) or (node is not None and instance is None):
        raise BadInput(
            "why of what? It takes the ID of a job, or --instance INSTANCE, perhaps with --node NODE",
            hint="tenure why ID, or tenure why --instance order-7",
        )
    with opened() as app:
        if instance is not None:
            found = app.instances.why(instance, node, tenant)
        else:
            found = app.jobs.why(_job_id(subject or ""), tenant)
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


def _job_id(subject: str) -> str:
    if not is_id(subject):
        raise BadInput(
            f"{subject!r:.60} is not the id of a job",
            hint="tenure jobs list; for a schedule: tenure cron show; for an instance: tenure why --instance",
        )
    return subject
