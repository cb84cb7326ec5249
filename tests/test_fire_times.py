"""Next and last fires in a table of the user's: compare-and-set of these two, and nothing else is ever touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import BigInteger, Boolean, Column, DateTime, Engine, MetaData, String, Table, event, select

from tenure import Tenure
from tenure.fire_times import FireTimes
from tenure.lease.ledgers import Ledgers
from tenure.lease.tasks import Task
from tenure.scheduler import pausing
from tenure.scheduler.scheduler import Scheduler
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.switch import Scheduling
from tenure.scheduler.trigger import Trigger
from tenure.scripts.errors import BadInput
from tenure.testing import START, wait_until

MINUTE = 60_000
FIRST = START + 40_000
KEY = "reports.daily"
TASK = Task(KEY, lambda: None)
EVERY_MINUTE = [Trigger("default", "0 * * * * ?")]


class Desk:
    """The user's table, its writer, and schedules at whatever time the test says."""

    def __init__(self, app: Tenure, engine: Engine, table: Table, ledgers: Ledgers) -> None:
        self.app, self.engine, self.table, self.ledgers = app, engine, table, ledgers
        self.statements: list[str] = []
        event.listen(engine, "before_cursor_execute", lambda *given: self.statements.append(given[2]))

    def writer(self) -> FireTimes:
        table = self.table
        return FireTimes(
            self.app,
            self.engine,
            table,
            tenant="tenant",
            job_key="job_key",
            next_fire="next_time",
            last_fire="last_ms",
            normal=(table.c.status == "NORMAL") & table.c.deleted.is_(False),
        )

    def at(self, now: int) -> Ledgers:
        return Ledgers(self.ledgers.scripts.at(now), self.ledgers.namespace)

    def schedules(self, tenant: str = "acme", now: int = START) -> Schedules:
        return Schedules(self.at(now).of(tenant))

    def fire(self, now: int) -> None:
        Scheduler(self.at(now), "one").round()

    def add(self, tenant: str = "acme", job_key: str = KEY, **values: Any) -> None:
        row = {
            "tenant": tenant,
            "job_key": job_key,
            "status": "NORMAL",
            "deleted": False,
            "config": "mine",
            **values,
        }
        with self.engine.begin() as db:
            db.execute(self.table.insert().values(row))

    def change(self, **values: Any) -> None:
        with self.engine.begin() as db:
            db.execute(self.table.update().values(values))

    def rows(self) -> list[tuple[Any, ...]]:
        """Of each row its tenant, its name, both times in ms, and the rest."""
        with self.engine.connect() as db:
            found = db.execute(select(self.table).order_by(self.table.c.tenant, self.table.c.job_key)).all()
        return [
            (row.tenant, row.job_key, in_ms(row.next_time), row.last_ms, row.status, row.deleted, row.config)
            for row in found
        ]

    def times(self) -> list[tuple[int | None, int | None]]:
        return [(row[2], row[3]) for row in self.rows()]

    def updates(self) -> int:
        return sum(text.lstrip().upper().startswith("UPDATE") for text in self.statements)


def in_ms(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


@pytest.fixture
def desk(
    app: Tenure, engine: Engine, ledgers: Ledgers, tenure_namespace: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Desk]:
    metadata = MetaData()
    table = Table(
        f"jobs_{tenure_namespace}",
        metadata,
        Column("tenant", String(63), primary_key=True),
        Column("job_key", String(200), primary_key=True),
        Column("next_time", DateTime(timezone=True)),
        Column("last_ms", BigInteger),
        Column("status", String(20)),
        Column("deleted", Boolean),
        Column("config", String(20)),
    )
    metadata.create_all(engine)
    monkeypatch.setattr(app, "ledgers", lambda: ledgers)
    desk = Desk(app, engine, table, ledgers)
    desk.schedules().put(KEY, TASK, EVERY_MINUTE)
    yield desk
    metadata.drop_all(engine)


def overtaken(desk: Desk, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """A round that has read the row and the ledger; then `act` happens, and then it writes."""
    real = FireTimes._set

    def late(times: FireTimes, *args: Any) -> None:
        monkeypatch.setattr(FireTimes, "_set", real)
        pending.append(args[1:])

    pending: list[tuple[Any, ...]] = []
    monkeypatch.setattr(FireTimes, "_set", late)
    writer = desk.writer()
    writer.round()
    assert len(pending) == 1
    act()
    with desk.engine.begin() as db:
        real(writer, db, *pending[0])


def test_next_and_last_fires_are_written(desk: Desk) -> None:
    desk.add()
    writer = desk.writer()

    writer.round()
    assert desk.times() == [(FIRST, None)]
    desk.fire(FIRST)
    writer.round()

    assert desk.rows() == [("acme", KEY, FIRST + MINUTE, FIRST, "NORMAL", False, "mine")]


def test_the_same_job_key_in_two_tenants_is_two_schedules(desk: Desk) -> None:
    desk.schedules("beta").put(KEY, TASK, [Trigger("default", "30 * * * * ?")])
    desk.add("acme")
    desk.add("beta")

    desk.writer().round()

    assert desk.times() == [(FIRST, None), (FIRST - 30_000, None)]


def test_unchanged_times_write_nothing(desk: Desk) -> None:
    desk.add()
    writer = desk.writer()
    writer.round()
    desk.statements.clear()

    writer.round()
    desk.writer().round()

    assert desk.updates() == 0


def test_of_two_racing_writers_the_one_that_is_late_hits_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.add()

    def other() -> None:
        desk.fire(FIRST)
        desk.writer().round()

    overtaken(desk, monkeypatch, other)

    assert desk.times() == [(FIRST + MINUTE, FIRST)]


@pytest.mark.parametrize(
    "change",
    [
        {"status": "PAUSED"},
        {"deleted": True},
        {"job_key": "reports.renamed"},
        {"tenant": "beta"},
        {"last_ms": 7},
    ],
    ids=["pause", "delete", "rename", "move", "other time"],
)
def test_a_write_that_comes_late_hits_nothing_and_is_not_made_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    desk.add()

    overtaken(desk, monkeypatch, lambda: desk.change(**change))

    ((tenant, job_key, next_ms, last_ms, status, deleted, config),) = desk.rows()
    found = {"tenant": tenant, "job_key": job_key, "last_ms": last_ms, "status": status, "deleted": deleted}
    assert found == {
        "tenant": "acme",
        "job_key": KEY,
        "last_ms": None,
        "status": "NORMAL",
        "deleted": False,
        **change,
    }
    assert (next_ms, config) == (None, "mine")


def test_rows_that_are_not_normal_are_left_alone(desk: Desk) -> None:
    desk.add(status="PAUSED")
    desk.add("beta", deleted=True)
    desk.schedules("beta").put(KEY, TASK, EVERY_MINUTE)

    desk.writer().round()

    assert desk.times() == [(None, None), (None, None)]


def test_a_paused_schedule_and_a_disabled_tenant_leave_their_rows(desk: Desk) -> None:
    for tenant in ("acme", "beta"):
        desk.add(tenant)
    desk.schedules("beta").put(KEY, TASK, EVERY_MINUTE)
    pausing.pause(desk.schedules(), KEY)
    Scheduling(desk.at(START).of("beta")).set(enabled=False)

    desk.writer().round()

    assert desk.times() == [(None, None), (None, None)]


def test_rows_without_a_schedule_and_names_that_none_may_have_harm_nobody(desk: Desk) -> None:
    desk.add("No Tenant")
    desk.add("acme", "a.b\n")
    desk.add("acme", "DEFAULT.short", last_ms=7)
    desk.add("acme", "gone")
    desk.add()

    desk.writer().round()

    assert sorted(desk.times(), key=str) == [(FIRST, None), (None, 7), *[(None, None)] * 3]


def test_an_exhausted_schedule_has_no_next_fire(desk: Desk) -> None:
    desk.schedules().put(KEY, TASK, [Trigger("default", at="2026-09-21T14:14:00Z")])
    desk.add()
    desk.writer().round()
    assert desk.times() == [(FIRST, None)]
    desk.fire(FIRST)

    desk.writer().round()

    assert desk.times() == [(None, FIRST)]


def test_it_makes_no_revision(desk: Desk) -> None:
    desk.add()
    for minute in range(3):
        desk.fire(FIRST + minute * MINUTE)
        desk.writer().round()

    assert desk.schedules().get(KEY).revision == 1
    assert len(desk.schedules().revisions(KEY)) == 1


def test_all_rows_are_looked_at_page_by_page(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.fire_times.BATCH", 2)
    for tenant in ("acme", "beta"):
        for name in ("a", "b", "c"):
            desk.schedules(tenant).put(name, TASK, EVERY_MINUTE)
            desk.add(tenant, name)

    desk.writer().round()

    assert desk.times() == [(FIRST, None)] * 6


def test_a_table_without_tenants_is_of_the_default_one(desk: Desk) -> None:
    desk.schedules("default").put(KEY, TASK, [Trigger("default", "30 * * * * ?")])
    desk.add("whatever")
    table = desk.table

    FireTimes(
        desk.app, desk.engine, table, job_key="job_key", next_fire="next_time", last_fire="last_ms",
        normal=table.c.status == "NORMAL",
    ).round()  # fmt: skip

    assert desk.times() == [(FIRST - 30_000, None)]


def test_a_column_that_is_not_there_is_named(desk: Desk) -> None:
    with pytest.raises(BadInput, match="has no column for next_fire='next'"):
        FireTimes(
            desk.app, desk.engine, desk.table, job_key="job_key", next_fire="next", last_fire="last_ms",
            normal=desk.table.c.deleted.is_(False),
        )  # fmt: skip


def test_it_runs_in_a_thread_until_it_is_stopped(desk: Desk) -> None:
    desk.add()
    writer = desk.writer()

    writer.start()
    wait_until(lambda: desk.times() != [(None, None)], "the first round")

    assert writer.stop(10)
    assert desk.times() == [(FIRST, None)]
