"""The tables of the archive, and whether a database has them as they must be."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    inspect,
)
from sqlalchemy.schema import CreateIndex

metadata = MetaData()

_TENANT, _MONTH, _EVENT, _JOB_KEY, _ID = String(63), String(6), String(22), String(200), String(26)

fires = Table(
    "tenure_fires",
    metadata,
    Column("event_id", _EVENT, nullable=False),
    Column("tenant", _TENANT, nullable=False),
    Column("job_key", _JOB_KEY, nullable=False),
    Column("trigger_name", _TENANT, nullable=False),
    Column("month", _MONTH, nullable=False),
    Column("fire_time", BigInteger, nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("reason", Text),
    Column("job_id", _ID),
    Column("written_at", BigInteger, nullable=False),
    Column("scheduler", Text),
    Column("until", BigInteger),
    Column("instants", Integer, nullable=False),
    Index("tenure_fires_event", "event_id", unique=True),
    Index("tenure_fires_page", "tenant", "job_key", "trigger_name", "month", "fire_time", "event_id"),
)
"""A fire record each."""

entries = Table(
    "tenure_log",
    metadata,
    Column("event_id", _EVENT, nullable=False),
    Column("tenant", _TENANT, nullable=False),
    Column("job_key", _JOB_KEY, nullable=False),
    Column("trigger_name", _TENANT, nullable=False),
    Column("month", _MONTH, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("fire_time", BigInteger, nullable=False),
    Column("status", String(8), nullable=False),
    Column("executed", Boolean, nullable=False),
    Column("reason", Text),
    Column("message", Text),
    Column("job_id", _ID),
    Column("round", Integer, nullable=False),
    Column("until", BigInteger),
    Column("instants", Integer, nullable=False),
    Index("tenure_log_event", "event_id", unique=True),
    Index("tenure_log_page", "tenant", "job_key", "month", "position", "event_id"),
)
"""An entry of the execution log each; `position` is its time in microseconds, and its place."""

jobs = Table(
    "tenure_jobs",
    metadata,
    Column("tenant", _TENANT, nullable=False),
    Column("id", _ID, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("task", String(100), nullable=False),
    Column("status", String(10), nullable=False),
    Column("month", _MONTH, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger, nullable=False),
    Column("job", LargeBinary(1 << 20), nullable=False),
    Index("tenure_jobs_id", "tenant", "id", unique=True),
    Index("tenure_jobs_time", "tenant", "task", "finished_at", "id"),
    Index("tenure_jobs_created", "tenant", "created_at", "id"),
    Index("tenure_jobs_of_task", "tenant", "task", "created_at", "id"),
    Index("tenure_jobs_ended", "tenant", "status", "finished_at", "id"),
    Index("tenure_jobs_of_task_ended", "tenant", "task", "status", "finished_at", "id"),
)
"""An ended job each, as it was when it was last seen; `month` is that of its end, `job` what Redis had of it."""

progress = Table(
    "tenure_progress",
    metadata,
    Column("tenant", _TENANT, nullable=False),
    Column("source", String(300), nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("mark", String(60), nullable=False),
    Column("since", BigInteger),
    Index("tenure_progress_source", "tenant", "source", unique=True),
)
"""How far an archiver came in each list of Redis, written in the transaction of the rows. `mark` names the last record,
so that a list that began anew is noticed; `since` is used by a spool.
"""

KEYS: dict[Table, tuple[str, ...]] = {
    fires: ("event_id",),
    entries: ("event_id",),
    jobs: ("tenant", "id"),
    progress: ("tenant", "source"),
}
"""By what a row is known."""


def problems(db: Connection) -> Iterator[str]:
    """What a database lacks: tables, columns, indexes, each in a sentence."""
    found = inspect(db)
    for table in metadata.sorted_tables:
        if not found.has_table(table.name):
            yield f"table {table.name} is missing"
            continue
        columns = {column["name"] for column in found.get_columns(table.name)}
        for column in table.columns:
            if column.name not in columns:
                yield f"column {table.name}.{column.name} is missing"
        indexes = {
            index["name"]: (tuple(index["column_names"]), bool(index["unique"]))
            for index in found.get_indexes(table.name)
        }
        for index in sorted(table.indexes, key=lambda one: str(one.name)):
            expected = (tuple(column.name for column in index.columns), bool(index.unique))
            kind = "unique index" if index.unique else "index"
            if index.name not in indexes:
                made = str(CreateIndex(index).compile(db)).strip()
                yield f"{kind} {index.name} of {table.name} on ({', '.join(expected[0])}) is missing: {made}"
            elif indexes[index.name] != expected:
                is_, must_be = map(_shape, (indexes[index.name], expected))
                yield f"index {index.name} of {table.name} is {is_}; it must be {must_be}"


def _shape(index: tuple[tuple[str | None, ...], bool]) -> str:
    columns, unique = index
    return f"{'' if unique else 'not '}unique on ({', '.join(map(str, columns))})"
