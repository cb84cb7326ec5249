"""The next and last fires of schedules in a table of yours (`pip install '.[sqlalchemy]'`).

    times = FireTimes(app, engine, jobs, tenant="tenant", job_key="job_key", next_fire="next_time", last_fire="last",
                      normal=(jobs.c.status == "NORMAL") & jobs.c.deleted_at.is_(None))
    times.run()                                    # in a process or thread of its own, as many as you like

They are a projection: what counts is the ledger. Of a row that is `normal`, both times are written in one UPDATE that
asks for the tenant, the JobKey, `normal` and the old times, and only when they have changed. So a write that comes
late, after a pause, a deletion, a renaming or another writer, hits nothing; it is not made again, the next round reads
anew. No other column is touched, and nothing of the schedule, which has no new revision by it. Rows are yours: none is
made or deleted here, and one without a schedule stays as it is; so does that of a paused schedule or a disabled tenant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple

from .app import Tenure
from .lease.loop import Loop
from .scheduler.job_key import JobKey
from .scheduler.schedules import ScheduleView
from .scripts.errors import BadInput, MissingExtra, install
from .scripts.keys import check_tenant

try:
    from sqlalchemy import Column, ColumnElement, Connection, Engine, Table, and_, or_, select, update
except ImportError:
    raise MissingExtra("fire times need SQLAlchemy 2", hint=install("sqlalchemy")) from None

__all__ = ["FireTimes"]

POLL_S = 5.0
BATCH = 500
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Row(NamedTuple):
    """A row as it was read: whose, and its times as they stand in it."""

    tenant: str
    job_key: str
    next_fire: Any
    last_fire: Any


class FireTimes:
    """Writes the next and last fires of schedules into the rows of `table` that name them.

    Each name is a column: `job_key` holds JobKeys, `tenant` tenants (without it all rows are of tenant `default`),
    `next_fire` and `last_fire` take instants: DateTime in UTC, or whole numbers, which are epoch milliseconds. `normal`
    is the condition under which a row is written, such as its status and that it is not deleted.
    """

    def __init__(
        self,
        app: Tenure,
        engine: Engine,
        table: Table,
        *,
        job_key: str,
        next_fire: str,
        last_fire: str,
        normal: ColumnElement[bool],
        tenant: str | None = None,
        poll_s: float = POLL_S,
    ) -> None:
        named = {"job_key": job_key, "next_fire": next_fire, "last_fire": last_fire}
        named |= {} if tenant is None else {"tenant": tenant}
        missing = [f"{name}={column!r}" for name, column in named.items() if column not in table.c]
        if missing:
            raise BadInput(
                f"table {table.name} has no column for {', '.join(missing)}",
                hint=f"its columns are: {', '.join(table.c.keys())}",
            )
        self._app = app
        self._engine = engine
        self._table = table
        self._columns: dict[str, Column[Any]] = {name: table.c[column] for name, column in named.items()}
        self._normal = normal
        self._poll_s = poll_s
        self._loop = Loop(self, f"fire times in {table.fullname}")

    def run(self) -> None:
        """Write until `stop`, in the caller's thread. A database or store that is away is waited for."""
        self._loop.run()

    def start(self) -> None:
        """Write in a thread that does not keep the process alive."""
        self._loop.start()

    def stop(self, timeout: float | None = None) -> bool:
        """End after the round that runs; answers whether it has ended."""
        return self._loop.stop(timeout)

    def round(self) -> float:
        """Look at all rows once; answers in how many seconds to look again."""
        after: _Row | None = None
        while True:
            rows = self._read(after)
            self._write(rows)
            if len(rows) < BATCH:
                return self._poll_s
            after = rows[-1]

    def _read(self, after: _Row | None) -> list[_Row]:
        """The next rows that are normal. The ledger is asked after them: what it says is never older than they are."""
        columns = self._columns
        order = [columns[name] for name in ("tenant", "job_key") if name in columns]
        rows = select(*columns.values()).where(self._normal, columns["job_key"].is_not(None))
        if after is not None:
            rows = rows.where(self._later(after))
        with self._engine.connect() as db:
            found = db.execute(rows.order_by(*order).limit(BATCH)).all()
        names = list(columns)
        return [_Row(**{"tenant": "default", **dict(zip(names, row, strict=True))}) for row in found]

    def _later(self, after: _Row) -> ColumnElement[bool]:
        key = self._columns["job_key"] > after.job_key
        if "tenant" not in self._columns:
            return key
        tenant = self._columns["tenant"]
        return or_(tenant > after.tenant, and_(tenant == after.tenant, key))

    def _write(self, rows: list[_Row]) -> None:
        changes: list[tuple[_Row, dict[str, Any]]] = []
        for tenant, group in groupby(rows, key=lambda row: row.tenant):
            members = list(group)
            views = self._views(tenant, [row.job_key for row in members])
            changes += [
                (row, times)
                for row in members
                if (view := views.get(row.job_key)) and (times := self._changed(row, view))
            ]
        if changes:
            with self._engine.begin() as db:
                for row, times in changes:
                    self._set(db, row, times)

    def _views(self, tenant: str, names: Iterable[str]) -> Mapping[str, ScheduleView]:
        """The schedules that fire, of those names that one may have."""
        try:
            schedules = self._app.schedules.of(check_tenant(tenant))
        except BadInput:
            return {}
        views = schedules.views([name for name in names if _is_key(name)])
        return {str(view.job_key): view for view in views if view.paused is None and not view.disabled}

    def _changed(self, row: _Row, view: ScheduleView) -> dict[str, Any] | None:
        """The times to be written; None if they stand there."""
        next_ms = min(view.next_fires.values(), default=None)
        last_ms = max(view.last_fires.values(), default=None)
        if (_ms(row.next_fire), _ms(row.last_fire)) == (next_ms, last_ms):
            return None
        columns = self._columns
        return {
            columns["next_fire"].name: _written(columns["next_fire"], next_ms),
            columns["last_fire"].name: _written(columns["last_fire"], last_ms),
        }

    def _set(self, db: Connection, row: _Row, times: dict[str, Any]) -> None:
        """Compare and set. Whether it hit is nobody's concern: one that is late must not."""
        columns = self._columns
        seen = [columns[name].is_not_distinct_from(getattr(row, name)) for name in columns]
        db.execute(update(self._table).where(self._normal, *seen).values(times))


def _is_key(name: str) -> bool:
    """Whether it is a JobKey, in the spelling it is stored under."""
    try:
        return str(JobKey.parse(name)) == name
    except BadInput:
        return False


def _ms(value: Any) -> int | None:
    """An instant of a row in epoch ms."""
    if not isinstance(value, datetime):
        return None if value is None else int(value)
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return round((aware - _EPOCH).total_seconds() * 1000)


def _written(column: Column[Any], ms: int | None) -> Any:
    """An instant as the column takes it."""
    if ms is None or not issubclass(column.type.python_type, datetime):
        return ms
    moment = _EPOCH + timedelta(milliseconds=ms)
    return moment if getattr(column.type, "timezone", False) else moment.replace(tzinfo=None)
