"""`tenure tenants retention`: how long the jobs of a tenant stay."""

from __future__ import annotations

import click

from ..api import views
from ..lease.durations import Duration, duration_ms, span
from ..lease.retention import Keep
from ..scripts.errors import BadInput
from .options import opened, output_option
from .output import print_json, print_table


def _kept(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> dict[str, Keep | Duration]:
    found: dict[str, Keep | Duration] = {}
    for value in values:
        state, _, keep = value.partition("=")
        after, _, most = keep.partition(",")
        if not after or (most and not most.isdecimal()):
            raise BadInput(
                f"{value!r:.60} is no STATE=AFTER or STATE=AFTER,NUMBER", hint="--keep dead=90d,5000"
            )
        found[state] = Keep(_ms(after), int(most)) if most else after
    return found


def _ms(after: str) -> int | None:
    return None if after == "forever" else duration_ms(after, what="retention", least_ms=1)


@click.command()
@click.argument("tenant", metavar="TENANT")
@click.option(
    "--keep",
    metavar="STATE=AFTER[,NUMBER]",
    multiple=True,
    callback=_kept,
    help="dead=90d, succeeded=7d,1000000, failed=forever, canceled=default; again for more.",
)
@output_option
def retention(tenant: str, keep: dict[str, Keep | Duration], as_json: bool) -> None:
    """Show how long jobs stay after they came to rest, and how many at most; with --keep, change it."""
    with opened() as app:
        found = app.tenants.keep(tenant, **keep) if keep else app.tenants.retention(tenant)
    if as_json:
        print_json(views.retention(found))
        return
    rows = [
        (
            state,
            "forever" if kept.after_ms is None else span(kept.after_ms),
            "any number" if kept.most is None else f"{kept.most:,}",
        )
        for state, kept in found.items()
    ]
    print_table(("STATE", "STAYS", "AT MOST"), rows)
