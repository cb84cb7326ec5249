"""Lists of jobs go on in the archive: each job once, newest first, and a page that Redis answers whole asks nobody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from tenure.archive import Archive, Archiver, tables
from tenure.lease.filters import Filters
from tenure.lease.jobs import JobView, Page
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import Fail, Succeed
from tenure.scheduler.job_pages import find_jobs
from tenure.scripts.errors import ArchiveUnreachable, BadInput
from tenure.scripts.states import State
from tenure.testing import START, wipe

from .clockwork import DAY

HOUR = DAY // 24
NOWHERE = {"sqlite": "sqlite:////nowhere/at/all.db", "postgresql": "postgresql+psycopg://x@/x?host=/nowhere"}


class Past:
    """Jobs of a tenant over some days, of which Redis lets those go that are older than a day, unless they are dead."""

    def __init__(self, ledgers: Ledgers, archive: Archive) -> None:
        self.ledgers = ledgers
        self.archive = archive
        self.jobs: list[JobView] = []
        self.now = START

    def at_now(self) -> Ledgers:
        return Ledgers(self.ledgers.scripts.at(self.now), self.ledgers.namespace)

    def ledger(self) -> Ledger:
        return self.at_now().of("past")

    def work(self, many: int, step: int = HOUR) -> None:
        """A job each `step`, of two tasks: each third dies, each fifth is canceled. The archiver sees it at once."""
        for _ in range(many):
            self.now += step
            ledger, nth = self.ledger(), len(self.jobs)
            made = ledger.enqueue(NewJob("a" if nth % 2 else "b")).id
            if nth % 5 == 4:
                ledger.cancel(made)
            else:
                (lease,) = ledger.claim("advance", "one").leases
                ledger.settle(lease, Fail("no luck", permanent=True) if nth % 3 == 2 else Succeed())
            self.jobs.append(ledger.get(made))
            self.keep()

    def keep(self) -> None:
        """The archiver has been there, and then the reaper."""
        archiver = Archiver(self.at_now(), self.archive)
        while archiver.round() == 0.0:
            pass
        self.ledger().reap()

    def live(self) -> set[str]:
        """What Redis has."""
        return {job.id for job in self.ledger().get_many([job.id for job in self.jobs])}

    def page(self, limit: int = 50, cursor: str | None = None, **filters: Any) -> Page:
        return find_jobs(self.ledger(), self.archive, Filters(**filters), limit=limit, cursor=cursor)

    def walk(self, limit: int, between: Callable[[], None] = lambda: None, **filters: Any) -> list[str]:
        """The ids of all pages."""
        page = self.page(limit, **filters)
        ids = [job.id for job in page.items]
        while page.next_cursor:
            between()
            page = self.page(limit, page.next_cursor, **filters)
            assert len(page.items) <= limit
            ids += [job.id for job in page.items]
        return ids

    def asked(self, status: str | None = None, task: str | None = None) -> list[str]:
        """What a list must have, newest first."""
        return [
            job.id for job in self.jobs[::-1] if status in (None, job.status) and task in (None, job.task)
        ]


@pytest.fixture
def past(ledgers: Ledgers, archive: Archive) -> Past:
    past = Past(ledgers, archive)
    past.work(60)
    live = past.live()
    assert 20 < len(live) < 40
    assert all(
        (job.status == State.DEAD or job.created_at > past.now - DAY) == (job.id in live) for job in past.jobs
    )
    return past


@pytest.mark.parametrize("limit", [1, 3, 7, 100])
@pytest.mark.parametrize("task", [None, "a"])
@pytest.mark.parametrize("status", [None, "succeeded", "dead", "canceled"])
def test_each_job_is_listed_once_and_the_newest_first(
    past: Past, limit: int, task: str | None, status: str | None
) -> None:
    tasks = None if task is None else (task,)

    assert past.walk(limit, status=status, tasks=tasks) == past.asked(status, task)


def test_what_both_have_is_shown_as_redis_has_it(past: Past) -> None:
    """A dead job is in the archive; now it is to be tried again, and is dead no more."""
    dead = past.asked("dead")[-1]
    past.ledger().retry(dead)

    assert past.walk(4, status="dead") == past.asked("dead")[:-1]
    assert past.walk(4) == past.asked()
    assert next(job for job in past.page(60).items if job.id == dead).status == State.PENDING


@pytest.mark.parametrize("status", [None, "succeeded", "canceled"])
@pytest.mark.parametrize("hours", [3, 9])
def test_what_redis_lets_go_between_two_pages_is_listed_once_all_the_same(
    past: Past, status: str | None, hours: int
) -> None:
    def later() -> None:
        past.now += hours * HOUR
        past.ledger().reap()

    assert past.walk(2, later, status=status) == past.asked(status)


@pytest.mark.parametrize("status", [None, "succeeded"])
def test_what_is_new_between_two_pages_moves_none(past: Past, status: str | None) -> None:
    before = past.asked(status)

    assert past.walk(5, lambda: past.work(1), status=status) == before


def test_when_redis_has_lost_all_the_archive_has_the_list(past: Past) -> None:
    wipe(past.ledgers.scripts.redis, past.ledgers.namespace)

    assert past.walk(7) == past.asked()
    assert past.walk(7, status="dead") == past.asked("dead")
    found = past.page(100).items
    assert [replace(one, read_at=0) for one in found] == [replace(one, read_at=0) for one in past.jobs[::-1]]


def test_pages_of_jobs_that_are_younger_than_what_has_gone_do_not_ask_the_archive(past: Past) -> None:
    past.archive = Archive.at(NOWHERE[past.archive.engine.dialect.name])

    first = past.page(10)
    second = past.page(10, first.next_cursor)

    assert [job.id for job in (*first.items, *second.items)] == past.asked()[:20]
    assert [job.id for job in past.page(100, status="dead").items] == past.asked("dead")
    with pytest.raises(ArchiveUnreachable):
        past.page(10, second.next_cursor)
    with pytest.raises(ArchiveUnreachable):
        past.page(100)
    assert past.page(status="pending").items == []


def test_a_first_page_of_nothing_asks_an_archive_that_is_away(ledgers: Ledgers, archive: Archive) -> None:
    away = Past(ledgers, Archive.at(NOWHERE[archive.engine.dialect.name]))

    with pytest.raises(ArchiveUnreachable):
        away.page()


def test_a_page_reads_no_more_rows_than_it_has_jobs(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    jobs = past.archive.jobs

    def spied(*args: Any) -> Any:
        found = jobs(*args)
        asked.append(len(found))
        return found

    monkeypatch.setattr(past.archive, "jobs", spied)

    assert past.walk(5, status="succeeded") == past.asked("succeeded")
    assert max(asked) <= 5
    assert sum(asked) <= 2 * len(past.asked("succeeded"))


@pytest.mark.parametrize(
    "filters",
    [
        {"labels": {"team": "x"}},
        {"q": "no luck"},
        {"instance": "i"},
        {"trace": "t"},
        {"created_to": START + DAY * 9},
    ],
)
def test_other_filters_search_redis_and_say_so(past: Past, filters: dict[str, Any]) -> None:
    page = past.page(100, **filters)

    assert page.redis_only
    assert {job.id for job in page.items} <= past.live()
    assert not past.page().redis_only
    assert not find_jobs(past.ledger(), None, Filters(**filters)).redis_only


def test_a_cursor_goes_on_with_its_own_list_only(past: Past) -> None:
    mixed, ended = past.page(5).next_cursor, past.page(5, status="succeeded").next_cursor
    plain = past.ledger().list(limit=5).next_cursor
    assert None not in (mixed, ended, plain)

    for cursor, filters in (
        (ended, {}),
        (mixed, {"status": "succeeded"}),
        (plain, {}),
        (f"{mixed}x", {}),
        ("x", {}),
    ):
        with pytest.raises(BadInput, match="cursor"):
            past.page(5, cursor, **filters)
    with pytest.raises(BadInput, match="cursor"):
        past.ledger().list(limit=5, cursor=mixed)
    with pytest.raises(BadInput, match="limit 101 is out of range"):
        past.page(101)


@pytest.mark.parametrize(
    ("index", "where", "time"),
    [
        ("tenure_jobs_created", "", "created_at"),
        ("tenure_jobs_of_task", "AND task = 'a'", "created_at"),
        ("tenure_jobs_ended", "AND status = 'dead'", "finished_at"),
        ("tenure_jobs_of_task_ended", "AND task = 'a' AND status = 'dead'", "finished_at"),
    ],
)
def test_each_list_has_its_index(archive: Archive, index: str, where: str, time: str) -> None:
    is_sqlite = archive.engine.dialect.name == "sqlite"
    with archive.engine.begin() as db:
        db.execute(tables.jobs.insert(), [row(number) for number in range(3_000)])
        db.execute(text("ANALYZE tenure_jobs"))
        if not is_sqlite:
            db.execute(text("SET LOCAL enable_sort = off"))
        explain = "EXPLAIN QUERY PLAN" if is_sqlite else "EXPLAIN"
        plan = db.execute(
            text(
                f"{explain} SELECT * FROM tenure_jobs WHERE tenant = 't' {where} "
                f"AND ({time}, id) < (2000, 'x') ORDER BY {time} DESC, id DESC LIMIT 50"
            )
        ).all()

    assert f"{index} " in str(plan)
    assert "Sort" not in str(plan)
    assert "TEMP B-TREE" not in str(plan)


def row(number: int) -> dict[str, Any]:
    return {
        "tenant": "t",
        "id": f"{number:026}",
        "revision": 1,
        "task": "a" if number % 20 == 0 else "b",
        "status": "dead" if number % 7 == 0 else "succeeded",
        "month": "202609",
        "created_at": number,
        "finished_at": number,
        "job": b"x" * 500,
    }


def test_an_archive_of_an_older_version_is_told_what_it_lacks_and_how_to_make_it(past: Past) -> None:
    with past.archive.engine.begin() as db:
        db.execute(text("DROP INDEX tenure_jobs_ended"))
    before = past.walk(7, status="dead")
    (said,) = past.archive.check()
    told, _, statement = said.partition(": ")
    assert told == "index tenure_jobs_ended of tenure_jobs on (tenant, status, finished_at, id) is missing"

    with past.archive.engine.begin() as db:
        db.execute(text(statement))

    assert past.archive.check() == []
    assert past.walk(7, status="dead") == before
