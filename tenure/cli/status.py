"""`tenure status`: the server, the workers, and how many jobs there are."""

from __future__ import annotations

from collections import Counter

import click

from ..scripts.states import State
from .options import opened, output_option, tenant_option, warn
from .output import print_fields, print_json, print_table


@click.command()
@tenant_option
@output_option
def status(tenant: str, as_json: bool) -> None:
    """Show the server, the workers, and a tenant's jobs by state and task."""
    with opened() as app:
        warn(app)
        facts = app.store.facts
        counts = app.ledger(tenant).counts()
    by_state: Counter[str] = Counter()
    for (_, state), number in counts.items():
        by_state[state] += number
    if as_json:
        print_json(
            {
                "server": {
                    "address": facts.address,
                    "product": facts.product,
                    "version": facts.version,
                    "durability": facts.durability,
                    "cluster": facts.cluster,
                    "warnings": list(facts.warnings),
                },
                "tenant": tenant,
                "jobs": {state: by_state[state] for state in State},
                "tasks": _by_task(counts),
            }
        )
        return
    print_fields(
        [
            (
                "server",
                f"{facts.product} {facts.version}, {facts.address}{', cluster' if facts.cluster else ''}",
            ),
            ("durability", facts.durability),
            ("tenant", tenant),
            ("jobs", ", ".join(f"{by_state[state]} {state}" for state in State if by_state[state]) or "none"),
        ]
    )
    if counts:
        click.echo()
        states = [state for state in State if by_state[state]]
        rows = [
            (task, *(str(numbers.get(state, 0)) for state in states))
            for task, numbers in _by_task(counts).items()
        ]
        print_table(("TASK", *(state.upper() for state in states)), rows, stretch=0)


def _by_task(counts: dict[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    tasks: dict[str, dict[str, int]] = {}
    for (task, state), number in sorted(counts.items()):
        tasks.setdefault(task, {})[state] = number
    return tasks
