"""`tenure status`: the server, the workers, and how many jobs there are."""

from __future__ import annotations

import click

from ..api import views
from ..api.plain import escaped
from ..connection import ServerFacts
from ..lease.listing import pending_pools
from ..lease.summary import Summary
from ..lease.workers import WorkerView, unserved
from .options import opened, output_option, tenant_option, warn
from .output import local_time, print_fields, print_json, print_table, say
from .register import no_worker


@click.command()
@tenant_option
@output_option
def status(tenant: str, as_json: bool) -> None:
    """Show the server, the workers, and a tenant's jobs by state and task."""
    with opened() as app:
        warn(app)
        facts, summary, workers = app.store.facts, app.jobs.summary(tenant), app.ledgers().index.workers()
        odd = unserved(pending_pools(app.ledger(tenant)), workers)
    for pool in odd:
        say(f"jobs of tenant {tenant} wait: {no_worker(pool)}")
    if as_json:
        print_json(
            {
                "server": _server(facts),
                "workers": [views.worker(one) for one in workers],
                "tenant": tenant,
                "unservedPools": [escaped(pool) for pool in odd],
                "jobs": dict(summary.states),
                "tasks": views.summary(summary)["tasks"],
            }
        )
    else:
        _print(facts, summary, [one for one in workers if one.live])


def _print(facts: ServerFacts, summary: Summary, workers: list[WorkerView]) -> None:
    present = [state for state, number in summary.states.items() if number]
    cluster = ", cluster" if facts.cluster else ""
    print_fields(
        [
            ("server", f"{facts.product} {facts.version}, {facts.address}{cluster}"),
            ("durability", facts.durability),
            ("workers", len(workers) or "none"),
            ("tenant", summary.tenant),
            ("jobs", ", ".join(f"{summary.states[state]} {state}" for state in present) or "none"),
        ]
    )
    if workers:
        click.echo()
        print_table(("WORKER", "STATE", "SEEN", "DONE", "FAILED", "POOLS"), map(_worker_row, workers))
    if present:
        click.echo()
        rows = [
            (task, *(str(numbers.get(state, 0)) for state in present))
            for task, numbers in summary.tasks.items()
        ]
        print_table(("TASK", *(state.upper() for state in present)), rows, stretch=0)


def _server(facts: ServerFacts) -> dict[str, object]:
    return {
        "address": facts.address,
        "product": facts.product,
        "version": facts.version,
        "durability": facts.durability,
        "declared": facts.declared,
        "cluster": facts.cluster,
        "warnings": list(facts.warnings),
    }


def _worker_row(worker: WorkerView) -> tuple[str, ...]:
    done, failed = str(worker.succeeded), str(worker.failed)
    return worker.name, worker.state, local_time(worker.seen_at), done, failed, ", ".join(worker.pools)
