"""The archive: what Redis lets go is read from a database as it was, whatever dies, is away or comes twice."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import create_engine, event, func, select, text

from tenure.archive import Archive, Archiver, Spool, archiver, spool, tables
from tenure.archive.rows import Batch
from tenure.lease.jobs import JobView
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import Fail, Succeed
from tenure.lease.retention import Keep, Retention
from tenure.lease.why import why
from tenure.scheduler.backfill import backfill_plan
from tenure.scheduler.execution_log import LogEntry
from tenure.scheduler.fire_record import Fire
from tenure.scheduler.history import find_job, is_whole
from tenure.scheduler.plan import month
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.switch import Scheduling
from tenure.scheduler.trigger import Trigger
from tenure.scripts import Call
from tenure.scripts.errors import ArchiveUnreachable, BadInput, MissingExtra, NotFound
from tenure.testing import START, Server, wipe

from . import archive_process
from .clockwork import DAY, FIRST, KEY, MINUTE, SECOND, TASK, Clockwork, pages

MONTH = month(START)
NOWHERE = {"sqlite": "sqlite:////nowhere/at/all.db", "postgresql": "postgresql+psycopg://x@/x?host=/nowhere"}


@pytest.fixture
def url(database: str, tenure_namespace: str) -> Iterator[str]:
    """A database of the test's own, empty."""
    if database.startswith("sqlite"):
        yield database
        return
    with _admin(database) as db:
        db.execute(text(f"CREATE DATABASE {tenure_namespace}"))
    yield database.replace("/postgres?", f"/{tenure_namespace}?")
    with _admin(database) as db:
        db.execute(text(f"DROP DATABASE IF EXISTS {tenure_namespace} WITH (FORCE)"))


def _admin(database: str) -> Any:
    return create_engine(database, isolation_level="AUTOCOMMIT").connect()


@pytest.fixture
def archive(url: str) -> Iterator[Archive]:
    archive = Archive.at(url)
    yield archive
    archive.close()


@pytest.fixture
def away(archive: Archive) -> Iterator[Archive]:
    """An archive of the same kind that cannot be reached."""
    away = Archive.at(NOWHERE[archive.engine.dialect.name])
    yield away
    away.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Spool]:
    folder = Spool(tmp_path / "spool")
    yield folder
    folder.close()


@pytest.fixture
def clockwork(ledgers: Ledgers, archive: Archive) -> Clockwork:
    """Six fires, five of them executed and one failed, five instants skipped as a range, and one more skipped."""
    clockwork = Clockwork(ledgers, archive)
    clockwork.put(now=START)
    for minute in range(5):
        clockwork.fire(FIRST + minute * MINUTE)
        clockwork.end(
            FIRST + minute * MINUTE, Fail("no luck\0", permanent=True) if minute == 3 else Succeed(b"\x07")
        )
    clockwork.fire(FIRST + 10 * MINUTE)
    clockwork.end(FIRST + 10 * MINUTE, Succeed())
    clockwork.schedules(FIRST + 11 * MINUTE).delete(KEY)
    return clockwork


@dataclass(frozen=True)
class Told:
    """All that is to be read of the clockwork."""

    log: list[LogEntry]
    fires: list[Fire]
    jobs: list[JobView]

    @classmethod
    def by(cls, clockwork: Clockwork) -> Told:
        schedules = clockwork.schedules(FIRST + 11 * MINUTE)
        log = list(schedules.logs(KEY, month=MONTH, limit=100).items)
        fires, more = schedules.fires(KEY, trigger="default", month=MONTH, limit=100)
        assert more is None
        ids = sorted({one.job_id for one in fires if one.job_id})
        jobs = [find_job(schedules.ledger, clockwork.history, id_) for id_ in ids]
        return cls(log, list(fires), [replace(job, read_at=0) for job in jobs])


def run(clockwork: Clockwork, archive: Archive, spool: Spool | None = None) -> Archiver:
    """Archive all that is new."""
    one = Archiver(clockwork.ledgers, archive, spool)
    while one.round() == 0.0:
        pass
    return one


def forget(clockwork: Clockwork) -> None:
    """Redis loses all."""
    wipe(clockwork.ledgers.scripts.redis, clockwork.ledgers.namespace)


def counts(archive: Archive) -> dict[str, int]:
    with archive.engine.connect() as db:
        found = {one.name: db.scalar(select(func.count()).select_from(one)) for one in tables.KEYS}
    return {name: many or 0 for name, many in found.items() if name != "tenure_progress"}


ALL = {"tenure_fires": 8, "tenure_log": 8, "tenure_jobs": 6}


# -- what Redis has let go --------------------------------------------------------------------------------------------


def test_what_redis_has_let_go_is_read_from_the_archive_as_it_was(
    clockwork: Clockwork, archive: Archive
) -> None:
    before = Told.by(replace_history(clockwork, None))
    assert [len(before.log), len(before.fires), len(before.jobs)] == [8, 8, 6]
    run(clockwork, archive)
    assert counts(archive) == ALL

    forget(clockwork)

    after = Told.by(clockwork)
    assert after.fires == before.fires
    assert [
        replace(one, message=(one.message or "").replace("\\x00", "\0") or None) for one in after.log
    ] == before.log
    assert after.jobs == before.jobs
    assert [why(job).verdict for job in after.jobs] == [why(job).verdict for job in before.jobs]


def replace_history(clockwork: Clockwork, history: Archive | None) -> Clockwork:
    return Clockwork(clockwork.ledgers, history)


def test_an_archived_instant_is_known_to_why_and_backfill(clockwork: Clockwork, archive: Archive) -> None:
    clockwork.put(now=FIRST + 11 * MINUTE)
    schedules = clockwork.schedules(FIRST + 12 * MINUTE)
    instants = [FIRST + minute * MINUTE + odd for minute in range(-1, 13) for odd in (0, 1)]
    redis_only = replace_history(clockwork, None).schedules(FIRST + 12 * MINUTE)
    before = [redis_only.records.at(_key(), "default", at) for at in instants]
    assert sum(one is not None for one in before) > 10
    run(clockwork, archive)

    forget(clockwork)

    assert [schedules.records.at(_key(), "default", at) for at in instants] == before
    clockwork.put(now=START)
    plan = backfill_plan(schedules, KEY, FIRST, FIRST + 5 * MINUTE)
    assert (plan.missed, plan.owed) == ([], [])


def _key() -> Any:
    from tenure.scheduler.job_key import JobKey

    return JobKey.parse(KEY)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 100])
def test_pages_go_from_redis_into_the_archive_and_repeat_nothing(
    clockwork: Clockwork, archive: Archive, limit: int
) -> None:
    """Redis lost its data in the middle of the month, and went on."""
    old = Told.by(replace_history(clockwork, None))
    run(clockwork, archive)
    forget(clockwork)
    later = START + DAY
    clockwork.put(now=later)
    for minute in range(3):
        clockwork.fire(later + (minute + 1) * MINUTE)
        clockwork.end(later + (minute + 1) * MINUTE, Succeed())
    if limit == 3:
        run(clockwork, archive)  # the archive may have what Redis has
    schedules = clockwork.schedules(later + 5 * MINUTE)

    log: list[LogEntry] = []
    cursor, first = None, True
    while first or cursor:
        page = schedules.logs(KEY, month=MONTH, limit=limit, cursor=cursor)
        assert len(page.items) == limit or page.next_cursor is None
        log += page.items
        cursor, first = page.next_cursor, False
    fires: list[Fire] = []
    for page in pages(schedules, KEY, month=MONTH, limit=limit):
        fires += page

    assert [one.event_id for one in log[3:]] == [one.event_id for one in old.log]
    assert [one.fire_time for one in log[:3]] == [FIRST + DAY + n * MINUTE for n in (2, 1, 0)]
    assert fires[3:] == old.fires


@pytest.mark.parametrize("through_a_spool", [False, True])
def test_a_record_that_grows_after_it_was_archived_grows_there_too(
    clockwork: Clockwork, archive: Archive, away: Archive, folder: Spool, through_a_spool: bool
) -> None:
    at = START + DAY
    clockwork.schedules(at).put(KEY, TASK, [Trigger("default", "0/10 * * * * ?")])
    Scheduling(clockwork.ledger(at)).set(enabled=False)
    for second in (10, 20, 30, 40, 50):
        clockwork.fire(at + second * SECOND)
        run(clockwork, away if through_a_spool else archive, folder)
    run(clockwork, archive, folder)
    before = Told.by(replace_history(clockwork, None))
    assert [one.count for one in before.fires[:2]] == [2, 3]

    forget(clockwork)
    clockwork.put(now=at)

    assert Told.by(clockwork).fires == before.fires
    assert [(one.event_id, one.count) for one in Told.by(clockwork).log] == [
        (one.event_id, one.count) for one in before.log
    ]


def test_a_month_that_redis_has_whole_is_not_asked_for(clockwork: Clockwork, away: Archive) -> None:
    """So nothing of it is lost to a reader while the archive is away."""
    redis: Any = clockwork.ledgers.scripts.redis
    whole = Told.by(replace_history(clockwork, None))
    redis.hset(clockwork.ledger(START).keys.home, "born", (START - 60 * DAY) * 1000)

    assert Told.by(replace_history(clockwork, away)) == whole


def test_what_may_be_in_an_archive_that_is_away_is_no_empty_list(clockwork: Clockwork, away: Archive) -> None:
    lost = replace_history(clockwork, away)
    forget(clockwork)
    clockwork.put(now=START)
    schedules = lost.schedules(START)

    for ask in (
        lambda: schedules.logs(KEY, month=MONTH),
        lambda: schedules.logs(KEY, month=MONTH, cursor="1"),
        lambda: schedules.fires(KEY, month=MONTH),
        lambda: schedules.records.at(_key(), "default", FIRST),
        lambda: find_job(schedules.ledger, away, "0" * 26),
    ):
        with pytest.raises(ArchiveUnreachable, match="database does not answer as it should"):
            ask()  # type: ignore[no-untyped-call]


def test_what_neither_has_is_not_found(clockwork: Clockwork, archive: Archive) -> None:
    run(clockwork, archive)
    schedules = clockwork.schedules(START)

    with pytest.raises(NotFound):
        schedules.logs("nothing", month=MONTH)
    with pytest.raises(NotFound):
        find_job(schedules.ledger, archive, "0" * 26)
    with pytest.raises(NotFound):
        find_job(schedules.ledger, archive, "no-id")


@pytest.mark.parametrize(
    ("of", "now", "born", "whole"),
    [
        ("202609", START, (START - 30 * DAY) * 1000, True),
        (
            "202609",
            START,
            (START - 5 * DAY) * 1000,
            False,
        ),  # its clock began in that month: it may have lost what was
        ("202609", START, "", False),
        ("202509", START, 1, True),
        ("202508", START, 1, False),  # thirteen months ago
        ("202701", START, (START - 30 * DAY) * 1000, True),
    ],
)
def test_what_redis_has_whole(of: str, now: int, born: int | str, whole: bool) -> None:
    assert is_whole(of, str(now), str(born)) is whole


# -- once, whatever happens -------------------------------------------------------------------------------------------


def test_archiving_again_writes_nothing(clockwork: Clockwork, archive: Archive) -> None:
    run(clockwork, archive)
    before = Told.by(clockwork)

    again = run(clockwork, archive)
    with archive.engine.begin() as db:
        db.execute(tables.progress.delete())
    run(clockwork, archive)

    assert again.round() == archiver.POLL_S
    assert counts(archive) == ALL
    forget(clockwork)
    assert len(Told.by(clockwork).log) == len(before.log)


def test_only_what_is_new_is_read(clockwork: Clockwork, archive: Archive) -> None:
    another = Schedules(clockwork.ledger(FIRST + 11 * MINUTE))
    another.put("another", TASK, [Trigger("default", "0 * * * * ?")])
    Schedules(clockwork.ledger(FIRST + 12 * MINUTE)).delete("another")
    one = run(clockwork, archive)
    clockwork.put(now=FIRST + 12 * MINUTE)
    clockwork.fire(FIRST + 13 * MINUTE)
    clockwork.end(FIRST + 13 * MINUTE, Succeed())
    sent: list[tuple[str, Any]] = []
    scripts = clockwork.ledgers.scripts
    one._ledgers = Ledgers(_Spy(sent, scripts), clockwork.ledgers.namespace)  # type: ignore[arg-type]

    assert one.round() == 0.0

    read = [args for script, args in sent if script == "book_read"]
    assert {args["name"]: args["from"] for args in read} == {
        f"f:{MONTH}:default:{KEY}": 7,
        f"xl:{MONTH}:{KEY}": 7,
    }
    assert len([script for script, _ in sent if script == "read"]) == 1
    assert counts(archive) == {"tenure_fires": 10, "tenure_log": 10, "tenure_jobs": 7}


def test_what_is_remembered_of_jobs_is_no_more_than_is_read_again(
    clockwork: Clockwork, archive: Archive
) -> None:
    one = run(clockwork, archive)
    assert len(one._seen) == 1
    ledger = clockwork.ledger(FIRST + 30 * MINUTE)
    ledger.enqueue(NewJob("plain"))
    clockwork.end(FIRST + 30 * MINUTE, Fail("no luck", permanent=True))

    while one.round() == 0.0:
        pass

    assert len(one._seen) == 1


class _Spy:
    """Scripts that tell what is sent."""

    def __init__(self, sent: list[tuple[str, Any]], scripts: Any) -> None:
        self._sent = sent
        self._scripts = scripts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scripts, name)

    def run(self, call: Call[Any]) -> Any:
        self._sent.append((call.script, call.args))
        return self._scripts.run(call)

    def run_all(self, calls: list[Call[Any]]) -> Any:
        self._sent += [(call.script, call.args) for call in calls]
        return self._scripts.run_all(calls)


def test_two_archivers_at_once_write_everything_once(clockwork: Clockwork, archive: Archive) -> None:
    other = Archiver(clockwork.ledgers, Archive(archive.engine))
    met: list[bool] = []
    archive.create()

    @event.listens_for(archive.engine, "connect" if archive.engine.dialect.name == "x" else "checkin")
    def _(*_: Any) -> None:
        if not met:
            met.append(True)
            while other.round() == 0.0:
                pass

    run(clockwork, archive)

    assert met
    assert counts(archive) == ALL


def test_long_lists_are_read_in_parts(
    clockwork: Clockwork, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("RECORDS", 3), ("BOOKS", 1), ("JOBS", 2), ("AT_ONCE", 2)):
        monkeypatch.setattr(archiver, name, value)

    run(clockwork, archive)

    assert counts(archive) == ALL


def test_a_list_that_began_anew_is_read_from_its_beginning(clockwork: Clockwork, archive: Archive) -> None:
    """Redis lost its data, and has as many records as before, and as many jobs, and other ones."""
    run(clockwork, archive)
    forget(clockwork)
    again = Clockwork(clockwork.ledgers)
    later = START + 40 * DAY
    again.put(now=later)
    for minute in range(9):
        again.fire(later + (minute + 1) * MINUTE)
        again.end(later + (minute + 1) * MINUTE, Succeed())
    redis: Any = clockwork.ledgers.scripts.redis
    keys = again.ledger(later).keys
    redis.rename(keys("fires", month=month(later), trigger="default", job_key=KEY), _fires(keys))
    redis.zadd(
        keys("books"), {f"f:{MONTH}:default:{KEY}": redis.zscore(keys("books"), f"xl:{month(later)}:{KEY}")}
    )

    run(clockwork, archive)

    wipe(redis, clockwork.ledgers.namespace)
    assert counts(archive) == {"tenure_fires": 8 + 9, "tenure_log": 8 + 9, "tenure_jobs": 6 + 9}


def _fires(keys: Any) -> str:
    return str(keys("fires", month=MONTH, trigger="default", job_key=KEY))


def test_a_job_is_kept_as_it_was_last_seen(clockwork: Clockwork, archive: Archive) -> None:
    run(clockwork, archive)
    ledger = clockwork.ledger(FIRST + 20 * MINUTE)
    (dead,) = ledger.list(status="dead").items
    with archive.engine.connect() as db:
        old = dict(db.execute(select(tables.jobs).where(tables.jobs.c.id == dead.id)).mappings().one())
    ledger.retry(dead.id)
    clockwork.end(FIRST + 20 * MINUTE, Succeed())
    run(clockwork, archive)

    archive.write(Batch(jobs=[old]))  # a late writer has the older state

    found = archive.job("acme", dead.id)
    assert found is not None
    assert (found.status, found.generation, len(found.attempts)) == ("succeeded", 2, 2)
    assert counts(archive)["tenure_jobs"] == 6


def test_jobs_that_went_before_they_were_archived_are_told(
    clockwork: Clockwork, archive: Archive, caplog: pytest.LogCaptureFixture
) -> None:
    run(clockwork, archive)
    ledger = clockwork.ledger(FIRST + 20 * MINUTE)
    for _ in range(9):
        ledger.enqueue(NewJob("plain"))
    for lease in ledger.claim("advance", "one", 9).leases:
        ledger.settle(lease, Succeed())
    redis: Any = ledger.scripts.redis
    redis.hset(ledger.keys.home, "keep:succeeded", "- 3")
    ledger.reap()

    run(clockwork, archive)

    assert "3 succeeded jobs of tenant acme were gone before they were archived" in caplog.text
    assert counts(archive)["tenure_jobs"] == 6 + 6, (
        "those that stay, and as many again that wait for the archive"
    )
    assert archive.progress("acme", ["lost"])["lost"].position == 3


def kept(ledger: Ledger) -> dict[str, int]:
    """The plain jobs that are still there after all that is over has gone, by state."""
    ledger.reap()
    found = Counter(job.status.value for job in ledger.list(task="plain", limit=100).items)
    return {state: found[state] for state in ("succeeded", "canceled")}


@pytest.fixture
def ended(clockwork: Clockwork, archive: Archive) -> Clockwork:
    """The archive has what it had to have; since then five more jobs have succeeded, and two were canceled."""
    run(clockwork, archive)
    ledger = clockwork.ledger(FIRST + 20 * MINUTE)
    for _ in range(7):
        ledger.enqueue(NewJob("plain"))
    *done, one, two = ledger.claim("advance", "one", 7).leases
    for lease in done:
        ledger.settle(lease, Succeed())
    for lease in (one, two):
        ledger.cancel(lease.id)
    return clockwork


def test_what_was_not_archived_outlives_its_time_until_it_is(ended: Clockwork, archive: Archive) -> None:
    late = ended.ledger(FIRST + 2 * DAY)
    assert kept(late) == {"succeeded": 5, "canceled": 2}

    run(ended, archive)

    assert kept(late)["succeeded"] == 0
    assert counts(archive)["tenure_jobs"] == 6 + 7


def test_what_was_not_archived_outlives_its_number_by_as_many_again(
    ended: Clockwork, archive: Archive
) -> None:
    ledger = ended.ledger(FIRST + 21 * MINUTE)
    Retention(ledger).set({"succeeded": Keep(most=4)})
    assert kept(ledger)["succeeded"] == 5
    Retention(ledger).set({"succeeded": Keep(most=2)})
    assert kept(ledger)["succeeded"] == 4

    run(ended, archive)

    assert kept(ledger)["succeeded"] == 2


def test_an_archiver_that_has_stopped_holds_nothing_for_over_a_week(ended: Clockwork) -> None:
    assert kept(ended.ledger(START + 7 * DAY - 1)) == {"succeeded": 5, "canceled": 2}
    assert kept(ended.ledger(START + 7 * DAY)) == {"succeeded": 0, "canceled": 0}


def test_what_an_archiver_cannot_have_stays_a_week_longer_at_most(ended: Clockwork) -> None:
    """It comes by, and gets no further."""
    for day in range(9):
        ended.ledger(START + day * DAY).scripts.run(
            Call("archived", ended.ledger(START).keys.home, {"state": "succeeded", "position": 5}, int)
        )

    assert kept(ended.ledger(FIRST + 20 * MINUTE + 8 * DAY - 1))["succeeded"] == 5
    assert kept(ended.ledger(FIRST + 20 * MINUTE + 8 * DAY))["succeeded"] == 0


def test_a_tenant_that_cannot_be_read_holds_up_no_other(
    clockwork: Clockwork, archive: Archive, caplog: pytest.LogCaptureFixture
) -> None:
    redis: Any = clockwork.ledgers.scripts.redis
    ledger = clockwork.ledgers.of("aaa")
    ledger.enqueue(NewJob("plain"))
    redis.rpush(ledger.keys("fires", month=MONTH, trigger="default", job_key=KEY), "garbage")
    redis.zadd(ledger.keys("books"), {f"f:{MONTH}:default:{KEY}": 1})

    run(clockwork, archive)
    run(clockwork, archive)

    assert counts(archive) == ALL
    assert "tenant aaa cannot be archived" in caplog.text
    wipe(redis, clockwork.ledgers.namespace)


# -- killed -----------------------------------------------------------------------------------------------------------


def whereabouts(clockwork: Clockwork, server: Server, url: str, tmp_path: Path) -> dict[str, str]:
    return {
        "redis_url": server.url or "",
        "namespace": clockwork.ledgers.namespace,
        "url": url,
        "spool": str(tmp_path / "spool"),
    }


@pytest.mark.parametrize(
    ("database", "step"),
    [
        *(("sqlite", step) for step in archive_process.READING),  # it has not come to its database yet
        *((kind, step) for kind in ("sqlite", "postgresql") for step in archive_process.WRITING),
    ],
    indirect=["database"],
)
def test_an_archiver_killed_at_any_step_loses_and_doubles_nothing(
    clockwork: Clockwork, archive: Archive, url: str, tenure_server: Server, tmp_path: Path, step: str
) -> None:
    before = Told.by(replace_history(clockwork, None))

    assert (
        archive_process.start(**whereabouts(clockwork, tenure_server, url, tmp_path), step=step).wait(60)
        == -9
    )

    run(clockwork, archive)
    assert counts(archive) == ALL
    forget(clockwork)
    assert Told.by(clockwork).jobs == before.jobs


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("step", archive_process.WRITING)
def test_an_archiver_killed_while_it_spools_loses_and_doubles_nothing(
    clockwork: Clockwork, away: Archive, folder: Spool, tenure_server: Server, tmp_path: Path, step: str
) -> None:
    where = whereabouts(clockwork, tenure_server, NOWHERE["sqlite"], tmp_path)

    assert archive_process.start(**where, step=step).wait(60) == -9

    run(clockwork, away, folder)
    assert folder.counts() == ALL


@pytest.mark.parametrize("step", [*archive_process.WRITING, *archive_process.FORGETTING])
def test_a_spool_is_stored_with_the_same_ids_whenever_its_process_dies(
    clockwork: Clockwork,
    archive: Archive,
    away: Archive,
    folder: Spool,
    url: str,
    tenure_server: Server,
    tmp_path: Path,
    step: str,
) -> None:
    before = Told.by(replace_history(clockwork, None))
    ids = [one.event_id for one in before.log]
    run(clockwork, away, folder)
    assert all(folder.has(one) for one in ids)
    forget(clockwork)
    archive.create()  # so that the first thing it writes is of the spool

    assert (
        archive_process.start(**whereabouts(clockwork, tenure_server, url, tmp_path), step=step).wait(60)
        == -9
    )

    run(clockwork, archive, folder)
    assert counts(archive) == ALL
    assert sum(folder.counts().values()) == 0
    after = Told.by(clockwork)
    assert [one.event_id for one in after.log] == ids
    assert not any(folder.has(one) for one in ids)
    assert after.jobs == before.jobs


# -- the spool --------------------------------------------------------------------------------------------------------


def test_while_the_archive_is_away_rows_go_to_the_spool(
    clockwork: Clockwork, archive: Archive, away: Archive, folder: Spool, caplog: pytest.LogCaptureFixture
) -> None:
    spooling = run(clockwork, away, folder)
    assert spooling.away
    assert folder.counts() == ALL
    assert spooling.round() == archiver.POLL_S
    assert caplog.text.count("goes to the spool") == 1
    clockwork.put(now=FIRST + 11 * MINUTE)
    clockwork.fire(FIRST + 12 * MINUTE)

    back = run(clockwork, archive, folder)

    assert not back.away
    assert sum(folder.counts().values()) == 0
    assert counts(archive) == {**ALL, "tenure_fires": 9}


def test_without_a_spool_an_archive_that_is_away_is_waited_for(clockwork: Clockwork, away: Archive) -> None:
    with pytest.raises(ArchiveUnreachable):
        Archiver(clockwork.ledgers, away).round()


def test_a_process_that_starts_while_the_archive_is_away_spools_only_what_is_new(
    clockwork: Clockwork, archive: Archive, away: Archive, folder: Spool
) -> None:
    run(clockwork, archive, folder)
    clockwork.put(now=FIRST + 11 * MINUTE)
    clockwork.fire(FIRST + 12 * MINUTE)
    clockwork.end(FIRST + 12 * MINUTE, Succeed())

    run(clockwork, away, folder)

    assert folder.counts()["tenure_fires"] == folder.counts()["tenure_log"] == 1
    run(clockwork, archive, folder)
    places = archive.progress("acme", [f"xl:{MONTH}:{KEY}", f"f:{MONTH}:default:{KEY}", "ended:succeeded"])
    assert sorted(row.position for row in places.values()) == [6, 9, 9]
    assert counts(archive) == {"tenure_fires": 9, "tenure_log": 9, "tenure_jobs": 7}


def test_an_archive_that_lost_what_it_had_is_filled_from_redis_again(
    clockwork: Clockwork, archive: Archive, away: Archive, folder: Spool
) -> None:
    """Nothing says that it has what went through the spool after that."""
    run(clockwork, archive, folder)
    clockwork.put(now=FIRST + 11 * MINUTE)
    clockwork.fire(FIRST + 12 * MINUTE)
    run(clockwork, away, folder)
    tables.metadata.drop_all(archive.engine)

    run(clockwork, archive, folder)

    assert counts(archive) == {**ALL, "tenure_fires": 9}


def test_what_went_through_a_spool_in_parts_is_read_from_redis_no_more(
    clockwork: Clockwork, archive: Archive, away: Archive, folder: Spool
) -> None:
    run(clockwork, archive, folder)
    clockwork.put(now=FIRST + 11 * MINUTE)
    for minute in (12, 13):
        clockwork.fire(FIRST + minute * MINUTE)
        clockwork.end(FIRST + minute * MINUTE, Succeed())
        run(clockwork, away, folder)

    archiver.replay(folder, archive)

    places = archive.progress("acme", [f"xl:{MONTH}:{KEY}", f"f:{MONTH}:default:{KEY}", "ended:succeeded"])
    assert sorted(row.position for row in places.values()) == [7, 10, 10]
    assert folder.ways() == []


def test_an_archive_that_goes_away_and_comes_back_while_it_is_kept(
    clockwork: Clockwork, archive: Archive, away: Archive, folder: Spool
) -> None:
    one = run(clockwork, archive, folder)
    clockwork.put(now=FIRST + 11 * MINUTE)
    clockwork.fire(FIRST + 12 * MINUTE)

    one._archive = away
    one.round()
    assert one.away
    assert folder.counts()["tenure_fires"] == 1
    one._archive = archive
    one.round()

    assert not one.away
    assert counts(archive)["tenure_fires"] == 9


def test_a_spooled_job_that_ended_anew_meanwhile_stays(
    clockwork: Clockwork, away: Archive, folder: Spool
) -> None:
    run(clockwork, away, folder)
    batches = folder.waiting()
    jobs = next(batch for batch in _stored(folder, batches) if batch.jobs)
    newer = {**jobs.jobs[0], "revision": 99}
    folder.write(Batch(jobs=[newer]))

    folder.stored(jobs)

    assert folder.counts()["tenure_jobs"] == 1


def _stored(folder: Spool, batches: Iterator[Batch]) -> Iterator[Batch]:
    for batch in batches:
        if not batch.jobs:
            folder.stored(batch)
        yield batch


def test_a_spool_that_may_go_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def why_of(place: Path) -> str | None:
        one = Spool(place)
        one.close()
        return one.volatile()

    assert "which is emptied" in (why_of(tmp_path / "spool") or "")
    monkeypatch.setattr(spool, "_temporary", list)
    monkeypatch.setattr(spool, "_file_system", lambda _: "tmpfs")
    assert "it is on tmpfs" in (why_of(tmp_path / "spool") or "")
    monkeypatch.setattr(spool, "_file_system", lambda _: "ext4")
    assert why_of(tmp_path / "spool") is None


def test_the_kind_of_a_file_system_is_known() -> None:
    assert spool._file_system(Path("/proc/self")) == "proc"
    assert spool._file_system(Path("/proc/self/not/there")) == "proc"


def test_a_spool_is_nobody_elses(folder: Spool) -> None:
    """It holds arguments and results of jobs."""
    assert folder.folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(BadInput, match="cannot be made: Not a directory"):
        Spool(tmp_path / "file" / "spool")


# -- the database -----------------------------------------------------------------------------------------------------


def test_a_database_that_is_as_it_must_be_has_no_problems(archive: Archive) -> None:
    archive.create()
    archive.create()

    assert archive.check() == []


@pytest.fixture
def ours(url: str) -> Iterator[list[Archive]]:
    """The same new database, as eight processes have it."""
    ours = [Archive.at(url) for _ in range(8)]
    yield ours
    for one in ours:
        one.close()


def test_who_makes_the_tables_while_another_is_about_to_makes_them_once(ours: list[Archive]) -> None:
    first, second, *_ = ours
    met: list[str] = []

    @event.listens_for(first.engine, "before_cursor_execute")
    def _(_db: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        if not met and any(word in statement for word in ("BEGIN", "advisory", "CREATE")):
            met.append(statement)
            second.create()

    first.create()

    assert met
    assert first.check() == []


def test_any_number_make_the_tables_at_once(ours: list[Archive]) -> None:
    start = Barrier(len(ours))

    def make(one: Archive) -> Sequence[str]:
        start.wait()
        one.create()
        return one.check()

    with ThreadPoolExecutor(len(ours)) as threads:
        assert [*threads.map(make, ours)] == [[]] * len(ours)


def test_a_check_that_cannot_be_made_does_not_advise_a_check(away: Archive) -> None:
    with pytest.raises(ArchiveUnreachable) as refused:
        away.check()

    assert "TENURE_ARCHIVE_URL" in refused.value.hint
    assert "archive check" not in refused.value.hint


DROPS: dict[str, tuple[list[str], str]] = {
    "a table": (["DROP TABLE tenure_log"], "table tenure_log is missing"),
    "an index": (
        ["DROP INDEX tenure_log_page"],
        "index tenure_log_page of tenure_log on (tenant, job_key, month, position, event_id) is missing: "
        "CREATE INDEX tenure_log_page ON tenure_log (tenant, job_key, month, position, event_id)",
    ),
    "a unique index": (
        ["DROP INDEX tenure_fires_event"],
        "unique index tenure_fires_event of tenure_fires on (event_id) is missing: "
        "CREATE UNIQUE INDEX tenure_fires_event ON tenure_fires (event_id)",
    ),
    "a column": (["ALTER TABLE tenure_log DROP COLUMN message"], "column tenure_log.message is missing"),
    "uniqueness": (
        ["DROP INDEX tenure_log_event", "CREATE INDEX tenure_log_event ON tenure_log (event_id)"],
        "index tenure_log_event of tenure_log is not unique on (event_id); it must be unique on (event_id)",
    ),
    "other columns": (
        ["DROP INDEX tenure_fires_page", "CREATE INDEX tenure_fires_page ON tenure_fires (tenant)"],
        "index tenure_fires_page of tenure_fires is not unique on (tenant); it must be not unique on (tenant, job_key, "
        "trigger_name, month, fire_time, event_id)",
    ),
}


@pytest.mark.parametrize("name", DROPS)
def test_what_a_database_lacks_is_told(archive: Archive, name: str) -> None:
    archive.create()
    statements, said = DROPS[name]
    with archive.engine.begin() as db:
        for statement in statements:
            db.execute(text(statement))

    assert archive.check() == [said]


def test_pages_use_their_index(archive: Archive) -> None:
    archive.create()
    explain = "EXPLAIN QUERY PLAN " if archive.engine.dialect.name == "sqlite" else "EXPLAIN "
    with archive.engine.begin() as db:
        if archive.engine.dialect.name == "postgresql":
            db.execute(text("SET LOCAL enable_seqscan = off"))
        plan = db.execute(
            text(
                f"{explain} SELECT * FROM tenure_log WHERE tenant = 'a' AND job_key = 'b' AND month = '202609' "
                "AND position < 5 ORDER BY position DESC, event_id DESC LIMIT 50"
            )
        ).all()

    said = str(plan)
    assert "tenure_log_page" in said
    assert "Sort" not in said
    assert "TEMP B-TREE" not in said


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ("mssql+pymssql://x", BadInput, "needs a driver"),
        ("nonsense://user:s3cret@x", BadInput, "not one of SQLAlchemy's"),
        ("postgresql+nodriver://user:s3cret@x", BadInput, "not one of SQLAlchemy's"),
        ("postgresql+asyncpg://user:s3cret@x/x", MissingExtra, "needs a driver"),
    ],
)
def test_a_url_that_cannot_be_is_refused(wrong: str, error: type[Exception], said: str) -> None:
    with pytest.raises((BadInput, MissingExtra), match=said) as refused:
        Archive.at(wrong)

    assert "s3cret" not in str(refused.value)


def test_without_sqlalchemy_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['sqlalchemy'] = None; import tenure.archive"

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr

    assert "MissingExtra: the archive needs SQLAlchemy 2" in said
