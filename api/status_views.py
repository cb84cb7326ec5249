"""What clients see of the runtime status. A null stands where there is no sample, or where not enough was looked at."""

from __future__ import annotations

from ..lease.hour import Ended, Waits
from ..lease.status import PoolStatus, RuntimeStatus, TaskStatus
from . import views
from .plain import Json, escaped, instant


def runtime_status(found: RuntimeStatus) -> Json:
    return {
        "tenant": found.tenant,
        "at": instant(found.read_at),
        "workers": {"live": found.workers_live, "seen": found.workers_seen},
        "slots": views.slots(found.slots),
        "inFlight": found.in_flight,
        "stuck": found.stuck,
        "stuckForMs": found.stuck_for_ms,
        "backlog": found.backlog,
        "behindKeys": found.behind_keys,
        "notDue": found.not_due,
        "oldestWaitMs": found.oldest_wait_ms,
        "waitMs": _waits(found.waits),
        "dead": found.dead,
        "lastClaimAt": instant(found.last_claim_at),
        **_ended(found.ended),
        "pools": {escaped(name): _pool(pool) for name, pool in found.pools.items()},
        "tasks": {escaped(name): _task_status(task) for name, task in found.tasks.items()},
        "lookedAt": found.looked_at,
        "complete": found.complete,
    }


def _pool(one: PoolStatus) -> Json:
    return {
        "workers": one.workers,
        "slots": views.slots(one.slots),
        "inFlight": one.in_flight,
        "stuck": one.stuck,
        "backlog": one.backlog,
        "behindKeys": one.behind_keys,
        "notDue": one.not_due,
        "oldestWaitMs": one.oldest_wait_ms,
        "waitMs": _waits(one.waits),
        "dead": one.dead,
        "lastClaimAt": instant(one.last_claim_at),
    }


def _task_status(one: TaskStatus) -> Json:
    return {
        "inFlight": one.in_flight,
        "stuck": one.stuck,
        "due": one.due,
        "notDue": one.not_due,
        "earliestDue": instant(one.earliest_due),
        "latestDue": instant(one.latest_due),
        "oldestWaitMs": one.oldest_wait_ms,
        "retrying": one.retrying,
        "dead": one.dead,
        "lastClaimAt": instant(one.last_claim_at),
        **_ended(one.ended),
    }


def _waits(found: Waits) -> Json:
    return {"p50": found.p50, "p95": found.p95, "p99": found.p99, "samples": found.count}


def _ended(found: Ended) -> Json:
    return {
        "failureRate": found.failure_rate,
        "meanDurationMs": found.mean_duration_ms,
        "attempts": {"ended": found.count, "failed": found.failed},
    }
