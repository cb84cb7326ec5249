"""What the ledger gives back: leases to those who work, job views to those who look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..scripts.states import ENDED, Cause, State
from .budgets import Limit, limit_of, path_of
from .context import Record
from .instance_view import InstanceFlag
from .payload import unpack

DUE, REAP, FIRE = "due:", "reap", "fire"
"""Queues of the tenant index: of each pool `due:POOL`, of expired leases, of triggers."""
BINDINGS = DUE + "@bindings"
"""The queue of the tenant index in which tenants stand whose business rows are behind."""


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The answer to an enqueue; `created` is False when the idempotency key already had a job."""

    id: str
    created: bool


@dataclass(frozen=True, slots=True)
class News:
    """What the tenant index has to hear: a queue of a tenant wants a visit at `due_ms` (None: not at all)."""

    tenant: str
    queue: str
    due_ms: int | None
    version: int

    @property
    def is_due(self) -> bool:
        """Whether it wanted the visit when this was said: the version is the server's clock, in microseconds."""
        return self.due_ms is not None and self.due_ms * 1000 <= self.version


@dataclass(frozen=True, slots=True)
class Lease:
    """The time-bound right to work on a job, and all that is needed to do so."""

    tenant: str
    id: str
    task: str
    fence: int
    attempt: int
    expires_at: int
    deadline: int
    generation: int
    failures: int
    chunk: int
    edit: int
    created_at: int
    run_at: int
    background: bool
    fire: str
    fire_time: int | None
    max_attempts: int
    trace: str
    args: bytes
    cursor: bytes
    alone: bool = False
    """Whether it should share its process with no other job: it may have ended its last one, or one more loss is the
    last."""
    keyed: bool = False
    """Whether it holds a concurrency key."""
    lineage: str = ""
    """What it has of those above it, if budgets are in force there."""
    spent: int = 0
    """How many steps its call tree had counted when it was claimed, if a budget counts them."""

    @property
    def operation_key(self) -> str:
        """Stable over all attempts at the same input; new when the payload is edited."""
        return f"{self.id}.{self.edit}"


class Reported(NamedTuple):
    """The answer to a report."""

    revision: int
    spent: int
    """How many steps the call tree has counted, if a budget counts them."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The answer to a claim: the leases, or `reason` if there are none, and what the index must hear.

    The reasons: `no_jobs`, `not_due`, `held`, `behind_keys` (which are full), `task_unknown` (to this worker), `ahead`
    (there are some for a slot that is free).
    """

    leases: list[Lease]
    reason: str
    news: News
    reap: News
    rows: News | None = None
    """Of business rows that are behind now."""

    @property
    def all_news(self) -> list[News]:
        return [self.news, self.reap, *([self.rows] if self.rows else [])]

    @property
    def again(self) -> bool:
        """Whether nothing was found because others stood in the way, who are out of it now."""
        return not self.leases and self.news.is_due and self.reason not in ("task_unknown", "ahead")


@dataclass(frozen=True, slots=True)
class Attempt:
    number: int
    generation: int
    status: str
    cause: str | None
    fence: int
    worker: str
    started_at: int
    ended_at: int | None
    chunks: int
    error: str | None
    stack: str | None
    request: str | None = None
    response: str | None = None

    @property
    def limit(self) -> Limit | None:
        """The budget that it has crossed."""
        return limit_of(self.error or "") if self.cause == Cause.LIMIT else None

    @property
    def call_path(self) -> tuple[str, ...]:
        """The tasks that led to where a budget was crossed, its own the last."""
        return path_of(self.error or "") if self.cause == Cause.LIMIT else ()


@dataclass(frozen=True, slots=True)
class Deed:
    """What a person did to a job: it brought the job to `revision`. `by` is None where nobody was named."""

    revision: int
    at: int
    verb: str
    by: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a background task.

    `samples` are (working ms, done) at each commit; `lines` are (number, ms, text).
    """

    done: int | None
    total: int | None
    doing: int | None
    message: str
    busy_ms: int
    running_since: int | None
    updated_at: int | None
    samples: tuple[tuple[int, int], ...]
    lines: tuple[tuple[int, int, str], ...]
    stage: str | None = None
    """A label for what it is at; nothing is computed from it."""
    unit: str | None = None
    """What is counted."""
    warnings: int = 0


@dataclass(frozen=True, slots=True)
class BoundTo:
    """How far the business row of a task follows it.

    `revision` is the one that was written, at `written_at`; `error` is why the last try failed, `tries` how many have.
    Once `superseded`, the row tells of a later task.
    """

    binding: str
    revision: int | None = None
    written_at: int | None = None
    error: str | None = None
    tries: int = 0
    superseded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One job as it stood at `read_at` (server clock, epoch ms like all times here)."""

    tenant: str
    id: str
    task: str
    status: State
    pool: str
    priority: int
    created_at: int
    run_at: int
    start_by: int | None
    started_at: int | None
    finished_at: int | None
    generation: int
    revision: int
    fence: int | None
    lease_until: int | None
    worker: str | None
    failures: int
    losses: int
    max_attempts: int
    max_lost: int
    timeout_ms: int
    """How long a claim of it may run."""
    chunk: int
    edit: int
    args: bytes
    result: bytes
    cursor: bytes
    dead_reason: str | None
    fingerprint: str | None
    """Of a dead or failed job: what it died of, as `app.jobs.failures()` gathers it."""
    confirmed: bool | None
    """Of a job that died with its last outside call in the dark: whether that has happened, by a person's word."""
    reason: str | None
    idempotency_key: str | None
    source: str
    trace: str
    parent: str | None = None
    instance: str | None = None
    flag: InstanceFlag | None = None
    """Of the instance that has it paused, or is about to."""
    remaining_ms: int | None = None
    """Of a paused job: how long before it is due when it is resumed."""
    node: str | None = None
    node_name: str | None = None
    definition: str | None = None
    definition_version: str | None = None
    execution: str | None = None
    work_item: str | None = None
    repeat_rule: str | None = None
    record: Record | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    concurrency_key: str | None = None
    exclusive: bool = False
    fire: str | None
    fire_time: int | None
    background: bool
    attempts: tuple[Attempt, ...]
    history: tuple[Deed, ...]
    """What people did to it, the oldest first; empty in lists."""
    progress: Progress | None
    bound: BoundTo | None = None
    blocker: str | None
    facts: tuple[str, ...] = ()
    """What `blocker` is about, as the scripts tell it; `why` puts it in words."""
    read_at: int

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def value(self) -> Any:
        """What the task returned; None while there is nothing. `result` is the same as it is stored."""
        return unpack(self.result) if self.result else None

    @property
    def why_dead(self) -> str | None:
        """Why it is dead or failed; one that was canceled since keeps its `dead_reason`, and is dead no more."""
        return self.dead_reason if self.status in (State.DEAD, State.FAILED) else None

    @property
    def operation_key(self) -> str:
        return f"{self.id}.{self.edit}"

    @property
    def error(self) -> Attempt | None:
        """The newest attempt that has an error."""
        return next((attempt for attempt in reversed(self.attempts) if attempt.error), None)


@dataclass(frozen=True, slots=True)
class Page:
    """Some jobs in a stable order, and the cursor of the next page (None: there is none)."""

    items: list[JobView]
    next_cursor: str | None
    scanned: int = 0
    """How many jobs were looked at."""
    redis_only: bool = False
    """Whether there is an archive that was left out, because it cannot be searched by these filters."""
