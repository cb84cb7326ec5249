"""`tenure status`: the server, the workers, and how many jobs there are."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import click
from rq.worker import BaseWorker

from ..api.plain import escaped, instant
from ..connection import ServerFacts
from ..lease.listing import pending_pools
from ..scripts.states import State
from .options import opened, output_option, tenant_option, warn
from .output import local_time, print_fields, print_json, print_table, say
from .register import live_workers, no_worker, unserved

Counts = dict[tuple[str, str], int]


@click.command()
@tenant_option
@output_option
def status(tenant: str, as_json: bool) -> None:
    """Show the server, the workers, and a tenant's jobs by state and task."""
    with opened() as app:
        warn(app)
        facts, ledger, known = app.store.facts, app.ledger(tenant), live_workers(app)
        counts, odd, workers = ledger.counts(), unserved(pending_pools(ledger), known), known or []
    for pool in odd:
        say(f"jobs of tenant {tenant} wait: {no_worker(pool)}")
    if as_json:
        print_json(
            {
                "server": _server(facts),
                "workers": [_worker(one) for one in workers],
                "tenant": tenant,
                "unservedPools": [escaped(pool) for pool in odd],
                "jobs": {state: _by_state(counts)[state] for state in State},
                "tasks": _by_task(counts),
            }
        )
    else:
        _print(tenant, facts, counts, workers)


def _print(tenant: str, facts: ServerFacts, counts: Counts, workers: list[BaseWorker]) -> None:
    by_state = _by_state(counts)
    cluster = ", cluster" if facts.cluster else ""
    print_fields(
        [
            ("server", f"{facts.product} {facts.version}, {facts.address}{cluster}"),
            ("durability", facts.durability),
            ("workers", len(workers) or "none"),
            ("tenant", tenant),
            ("jobs", ", ".join(f"{by_state[state]} {state}" for state in State if by_state[state]) or "none"),
        ]
    )
    if workers:
        click.echo()
        print_table(("WORKER", "STATE", "SEEN", "DONE", "FAILED", "POOLS"), map(_worker_row, workers))
    if counts:
        click.echo()
        states = [state for state in State if by_state[state]]
        rows = [
            (task, *(str(numbers.get(state, 0)) for state in states))
            for task, numbers in _by_task(counts).items()
        ]
        print_table(("TASK", *(state.upper() for state in states)), rows, stretch=0)


def _by_state(counts: Counts) -> Counter[str]:
    by_state: Counter[str] = Counter()
    for (_, state), number in counts.items():
        by_state[state] += number
    return by_state


def _by_task(counts: Counts) -> dict[str, dict[str, int]]:
    tasks: dict[str, dict[str, int]] = {}
    for (task, state), number in sorted(counts.items()):
        tasks.setdefault(task, {})[state] = number
    return tasks


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


def _worker(worker: BaseWorker) -> dict[str, object]:
    return {
        "name": escaped(worker.name),
        "state": escaped(worker.get_state()),
        "pools": [escaped(pool) for pool in worker.queue_names()],
        "succeeded": worker.successful_job_count,
        "failed": worker.failed_job_count,
        "startedAt": instant(_ms(worker.birth_date)),
        "seenAt": instant(_ms(worker.last_heartbeat)),
    }


def _worker_row(worker: BaseWorker) -> tuple[str, ...]:
    done, failed = str(worker.successful_job_count), str(worker.failed_job_count)
    seen = local_time(_ms(worker.last_heartbeat))
    return worker.name, worker.get_state(), seen, done, failed, ", ".join(worker.queue_names())


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)
