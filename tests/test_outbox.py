"""The outbox: a job is made if and only if the caller's own transaction is committed, whatever dies on the way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, MetaData, event, insert, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from tenure import Tenure
from tenure import outbox as module
from tenure.lease.ids import new_id
from tenure.lease.ledgers import Ledgers
from tenure.lease.payload import pack
from tenure.outbox import Outbox, Relay
from tenure.scripts import Scripts
from tenure.scripts.errors import BadInput, StoreUnreachable
from tenure.testing import Died, Faults, InlineWorker, wait_until

from . import relay_process

TASK = "orders.charge"


@pytest.fixture
def outbox(app: Tenure, engine: Engine, tenure_namespace: str) -> Iterator[Outbox]:
    metadata = MetaData()
    outbox = Outbox(app, metadata, f"outbox_{tenure_namespace}")
    metadata.create_all(engine)
    yield outbox
    metadata.drop_all(engine)


@pytest.fixture
def relay(outbox: Outbox, engine: Engine) -> Relay:
    return outbox.relay(engine)


@pytest.fixture
def charge(app: Tenure) -> Any:
    @app.task(TASK)
    def charge(order: int) -> int:
        return order

    return charge


@pytest.fixture
def calls(app: Tenure, monkeypatch: pytest.MonkeyPatch) -> Faults:
    """What goes wrong in the relay's script calls."""
    faults = Faults()
    ledgers = Ledgers(Scripts(app.redis(), faults=faults), app.settings.namespace)
    monkeypatch.setattr(app, "ledgers", lambda: ledgers)
    return faults


def put(outbox: Outbox, engine: Engine, *calls: Any) -> list[str]:
    """Commit some calls."""
    with engine.begin() as db:
        return outbox.enqueue_many(db, calls)


def waiting(outbox: Outbox, engine: Engine) -> list[str]:
    with engine.connect() as db:
        return list(db.scalars(select(outbox.table.c.job_id).order_by(outbox.table.c.job_id)))


def errors(outbox: Outbox, engine: Engine) -> dict[str, str | None]:
    with engine.connect() as db:
        return {row.job_id: row.error for row in db.execute(select(outbox.table))}


def in_ledger(app: Tenure) -> int:
    return sum(app.ledger().counts().values())


# -- the caller's transaction --------------------------------------------------------------------------------


def test_a_committed_call_becomes_the_job_of_that_id(
    app: Tenure, worker: InlineWorker, outbox: Outbox, engine: Engine, relay: Relay, charge: Any
) -> None:
    with Session(engine) as session, session.begin():
        job_id = outbox.enqueue(session, charge.using(priority=2, trace="t1").call(order=7))
    assert in_ledger(app) == 0

    relay.round()

    job = app.jobs.get(job_id)
    assert (job.task, job.priority, job.status) == (TASK, 2, "pending")
    assert waiting(outbox, engine) == []
    (ran,) = worker.run()
    assert (ran.id, ran.status) == (job_id, "succeeded")


def test_a_rollback_leaves_nothing(
    app: Tenure, outbox: Outbox, engine: Engine, relay: Relay, charge: Any
) -> None:
    with Session(engine) as session:
        outbox.enqueue(session, charge.call(7))
        session.rollback()
    with engine.connect() as db:
        outbox.enqueue(db, charge.call(8))

    relay.round()

    assert waiting(outbox, engine) == []
    assert in_ledger(app) == 0


def test_a_savepoint_rolled_back_takes_its_job_along(
    app: Tenure, outbox: Outbox, engine: Engine, relay: Relay, charge: Any
) -> None:
    with Session(engine) as session, session.begin():
        kept = outbox.enqueue(session, charge.call(1))
        inner = session.begin_nested()
        outbox.enqueue(session, charge.call(2))
        inner.rollback()

    relay.round()

    assert in_ledger(app) == 1
    assert app.jobs.get(kept).status == "pending"


def test_an_open_transaction_is_not_relayed_and_holds_nobody_up(
    app: Tenure, outbox: Outbox, engine: Engine, relay: Relay, charge: Any
) -> None:
    if engine.dialect.name == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    with Session(engine) as session, session.begin():
        outbox.enqueue(session, charge.call(1))
        (other,) = put(outbox, engine, charge.call(2))

        relay.round()

        assert in_ledger(app) == 1
        assert app.jobs.get(other).status == "pending"


def test_a_bad_call_is_refused_before_anything_is_written(
    outbox: Outbox, engine: Engine, charge: Any
) -> None:
    stranger = Tenure().task("other")(lambda: None)
    with engine.begin() as db:
        for bad in (charge, stranger.call()):
            with pytest.raises(BadInput):
                outbox.enqueue_many(db, [charge.call(1), bad])

    assert waiting(outbox, engine) == []


def test_a_call_that_waits_already_is_refused_by_the_database(
    outbox: Outbox, engine: Engine, charge: Any
) -> None:
    call = charge.call(1)
    put(outbox, engine, call)

    with pytest.raises(IntegrityError):
        put(outbox, engine, call)


def test_no_calls_write_nothing(outbox: Outbox, engine: Engine) -> None:
    assert put(outbox, engine) == []


def test_the_table_may_have_a_name_of_your_own(app: Tenure) -> None:
    metadata = MetaData()

    mine = Outbox(app, metadata, table="jobs_to_send", schema="shop")
    Outbox(app, metadata)

    assert set(metadata.tables) == {"shop.jobs_to_send", "tenure_outbox"}
    assert mine.table.metadata is metadata


# -- what the relay does -------------------------------------------------------------------------------------


def test_jobs_of_many_tenants_keep_their_order(
    app: Tenure, worker: InlineWorker, outbox: Outbox, engine: Engine, relay: Relay, charge: Any
) -> None:
    ids = [put(outbox, engine, charge.call(order))[0] for order in range(20)]
    (other,) = put(outbox, engine, charge.using(tenant="north").call(1))

    relay.round()

    assert app.jobs.get(other, tenant="north").tenant == "north"
    assert [ran.id for ran in worker.run() if ran.tenant == "default"] == ids


def test_the_oldest_go_first_a_full_batch_is_followed_at_once_and_an_empty_table_waits_for_the_poll(
    outbox: Outbox, engine: Engine, charge: Any
) -> None:
    ids = put(outbox, engine, *reversed([charge.call(order) for order in range(7)]))[::-1]
    relay = outbox.relay(engine, batch=3, poll_s=9)

    assert relay.round() == 0
    assert waiting(outbox, engine) == ids[3:]
    assert [relay.round() for _ in range(3)] == [0, 9, 9]


def test_a_thousand_rows_are_few_statements(
    app: Tenure, outbox: Outbox, engine: Engine, charge: Any, calls: Faults
) -> None:
    put(outbox, engine, *(charge.call(order) for order in range(1_000)))
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda _db, _cursor, text, *_: statements.append(text))

    outbox.relay(engine, batch=1_000).round()

    assert in_ledger(app) == 1_000
    assert len([text for text in statements if not text.startswith("SET")]) == 2
    assert calls.calls.count("enqueue") == 10


def test_a_key_that_has_a_job_already_makes_no_other(
    app: Tenure, outbox: Outbox, engine: Engine, relay: Relay, charge: Any
) -> None:
    keyed = charge.using(idempotency_key="order-7")
    put(outbox, engine, keyed.call(7))
    put(outbox, engine, keyed.call(7))

    relay.round()

    assert in_ledger(app) == 1
    assert waiting(outbox, engine) == []


def test_a_delay_counts_from_the_ledger(
    app: Tenure, outbox: Outbox, engine: Engine, relay: Relay, charge: Any
) -> None:
    (job_id,) = put(outbox, engine, charge.using(after="5m").call(7))

    relay.round()

    job = app.jobs.get(job_id)
    assert job.run_at - job.created_at == 300_000


def test_a_commit_wakes_the_relay_of_the_same_process(
    app: Tenure, outbox: Outbox, engine: Engine, charge: Any
) -> None:
    relay = outbox.relay(engine, poll_s=3_600)
    relay.start()
    wait_until(lambda: relay.looks, "the first round")
    with Session(engine) as session:
        for count in (1, 2):
            with session.begin(), session.begin_nested():
                outbox.enqueue(session, charge.call(count))
            wait_until(lambda many=count: in_ledger(app) == many, "the job, long before the poll")
    scoped = scoped_session(sessionmaker(engine))
    outbox.enqueue(scoped, charge.call(3))
    scoped.commit()

    wait_until(lambda: in_ledger(app) == 3)
    assert relay.stop(10)


def test_only_the_commit_of_a_call_wakes_a_relay(
    outbox: Outbox, engine: Engine, charge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[Relay] = []
    monkeypatch.setattr(Relay, "wake", lambda relay: woken.append(relay))
    relay = outbox.relay(engine)
    with Session(engine) as session:
        with session.begin_nested():
            outbox.enqueue(session, charge.call(1))
        assert woken == []
        session.commit()
        session.execute(select(1))
        session.commit()

    assert woken == [relay]


# -- rows that the ledger refuses ----------------------------------------------------------------------------


def test_refused_rows_are_kept_with_their_error_and_the_others_pass(
    app: Tenure, outbox: Outbox, engine: Engine, charge: Any
) -> None:
    keyed = charge.using(idempotency_key="order-7")
    put(outbox, engine, keyed.call(7))
    (reused,) = put(outbox, engine, keyed.call(8))
    torn, odd, foreign = new_id(), new_id(), new_id()
    good = pack({"task": TASK}, what="it")
    with engine.begin() as db:
        for row in (
            {"job_id": torn, "tenant": "default", "request": b"\xc1torn"},
            {"job_id": odd, "tenant": "default", "request": pack([1], what="it")},
            {"job_id": foreign, "tenant": "a:b", "request": good},
            {"job_id": "no-id", "tenant": "default", "request": good},
        ):
            db.execute(insert(outbox.table), {"task": TASK, **row})
    (last,) = put(outbox, engine, charge.call(9))
    relay = outbox.relay(engine, batch=2)

    assert [relay.round() for _ in range(5)] == [0, 0, 0, 1, 1]

    assert in_ledger(app) == 2
    assert app.jobs.get(last).status == "pending"
    kept = errors(outbox, engine)
    assert set(kept) == {reused, torn, odd, foreign, "no-id"}
    assert (kept[reused] or "").startswith("KEY_REUSED: the idempotency key belongs to job")
    assert {(kept[id_] or "").split(":")[0] for id_ in (torn, odd, foreign, "no-id")} == {"BAD_INPUT"}


def test_a_refused_row_is_sent_again_when_its_error_is_taken_away(
    app: Tenure, outbox: Outbox, engine: Engine, relay: Relay, charge: Any
) -> None:
    first = charge.using(idempotency_key="order-7", unique="active").enqueue(7)
    (job_id,) = put(outbox, engine, charge.using(idempotency_key="order-7", unique="active").call(8))
    relay.round()
    first.cancel()
    relay.round()
    assert in_ledger(app) == 1

    with engine.begin() as db:
        db.execute(update(outbox.table).values(error=None))
    relay.round()

    assert app.jobs.get(job_id).status == "pending"
    assert waiting(outbox, engine) == []


@pytest.mark.parametrize("newer", [{"colour": "red"}, {"fields": {"colour": "red"}}])
def test_a_row_of_a_newer_release_is_left_for_its_relay(
    app: Tenure, outbox: Outbox, engine: Engine, charge: Any, newer: dict[str, Any]
) -> None:
    theirs = new_id()
    row = {
        "job_id": theirs,
        "tenant": "default",
        "task": TASK,
        "request": pack({"task": TASK, **newer}, what="it"),
    }
    with engine.begin() as db:
        db.execute(insert(outbox.table), row)
    put(outbox, engine, charge.call(1))

    assert outbox.relay(engine, batch=2, poll_s=9).round() == 9

    assert in_ledger(app) == 1
    assert errors(outbox, engine) == {theirs: None}


# -- what dies on the way ------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", ["index_register", "enqueue", "index_put"])
@pytest.mark.parametrize("plan", ["die_before", "die_after", "lose_reply"])
def test_a_relay_that_dies_at_a_script_call_loses_and_doubles_nothing(
    app: Tenure, outbox: Outbox, engine: Engine, charge: Any, calls: Faults, plan: str, script: str
) -> None:
    ids = put(outbox, engine, *(charge.call(order) for order in range(3)))
    getattr(calls, plan)(script)
    with pytest.raises((Died, StoreUnreachable)):
        outbox.relay(engine).round()
    assert waiting(outbox, engine) == ids

    outbox.relay(engine).round()

    assert waiting(outbox, engine) == []
    assert in_ledger(app) == 3


def test_a_store_that_is_away_keeps_the_rows(
    app: Tenure, outbox: Outbox, engine: Engine, relay: Relay, charge: Any, calls: Faults
) -> None:
    ids = put(outbox, engine, charge.call(1))
    calls.lose_reply("enqueue")
    relay.start()

    wait_until(lambda: in_ledger(app) == 1 and waiting(outbox, engine) == [], "the second try")

    assert app.jobs.get(ids[0]).status == "pending"
    assert relay.stop(10)


@pytest.mark.parametrize("step", relay_process.STEPS)
def test_a_relay_process_killed_at_any_step_loses_and_doubles_nothing(
    app: Tenure, outbox: Outbox, engine: Engine, database: str, charge: Any, step: str
) -> None:
    ids = put(outbox, engine, *(charge.call(order) for order in range(5)))
    process = relay_process.start(**whereabouts(app, outbox, database), batch=3, step=step)

    assert process.wait(30) == -9

    assert len(waiting(outbox, engine)) == (2 if step == "after commit" else 5)
    drain(outbox, engine)
    assert in_ledger(app) == 5
    assert [job.id for job in app.ledger().get_many(ids)] == ids


def test_two_relay_processes_killed_again_and_again_lose_and_double_nothing(
    app: Tenure, outbox: Outbox, engine: Engine, database: str, charge: Any
) -> None:
    committed: list[str] = []
    relays: list[subprocess.Popen[bytes]] = []
    for kill in range(5):
        relays += [relay_process.start(**whereabouts(app, outbox, database), batch=7) for _ in range(2)]
        committed += put(outbox, engine, *(charge.call(order) for order in range(100)))
        with engine.connect() as db:
            outbox.enqueue(db, charge.call(-1))  # and never commits
        before = 100 * kill
        wait_until(lambda least=before: in_ledger(app) > least, "the relays to work")
        for process in relays:
            process.kill()
            process.wait()

    drain(outbox, engine)

    assert in_ledger(app) == 500
    assert [job.id for job in app.ledger().get_many(committed)] == committed


def test_two_relays_at_once_send_each_row_once(
    app: Tenure, outbox: Outbox, engine: Engine, charge: Any, calls: Faults
) -> None:
    """On PostgreSQL the second passes what the first has locked; on SQLite it sends the same, which changes nothing."""
    put(outbox, engine, *(charge.call(order) for order in range(10)))
    first, second = outbox.relay(engine, batch=5), outbox.relay(engine, batch=5)
    seen: list[int] = []
    calls.after_each = lambda: meet()

    def meet() -> None:
        if calls.calls[-1] == "enqueue":
            calls.after_each = None
            second.round()
            seen.append(in_ledger(app))

    first.round()

    shared = engine.dialect.name == "postgresql"
    assert seen == [10 if shared else 5]
    assert len(waiting(outbox, engine)) == (0 if shared else 5)
    drain(outbox, engine)
    assert in_ledger(app) == 10


def test_a_writer_is_not_held_up_while_the_ledger_is_asked(
    app: Tenure, outbox: Outbox, engine: Engine, charge: Any, calls: Faults
) -> None:
    """Also when the engine begins each transaction aloud, as SQLAlchemy advises for SQLite."""
    event.listen(engine, "begin", lambda db: db.exec_driver_sql("BEGIN"))
    put(outbox, engine, charge.call(1))
    written: list[str] = []
    calls.after_each = lambda: write()

    def write() -> None:
        calls.after_each = None
        written.extend(put(outbox, engine, charge.call(2)))

    outbox.relay(engine).round()

    assert waiting(outbox, engine) == written


def test_a_relay_gone_silent_in_a_round_gives_its_rows_to_another(
    app: Tenure,
    outbox: Outbox,
    engine: Engine,
    charge: Any,
    calls: Faults,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if engine.dialect.name != "postgresql":
        pytest.skip("only there are rows locked")
    monkeypatch.setattr(module, "STALLED_MS", 50)
    ids = put(outbox, engine, *(charge.call(order) for order in range(3)))
    silent, other = outbox.relay(engine), outbox.relay(engine)
    calls.after_each = lambda: stall()

    def stall() -> None:
        calls.after_each = None
        assert waiting(outbox, engine) == ids
        wait_until(
            lambda: other.round() and not waiting(outbox, engine), "the server to end the silent session"
        )

    with pytest.raises(DBAPIError):
        silent.round()

    assert in_ledger(app) == 3
    silent.round()
    assert in_ledger(app) == 3


def test_without_sqlalchemy_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['sqlalchemy'] = None; import tenure.outbox"

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr

    assert "MissingExtra: the outbox needs SQLAlchemy 2" in said


def whereabouts(app: Tenure, outbox: Outbox, database: str) -> dict[str, str]:
    settings = app.settings
    return {
        "redis_url": settings.redis_url or "",
        "namespace": settings.namespace,
        "database": database,
        "table": outbox.table.name,
    }


def drain(outbox: Outbox, engine: Engine) -> None:
    """Relay until the table is empty: rows of a killed relay are free once the server has noticed."""
    relay = outbox.relay(engine)
    wait_until(lambda: relay.round() and not waiting(outbox, engine), "an empty outbox")
