"""`tenure tenants`: the tenants, and the switch of each tenant's scheduling."""

from __future__ import annotations

from datetime import datetime

import click

from ..api.tenants import switch
from ..api.views import page
from ..lease.cursors import cut
from ..lease.instants import parse_instant
from ..lease.who import whoami
from ..scheduler.switch import Switch
from .job_list import say_more
from .options import opened, output_option
from .output import clean_line, local_time, print_fields, print_json, print_table
from .retention import retention

tenant_argument = click.argument("tenant", metavar="TENANT")
reason_option = click.option("--reason", default="", help="Kept with the switch.")


@click.group()
def tenants() -> None:
    """List tenants; disable and enable their scheduling; say how long their jobs stay."""


tenants.add_command(retention)


@tenants.command(name="list")
@click.option("--limit", type=click.IntRange(1, 100), default=50, show_default=True)
@click.option("--cursor", metavar="TENANT", help="Where the page before ended.")
@output_option
def list_(limit: int, cursor: str | None, as_json: bool) -> None:
    """List the tenants that ever had a job or a schedule, and whether their schedules fire."""
    with opened() as app:
        found, more = cut(app.tenants.switches(limit + 1, cursor), limit, lambda one: one.tenant)
    if as_json:
        print_json(page([switch(one) for one in found], more))
        return
    print_table(("TENANT", "SCHEDULING", "SINCE", "REASON"), map(_row, found), stretch=3)
    say_more(more)


@tenants.command()
@tenant_argument
@output_option
def show(tenant: str, as_json: bool) -> None:
    """Show how the switch of a tenant's scheduling stands."""
    with opened() as app:
        _print(app.tenants.scheduling(tenant), as_json)


@tenants.command(name="disable-scheduling")
@tenant_argument
@reason_option
@click.option("--until", metavar="INSTANT", help="Enabled again by itself then, like 2026-12-24T18:00:00Z.")
@output_option
def disable_scheduling(tenant: str, reason: str, until: str | None, as_json: bool) -> None:
    """Let nothing planned of a tenant fire. What comes due is recorded as skipped; jobs that run go on."""
    ends: datetime | None = None if until is None else parse_instant(until, what="--until")
    with opened() as app:
        _print(app.tenants.disable_scheduling(tenant, reason=reason, by=whoami(), until=ends), as_json)


@tenants.command(name="enable-scheduling")
@tenant_argument
@reason_option
@output_option
def enable_scheduling(tenant: str, reason: str, as_json: bool) -> None:
    """Let a tenant's schedules fire again from now on. What was skipped is not run."""
    with opened() as app:
        _print(app.tenants.enable_scheduling(tenant, reason=reason, by=whoami()), as_json)


def _row(found: Switch) -> tuple[str, str, str, str]:
    return found.tenant, _state(found), local_time(found.since), clean_line(found.trouble or found.reason)


def _state(found: Switch) -> str:
    return "unreadable" if found.trouble else "enabled" if found.enabled else "disabled"


def _print(found: Switch, as_json: bool) -> None:
    if as_json:
        print_json(switch(found))
        return
    print_fields(
        [
            ("tenant", found.tenant),
            ("scheduling", _state(found)),
            ("reason", clean_line(found.trouble or found.reason)),
            ("by", clean_line(found.by)),
            ("since", local_time(found.since)),
            ("until", local_time(found.until)),
        ]
    )
