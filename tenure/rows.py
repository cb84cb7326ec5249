"""The business row of a record binding in a table of yours (`pip install '.[sqlalchemy]'`)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from .bindings import Bound, BoundStatus
from .scripts.errors import BadInput, MissingExtra, NoSuchRow, install

try:
    from sqlalchemy import Column, Engine, Table, or_, select, update
except ImportError:
    raise MissingExtra("a bound row needs SQLAlchemy 2", hint=install("sqlalchemy")) from None

__all__ = ["BoundRow"]

WORDS: Mapping[BoundStatus, str] = {
    "accepted": "in_progress",
    "running": "in_progress",
    "done": "done",
    "failed": "failed",
    "canceled": "canceled",
}


class BoundRow:
    """Writes the row whose `key` column is the record's id; of `tenant`, if that column is named, only its own.

    Each name is a column of `table`: `status` takes a word (`words` changes what is written for each), `task_id` the
    task's id, `progress` its percent or NULL, `eta` an instant in UTC or NULL, and `clock`, a BIGINT, says how new the
    row is: what comes late is not written over what is newer.
    """

    def __init__(
        self,
        engine: Engine,
        table: Table,
        *,
        key: str,
        status: str,
        task_id: str,
        clock: str,
        progress: str | None = None,
        eta: str | None = None,
        tenant: str | None = None,
        record_type: str | None = None,
        words: Mapping[BoundStatus, Any] | None = None,
    ) -> None:
        named = {"key": key, "status": status, "task_id": task_id, "clock": clock}
        named |= {
            name: column
            for name, column in (("progress", progress), ("eta", eta), ("tenant", tenant))
            if column
        }
        missing = [f"{name}={column!r}" for name, column in named.items() if column not in table.c]
        if missing:
            raise BadInput(
                f"table {table.name} has no column for {', '.join(missing)}",
                hint=f"its columns are: {', '.join(table.c.keys())}",
            )
        unknown = set(words or {}) - set(WORDS)
        if unknown:
            raise BadInput(
                f"words for {sorted(unknown)} are for no status", hint=f"they are: {', '.join(WORDS)}"
            )
        self._engine = engine
        self._table = table
        self._columns: dict[str, Column[Any]] = {name: table.c[column] for name, column in named.items()}
        self._type = record_type
        self._words: Mapping[BoundStatus, Any] = {**WORDS, **(words or {})}

    def __call__(self, bound: Bound) -> None:
        """Write the row, unless it is newer. Raises NoSuchRow, and SQLAlchemy's errors."""
        clock = self._columns["clock"]
        mine = self._is_record(bound)
        older = or_(clock.is_(None), clock < bound.clock)
        with self._engine.begin() as db:
            written = db.execute(update(self._table).where(mine, older).values(self._values(bound)))
            if written.rowcount == 0 and db.execute(select(clock).where(mine)).first() is None:
                kind, name, tenant = bound.record
                raise NoSuchRow(
                    f"table {self._table.name} has no row for {kind} {name!r:.60} of tenant {tenant}",
                    hint="was it deleted?",
                )

    def _is_record(self, bound: Bound) -> Any:
        if self._type is not None and bound.record.type != self._type:
            raise NoSuchRow(f"this binding writes records of type {self._type!r}, not {bound.record.type!r}")
        key = self._columns["key"]
        found = key == _as(key, bound.record.id)
        tenant = self._columns.get("tenant")
        return found if tenant is None else found & (tenant == bound.record.tenant)

    def _values(self, bound: Bound) -> dict[Column[Any], Any]:
        values: dict[str, Any] = {
            "status": self._words[bound.status],
            "task_id": bound.task_id,
            "progress": bound.percent,
            "eta": bound.eta,
            "clock": bound.clock,
        }
        columns = {name: column for name, column in self._columns.items() if name in values}
        return {column: _as_time(column, values[name]) for name, column in columns.items()}


def _as(column: Column[Any], text: str) -> Any:
    """A record's id as the key column has it."""
    kind = column.type.python_type
    try:
        return kind(text) if kind in (int, UUID) else text
    except ValueError:
        raise NoSuchRow(f"{text!r:.60} is no id of column {column.name}") from None


def _as_time(column: Column[Any], value: Any) -> Any:
    """A column without a time zone takes UTC."""
    zoned = not isinstance(value, datetime) or getattr(column.type, "timezone", False)
    return value if zoned else value.replace(tzinfo=None)
