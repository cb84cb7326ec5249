"""The runtime status of a tenant: what runs, what waits, what went wrong, at this moment and over the last hour.

From counters, bounds of sorted sets and the numbers of each minute; jobs are looked at only to tell which tasks wait,
and 1,000 of them at most. What was not looked at is said (`complete`) and never guessed: what is not known is None.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..scripts import Call
from ..scripts.errors import TenureError
from ..scripts.loader import Arg, texts
from ..scripts.states import State
from .hour import MINUTES, MINUTES_A_CALL, Ended, Hour, Waits, hour
from .ledger import Ledger
from .views import pairs
from .workers import Slots, WorkerView

LOOK = 1_000
"""How many jobs are looked at, of all pools together."""
LEAST_LOOK = 20


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """`backlog` is due and waits for a slot. Workers and their slots are of all tenants."""

    workers: int
    slots: Slots
    in_flight: int
    stuck: int
    backlog: int
    behind_keys: int
    not_due: int
    oldest_wait_ms: int | None
    waits: Waits
    dead: int
    last_claim_at: int | None

    @property
    def pending(self) -> int:
        return self.backlog + self.behind_keys + self.not_due


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """`due`, `not_due` and the due times are None where not enough jobs were looked at to know them."""

    in_flight: int
    stuck: int
    due: int | None
    not_due: int | None
    earliest_due: int | None
    latest_due: int | None
    oldest_wait_ms: int | None
    retrying: int
    """Those that wait for another attempt after one that failed; one that was lost comes again at once."""
    dead: int
    last_claim_at: int | None
    ended: Ended


@dataclass(frozen=True, slots=True)
class RuntimeStatus:
    """As of `read_at`, on the server's clock like all times here. `waits` and `ended` are of the last hour."""

    tenant: str
    read_at: int
    workers_live: int
    workers_seen: int
    slots: Slots
    in_flight: int
    stuck: int
    stuck_for_ms: int | None
    """Since the first of these leases ended; None without one."""
    backlog: int
    behind_keys: int
    not_due: int
    oldest_wait_ms: int | None
    waits: Waits
    dead: int
    last_claim_at: int | None
    ended: Ended
    pools: Mapping[str, PoolStatus]
    tasks: Mapping[str, TaskStatus]
    looked_at: int
    """How many pending jobs were looked at."""
    complete: bool
    """Whether these were all there are, and all stuck ones were looked at too."""

    @property
    def unserved(self) -> list[str]:
        """The pools with pending jobs that no live worker serves."""
        return [name for name, pool in self.pools.items() if pool.pending and not pool.workers]


def runtime_status(ledger: Ledger) -> RuntimeStatus:
    """The status of the ledger's tenant, in two round trips and one to the register of workers."""
    hours = [_hour_call(ledger, first) for first in range(0, MINUTES, MINUTES_A_CALL)]
    tenant, *sums = _all(ledger, [_tenant_call(ledger), *hours])
    look = max(LEAST_LOOK, LOOK // max(1, len(tenant.pools)))
    queues = _all(ledger, [_pool_call(ledger, pool, look) for pool in tenant.pools])
    workers = ledger.index.workers()
    return _status(
        ledger.tenant,
        tenant,
        dict(zip(tenant.pools, queues, strict=True)),
        hour(sums),
        workers,
    )


@dataclass(frozen=True, slots=True)
class _Tenant:
    """What `status.lua` answers."""

    now: int
    counts: Mapping[str, int]
    figures: Mapping[str, int]
    in_flight: int
    stuck: int
    stuck_since: int | None
    pools: list[str]
    stuck_tasks: Counter[str]
    stuck_pools: Counter[str]

    def count(self, task: str, state: State) -> int:
        return self.counts.get(f"{task}|{state}", 0)

    def named(self, figure: str) -> dict[str, int]:
        """A figure of all it is kept of."""
        found = ((*name.partition("|"), number) for name, number in self.figures.items())
        return {of: number for name, _, of, number in found if name == figure}


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Jobs of a task in a pool, as far as they were looked at."""

    due: int
    not_due: int
    earliest: int
    latest: int


@dataclass(frozen=True, slots=True)
class _Queue:
    """What `status_pool.lua` answers."""

    pending: int
    due: int
    behind: int
    oldest: int | None
    due_seen: int
    later_seen: int
    tasks: Mapping[str, _Waiting]

    @property
    def seen(self) -> int:
        return self.due_seen + self.later_seen


_EMPTY = _Queue(0, 0, 0, None, 0, 0, {})


def _all(ledger: Ledger, calls: Sequence[Call[Any]]) -> list[Any]:
    answers = ledger.scripts.run_all(calls)
    for answer in answers:
        if isinstance(answer, TenureError):
            raise answer
    return answers


def _tenant_call(ledger: Ledger) -> Call[_Tenant]:
    def read(reply: Any) -> _Tenant:
        now, counts, figures, in_flight, stuck, first_end, pools, odd = reply
        whose = texts(odd)
        return _Tenant(
            now=int(now),
            counts=_numbers(counts),
            figures=_numbers(figures),
            in_flight=int(in_flight),
            stuck=int(stuck),
            stuck_since=int(first_end) if int(stuck) else None,
            pools=sorted(texts(pools)),
            stuck_tasks=Counter(whose[::2]),
            stuck_pools=Counter(whose[1::2]),
        )

    return Call("status", ledger.keys.home, {"most": LOOK}, read)


def _pool_call(ledger: Ledger, pool: str, look: int) -> Call[_Queue]:
    def read(reply: Any) -> _Queue:
        pending, due, behind, oldest, due_seen, later_seen, *tasks = reply
        waiting = {task.decode(): _Waiting(*map(int, numbers)) for task, *numbers in tasks}
        return _Queue(
            int(pending),
            int(due),
            int(behind),
            int(oldest) if oldest else None,
            int(due_seen),
            int(later_seen),
            waiting,
        )

    args: dict[str, Arg] = {"pool": pool, "most": look}
    return Call("status_pool", ledger.keys.home, args, read)


def _hour_call(ledger: Ledger, first: int) -> Call[list[bytes]]:
    args: dict[str, Arg] = {"from": first, "many": min(MINUTES_A_CALL, MINUTES - first)}
    return Call("status_hour", ledger.keys.home, args, list)


def _numbers(flat: list[bytes]) -> dict[str, int]:
    return {name: int(number) for name, number in pairs(texts(flat))}


def _status(
    name: str, tenant: _Tenant, queues: Mapping[str, _Queue], hour: Hour, workers: Sequence[WorkerView]
) -> RuntimeStatus:
    live = [worker for worker in workers if worker.live]
    pools = _pools(tenant, queues, hour, live)
    complete = all(queue.seen == queue.pending for queue in queues.values())
    return RuntimeStatus(
        tenant=name,
        read_at=tenant.now,
        workers_live=len(live),
        workers_seen=len(workers),
        slots=sum((worker.slots for worker in live), Slots()),
        in_flight=tenant.in_flight,
        stuck=tenant.stuck,
        stuck_for_ms=_since(tenant.stuck_since, tenant.now),
        backlog=sum(pool.backlog for pool in pools.values()),
        behind_keys=sum(pool.behind_keys for pool in pools.values()),
        not_due=sum(pool.not_due for pool in pools.values()),
        oldest_wait_ms=max(
            (pool.oldest_wait_ms for pool in pools.values() if pool.oldest_wait_ms is not None), default=None
        ),
        waits=hour.all_waits,
        dead=sum(number for name, number in tenant.counts.items() if name.endswith(f"|{State.DEAD}")),
        last_claim_at=max(tenant.named("claim").values(), default=None),
        ended=hour.all_ended,
        pools=pools,
        tasks=_tasks(tenant, queues, hour),
        looked_at=sum(queue.seen for queue in queues.values()),
        complete=complete and tenant.stuck == tenant.stuck_tasks.total(),
    )


def _pools(
    tenant: _Tenant, queues: Mapping[str, _Queue], hour: Hour, live: Sequence[WorkerView]
) -> dict[str, PoolStatus]:
    running, dead, claims = (tenant.named(figure) for figure in ("running", "dead", "claim"))
    offered = {pool for worker in live for pool in worker.pools}
    found: dict[str, PoolStatus] = {}
    for name in sorted({*queues, *running, *dead, *claims, *hour.waits, *offered}):
        queue = queues.get(name, _EMPTY)
        found[name] = PoolStatus(
            workers=sum(worker.serves(name) for worker in live),
            slots=sum((worker.pools.get(name, Slots()) for worker in live), Slots()),
            in_flight=running.get(name, 0),
            stuck=tenant.stuck_pools[name],
            backlog=queue.due,
            behind_keys=queue.behind,
            not_due=queue.pending - queue.due - queue.behind,
            oldest_wait_ms=_since(queue.oldest, tenant.now),
            waits=hour.waits.get(name, Waits()),
            dead=dead.get(name, 0),
            last_claim_at=claims.get(name),
        )
    return found


def _tasks(tenant: _Tenant, queues: Mapping[str, _Queue], hour: Hour) -> dict[str, TaskStatus]:
    again, claims = tenant.named("again"), tenant.named("claimed")
    all_due_seen = all(queue.due_seen == queue.due + queue.behind for queue in queues.values())
    names = {name.rpartition("|")[0] for name in tenant.counts} | set(hour.ended)
    found: dict[str, TaskStatus] = {}
    for name in sorted(names):
        pending = tenant.count(name, State.PENDING)
        some = [queue.tasks[name] for queue in queues.values() if name in queue.tasks]
        due, not_due = sum(one.due for one in some), sum(one.not_due for one in some)
        all_seen = due + not_due >= pending
        earliest = min((one.earliest for one in some), default=None)
        due_known, earliest_known = all_seen or all_due_seen, all_seen or (all_due_seen and due > 0)
        found[name] = TaskStatus(
            in_flight=tenant.count(name, State.RUNNING),
            stuck=tenant.stuck_tasks[name],
            due=due if due_known else None,
            not_due=max(0, pending - due) if due_known else None,
            earliest_due=earliest if earliest_known else None,
            latest_due=max((one.latest for one in some), default=None) if all_seen else None,
            oldest_wait_ms=_since(earliest, tenant.now) if due and earliest_known else None,
            retrying=again.get(name, 0),
            dead=tenant.count(name, State.DEAD),
            last_claim_at=claims.get(name),
            ended=hour.ended.get(name, Ended()),
        )
    return found


def _since(instant: int | None, now: int) -> int | None:
    return None if instant is None else max(0, now - instant)
