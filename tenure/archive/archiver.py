"""The archiver: reads what is new in Redis and writes it to the archive, or, while that is away, to a spool."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..lease.ledger import HISTORY, Ledger
from ..lease.ledgers import Ledgers
from ..lease.payload import digest
from ..scripts import Call, keys
from ..scripts.errors import ArchiveUnreachable, StoreUnreachable, TenureError
from ..scripts.loader import Arg
from . import rows
from .rows import Batch, Values
from .sink import Archive
from .spool import Spool

POLL_S = 5.0
BOOKS = 100
RECORDS = 500
"""Records and ids of jobs that one call reads: 0.1 to 0.5 ms."""
JOBS = 25
LINES = 1_000
MARGIN_MS = 120_000
"""So far back a list by time is read again: the server's clock may have stepped back since."""
TELL_S = 3600.0
"""So often it is told how far the archive has come, though that is as before."""
AT_ONCE = 500
"""Rows of a transaction."""
ALL_BOOKS, LOST = "books", "lost"
BY_TIME = ("dead", "failed", "canceled")
log = logging.getLogger("tenure.archive")


@dataclass(frozen=True, slots=True)
class Place:
    """How far the archive has come in one list."""

    position: int = 0
    mark: str = ""


class Archiver:
    """A duty. Any number may run: what two of them write is the same."""

    def __init__(self, ledgers: Ledgers, archive: Archive, spool: Spool | None = None) -> None:
        self._ledgers = ledgers
        self._archive = archive
        self._spool = spool
        self.away = False
        """Whether the last round went to the spool."""
        self._seen: dict[tuple[str, str, str], int] = {}
        self._troubled: dict[str, str] = {}
        self._told: dict[tuple[str, str], tuple[int, float]] = {}

    def round(self) -> float:
        """Archive what is new; answers in how many seconds to come again. Raises StoreError, ArchiveUnreachable."""
        target = self._target()
        busy = False
        for tenant in self._ledgers.index.tenants():
            busy |= self._visit(tenant, target)
        return 0.0 if busy else POLL_S

    def _target(self) -> Archive:
        """The archive, with all that was spooled in it; while it is away the spool."""
        try:
            self._archive.create()
            if self._spool is not None:
                replay(self._spool, self._archive)
        except ArchiveUnreachable as exc:
            if self._spool is None:
                raise
            if not self.away:
                log.warning("what is to be archived goes to the spool in %s: %s", self._spool.folder, exc)
            self.away = True
            return self._spool
        if self.away:
            log.info("the archive is back, and has what was spooled")
        self.away = False
        return self._archive

    def _visit(self, tenant: str, target: Archive) -> bool:
        """One tenant; one that cannot be read holds up none of the others. Answers whether there was anything."""
        writer = _Writer(tenant, target, None if target is self._spool else self._spool)
        try:
            self._read(self._ledgers.of(tenant), writer)
        except (StoreUnreachable, ArchiveUnreachable):
            raise
        except (TenureError, ValueError, TypeError, KeyError) as exc:
            if self._troubled.get(tenant) != str(exc):
                log.error(
                    "tenant %s cannot be archived: %s", tenant, exc, exc_info=not isinstance(exc, TenureError)
                )
            self._troubled[tenant] = str(exc)
            return False
        self._troubled.pop(tenant, None)
        return writer.written > 0

    def _read(self, ledger: Ledger, writer: _Writer) -> None:
        self._books(ledger, writer)
        self._succeeded(ledger, writer)
        for state in BY_TIME:
            self._stopped(ledger, state, writer)
        writer.flush()
        self._tell(ledger, writer)

    def _tell(self, ledger: Ledger, writer: _Writer) -> None:
        """Let retention know what it need not keep for the archive; now and then also that nothing is new."""
        for state in ("succeeded", *BY_TIME):
            position, now = writer.place(f"ended:{state}").position, time.monotonic()
            told, when = self._told.get((ledger.tenant, state), (-1, 0.0))
            if position != told or now - when > TELL_S:
                args: dict[str, Arg] = {"state": state, "position": position}
                ledger.scripts.run(Call("archived", ledger.keys.home, args, int))
                self._told[ledger.tenant, state] = position, now

    # -- fire records and log entries ---------------------------------------------------------------------------------

    def _books(self, ledger: Ledger, writer: _Writer) -> None:
        since = writer.place(ALL_BOOKS).position
        while found := _pairs(_ask(ledger, "books_since", {"since": since, "limit": BOOKS})):
            places = writer.places([name for name, _ in found])
            first = [_book_call(ledger, name, places[name]) for name, _ in found]
            for (name, clock), records in zip(found, ledger.scripts.run_all(first), strict=True):
                if isinstance(records, TenureError):
                    raise records
                self._book(ledger, name, places[name], records, writer)
                since = clock
                writer.came_to(ALL_BOOKS, since)

    def _book(self, ledger: Ledger, name: str, place: Place, records: list[bytes], writer: _Writer) -> None:
        """All new records of one book, and the last of before if it has grown. One that does not begin with what is
        archived of it began anew.
        """
        if place.position and (not records or not _is_same(place.mark, records[0])):
            place = Place()
            records = ledger.scripts.run(_book_call(ledger, name, place))
        to_row = _row_of(ledger, name)
        while records:
            known = 1 if place.position else 0
            fresh = records[1:] if known and _mark(records[0]) == place.mark else records
            if not fresh:
                return
            place = Place(place.position + len(records) - known, _mark(fresh[-1]))
            writer.add(Batch(**{to_row.kind: [to_row(record) for record in fresh]}))
            writer.came_to(name, place.position, place.mark)
            if len(records) < RECORDS:
                return
            records = ledger.scripts.run(_book_call(ledger, name, place))

    # -- jobs ---------------------------------------------------------------------------------------------------------

    def _succeeded(self, ledger: Ledger, writer: _Writer) -> None:
        source = "ended:succeeded"
        place = writer.place(source)
        while True:
            found = _ended(ledger, "succeeded", max(0, place.position - 1), "")
            if place.position and (
                not found or (found[0][1] == place.position - 1 and found[0][0] != place.mark)
            ):
                place = Place()  # the list began anew
                continue
            fresh = [(id_, at) for id_, at in found if at >= place.position]
            if not fresh:
                return
            if place.position and fresh[0][1] > place.position:
                self._lost(ledger.tenant, fresh[0][1] - place.position, writer)
            writer.add(Batch(jobs=list(self._rows(ledger, [id_ for id_, _ in fresh]))))
            place = Place(fresh[-1][1] + 1, fresh[-1][0])
            writer.came_to(source, place.position, place.mark)

    def _lost(self, tenant: str, many: int, writer: _Writer) -> None:
        log.error(
            "%d succeeded jobs of tenant %s were gone before they were archived: keep them longer (tenure tenants "
            "retention), or run more archivers",
            many,
            tenant,
        )
        writer.came_to(LOST, writer.place(LOST).position + many)

    def _stopped(self, ledger: Ledger, state: str, writer: _Writer) -> None:
        """Jobs in a state that they may leave again. What was read within the margin is not read again."""
        source = f"ended:{state}"
        place = writer.place(source)
        at, id_ = max(0, place.position - MARGIN_MS), ""
        while found := _ended(ledger, state, at, id_):
            (id_, at) = found[-1]
            fresh = [one for one, ended in found if self._seen.get((ledger.tenant, state, one)) != ended]
            if fresh:
                writer.add(Batch(jobs=list(self._rows(ledger, fresh))))
            for one, ended in found:
                self._seen[ledger.tenant, state, one] = ended
            if at > place.position:
                place = Place(at, id_)
                writer.came_to(source, at, id_)
        self._forget_seen(ledger.tenant, state, place.position - MARGIN_MS)

    def _forget_seen(self, tenant: str, state: str, before: int) -> None:
        for key, ended in [*self._seen.items()]:
            if key[:2] == (tenant, state) and ended < before:
                del self._seen[key]

    def _rows(self, ledger: Ledger, ids: Sequence[str]) -> Iterator[Values]:
        """The jobs, as far as they are there and have ended."""
        for at in range(0, len(ids), JOBS):
            args: dict[str, Arg] = {"lines": LINES, "deeds": HISTORY}
            call: Call[list[Any]] = Call("read", ledger.keys.home, args, list, ids[at : at + JOBS])
            read_at, *found = ledger.scripts.run(call)
            for shown in found:
                row = rows.job_row(ledger.tenant, read_at, shown) if shown else None
                if row:
                    yield row


class _Writer:
    """Rows and how far they go, gathered into transactions of one tenant."""

    def __init__(self, tenant: str, target: Archive, note: Spool | None) -> None:
        self._tenant = tenant
        self._target = target
        self._note = note
        self._places: dict[str, Place] = {}
        self._batch = Batch()
        self._came: dict[str, Place] = {}
        self.written = 0

    def place(self, source: str) -> Place:
        return self.places([source])[source]

    def places(self, sources: Sequence[str]) -> Mapping[str, Place]:
        """How far the archive has come in each, counting what this has gathered."""
        unknown = [source for source in sources if source not in self._places]
        known = self._target.progress(self._tenant, unknown) if unknown else {}
        for source in unknown:
            row = known.get(source)
            self._places[source] = Place(row.position, row.mark) if row else Place()
        return {source: self._places[source] for source in sources}

    def add(self, batch: Batch) -> None:
        self._batch.fires += batch.fires
        self._batch.entries += batch.entries
        self._batch.jobs += batch.jobs

    def came_to(self, source: str, position: int, mark: str = "") -> None:
        """All of a list up to here has been added."""
        self._places[source] = self._came[source] = Place(position, mark)
        if len(self._batch) >= AT_ONCE:
            self.flush()

    def flush(self) -> None:
        if not self._came:
            return
        self._batch.progress = [
            rows.progress_row(self._tenant, source, place.position, place.mark)
            for source, place in self._came.items()
        ]
        self._target.write(self._batch)
        if self._note is not None:
            self._note.note(self._batch.progress)
        self.written += len(self._batch)
        self._batch, self._came = Batch(), {}


def replay(spool: Spool, archive: Archive) -> None:
    """Move all that waits in a spool to the archive. Killed anywhere, it is done again and nothing is there twice."""
    for batch in spool.waiting():
        archive.write(batch)
        spool.stored(batch)
    ways = spool.ways()
    for row in ways:
        known = archive.progress(row.tenant, [row.source]).get(row.source)
        # else a part is missing, and is read from Redis again
        if (known.position if known else 0) >= row.since:
            archive.write(Batch(progress=[rows.progress_row(row.tenant, row.source, row.position, row.mark)]))
    if ways:
        spool.note([rows.progress_row(row.tenant, row.source, row.position, row.mark) for row in ways])


class _row_of:
    """What makes rows of the records of a book; `kind` is the part of a batch they belong to."""

    def __init__(self, ledger: Ledger, name: str) -> None:
        _, _, family, self._parts = keys.parse(ledger.keys.base + name)
        self._tenant = ledger.tenant
        self.kind = {"fires": "fires", "entries": "entries"}[family]

    def __call__(self, record: bytes) -> Values:
        parts = self._parts
        if self.kind == "fires":
            return rows.fire_row(self._tenant, parts["month"], parts["trigger"], parts["job_key"], record)
        return rows.entry_row(self._tenant, parts["month"], parts["job_key"], record)


def _mark(record: bytes) -> str:
    """What tells a record from another in its place, by what stays as it grows, and how it stands."""
    return f"{digest(b' '.join(record.split(b' ', 4)[:4]))}:{digest(record)}"


def _is_same(mark: str, record: bytes) -> bool:
    return mark.split(":")[0] == _mark(record).split(":")[0]


def _book_call(ledger: Ledger, name: str, place: Place) -> Call[list[bytes]]:
    """What comes after a place, and before it the last record that is archived."""
    args: dict[str, Arg] = {"name": name, "from": max(0, place.position - 1), "limit": RECORDS}
    return Call("book_read", ledger.keys.home, args, list)


def _ended(ledger: Ledger, state: str, at: int, id_: str) -> list[tuple[str, int]]:
    args: dict[str, Arg] = {"state": state, "from": at, "id": id_, "limit": RECORDS}
    return _pairs(_ask(ledger, "ended_read", args))


def _ask(ledger: Ledger, script: str, args: Mapping[str, Arg]) -> list[bytes]:
    return ledger.scripts.run(Call(script, ledger.keys.home, args, list))


def _pairs(flat: Sequence[bytes]) -> list[tuple[str, int]]:
    return [(name.decode(), int(float(at))) for name, at in zip(flat[::2], flat[1::2], strict=True)]
