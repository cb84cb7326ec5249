"""A business row follows its task: by code with a fixed target, only if its user may, and whatever dies on the way."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Engine,
    Float,
    Integer,
    MetaData,
    String,
    Table,
    event,
    insert,
    select,
    update,
)

from tenure import Tenure
from tenure.bindings import Bound, BoundRecord, bound
from tenure.lease.bindings import HOLD_MS, Binder, Rows
from tenure.lease.holds import Holds
from tenure.lease.instances import Instances
from tenure.lease.jobs import BINDINGS, BoundTo, JobView, Lease
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import Fail, NextChunk, Succeed
from tenure.lease.retention import Retention
from tenure.lease.sweep import Sweep
from tenure.lease.tasks import Registry
from tenure.lease.who import whoami
from tenure.rows import BoundRow
from tenure.scripts import Scripts
from tenure.scripts.errors import BadInput, NotAllowed, RightsUnknown, StoreUnreachable, UnknownBinding
from tenure.testing import START, Died, Faults, wait_until

from . import binder_process
from .given import At, claim

BAD = BoundTo("none")
BOUND = {"background": "1", "binding": "orders", "record": "order:7"}


# -- what is written, on a virtual clock ------------------------------------------------------------------------------


@dataclass
class Row:
    """A business row with one writer, which may be out of order."""

    says: list[Bound] = field(default_factory=list[Bound])
    broken: bool = False

    def write(self, task: JobView, clock: int) -> None:
        if self.broken:
            raise OSError("the database is away")
        self.says.append(bound(task, clock))

    @property
    def words(self) -> list[tuple[str, int | None]]:
        return [(one.status, one.done) for one in self.says]


@pytest.fixture
def row() -> Row:
    return Row()


def look(ledger: Ledger, row: Row) -> int | None:
    """One visit of whoever writes; answers when the next is wanted."""
    ledgers = Ledgers(ledger.scripts, ledger.keys.namespace)
    return Binder(ledgers, {"orders": row.write}, Registry()).bring_up(ledger.tenant)


def test_a_row_follows_its_task_from_acceptance_to_its_end(ledger: Ledger, at: At, row: Row) -> None:
    ledger.enqueue(NewJob("import", fields=BOUND))
    look(at(START), row)
    lease = claim(at(START + 1000))
    look(at(START + 1000), row)
    at(START + 2000).settle(lease, NextChunk(b"c", done=40, total=100))
    look(at(START + 2000), row)
    lease = claim(at(START + 3000))
    look(at(START + 3000), row)
    at(START + 4000).settle(lease, Succeed())
    look(at(START + 4000), row)

    assert row.words == [
        ("accepted", None),
        ("running", None),
        ("running", 40),
        ("running", 40),
        ("done", 100),
    ]
    assert [one.percent for one in row.says] == [None, None, 40.0, 40.0, 100.0]
    assert {one.record for one in row.says} == {BoundRecord("order", "7", ledger.tenant)}
    assert look(at(START + 9000), row) is None


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (lambda ledger, lease: ledger.settle(lease, Fail("no", permanent=True)), "failed"),
        (lambda ledger, lease: ledger.settle(lease, Fail("no", delay_ms=60_000)), "accepted"),
        (lambda ledger, lease: ledger.cancel(lease.id), "canceled"),
        (lambda ledger, lease: Instances(ledger).pause("order-7"), "accepted"),
    ],
    ids=["dead", "waits for another try", "canceled", "paused"],
)
def test_each_state_has_its_word(
    ledger: Ledger, row: Row, end: Callable[[Ledger, Lease], object], status: str
) -> None:
    ledger.enqueue(NewJob("import", fields={**BOUND, "instance": "order-7", "pausable": "1"}))
    end(ledger, claim(ledger))

    look(ledger, row)

    assert [one.status for one in row.says] == [status]


def test_a_task_is_written_four_times_a_second_at_most_and_its_last_word_always(
    ledger: Ledger, at: At, row: Row
) -> None:
    ledger.enqueue(NewJob("import", fields=BOUND))
    lease = claim(ledger)
    for ms in range(0, 1000, 10):
        at(START + ms).report(lease, cursor=b"c", done=ms, total=2000)
        look(at(START + ms), row)

    assert [one.done for one in row.says] == [0, 250, 500, 750]
    at(START + 1000).settle(lease, Succeed())
    look(at(START + 1000), row)
    assert row.words[-1] == ("done", 2000)


def test_what_came_just_after_a_write_is_written_when_its_time_has_come(
    ledger: Ledger, at: At, row: Row
) -> None:
    ledger.enqueue(NewJob("import", fields=BOUND))
    lease = claim(ledger)
    look(ledger, row)
    at(START + 1).settle(lease, Succeed())

    assert at(START + 1).index.take(BINDINGS, 9).next_due_ms == START + 250
    assert look(at(START + 249), row) == START + 250
    assert look(at(START + 250), row) is not None
    assert [one.status for one in row.says] == ["running", "done"]


def test_reports_of_a_running_task_are_seen_within_a_second(ledger: Ledger, at: At, row: Row) -> None:
    ledger.enqueue(NewJob("import", fields=BOUND))
    lease = claim(ledger)
    look(ledger, row)
    at(START + 300).report(lease, cursor=b"c", done=5, total=9)

    visit = at(START + 1000).index.take(BINDINGS, 9)

    assert visit.tenants == [ledger.tenant]
    look(at(START + 1000), row)
    assert row.words[-1] == ("running", 5)


def test_the_index_hears_of_an_acceptance_a_claim_and_an_end(ledger: Ledger, at: At, row: Row) -> None:
    def wanted(ms: int) -> list[str]:
        found = at(START + ms).index.take(BINDINGS, 9).tenants
        look(at(START + ms), row)
        return found

    ledger.enqueue(NewJob("import", fields=BOUND))
    assert wanted(0) == [ledger.tenant]
    lease = claim(at(START + 500))
    assert wanted(500) == [ledger.tenant]
    at(START + 800).settle(lease, Succeed())
    assert wanted(800) == [ledger.tenant]
    assert wanted(60_000) == []


def test_the_sweep_finds_rows_that_the_index_forgot(ledgers: Ledgers, ledger: Ledger, at: At) -> None:
    ledger.enqueue(NewJob("import", fields=BOUND))
    at(START).index.put([])
    redis: Any = ledger.scripts.redis
    redis.delete(ledger.index.keys("due", queue=BINDINGS), ledger.index.keys("seen", queue=BINDINGS))
    assert at(START).index.take(BINDINGS, 9).tenants == []

    Sweep(ledgers).round()

    assert at(START).index.take(BINDINGS, 9).tenants == [ledger.tenant]


def test_a_row_is_written_although_the_tenants_jobs_are_held(ledger: Ledger, at: At, row: Row) -> None:
    ledger.enqueue(NewJob("import", fields=BOUND))
    look(ledger, row)
    Holds(ledger).add(reason="stock count")
    ledger.cancel(ledger.list().items[0].id)

    assert at(START + 250).index.take(BINDINGS, 9).tenants == [ledger.tenant]
    look(at(START + 250), row)
    assert row.words[-1] == ("canceled", None)


def test_a_binding_that_fails_changes_nothing_of_the_task_and_is_tried_again_ever_more_slowly(
    ledger: Ledger, at: At, row: Row
) -> None:
    row.broken = True
    job = ledger.enqueue(NewJob("import", fields=BOUND)).id
    ledger.settle(claim(ledger), Succeed())
    now, pauses = START, list[int]()
    for _ in range(8):
        look(at(now), row)
        due = at(now).index.take(BINDINGS, 9).next_due_ms
        assert due
        pauses.append((due - now) // 1000)
        now = due

    task = at(now).get(job)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    assert task.status == "succeeded"
    assert task.bound
    assert (task.bound.error, task.bound.tries) == ("OSError: the database is away", 8)

    row.broken = False
    look(at(now), row)
    assert row.words == [("done", None)]
    assert (at(now).get(job).bound or task.bound).error is None


def test_a_failing_binding_waits_although_its_task_goes_on(ledger: Ledger, at: At, row: Row) -> None:
    ledger.enqueue(NewJob("import", fields=BOUND))
    row.broken = True
    look(ledger, row)
    row.broken = False

    claim(at(START + 10))
    look(at(START + 999), row)
    assert row.says == []
    look(at(START + 1000), row)
    assert row.words == [("running", None)]


def test_one_who_writes_is_left_alone_and_one_who_died_is_not_missed(
    ledger: Ledger, at: At, row: Row
) -> None:
    ledger.enqueue(NewJob("import", fields=BOUND))
    (taken,), _ = Rows(ledger).take(["orders"])  # and dies

    claim(at(START + 10))
    look(at(START + HOLD_MS - 1), row)
    assert row.says == []
    look(at(START + HOLD_MS), row)
    assert row.words == [("running", None)]
    assert row.says[0].clock > taken.clock


def test_a_late_word_of_a_slow_writer_is_passed_over(ledger: Ledger, at: At, row: Row) -> None:
    job = ledger.enqueue(NewJob("import", fields=BOUND)).id
    (slow,), _ = Rows(ledger).take(["orders"])
    ledger.cancel(job)
    later = at(START + HOLD_MS)
    look(later, row)

    Rows(later).done([(slow, "OSError: too slow")])
    Rows(later).done([(slow, None)])

    task = later.get(job)
    assert task.bound
    assert (task.bound.revision, task.bound.error) == (task.revision, None)


def test_what_changed_while_its_row_was_written_is_written_a_moment_later(
    ledger: Ledger, at: At, row: Row
) -> None:
    ledger.enqueue(NewJob("import", fields=BOUND))
    (taken,), _ = Rows(ledger).take(["orders"])
    claim(at(START + 10))

    Rows(at(START + 20)).done([(taken, None)])

    assert look(at(START + 269), row) == START + 270
    look(at(START + 270), row)
    assert row.words == [("running", None)]


def test_a_word_that_is_said_twice_counts_once(ledger: Ledger, at: At, row: Row) -> None:
    job = ledger.enqueue(NewJob("import", fields=BOUND)).id
    (taken,), _ = Rows(ledger).take(["orders"])
    for ms in (0, 100):
        Rows(at(START + ms)).done([(taken, None)])

    at(START + 200).cancel(job)

    look(at(START + 250), row)
    assert row.words == [("canceled", None)]


def test_each_of_several_rows_has_its_own_word(ledger: Ledger) -> None:
    for order in ("7", "8", "9"):
        ledger.enqueue(NewJob("import", fields={**BOUND, "record": f"order:{order}"}))
    taken, _ = Rows(ledger).take(["orders"])

    Rows(ledger).done(list(zip(taken, (None, "OSError: away", None), strict=True)))

    found = [ledger.get(one.task.id).bound or BAD for one in taken]
    assert [one.error for one in found] == [None, "OSError: away", None]
    assert [one.revision is None for one in found] == [False, True, False]


def test_a_running_task_without_news_is_looked_at_each_second(ledger: Ledger, at: At, row: Row) -> None:
    ledger.enqueue(NewJob("import", fields=BOUND))
    claim(ledger)
    look(ledger, row)

    assert [look(at(START + ms), row) for ms in (1000, 2000)] == [START + 2000, START + 3000]
    assert row.words == [("running", None)]


def test_a_record_leads_on_to_its_newest_task_when_an_older_one_has_gone(
    ledger: Ledger, at: At, row: Row
) -> None:
    first, second = (ledger.enqueue(NewJob("import", fields=BOUND)).id for _ in range(2))
    ledger.cancel(first)
    Retention(ledger).set({"canceled": "1s"})
    at(START + 2000).reap()
    assert ledger.get_many([first]) == []

    claim(at(START + 3000))
    look(at(START + 3000), row)

    assert [(one.task_id, one.status) for one in row.says] == [(second, "running")]


def test_a_record_leads_to_the_task_that_was_accepted_last(ledger: Ledger, at: At, row: Row) -> None:
    first = ledger.enqueue(NewJob("import", fields=BOUND)).id
    second = ledger.enqueue(NewJob("import", fields=BOUND)).id
    ledger.cancel(first)
    look(ledger, row)

    assert [one.task_id for one in row.says] == [second]
    assert (ledger.get(first).bound or BAD).superseded
    ledger.retry(first)  # a person has begun it anew: the row is its own again
    look(at(START + 300), row)
    assert [one.task_id for one in row.says] == [second, first]
    assert (ledger.get(second).bound or BAD).superseded
    assert not (ledger.get(first).bound or BAD).superseded


def test_other_bindings_are_left_to_processes_that_know_them(ledger: Ledger, at: At, row: Row) -> None:
    job = ledger.enqueue(NewJob("import", fields={**BOUND, "binding": "invoices"})).id

    assert look(ledger, row) == START + 5000
    assert (ledger.get(job).bound or BAD).tries == 0

    taken, _ = Rows(at(START + 5000)).take(["invoices"])
    assert len(taken) == 1


def test_nothing_is_kept_of_a_task_whose_retention_is_over(ledger: Ledger, at: At, row: Row) -> None:
    job = ledger.enqueue(NewJob("import", fields=BOUND)).id
    ledger.cancel(job)
    Retention(ledger).set({"canceled": "1s"})
    at(START + 2000).reap()

    redis: Any = ledger.scripts.redis
    assert ledger.get_many([job]) == []
    assert not redis.exists(ledger.keys("bound"), ledger.keys("bound_to"))


# -- the user's table -------------------------------------------------------------------------------------------------


@pytest.fixture
def orders(engine: Engine, tenure_namespace: str) -> Iterator[Table]:
    """Orders 7 and 8, in a table with columns for what is written and some that are not."""
    metadata = MetaData()
    table = Table(
        f"orders_{tenure_namespace}",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("shop", String(40), nullable=False),
        Column("note", String(40), nullable=False),
        Column("import_status", String(20)),
        Column("import_task", String(26)),
        Column("import_percent", Float),
        Column("import_eta", DateTime(timezone=True)),
        Column("import_clock", BigInteger),
    )
    metadata.create_all(engine)
    with engine.begin() as db:
        db.execute(insert(table), [{"id": n, "shop": "default", "note": "fragile"} for n in (7, 8)])
    yield table
    metadata.drop_all(engine)


def target(engine: Engine, table: Table, **options: Any) -> BoundRow:
    return BoundRow(
        engine,
        table,
        key="id",
        status="import_status",
        task_id="import_task",
        progress="import_percent",
        eta="import_eta",
        clock="import_clock",
        **options,
    )


def stands(engine: Engine, table: Table, order: int = 7) -> dict[str, Any]:
    with engine.connect() as db:
        return dict(db.execute(select(table).where(table.c.id == order)).mappings().one())


def status(engine: Engine, table: Table, order: int = 7) -> str | None:
    found: str | None = stands(engine, table, order)["import_status"]
    return found


def said(clock: int = 5, order: str = "7", tenant: str = "default", **more: Any) -> Bound:
    fields: dict[str, Any] = {
        "status": "running",
        "done": 1,
        "total": 3,
        "percent": 33.3,
        "eta": None,
        "revision": 2,
    }
    return Bound(BoundRecord("order", order, tenant), "import", "T1", **{**fields, **more}, clock=clock)


def test_one_row_is_written_and_only_its_columns(engine: Engine, orders: Table) -> None:
    before = stands(engine, orders, 8)
    eta = datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)

    target(engine, orders)(said(eta=eta))

    row = stands(engine, orders)
    assert row["import_eta"].replace(tzinfo=UTC) == eta
    assert {**row, "import_eta": None} == {
        "id": 7,
        "shop": "default",
        "note": "fragile",
        "import_status": "in_progress",
        "import_task": "T1",
        "import_percent": 33.3,
        "import_eta": None,
        "import_clock": 5,
    }
    assert stands(engine, orders, 8) == before


def test_what_is_older_is_not_written_over_what_is_newer(engine: Engine, orders: Table) -> None:
    write = target(engine, orders)

    write(said(clock=5, status="done"))
    write(said(clock=4, status="running"))
    write(said(clock=5, status="running"))

    assert status(engine, orders) == "done"


@pytest.mark.parametrize("order", ["9", "seven", "7 OR 1=1"])
def test_a_record_without_a_row_is_told(engine: Engine, orders: Table, order: str) -> None:
    with pytest.raises(Exception, match=r"no row|no id"):
        target(engine, orders)(said(order=order))

    assert status(engine, orders) is None


def test_the_row_of_another_tenant_or_kind_is_not_touched(engine: Engine, orders: Table) -> None:
    with pytest.raises(Exception, match="no row"):
        target(engine, orders, tenant="shop")(said(tenant="other"))
    with pytest.raises(Exception, match="of type 'invoice'"):
        target(engine, orders, record_type="invoice")(said())

    assert status(engine, orders) is None
    target(engine, orders, tenant="shop", record_type="order", words={"running": "busy"})(said())
    assert status(engine, orders) == "busy"


def test_columns_and_words_that_do_not_exist_are_refused(engine: Engine, orders: Table) -> None:
    with pytest.raises(BadInput, match=r"no column for status='state'.*"):
        BoundRow(engine, orders, key="id", status="state", task_id="import_task", clock="import_clock")
    with pytest.raises(BadInput, match="for no status"):
        target(engine, orders, words={"finished": "x"})


# -- from the application ---------------------------------------------------------------------------------------------


@pytest.fixture
def load(app: Tenure, engine: Engine, orders: Table) -> Any:
    """A task that is bound to an order; user `eve` may not."""
    app.binding(
        "orders", target(engine, orders), may=lambda user, record: user != "eve" and record.type == "order"
    )

    @app.background("orders.load")
    def load() -> None: ...

    return load.using(binding="orders", record=("order", "7"), by="ada")


def settle_down(app: Tenure) -> None:
    """Let a process that stays do its rounds until nothing is behind."""
    sweep, binder = Sweep(app.ledgers()), Binder(app.ledgers(), app.bindings.writers, app.registry)

    def written() -> bool:
        sweep.round()
        binder.round()
        task = app.jobs.list().items[0]
        return task.bound is not None and task.bound.revision == task.revision

    wait_until(written, "the row to follow")


def test_the_row_is_marked_when_the_task_is_accepted(
    app: Tenure, engine: Engine, orders: Table, load: Any
) -> None:
    job = load.enqueue()

    row = stands(engine, orders)
    assert (row["import_status"], row["import_task"]) == ("in_progress", job.id)
    assert app.jobs.list(record=("order", "7")).items[0].id == row["import_task"]
    assert job.get().record == ("order", "7")


def test_a_no_means_no_task_and_an_untouched_row(
    app: Tenure, engine: Engine, orders: Table, load: Any
) -> None:
    before = stands(engine, orders)
    for refused in (load.using(by="eve"), load.using(record=("invoice", "7"))):
        for ask in (refused.enqueue, refused.call):
            with pytest.raises(NotAllowed, match="may not start a task for"):
                ask()

    assert app.jobs.list().items == []
    assert stands(engine, orders) == before


def test_only_true_is_a_yes(app: Tenure, load: Any) -> None:
    async def later(user: str, record: BoundRecord) -> bool:
        return False

    with pytest.raises(BadInput, match="no plain function"):
        app.binding("late", print, may=later)  # type: ignore[arg-type]
    app.binding("odd", print, may=lambda user, record: "maybe")  # type: ignore[arg-type, return-value]
    with pytest.raises(NotAllowed):
        load.using(binding="odd").enqueue()


def test_who_cannot_be_asked_for_may_not(app: Tenure, load: Any) -> None:
    app.mask("s3cret-rights")

    def may(user: str, record: BoundRecord) -> bool:
        raise OSError(f"no way to db://tenure:hunter2222@rights with s3cret-rights for {user}")

    def no(user: str, record: BoundRecord) -> bool:
        raise NotAllowed("not on Sundays")

    app.binding("away", print, may=may)
    app.binding("strict", print, may=no)

    for ask in (load.using(binding="away").enqueue, load.using(binding="away").call):
        with pytest.raises(RightsUnknown, match="`may` of binding 'away' raised OSError: no way") as failed:
            ask()
        assert isinstance(failed.value.__cause__, OSError)
        assert "hunter2222" not in str(failed.value)
        assert "s3cret-rights" not in str(failed.value)
    with pytest.raises(NotAllowed, match="not on Sundays"):
        load.using(binding="strict").enqueue()
    assert app.jobs.list().items == []


def test_who_is_not_named_is_who_runs_the_process(app: Tenure) -> None:
    asked: list[str] = []
    app.binding("orders", print, may=lambda user, record: not asked.append(user))
    app.background("orders.load")(lambda: None).using(binding="orders", record=("order", "7")).call()

    assert asked == [whoami()]


def test_what_cannot_be_bound_is_refused(app: Tenure, load: Any) -> None:
    @app.task("plain")
    def plain() -> None: ...

    for call, error, text in (
        (load.using(binding="order"), UnknownBinding, "no binding 'order'"),
        (load.using(record=None), BadInput, "no record"),
        (plain.using(binding="orders", record=("order", "7")), BadInput, "no background task"),
    ):
        with pytest.raises(error, match=text):
            call.enqueue()
    with pytest.raises(BadInput, match="registered twice"):
        app.binding("orders", print, may=lambda user, record: True)


def test_a_second_press_of_the_button_leaves_the_row_alone(
    app: Tenure, engine: Engine, orders: Table, load: Any
) -> None:
    first = load.using(idempotency_key="import-7").enqueue()
    again = load.using(idempotency_key="import-7", record=("order", "8")).enqueue()

    assert (again.id, again.created) == (first.id, False)
    assert status(engine, orders, 8) is None


def test_what_a_writer_raises_is_told_without_secrets(app: Tenure, caplog: pytest.LogCaptureFixture) -> None:
    def writer(_: Bound) -> None:
        raise OSError("tiger99 of hunter2! at postgresql://u:pw1234@db/x, password=abc12345")

    app.mask("hunter2!")
    app.binding("odd", writer, may=lambda user, record: True)

    @app.background("odd.load")
    def load(password: str) -> None: ...

    job = load.using(binding="odd", record=("order", "7")).enqueue("tiger99")

    said = "OSError: *** of *** at postgresql://u:***@db/x, password=***"
    bound_to = job.get().bound
    assert bound_to is not None
    assert bound_to.error == said
    assert caplog.messages == [f"binding odd of task {job.id} cannot be written: {said}"]


def test_a_task_is_accepted_although_its_row_cannot_be_marked(
    app: Tenure, engine: Engine, orders: Table, load: Any
) -> None:
    with engine.begin() as db:
        db.execute(orders.delete())

    job = load.enqueue()

    bound_to = job.get().bound
    assert job.created
    assert "has no row for" in bound_to.error
    with engine.begin() as db:
        db.execute(insert(orders), [{"id": 7, "shop": "default", "note": "back"}])
    settle_down(app)
    assert status(engine, orders) == "in_progress"


def test_a_callback_is_told_what_a_row_is_told(app: Tenure) -> None:
    heard: list[Bound] = []

    @app.binding("orders", may=lambda user, record: True)
    def write(bound: Bound) -> None:
        heard.append(bound)

    load = app.background("orders.load")(lambda: None)
    job = load.using(tenant="acme", binding="orders", record=("order", "7")).enqueue()

    (one,) = heard
    assert (one.record, one.task, one.task_id, one.status) == (
        ("order", "7", "acme"),
        "orders.load",
        job.id,
        "accepted",
    )


# -- whatever dies ----------------------------------------------------------------------------------------------------


def on_calls(app: Tenure, monkeypatch: pytest.MonkeyPatch) -> Faults:
    faults = Faults()
    ledgers = Ledgers(Scripts(app.redis(), faults=faults), app.settings.namespace)
    monkeypatch.setattr(app, "ledgers", lambda: ledgers)
    return faults


@pytest.mark.parametrize("script", ["enqueue", "bindings_take", "bindings_done"])
@pytest.mark.parametrize("how", ["die_before", "die_after", "lose_reply"])
def test_the_acceptance_mark_survives_a_death_at_each_call(
    app: Tenure,
    engine: Engine,
    orders: Table,
    load: Any,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    how: str,
) -> None:
    """Either there is no task and the row is untouched, or the row tells of it in the end."""
    monkeypatch.setattr("tenure.lease.bindings.HOLD_MS", 50)
    faults = on_calls(app, monkeypatch)
    getattr(faults, how)(script)
    with suppress(Died, StoreUnreachable):
        load.enqueue()
    monkeypatch.undo()

    jobs = app.jobs.list().items
    if not jobs:
        assert (script, how) == ("enqueue", "die_before")
        assert status(engine, orders) is None
        return
    settle_down(app)
    row = stands(engine, orders)
    assert (row["import_status"], row["import_task"]) == ("in_progress", jobs[0].id)


@pytest.mark.parametrize("step", binder_process.STEPS)
def test_a_binder_killed_at_any_step_is_not_missed(
    app: Tenure, engine: Engine, orders: Table, database: str, load: Any, step: str
) -> None:
    """Killed with -9 at a call of the ledger or of the database; what it had in hand is done by the next one."""
    job = app.enqueue(load.task, (), {}, load.options)
    ledger = app.ledger()
    ledger.settle(claim(ledger), Succeed())

    killed = binder_process.start(
        redis_url=str(app.settings.redis_url),
        namespace=app.settings.namespace,
        database=database,
        table=orders.name,
        step=step,
    )
    assert killed.wait(60) == -signal.SIGKILL

    settle_down(app)
    row = stands(engine, orders)
    assert (row["import_status"], row["import_task"]) == ("done", job.id)


def test_a_database_that_is_away_for_a_while_changes_no_outcome(
    app: Tenure, engine: Engine, orders: Table, load: Any
) -> None:
    away = [True]

    @event.listens_for(engine, "before_cursor_execute")
    def _(*_: Any) -> None:
        if away[0]:
            raise OSError("the database is away")

    job = load.enqueue()
    ledger = app.ledger()
    ledger.settle(claim(ledger), Succeed())
    view = job.get()
    assert (view.status, view.bound.error) == ("succeeded", "OSError: the database is away")

    away[0] = False
    settle_down(app)
    assert status(engine, orders) == "done"


def test_processes_that_race_leave_the_last_word(
    app: Tenure, engine: Engine, orders: Table, load: Any
) -> None:
    """Two who both have it in hand, the slower one with the older state."""
    load.enqueue()
    ledger = app.ledger()
    with engine.begin() as db:
        db.execute(update(orders).values(import_clock=None, import_status=None))
    lease = claim(ledger)
    wait_until(lambda: Rows(ledger).take(["orders"])[0] != [] or None, "a row to take")
    slow = bound(ledger.get(lease.id), 1)
    ledger.settle(lease, Succeed())
    quick = bound(ledger.get(lease.id), 2)

    write = target(engine, orders)
    write(quick)
    write(slow)

    assert status(engine, orders) == "done"
