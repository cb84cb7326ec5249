"""`tenure status`: the server, the workers, what runs and waits, and what wants a look now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import click

from ..api import views
from ..api.plain import escaped
from ..api.status_views import runtime_status
from ..connection import ServerFacts
from ..lease.attention import alarms
from ..lease.durations import span
from ..lease.hour import Ended, Waits
from ..lease.status import PoolStatus, RuntimeStatus, TaskStatus
from ..lease.summary import Summary
from ..lease.workers import Slots, WorkerView
from ..scripts.states import State
from .options import opened, output_option, tenant_option, warn
from .output import ago, lasted, local_time, print_fields, print_json, print_table, say

POOLS = ("POOL", "SLOTS", "RUNNING", "STUCK", "DUE", "OLDEST", "LATER", "P95 WAIT", "DEAD", "CLAIMED")
TASKS = ("TASK", *POOLS[2:7], "RETRYING", "DEAD", "ENDED", "FAILED", "MEAN", "CLAIMED")
WORKERS = ("WORKER", "STATE", "SLOTS", "SEEN", "STARTED", "DONE", "FAILED", "POOLS")


@click.command()
@tenant_option
@output_option
def status(tenant: str, as_json: bool) -> None:
    """Show the server, the workers, what runs and waits of a tenant, and the last hour.

    What wants a look comes first, each with the command that goes on from there. In the tables "-" is none, and "?" is
    what was not looked at because too many jobs wait.
    """
    with opened() as app:
        warn(app)
        facts, found, summary = app.store.facts, app.jobs.status(tenant), app.jobs.summary(tenant)
        workers = app.ledgers().index.workers()
    for alarm in alarms(found):
        say(f"! {alarm.text}: {alarm.do}")
    if as_json:
        print_json(
            {
                **runtime_status(found),
                "server": _server(facts),
                "jobs": dict(summary.states),
                "unservedPools": [escaped(pool) for pool in found.unserved],
                "attention": [{"text": escaped(one.text), "do": escaped(one.do)} for one in alarms(found)],
                "workerList": [views.worker(one) for one in workers],
            }
        )
    else:
        _print(facts, found, summary, [one for one in workers if one.live])


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


def _print(facts: ServerFacts, found: RuntimeStatus, summary: Summary, workers: Sequence[WorkerView]) -> None:
    print_fields(_fields(facts, found, summary))
    now = found.read_at
    if found.pools:
        _table(POOLS, [_pool_row(name, pool, now) for name, pool in found.pools.items()], 0)
    if found.tasks:
        _table(TASKS, [_task_row(name, task, now) for name, task in found.tasks.items()], 0)
    if workers:
        _table(WORKERS, [_worker_row(worker, now) for worker in workers], -1)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], stretch: int) -> None:
    click.echo()
    print_table(heads, rows, stretch=stretch)


def _fields(
    facts: ServerFacts, found: RuntimeStatus, summary: Summary
) -> Iterator[tuple[str, str | int | None]]:
    cluster = ", cluster" if facts.cluster else ""
    yield "tenant", f"{found.tenant}, at {local_time(found.read_at)}"
    yield "server", f"{facts.product} {facts.version}, {facts.address}{cluster}"
    yield "durability", facts.durability
    yield "workers", f"{found.workers_live or 'none'} live, {found.workers_seen} seen in 10 minutes"
    yield "slots", f"{_slots(found.slots)} used"
    yield "running", f"{found.in_flight}, {found.stuck or 'none'} stuck{_since(found.stuck_for_ms)}"
    yield "backlog", _backlog(found)
    yield "last claim", None if found.last_claim_at is None else ago(found.last_claim_at, found.read_at)
    yield "waits", _waits(found.waits)
    yield "attempts", _ended(found.ended)
    yield "jobs", _states(summary.states)
    if not found.complete:
        yield "looked at", f"{found.looked_at:,} pending jobs; what tasks the others are of is not known"


def _backlog(found: RuntimeStatus) -> str:
    oldest = "" if found.oldest_wait_ms is None else f", the oldest for {lasted(found.oldest_wait_ms)}"
    behind = f", {found.behind_keys} behind concurrency keys" if found.behind_keys else ""
    return f"{found.backlog or 'none'} due{oldest}; {found.not_due or 'none'} for later{behind}"


def _waits(waits: Waits) -> str | None:
    if waits.p50 is None or waits.p95 is None or waits.p99 is None:
        return None
    shares = f"P50 {lasted(waits.p50)}, P95 {lasted(waits.p95)}, P99 {lasted(waits.p99)}"
    return f"{shares}, of {waits.count:,} starts in the last hour"


def _ended(ended: Ended) -> str:
    if ended.mean_duration_ms is None:
        return "none ended in the last hour"
    return (
        f"{ended.count:,} ended in the last hour, {_rate(ended)} failed; they took {lasted(ended.mean_duration_ms)}"
        " on average"
    )


def _states(states: Mapping[State, int]) -> str:
    return ", ".join(f"{number:,} {state}" for state, number in states.items() if number) or "none"


def _pool_row(name: str, pool: PoolStatus, now: int) -> tuple[str, ...]:
    return (
        name,
        _slots(pool.slots) if pool.workers else "none",
        _number(pool.in_flight),
        _number(pool.stuck),
        _number(pool.backlog),
        _time(pool.oldest_wait_ms),
        _number(pool.not_due),
        _time(pool.waits.p95),
        _number(pool.dead),
        _past(pool.last_claim_at, now),
    )


def _task_row(name: str, task: TaskStatus, now: int) -> tuple[str, ...]:
    return (
        name,
        _number(task.in_flight),
        _number(task.stuck),
        _number(task.due),
        "?" if task.due is None else _time(task.oldest_wait_ms),
        _number(task.not_due),
        _number(task.retrying),
        _number(task.dead),
        _number(task.ended.count),
        _rate(task.ended) if task.ended.count else "-",
        _time(task.ended.mean_duration_ms),
        _past(task.last_claim_at, now),
    )


def _worker_row(worker: WorkerView, now: int) -> tuple[str, ...]:
    return (
        worker.name,
        worker.state,
        _slots(worker.slots),
        ago(worker.seen_at, now),
        ago(worker.started_at, now),
        str(worker.succeeded),
        str(worker.failed),
        ", ".join(worker.pools),
    )


def _slots(slots: Slots) -> str:
    return f"{slots.used} of {slots.offered}"


def _since(ms: int | None) -> str:
    return "" if ms is None else f", the first for {span(ms)}"


def _number(number: int | None) -> str:
    return "?" if number is None else f"{number:,}" if number else "-"


def _time(ms: int | None) -> str:
    return "-" if ms is None else lasted(ms)


def _past(instant: int | None, now: int) -> str:
    return "-" if instant is None else ago(instant, now)


def _rate(ended: Ended) -> str:
    return f"{100 * (ended.failure_rate or 0):.1f} %"
