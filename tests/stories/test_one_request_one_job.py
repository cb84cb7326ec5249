"""A request that may arrive twice carries a key; the second arrival finds the job of the first."""

import pytest

from tenure import Tenure
from tenure.scripts.errors import KeyReused
from tenure.testing import InlineWorker


def test_a_request_that_arrives_twice_makes_one_job(app: Tenure, worker: InlineWorker) -> None:
    charged: list[int] = []

    @app.task("orders.charge")
    def charge(order: int) -> None:
        charged.append(order)

    first = charge.using(idempotency_key="order-7").enqueue(7)
    second = charge.using(idempotency_key="order-7").enqueue(7)
    worker.run()

    assert (first.created, second.created) == (True, False)
    assert first.id == second.id
    assert charged == [7]


def test_the_same_key_for_something_else_is_a_mistake_and_refused(app: Tenure) -> None:
    @app.task("orders.charge")
    def charge(order: int) -> None: ...

    charge.using(idempotency_key="order-7").enqueue(7)

    with pytest.raises(KeyReused, match="other arguments"):
        charge.using(idempotency_key="order-7").enqueue(8)


def test_a_background_task_may_be_started_again_when_it_has_ended(app: Tenure, worker: InlineWorker) -> None:
    @app.background("orders.sync")
    def sync(shop: str) -> None: ...

    button = sync.using(idempotency_key="sync-north")
    first, impatient = button.enqueue("north"), button.enqueue("north")
    worker.run()
    tomorrow = button.enqueue("north")

    assert (first.id == impatient.id, tomorrow.created) == (True, True)
