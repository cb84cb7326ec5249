"""The archive in a database: rows that are written again change nothing, and are read back as they were."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, Row, Select, Table, create_engine, inspect, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from ..lease.jobs import JobView
from ..scheduler.execution_log import LogEntry
from ..scheduler.fire_record import Fire
from ..scripts.errors import ArchiveUnreachable, BadInput, MissingExtra
from . import rows, tables
from .rows import Batch, Values

CONNECT_S = 5
_ALONE = {"postgresql": "SELECT pg_advisory_xact_lock(7234617923)", "sqlite": "BEGIN IMMEDIATE"}
"""By what who makes tables has the others wait, to the end of the transaction."""
_INSERTS: dict[str, Any] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}


class Archive:
    """The archive, to write to and to read from; it is what Redis knows no more (`scheduler.history.History`).

    Raises ArchiveUnreachable from everything but the making of it, when the database does not do what it is asked.
    """

    def __init__(self, engine: Engine) -> None:
        if engine.dialect.name not in _INSERTS:
            raise BadInput(
                f"an archive in {engine.dialect.name} is not possible: it is SQLite or PostgreSQL",
                hint="TENURE_ARCHIVE_URL=postgresql+psycopg://user@host/name, or sqlite:////path/archive.db",
            )
        self.engine = engine
        self._insert = _INSERTS[engine.dialect.name]

    @classmethod
    def at(cls, url: str) -> Archive:
        """The archive at an SQLAlchemy URL; nothing is opened yet. Raises BadInput, MissingExtra for its driver."""
        try:
            backend = make_url(url).get_backend_name()
            args: dict[str, Any] = {"connect_timeout": CONNECT_S} if backend == "postgresql" else {}
            return cls(create_engine(url, pool_pre_ping=True, connect_args=args))
        except (ArgumentError, NoSuchModuleError):  # its sentence may hold the password
            raise BadInput(
                "the archive's URL is not one of SQLAlchemy's for a database it knows",
                hint="TENURE_ARCHIVE_URL=postgresql+psycopg://user@host/name, or sqlite:////path/archive.db",
            ) from None
        except ImportError as exc:
            raise MissingExtra(
                f"the archive's database needs a driver: {exc}", hint="pip install 'psycopg[binary]'"
            ) from exc

    def create(self) -> None:
        """Make the tables that are missing, with their indexes; what is there stays. Any number may at once."""
        with self._asked() as db:
            if any(not inspect(db).has_table(name) for name in tables.metadata.tables):
                db.exec_driver_sql(_ALONE[db.dialect.name])
                tables.metadata.create_all(
                    db
                )  # looks again: another may have made them before this one was alone

    def check(self) -> Sequence[str]:
        """What the database lacks of tables, columns and indexes, each in a sentence; nothing if all is right."""
        with self._asked("start the database, or correct TENURE_ARCHIVE_URL: tenure config show") as db:
            return list(tables.problems(db))

    def close(self) -> None:
        self.engine.dispose()

    # -- writing ------------------------------------------------------------------------------------------------------

    def write(self, batch: Batch) -> None:
        """Write rows, and how far they go, in one transaction. What is there stays; of a job the later state, of a
        record the one that tells of more instants.
        """
        with self._asked() as db:
            self._put(db, tables.fires, batch.fires, later="instants")
            self._put(db, tables.entries, batch.entries, later="instants")
            self._put(db, tables.jobs, batch.jobs, later="revision")
            self._put(db, tables.progress, batch.progress)

    def progress(self, tenant: str, sources: Iterable[str]) -> dict[str, Row[Any]]:
        """How far the archive has come in some lists of a tenant; one that it has not begun is left out."""
        table = tables.progress
        wanted = select(table).where(table.c.tenant == tenant, table.c.source.in_([*sources]))
        return {row.source: row for row in self._rows(wanted)}

    # Rows of two archivers wait for each other in one order only, so that neither waits for ever.

    def _put(self, db: Connection, table: Table, values: list[Values], later: str = "") -> None:
        if not values:
            return
        insert, keys = self._insert(table), tables.KEYS[table]
        changed = {column.name: insert.excluded[column.name] for column in table.columns}
        where = table.c[later] < insert.excluded[later] if later else None
        db.execute(
            insert.on_conflict_do_update(index_elements=keys, set_=changed, where=where),
            _sorted(table, values),
        )

    # -- reading ------------------------------------------------------------------------------------------------------

    def log(
        self, tenant: str, job_key: str, month: str, before: int | None, limit: int
    ) -> Sequence[LogEntry]:
        of = tables.entries.c
        found = select(tables.entries).where(of.tenant == tenant, of.job_key == job_key, of.month == month)
        if before is not None:
            found = found.where(of.position < before)
        page = found.order_by(of.position.desc(), of.event_id.desc()).limit(limit)
        return [rows.entry(row) for row in self._rows(page)]

    def fires(
        self, tenant: str, job_key: str, trigger: str, month: str, before: int | None, limit: int
    ) -> Sequence[Fire]:
        of = tables.fires.c
        found = select(tables.fires).where(
            of.tenant == tenant, of.job_key == job_key, of.trigger_name == trigger, of.month == month
        )
        if before is not None:
            found = found.where(of.fire_time < before)
        page = found.order_by(of.fire_time.desc(), of.event_id.desc()).limit(limit)
        return [rows.fire(row) for row in self._rows(page)]

    def triggers(self, tenant: str, job_key: str) -> Sequence[str]:
        of = tables.fires.c
        found = select(of.trigger_name).where(of.tenant == tenant, of.job_key == job_key)
        return [name for (name,) in self._rows(found.distinct().order_by(of.trigger_name))]

    def fire_at(self, tenant: str, job_key: str, trigger: str, month: str, instant: int) -> Fire | None:
        for fire in self.fires(tenant, job_key, trigger, month, instant + 1, 1):
            if fire.fire_time == instant or (fire.until or 0) >= instant:
                return fire
        return None

    def job(self, tenant: str, job_id: str) -> JobView | None:
        table = tables.jobs
        wanted = select(table).where(table.c.tenant == tenant, table.c.id == job_id)
        return next((rows.job(row) for row in self._rows(wanted)), None)

    def jobs(
        self, tenant: str, task: str | None, status: str | None, before: int, id_: str, limit: int
    ) -> Sequence[JobView]:
        of = tables.jobs.c
        found = select(tables.jobs).where(of.tenant == tenant)
        if task is not None:
            found = found.where(of.task == task)
        if status is not None:
            found = found.where(of.status == status)
        time = of.created_at if status is None else of.finished_at
        page = found.where(tuple_(time, of.id) < (before, id_)).order_by(time.desc(), of.id.desc())
        return [rows.job(row) for row in self._rows(page.limit(limit))]

    def has(self, event_id: str) -> bool:
        """Whether a fire record or a log entry is here."""
        return any(
            self._rows(select(table.c.event_id).where(table.c.event_id == event_id))
            for table in (tables.fires, tables.entries)
        )

    def _rows(self, wanted: Select[Any]) -> Sequence[Row[Any]]:
        with self._asked() as db:
            return db.execute(wanted).all()

    @contextmanager
    def _asked(self, hint: str = "tenure archive check") -> Generator[Connection]:
        """A transaction. What goes wrong in the database is told without its address, which may hold a password."""
        try:
            with self.engine.begin() as db:
                yield db
        except SQLAlchemyError as exc:
            cause = getattr(exc, "orig", None) or exc
            text = " ".join(str(cause).split())
            raise ArchiveUnreachable(
                f"the archive's database does not answer as it should: {type(cause).__name__}: {text:.300}",
                hint=hint,
            ) from exc


def _sorted(table: Table, values: list[Values]) -> list[Values]:
    """In the order of their keys, each key once: the last word counts."""
    keys = tables.KEYS[table]
    by_key = {tuple(one[name] for name in keys): one for one in values}
    return [by_key[key] for key in sorted(by_key)]
