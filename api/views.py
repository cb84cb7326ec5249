"""What clients see of jobs and background tasks: pure functions from the ledger's views to JSON.

A null stands where there is nothing (yet). Times are RFC 3339 in UTC; bytes, NaN and infinities come as
`plain.jsonable` has them; messages and log lines have their control characters written out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from ..lease.chain import Chain, Link
from ..lease.instance_view import InstanceView
from ..lease.jobs import Attempt, Deed, JobView, Page
from ..lease.payload import unpack_args
from ..lease.redaction import masked_arguments, masked_names
from ..lease.retention import Keep
from ..lease.summary import Summary
from ..lease.tasks import Registry, Task
from ..lease.why import Why
from ..lease.workers import Slots, WorkerView
from ..scripts.states import Cause, State
from .plain import Json, escaped, instant, jsonable
from .progress import eta, percent

_WITH_A_TYPE = (Cause.RAISED, Cause.REFUSED, Cause.TOO_LARGE, Cause.LIMIT)
_RAISED = re.compile(r"([A-Za-z_]\w*)(?:: (.*))?", re.DOTALL)


def page(items: Sequence[Json], next_cursor: str | None) -> Json:
    """One page of a list."""
    return {"items": items, "nextCursor": next_cursor, "hasMore": next_cursor is not None}


def jobs_page(found: Page, view: Callable[[JobView], Json]) -> Json:
    """One page of jobs; `scanned` is how many were looked at, so a short page explains itself, `redisOnly` whether an
    archive was left out.
    """
    items = page([view(one) for one in found.items], found.next_cursor)
    return {**items, "scanned": found.scanned, "redisOnly": found.redis_only}


def background_task(view: JobView, *, log: bool = True) -> Json:
    """A background task; without `log` (as in lists) its log is null."""
    progress = view.progress
    return {
        "id": view.id,
        "tenant": view.tenant,
        "task": view.task,
        "status": view.status,
        "deadReason": view.why_dead,
        "stage": escaped(progress.stage) if progress and progress.stage else None,
        "done": progress.done if progress else None,
        "doing": progress.doing if progress else None,
        "total": progress.total if progress else None,
        "unit": progress.unit if progress else None,
        "percent": percent(view),
        "message": escaped(progress.message) if progress else "",
        "warnings": progress.warnings if progress else 0,
        "chunk": view.chunk,
        "attempt": view.attempts[-1].number if view.attempts else 0,
        "eta": eta(view),
        "record": record(view),
        "binding": binding(view),
        "log": log_lines(view) if log else None,
        "error": error(view),
        "result": result(view),
        "createdAt": instant(view.created_at),
        "startedAt": instant(view.started_at),
        "updatedAt": instant(progress.updated_at) if progress else None,
        "finishedAt": instant(view.finished_at),
        "revision": view.revision,
    }


def log_lines(view: JobView) -> list[Json]:
    lines = view.progress.lines if view.progress else ()
    return [{"n": number, "at": instant(ms), "text": escaped(text)} for number, ms, text in lines]


def result(view: JobView) -> object:
    """What it returned, without what stands under the name of a secret."""
    return jsonable(masked_names(view.value))


def error(view: JobView) -> Json | None:
    """The newest error; None for a job that succeeded in the end."""
    failed = view.error
    if failed is None or view.status is State.SUCCEEDED:
        return None
    return {**error_of(failed), "attempt": failed.number}


def error_of(attempt: Attempt) -> Json:
    """An attempt's error; `type` is the class of what was raised, or our code; null when there is none."""
    summary = attempt.error or ""
    raised = _RAISED.fullmatch(summary) if attempt.cause in _WITH_A_TYPE else None
    kind, message = (raised[1], raised[2] or "") if raised else (None, summary)
    return {"type": kind, "message": escaped(message, lines=True)}


def binding(view: JobView) -> Json | None:
    """How its business row follows: `written` to the revision shown, `behind`, `failing` (`error` says why), or
    `superseded` by a later task of the same record.
    """
    bound = view.bound
    if bound is None:
        return None
    if bound.superseded:
        state = "superseded"
    elif bound.error is not None:
        state = "failing"
    else:
        state = "written" if bound.revision == view.revision else "behind"
    return {
        "name": bound.binding,
        "state": state,
        "error": None if bound.error is None else escaped(bound.error),
        "tries": bound.tries,
        "writtenAt": instant(bound.written_at),
    }


def record(view: JobView) -> Json | None:
    return {"type": view.record[0], "id": view.record[1]} if view.record else None


def job(view: JobView, registry: Registry | None = None) -> Json:
    """A job; secrets among its arguments are masked, positional ones too if the `registry` has its task."""
    args, kwargs = shown_arguments(view, registry)
    return {
        "id": view.id,
        "tenant": view.tenant,
        "task": view.task,
        "source": view.source,
        "status": view.status,
        "deadReason": view.why_dead,
        "fingerprint": view.fingerprint,
        "confirmed": view.confirmed,
        "pool": view.pool,
        "priority": view.priority,
        "runAt": instant(view.run_at),
        "startBy": instant(view.start_by),
        "createdAt": instant(view.created_at),
        "startedAt": instant(view.started_at),
        "finishedAt": instant(view.finished_at),
        "generation": view.generation,
        "fence": view.fence,
        "leaseUntil": instant(view.lease_until),
        "worker": view.worker,
        "timeoutMs": view.timeout_ms,
        "attempts": {
            "counted": view.failures,
            "max": view.max_attempts,
            "lost": view.losses,
            "maxLost": view.max_lost,
        },
        "args": jsonable(args),
        "kwargs": jsonable(kwargs),
        "result": result(view),
        "error": error(view),
        "traceId": view.trace,
        "parentId": view.parent,
        "instanceId": view.instance,
        "remainingMs": view.remaining_ms,
        "nodeId": view.node,
        "nodeName": view.node_name,
        "definitionId": view.definition,
        "definitionVersion": view.definition_version,
        "executionId": view.execution,
        "workItemId": view.work_item,
        "repeatRule": view.repeat_rule,
        "record": record(view),
        "labels": dict(view.labels),
        "idempotencyKey": view.idempotency_key,
        "concurrencyKey": view.concurrency_key,
        "exclusive": view.exclusive,
        "operationKey": view.operation_key,
        "revision": view.revision,
    }


def shown_arguments(
    view: JobView, registry: Registry | None = None
) -> tuple[list[object], dict[str, object]]:
    """A job's arguments as they may be shown."""
    args, kwargs = unpack_args(view.args)
    known = registry is not None and view.task in registry
    return masked_arguments(
        args, kwargs, registry.get(view.task).parameter_names if known and registry else ()
    )


def chain(found: Chain) -> Json:
    """A chain as a tree from its top: each job before those it has made, `depth` steps below the beginning."""
    return {
        "traceId": found.trace,
        **page([_link(link) for link in found.links], found.next_cursor),
        "truncated": found.next_cursor is not None,
    }


def _link(link: Link) -> Json:
    view = link.job
    return {
        "id": view.id,
        "depth": link.depth,
        "parentId": view.parent,
        "children": list(link.children),
        "task": view.task,
        "source": view.source,
        "status": view.status,
        "deadReason": view.why_dead,
        "createdAt": instant(view.created_at),
        "startedAt": instant(view.started_at),
        "finishedAt": instant(view.finished_at),
        "attempts": len(view.attempts),
        "error": error(view),
        "instanceId": view.instance,
        "nodeId": view.node,
        "record": record(view),
        "labels": dict(view.labels),
    }


def job_with_attempts(view: JobView, registry: Registry | None = None) -> Json:
    attempts = [attempt(one) for one in view.attempts]
    return {
        **job(view, registry),
        "attemptList": attempts,
        "effects": None,
        "history": [deed(one) for one in view.history],
    }


def deed(one: Deed) -> Json:
    """What a person did to a job."""
    return {
        "revision": one.revision,
        "at": instant(one.at),
        "verb": one.verb,
        "by": None if one.by is None else escaped(one.by),
        "reason": escaped(one.reason, lines=True) or None,
    }


def attempt(one: Attempt) -> Json:
    return {
        "number": one.number,
        "generation": one.generation,
        "status": one.status,
        "cause": one.cause,
        "chunk": one.chunks,
        "fence": one.fence,
        "worker": one.worker,
        "startedAt": instant(one.started_at),
        "endedAt": instant(one.ended_at),
        "durationMs": None if one.ended_at is None else one.ended_at - one.started_at,
        "error": error_of(one) if one.error else None,
        "limitCode": one.limit,
        "callPath": list(one.call_path),
        "request": None if one.request is None else escaped(one.request, lines=True),
        "response": None if one.response is None else escaped(one.response, lines=True),
    }


def why(found: Why) -> Json:
    return {
        "subject": found.subject,
        "verdict": found.verdict,
        "since": instant(found.since),
        "by": found.by,
        "text": escaped(found.text),
        "checks": [{"name": one.name, "state": one.state, "text": escaped(one.text)} for one in found.checks],
        "next": instant(found.next),
        "do": list(found.do),
    }


def summary(found: Summary) -> Json:
    return {
        "tenant": found.tenant,
        "total": found.total,
        "states": dict(found.states),
        "tasks": {escaped(task): dict(states) for task, states in found.tasks.items()},
    }


def instance(view: InstanceView) -> Json:
    flag = view.flag
    return {
        "id": view.id,
        "tenant": view.tenant,
        "state": flag.state,
        "since": instant(flag.since),
        "by": None if flag.by is None else escaped(flag.by),
        "reason": None if flag.reason is None else escaped(flag.reason),
        "walking": flag.walking,
        "jobs": view.jobs,
        "states": dict(view.states),
        "nextDueAt": instant(view.next_due),
    }


def task(one: Task) -> Json:
    return {
        "task": one.key,
        "aliases": list(one.aliases),
        "pool": one.pool,
        "priority": one.priority,
        "timeoutMs": one.timeout_ms,
        "maxAttempts": one.retry.max_attempts,
        "background": one.background,
        "startable": one.background and one.startable,
        "pausable": one.pausable,
        "clearedOnEnd": one.cleared_on_end,
    }


def worker(one: WorkerView) -> Json:
    return {
        "name": escaped(one.name),
        "host": escaped(one.host),
        "pid": one.pid,
        "version": escaped(one.version),
        "state": escaped(one.state),
        "live": one.live,
        "slots": slots(one.slots),
        "pools": {escaped(pool): slots(share) for pool, share in one.pools.items()},
        "tasks": one.tasks,
        "succeeded": one.succeeded,
        "failed": one.failed,
        "startedAt": instant(one.started_at),
        "seenAt": instant(one.seen_at),
        "lastClaimAt": instant(one.last_claim_at),
    }


def slots(share: Slots) -> Json:
    return {"used": share.used, "offered": share.offered}


def retention(kept: Mapping[State, Keep]) -> Json:
    return {state: {"afterMs": keep.after_ms, "most": keep.most} for state, keep in kept.items()}
