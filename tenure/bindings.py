"""Record bindings: your business row follows a background task, by code of yours with a fixed target.

    app.binding("orders", BoundRow(engine, orders, key="id", status="import_status", ...), may=may_import)

    load.using(binding="orders", record=("order", "4711"), by=user.name).enqueue()

`may(user, record)` is asked before the task is accepted; anything but True, an error too, means no task and an
untouched row. Then the ledger accepts the task, and then the row is marked. What dies in between leaves a task whose
row is behind, which the ledger knows and every process that stays mends; the other way round it would leave a row
that tells for ever of a task that never was. Each further change of the task is written at least once, at most four
times a second, the last always.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from .api.progress import percent
from .lease.bindings import Binder, Write
from .lease.eta import remaining
from .lease.instants import from_ms
from .lease.jobs import JobView
from .lease.requests import Options
from .lease.who import who
from .scripts.errors import BadInput, NotAllowed, RightsUnknown, StoreError, UnknownBinding
from .scripts.states import State

if TYPE_CHECKING:
    from .app import Tenure

log = logging.getLogger("tenure.bindings")

BoundStatus = Literal["accepted", "running", "done", "failed", "canceled"]
"""`accepted` is a task that waits: for its first start, for another try, in a pause. Between chunks it is `running`."""

SAID_LIMIT = 300

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_ENDS: Mapping[State, BoundStatus] = {
    State.SUCCEEDED: "done",
    State.FAILED: "failed",
    State.DEAD: "failed",
    State.CANCELED: "canceled",
}


class BoundRecord(NamedTuple):
    """The record a task works for, and whose it is."""

    type: str
    id: str
    tenant: str


@dataclass(frozen=True, slots=True)
class Bound:
    """A task as its business row is to tell of it.

    `percent` is None without a total, `eta` None while it is not known and once the task has ended. `clock` grows with
    every state of every task of the tenant: keep it in the row, and write only over a smaller one. The same state may
    come twice.
    """

    record: BoundRecord
    task: str
    task_id: str
    status: BoundStatus
    done: int | None
    total: int | None
    percent: float | None
    eta: datetime | None
    revision: int
    clock: int


Writer = Callable[[Bound], object]
May = Callable[[str, BoundRecord], bool]


def _check_plain(name: str, what: str, function: object) -> None:
    if not callable(function) or inspect.iscoroutinefunction(function):
        raise BadInput(
            f"binding {name!r}: {what} is {function!r:.80}, no plain function",
            hint=f'app.binding("{name}", write, may=lambda user, record: ...), each a `def`',
        )


class Bindings:
    """What an application has registered."""

    def __init__(self, app: Tenure) -> None:
        self._app = app
        self._may: dict[str, May] = {}
        self.writers: dict[str, Write] = {}

    def check_new(self, name: str, may: May) -> None:
        """Return if a binding of that name may be made. Raises BadInput."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(
                f"binding {name!r:.70} is not a name: letters, digits, '_', '.' and '-', at most 64",
                hint='app.binding("orders", ...)',
            )
        if name in self.writers:
            raise BadInput(f"binding {name!r} is registered twice", hint="give one of the two another name")
        _check_plain(name, "may", may)

    def add(self, name: str, writer: Writer, may: May) -> None:
        self.check_new(name, may)
        _check_plain(name, "its writer", writer)
        self._may[name] = may
        self.writers[name] = partial(_write, writer)

    def check(self, name: str) -> str:
        """Answer `name` if it is that of a binding. Raises UnknownBinding, naming the nearest."""
        if name in self.writers:
            return name
        near = get_close_matches(name[:100], self.writers, n=1)
        known = f"registered are: {', '.join(sorted(self.writers)) or 'none'}"
        raise UnknownBinding(
            f"no binding {name!r:.100} is registered", hint=f"did you mean {near[0]!r}?" if near else known
        )

    def admit(self, options: Options) -> None:
        """Return if whoever asks may have a task for the record. Raises UnknownBinding, NotAllowed, RightsUnknown."""
        if options.binding is None or options.record is None:
            return  # without a record it is refused by its own rule
        name, user = self.check(options.binding), who(options.by)
        record = BoundRecord(*options.record, options.tenant)
        if self._asked(name, user, record) is not True:
            raise NotAllowed(
                f"{user!r:.60} may not start a task for {record.type} {record.id!r:.60} by binding {name!r}",
                hint="its `may` says who may",
            )

    def _asked(self, name: str, user: str, record: BoundRecord) -> object:
        try:
            return self._may[name](user, record)
        except NotAllowed:
            raise  # a no in its own words
        except Exception as exc:
            said = self._app.registry.secrets.beginning(f"{type(exc).__name__}: {exc}", SAID_LIMIT)
            raise RightsUnknown(
                f"whether {user!r:.60} may start a task for {record.type} {record.id!r:.60} is not known: the "
                f"application's own `may` of binding {name!r} raised {said}; nothing was made",
                hint="mend what `may` asks, or `may` itself, then start it again",
            ) from exc

    def mark(self, tenant: str, job_id: str) -> None:
        """Bring the row of a task that was just accepted up to it. What fails here is done by a process that stays."""
        try:
            Binder(self._app.ledgers(), self.writers, self._app.registry).bring_up(tenant, only=job_id)
        except StoreError as exc:
            log.warning("the row of task %s is marked later: %s", job_id, exc)


def _write(writer: Writer, task: JobView, clock: int) -> None:
    writer(bound(task, clock))


def bound(task: JobView, clock: int) -> Bound:
    """What the row of a task is to tell."""
    assert task.record
    left = remaining(task)
    ends_at = None if left is None else task.read_at + left.likely_ms
    return Bound(
        record=BoundRecord(*task.record, task.tenant),
        task=task.task,
        task_id=task.id,
        status=_status(task),
        done=task.progress.done if task.progress else None,
        total=task.progress.total if task.progress else None,
        percent=percent(task),
        eta=None if ends_at is None else from_ms(ends_at),
        revision=task.revision,
        clock=clock,
    )


def _status(task: JobView) -> BoundStatus:
    if task.status in _ENDS:
        return _ENDS[task.status]
    open_attempt = bool(task.attempts) and task.attempts[-1].ended_at is None
    return "running" if open_attempt and task.status is not State.PAUSED else "accepted"
