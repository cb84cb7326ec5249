"""From a call as a user writes it to a job as the ledger makes it: every value is checked here, before the
store is asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, TypedDict, cast

from ..scripts.errors import BadInput
from ..scripts.fields import DEFAULTS
from ..scripts.keys import check_tenant
from ..scripts.loader import Arg
from .context import (
    WORKFLOW,
    Record,
    check_labels,
    check_record,
    check_source,
    check_text,
    check_trace,
    is_text,
    pack_labels,
    pack_record,
)
from .durations import LONGEST_MS, Duration, duration_ms
from .ledger import NewJob
from .limits import check_concurrency_key, check_concurrency_limit, check_exclusive, key_fields
from .origin import running_job
from .payload import digest, pack, pack_args
from .rates import packed_rate
from .tasks import Task, check_pool, check_priority

KEY_LIMIT = 1000
UNIQUE = ("kept", "active")


class JobOptions(TypedDict, total=False):
    """The options of `task.using(...)`, for type checkers; None is an option not given."""

    tenant: str
    idempotency_key: str | None
    idempotency_fields: Sequence[str] | None
    unique: str | None
    priority: int | None
    pool: str | None
    after: Duration | None
    at: datetime | None
    start_by: Duration | datetime | None
    timeout: Duration | None
    source: str | None
    trace: str | None
    instance: str | None
    node: str | None
    node_name: str | None
    definition: str | None
    definition_version: str | None
    execution: str | None
    work_item: str | None
    repeat_rule: str | None
    record: Record | None
    labels: dict[str, str] | None
    concurrency_key: str | None
    concurrency_limit: int | None
    exclusive: bool | None
    rate: str | None
    binding: str | None
    by: str | None


@dataclass(frozen=True, kw_only=True)
class Options:
    """How one request differs from its task's defaults. Raises BadInput for a value that breaks a rule."""

    tenant: str = "default"
    idempotency_key: str | None = None
    idempotency_fields: Sequence[str] | None = None
    unique: str | None = None
    priority: int | None = None
    pool: str | None = None
    after: Duration | None = None
    at: datetime | None = None
    start_by: Duration | datetime | None = None
    timeout: Duration | None = None
    source: str | None = None
    trace: str | None = None
    instance: str | None = None
    node: str | None = None
    node_name: str | None = None
    definition: str | None = None
    definition_version: str | None = None
    execution: str | None = None
    work_item: str | None = None
    repeat_rule: str | None = None
    record: Record | None = None
    labels: dict[str, str] | None = None
    concurrency_key: str | None = None
    concurrency_limit: int | None = None
    exclusive: bool | None = None
    rate: str | None = None
    binding: str | None = None
    by: str | None = None
    """For whom it is made, as a binding is asked; nothing keeps it."""

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            value = getattr(self, name)
            if value is not None or name == "tenant":
                check(value)

    @cached_property
    def row(self) -> dict[str, str]:
        """The fields that a job's row has by these options, whatever its task says."""
        timeout = None if self.timeout is None else duration_ms(self.timeout, what="timeout")
        fields = {
            "priority": _text(self.priority),
            "timeout": _text(timeout),
            "source": self.source,
            "trace": self.trace,
            **{name: getattr(self, name) for name in WORKFLOW},
            "record": pack_record(self.record) if self.record else "",
            "labels": pack_labels(self.labels) if self.labels else "",
            "start_by": _start_by(self),
            "binding": self.binding or "",
        }
        return {name: value for name, value in fields.items() if value}

    def but(self, **changes: Any) -> Options:
        for name in changes:
            if name not in _CHECKS:
                raise BadInput(
                    f"{name!r:.60} is not an option of a job", hint=f"the options are: {', '.join(_CHECKS)}"
                )
        return replace(self, **changes)


def new_job(task: Task, args: Sequence[Any], kwargs: Mapping[str, Any], options: Options) -> NewJob:
    """The job of one request. Raises BadInput or BadPayload naming the value and the rule."""
    bound_args, bound_kwargs = task.bind(tuple(args), dict(kwargs))
    _check_bound(task, options)
    return NewJob(
        task=task.key,
        args=pack_args(
            bound_args, bound_kwargs, what=f"the arguments of {task.key}", names=task.parameter_names
        ),
        pool=options.pool or task.pool,
        when=due(options.after, options.at),
        idempotency_key=_idempotency_key(task, args, kwargs, options),
        unique_mode=options.unique or ("active" if task.background else "kept"),
        fields={**_origin(), **row_fields(task, options)},
    )


def _check_bound(task: Task, options: Options) -> None:
    if options.binding is None:
        return
    if not task.background:
        raise BadInput(
            f"task {task.key} is no background task, so it is bound to no record",
            hint="register it with @app.background",
        )
    if options.record is None:
        raise BadInput(
            f"binding {options.binding!r} is given and no record",
            hint="record=('order', '4711') says which row it writes",
        )


def _origin() -> dict[str, Arg]:
    """What a job has of the job that makes it; its own options come before."""
    origin = running_job.get()
    if origin is None:
        return {}
    fields: dict[str, Arg] = {"source": "continuation", "trace": origin.trace, "parent": origin.job}
    lineage = origin.below()
    return {**fields, "lineage": lineage} if lineage else fields


def row_fields(task: Task, options: Options) -> dict[str, Arg]:
    """The fields of the job's row that differ from the defaults."""
    fields = task.row | options.row | key_fields(task, options)
    return {name: value for name, value in fields.items() if value != DEFAULTS.get(name)}


def edited_args(task: Task, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None) -> bytes | None:
    """Other arguments for a job of `task`: these replace all it has. None if none are given. Raises as `new_job`."""
    if args is None and kwargs is None:
        return None
    bound_args, bound_kwargs = task.bind(tuple(args or ()), dict(kwargs or {}))
    return pack_args(
        bound_args, bound_kwargs, what=f"the arguments of {task.key}", names=task.parameter_names
    )


def due(after: Duration | None, at: datetime | None) -> int | str | None:
    """A due time as the ledger takes it; None if neither is given."""
    if after is not None and at is not None:
        raise BadInput("after and at are both given: a job has one due time", hint="leave one out")
    if after is not None:
        return f"+{duration_ms(after, what='after')}"
    return None if at is None else epoch_ms(at, what="at")


def _text(number: int | None) -> str:
    return "" if number is None else str(number)


def _start_by(options: Options) -> str:
    """The latest start as the scripts take it: counted from when the job is made, or epoch ms."""
    limit = options.start_by
    if limit is None:
        return ""
    if isinstance(limit, datetime):
        late = (
            options.at is not None and options.at.tzinfo is not None and limit.tzinfo and limit <= options.at
        )
        start_by = str(epoch_ms(limit, what="start_by"))
    else:
        late = duration_ms(limit, what="start_by") <= duration_ms(options.after or 0, what="after")
        start_by = f"+{duration_ms(limit, what='start_by')}"
    if late:
        raise BadInput(
            f"start_by {limit!s:.60} is not after the time at which the job is due: it could never start",
            hint="allow more time, or leave it out",
        )
    return start_by


def epoch_ms(moment: datetime, *, what: str) -> int:
    """An instant in milliseconds. Raises BadInput for one without a time zone, or over ten years ahead."""
    if not isinstance(moment, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(
            f"{what} {moment!r:.60} is not a datetime",
            hint=f"{what}=datetime.fromisoformat('2027-01-31T09:00:00+01:00'); or after='5m', a time from now",
        )
    if moment.tzinfo is None:
        raise BadInput(f"{what} {moment} has no time zone", hint="use datetime.now(UTC) or a zoneinfo zone")
    ms = round(moment.timestamp() * 1000)
    if ms > time.time() * 1000 + LONGEST_MS:
        raise BadInput(
            f"{what} {moment} is out of range: at most ten years ahead",
            hint="use a schedule for what comes again",
        )
    return max(0, ms)


def _idempotency_key(
    task: Task, args: Sequence[Any], kwargs: Mapping[str, Any], options: Options
) -> str | None:
    key, fields = options.idempotency_key, options.idempotency_fields
    if key is not None and fields is not None:
        raise BadInput("idempotency_key and idempotency_fields are both given", hint="leave one out")
    if fields is not None:
        named = task.named(tuple(args), dict(kwargs))
        for name in fields or [""]:
            check_idempotency_field(task, name, named)
        chosen = pack([[name, named[name]] for name in sorted(set(fields))], what="idempotency fields")
        return f"{task.key}:{digest(chosen)}"
    return key


def check_idempotency_field(task: Task, name: str, named: Mapping[str, Any]) -> None:
    """Return if `name` is one of the arguments `named` of a call of `task`, else refuse it."""
    if name not in named:
        raise BadInput(
            f"idempotency field {name!r:.60} is not an argument of {task.key}",
            hint=f"its arguments are: {', '.join(named) or 'none'}",
        )


# -- the options, each with its rule ----------------------------------------------------------------------------------


def check_idempotency_key(key: object) -> None:
    """Return if `key` may be one, else refuse it."""
    if not is_text(key, 1, KEY_LIMIT):
        raise BadInput(
            f"idempotency key {key!r:.60} is not allowed: text of 1 to {KEY_LIMIT} bytes",
            hint="idempotency_key='rebuild:7'",
        )


def _check_fields(names: object) -> None:
    if not isinstance(names, (list, tuple)) or not all(
        isinstance(name, str) for name in cast("Sequence[object]", names)
    ):
        raise BadInput(
            f"idempotency_fields {names!r:.60} is not a list of argument names",
            hint="idempotency_fields=['customer_id']",
        )


def _check_unique(mode: object) -> None:
    if mode not in UNIQUE:
        raise BadInput(
            f"unique {mode!r:.40} is not a mode",
            hint="'kept' (until the job's row goes) or 'active' (until it ends)",
        )


def _check_at(moment: Any) -> None:
    epoch_ms(moment, what="at")


def _check_start_by(limit: Any) -> None:
    if isinstance(limit, datetime):
        epoch_ms(limit, what="start_by")
    else:
        duration_ms(limit, what="start_by")


def _check_duration(what: str, least_ms: int = 0) -> Callable[[Any], object]:
    return lambda value: duration_ms(value, what=what, least_ms=least_ms)


_CHECKS: Mapping[str, Callable[[Any], object]] = {
    "tenant": check_tenant,
    "idempotency_key": check_idempotency_key,
    "idempotency_fields": _check_fields,
    "unique": _check_unique,
    "priority": check_priority,
    "pool": check_pool,
    "after": _check_duration("after"),
    "at": _check_at,
    "start_by": _check_start_by,
    "timeout": _check_duration("timeout", 1),
    "source": check_source,
    "trace": check_trace,
    **{name: check_text(name) for name in WORKFLOW},
    "record": check_record,
    "labels": check_labels,
    "concurrency_key": check_concurrency_key,
    "concurrency_limit": check_concurrency_limit,
    "exclusive": check_exclusive,
    "rate": packed_rate,
    "binding": check_text("binding"),
    "by": check_text("by"),
}
