"""Jobs in your own database transaction: an outbox for SQLAlchemy (`pip install '.[sqlalchemy]'`).

    outbox = Outbox(app, Base.metadata)                   # a table, made with your others: create_all, Alembic

    with Session(engine) as session, session.begin():
        session.add(order)
        job_id = outbox.enqueue(session, charge.call(7))  # a row in your transaction, gone if that is rolled back

    outbox.relay(engine).run()                            # in a process or thread of its own, as many as you like

A relay moves committed rows into the ledger and deletes them. The row has its job's id, by which the ledger knows a job
that is sent again: a relay may be killed anywhere, and several may run.

What to know:

- A job that the ledger refuses (KeyReused), or whose row cannot be read, stays in the table with its `error`, and the
  others pass it. Delete the row, or set its `error` to NULL to have it sent again.
- `after=` counts from the moment the ledger has the job, since no clock but the server's is asked.
- With an idempotency key that has a job already, the answered id leads nowhere: the key's job has its own.
- Order: by id, so by the clock of the machine that made the call, and exactly the order of the calls of one process.
- The ledger knows a job as long as its row is there: a day after it succeeded, less if 100,000 others of its tenant
  succeeded since. Only if a relay dies between sending and deleting, and none comes for that long, or if the
  database is set back by a backup, is a job made again. It has the same id, so a task that writes `ctx.job_id` beside
  its work can tell.

Tested with PostgreSQL, where several relays share the work, and SQLite, where they repeat some of it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any
from weakref import WeakSet

from .app import Tenure
from .handles import TaskCall
from .lease.bulk import TenantJob, enqueue_all
from .lease.ids import is_id
from .lease.ledger import NewJob
from .lease.loop import Loop
from .lease.payload import LIMIT, pack, unpack
from .scripts.errors import BadInput, MissingExtra, TenureError, install
from .scripts.fields import FIELDS
from .scripts.keys import check_tenant

try:
    from sqlalchemy import (
        Column,
        Connection,
        DateTime,
        Engine,
        LargeBinary,
        MetaData,
        String,
        Table,
        Text,
        bindparam,
        delete,
        event,
        func,
        insert,
        select,
        update,
    )
    from sqlalchemy.orm import Session, scoped_session
except ImportError:
    raise MissingExtra("the outbox needs SQLAlchemy 2", hint=install("sqlalchemy")) from None

__all__ = ["Outbox", "Relay"]

log = logging.getLogger("tenure.outbox")

POLL_S = 1.0
BATCH = 500
LONGEST_REQUEST = LIMIT + (64 << 10)
LONGEST_ERROR = 4_000
STALLED_MS = 60_000
"""PostgreSQL gives the rows of a relay that went silent in a round, its machine gone say, to others after this time."""


class Outbox:
    """The table of jobs that wait for a relay."""

    def __init__(
        self, app: Tenure, metadata: MetaData, table: str = "tenure_outbox", schema: str | None = None
    ) -> None:
        self.app = app
        self.table = Table(
            table,
            metadata,
            Column("job_id", String(26), primary_key=True),
            Column("tenant", String(63), nullable=False),
            Column("task", String(100), nullable=False),
            Column("request", LargeBinary(1 << 20), nullable=False),
            Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
            Column("error", Text),
            schema=schema,
        )
        self._relays: WeakSet[Relay] = WeakSet()

    def enqueue(self, to: Session | scoped_session[Session] | Connection, call: TaskCall[Any]) -> str:
        """Write the call into the transaction of `to`; answers the id of the job it becomes after the commit.

        Raises BadInput before anything is written, and IntegrityError for a call that waits here already.
        An AsyncSession: `await session.run_sync(outbox.enqueue, task.call(...))`.
        """
        return self.enqueue_many(to, [call])[0]

    def enqueue_many(
        self, to: Session | scoped_session[Session] | Connection, calls: Iterable[TaskCall[Any]]
    ) -> list[str]:
        """`enqueue` of many calls, in one statement."""
        rows = [self._row(call) for call in calls]
        if rows:
            to.execute(insert(self.table), rows)
            if not isinstance(to, Connection):
                self._wake_after_commit(to() if isinstance(to, scoped_session) else to)
        return [row["job_id"] for row in rows]

    def relay(self, engine: Engine, *, batch: int = BATCH, poll_s: float = POLL_S) -> Relay:
        """What moves the committed rows: `run()` it, or `start()` it in a thread."""
        relay = Relay(self, engine, batch, poll_s)
        self._relays.add(relay)
        return relay

    def _row(self, call: TaskCall[Any]) -> dict[str, Any]:
        self.app.check_own(call)
        request = {name: getattr(call.job, name) for name in _REQUEST}
        return {
            "job_id": call.id,
            "tenant": call.tenant,
            "task": call.job.task,
            "request": pack(request, what=f"the call of {call.job.task}", limit=LONGEST_REQUEST),
        }

    def _wake_after_commit(self, session: Session) -> None:
        """A hint for relays in this process; without it they come within their poll."""
        if self not in session.info:
            event.listen(session, "after_commit", self._committed)
        session.info[self] = True

    def _committed(self, session: Session) -> None:
        if session.info[self] and not session.in_nested_transaction():
            session.info[self] = False
            for relay in list(self._relays):
                relay.wake()


class Relay:
    """A duty that moves committed rows of an outbox into the ledger.

    It reads rows, sends them, deletes them, commits: whatever it does not reach is done by whoever comes next.
    """

    def __init__(self, outbox: Outbox, engine: Engine, batch: int, poll_s: float) -> None:
        self._app = outbox.app
        self._table = outbox.table
        self._batch = batch
        self._poll_s = poll_s
        # SQLite has one writer at a time, so no lock may be held while the ledger is asked: see `round`.
        self._locks = engine.dialect.name != "sqlite"
        self._engine = engine.execution_options(isolation_level="READ COMMITTED") if self._locks else engine
        self._loop = Loop(self, f"relay of {self._table.fullname}")

    def run(self) -> None:
        """Relay until `stop`, in the caller's thread. A database or store that is away is waited for."""
        self._loop.run()

    def start(self) -> None:
        """Relay in a thread that does not keep the process alive."""
        self._loop.start()

    @property
    def looks(self) -> int:
        """How often this process has looked, without a fault."""
        return self._loop.rounds

    def wake(self) -> None:
        """Look now. Safe from any thread."""
        self._loop.wake()

    def stop(self, timeout: float | None = None) -> bool:
        """End after the round that runs; answers whether it has ended."""
        return self._loop.stop(timeout)

    def round(self) -> float:
        """Move one batch; answers in how many seconds to look again. Raises StoreError and SQLAlchemy's errors."""
        with self._engine.connect() as db:
            rows = self._take(db)
            if not self._locks:
                db.rollback()
            if not rows:
                return self._poll_s
            done, refused = self._send(rows)
            if done:
                db.execute(delete(self._table).where(self._table.c.job_id.in_(done)))
            if refused:
                db.execute(_set_error(self._table), refused)
            db.commit()
        return 0.0 if len(done) + len(refused) == self._batch else self._poll_s

    def _take(self, db: Connection) -> list[_Waiting]:
        if db.dialect.name == "postgresql":
            db.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = {STALLED_MS}")
        table = self._table.c
        waiting = select(table.job_id, table.tenant, table.request).where(table.error.is_(None))
        oldest = waiting.order_by(table.job_id).limit(self._batch)
        return [_Waiting(*row) for row in db.execute(oldest.with_for_update(skip_locked=True))]

    def _send(self, rows: list[_Waiting]) -> tuple[list[str], list[dict[str, str]]]:
        """The ids that the ledger has, and those that it will never have, each with its error."""
        jobs: list[TenantJob] = []
        refused: list[dict[str, str]] = []
        for row in rows:
            try:
                request = _read(row)
            except BadInput as exc:
                refused.append(_refusal(row.job_id, exc))
                continue
            if _is_known(request):
                jobs.append((row.tenant, NewJob(id=row.job_id, **request)))
        answers = enqueue_all(self._app.ledgers(), jobs)
        done: list[str] = []
        for (_, job), answer in zip(jobs, answers, strict=True):
            if isinstance(answer, TenureError):
                refused.append(_refusal(job.id, answer))
            else:
                done.append(job.id)
        return done, refused


@dataclass(frozen=True, slots=True)
class _Waiting:
    job_id: str
    tenant: str
    request: bytes


_REQUEST = frozenset(field.name for field in fields(NewJob)) - {"id"}


def _read(row: _Waiting) -> dict[str, Any]:
    check_tenant(row.tenant)
    try:
        request = unpack(row.request)
    except (ValueError, TypeError) as exc:
        raise BadInput(f"the request of job {row.job_id!r:.40} cannot be read: {exc}") from exc
    if not is_id(row.job_id) or not isinstance(request, dict) or "task" not in request:
        raise BadInput(f"the row of {row.job_id!r:.40} was not written by an outbox")
    return request  # pyright: ignore[reportUnknownVariableType]


def _is_known(request: dict[str, Any]) -> bool:
    """False for a request of a newer release, which is left for a relay of that release."""
    return set(request) <= _REQUEST and set(request.get("fields", ())) <= set(FIELDS)


def _refusal(job_id: str, error: TenureError) -> dict[str, str]:
    log.warning("job %s stays in the outbox: %s: %s", job_id, error.code, error)
    return {"refused": job_id, "why": f"{error.code}: {error}"[:LONGEST_ERROR]}


def _set_error(table: Table) -> Any:
    return update(table).where(table.c.job_id == bindparam("refused")).values(error=bindparam("why"))
