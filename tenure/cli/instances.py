"""`tenure instances`: suspend a workflow instance of the user's own, resume it, end it, see how it stands."""

from __future__ import annotations

import click

from ..api import views
from ..lease.instance_view import InstanceView
from .options import opened, output_option, tenant_option
from .output import clean_line, local_time, print_fields, print_json, print_table, say

instance_argument = click.argument("instance", metavar="INSTANCE")
reason_option = click.option("--reason", default="", help="Kept with the instance and its jobs.")


@click.group()
def instances() -> None:
    """Suspend, resume and end workflow instances, to which jobs belong by `instance=...`."""


@instances.command()
@instance_argument
@reason_option
@tenant_option
@output_option
def pause(instance: str, reason: str, tenant: str, as_json: bool) -> None:
    """Suspend it: jobs of its pausable tasks pause, and keep the time they have left."""
    with opened() as app:
        _print(app.instances.pause(instance, reason, tenant), as_json)


@instances.command()
@instance_argument
@reason_option
@tenant_option
@output_option
def resume(instance: str, reason: str, tenant: str, as_json: bool) -> None:
    """Let a suspended instance go on."""
    with opened() as app:
        _print(app.instances.resume(instance, reason, tenant), as_json)


@instances.command()
@instance_argument
@reason_option
@tenant_option
@output_option
def end(instance: str, reason: str, tenant: str, as_json: bool) -> None:
    """End it for good: unfinished jobs of its tasks that are cleared on end are canceled, others go on."""
    with opened() as app:
        _print(app.instances.end(instance, reason, tenant), as_json)


@instances.command()
@instance_argument
@tenant_option
@output_option
def show(instance: str, tenant: str, as_json: bool) -> None:
    """Show how it stands, and its jobs by state."""
    with opened() as app:
        found = app.instances.get(instance, tenant)
    if as_json:
        print_json(views.instance(found))
        return
    flag = found.flag
    fields = [("instance", found.id), ("state", str(flag.state)), ("since", local_time(flag.since))]
    print_fields([*fields, ("by", flag.by), ("reason", flag.reason), ("jobs", found.jobs)])
    if found.states:
        click.echo()
        print_table(("STATE", "JOBS"), [(state, str(number)) for state, number in found.states.items()])


def _print(found: InstanceView, as_json: bool) -> None:
    if as_json:
        print_json(views.instance(found))
        return
    told = ", ".join(f"{number} {state}" for state, number in found.states.items())
    jobs = f"its jobs: {told}" if told else "no job of it is known here"
    click.echo(clean_line(f"{found.id} is {found.flag.state}; {jobs}"))
    if not told:
        say(
            "what was said holds for jobs that are made for it later; look at its name, if there should be some"
        )
