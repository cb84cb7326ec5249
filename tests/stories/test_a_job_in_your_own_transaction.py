"""A row in your database and the job that works on it: both or neither, by a table that a relay empties."""

import pytest
from sqlalchemy import Engine, MetaData, create_engine, text
from sqlalchemy.orm import Session

from tenure import TaskHandle, Tenure
from tenure.outbox import Outbox
from tenure.testing import InlineWorker


@pytest.fixture
def engine() -> Engine:
    return create_engine("sqlite://")


@pytest.fixture
def outbox(app: Tenure, engine: Engine) -> Outbox:
    metadata = MetaData()
    outbox = Outbox(app, metadata)
    metadata.create_all(engine)
    with engine.begin() as db:
        db.execute(text("CREATE TABLE orders (number INTEGER)"))
    return outbox


@pytest.fixture
def charge(app: Tenure) -> TaskHandle[[int], str]:
    @app.task("orders.charge")
    def charge(order: int) -> str:
        return f"order {order} is charged"

    return charge


def test_an_order_that_is_committed_is_charged(
    app: Tenure, worker: InlineWorker, engine: Engine, outbox: Outbox, charge: TaskHandle[[int], str]
) -> None:
    with Session(engine) as session, session.begin():
        session.execute(text("INSERT INTO orders VALUES (7)"))
        job_id = outbox.enqueue(session, charge.call(7))

    outbox.relay(engine).round()
    worker.run()

    assert app.jobs.get(job_id).status == "succeeded"


def test_an_order_that_is_rolled_back_is_not(
    app: Tenure, worker: InlineWorker, engine: Engine, outbox: Outbox, charge: TaskHandle[[int], str]
) -> None:
    with Session(engine) as session:
        session.execute(text("INSERT INTO orders VALUES (7)"))
        outbox.enqueue(session, charge.call(7))
        session.rollback()

    outbox.relay(engine).round()

    assert worker.run() == []
