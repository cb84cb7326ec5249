"""A folder on this machine's disk where rows wait while the archive's database is away."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Row, Table, create_engine, delete, event, func, select, tuple_

from ..scripts.errors import BadInput
from . import tables
from .rows import Batch, Values
from .sink import Archive

NAME = "spool.db"
BATCH = 500
_FLEETING = ("tmpfs", "ramfs", "overlay", "aufs")
_HELD = (tables.fires, tables.entries, tables.jobs)


class Spool(Archive):
    """An archive of its own, in SQLite, each write on disk before it counts: it outlives any death of its process.

    It also notes how far the database has come, for a process that starts while that is away.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as exc:
            raise BadInput(
                f"the spool's folder {folder} cannot be made: {exc.strerror}",
                hint="TENURE_SPOOL=/var/lib/tenure/spool, a folder this user may write",
            ) from exc
        self.folder = folder
        engine = create_engine(f"sqlite:///{folder / NAME}", connect_args={"timeout": 30})
        event.listen(engine, "connect", _on_disk)
        super().__init__(engine)
        self.create()

    def volatile(self) -> str | None:
        """Why what waits here may be gone after a restart; None if it should stay."""
        return _volatile(self.folder)

    def write(self, batch: Batch) -> None:
        """Write rows, and from where to where they go."""
        known: dict[tuple[str, str], Row[Any]] = {}
        for tenant in {one["tenant"] for one in batch.progress}:
            sources = [one["source"] for one in batch.progress if one["tenant"] == tenant]
            known |= {(tenant, source): row for source, row in self.progress(tenant, sources).items()}
        super().write(
            Batch(
                batch.fires,
                batch.entries,
                batch.jobs,
                [
                    {**one, "since": _since(known.get((one["tenant"], one["source"])))}
                    for one in batch.progress
                ],
            )
        )

    def note(self, progress: Sequence[Values]) -> None:
        """How far the database has come."""
        super().write(Batch(progress=[*progress]))

    def counts(self) -> dict[str, int]:
        """How many rows wait, by table."""
        with self._asked() as db:
            return {table.name: db.scalar(select(func.count()).select_from(table)) or 0 for table in _HELD}

    def waiting(self) -> Iterator[Batch]:
        """What waits, a batch at a time; each has to be `stored` before the next one is asked for."""
        for table, kind in zip(_HELD, ("fires", "entries", "jobs"), strict=True):
            names = [column.name for column in table.columns]
            while found := self._rows(select(table).limit(BATCH)):
                yield Batch(**{kind: [dict(zip(names, row, strict=True)) for row in found]})

    def ways(self) -> Sequence[Row[Any]]:
        """How far rows that went through here go, and since where."""
        return self._rows(select(tables.progress).where(tables.progress.c.since.is_not(None)))

    def stored(self, batch: Batch) -> None:
        """The database has these rows: forget them. What has changed since stays."""
        with self._asked() as db:
            for table, values, keys in (
                (tables.fires, batch.fires, ("event_id", "instants")),
                (tables.entries, batch.entries, ("event_id", "instants")),
                (tables.jobs, batch.jobs, ("tenant", "id", "revision")),
            ):
                for one in values:
                    db.execute(_forget(table, keys, one))


def _forget(table: Table, keys: Sequence[str], one: Values) -> Any:
    return delete(table).where(tuple_(*(table.c[name] for name in keys)) == tuple(one[name] for name in keys))


def _since(known: Row[Any] | None) -> int:
    """From where on rows go through the spool: from where it was first left to it."""
    if known is None:
        return 0
    return int(known.position if known.since is None else known.since)


def _on_disk(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def _volatile(folder: Path) -> str | None:
    place = folder.resolve()
    for temporary in _temporary():
        if place.is_relative_to(temporary):
            return f"it is in {temporary}, which is emptied"
    kind = _file_system(place)
    return (
        f"it is on {kind}, which goes with the machine's or the container's end"
        if kind in _FLEETING
        else None
    )


def _temporary() -> list[Path]:
    return [Path(tempfile.gettempdir()).resolve(), *map(Path, ("/tmp", "/dev/shm", "/run"))]


def _file_system(place: Path) -> str:
    """The kind of the file system that a path is on, as Linux says; empty where that is not known."""
    while not place.exists():
        place = place.parent
    try:
        device = os.stat(place).st_dev
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return ""
    name = f"{os.major(device)}:{os.minor(device)}"
    for line in lines:
        mount, _, about = line.partition(" - ")
        if mount.split(" ")[2] == name:
            return about.split(" ")[0]
    return ""
