"""Jobs belong to an instance of your own workflow: they pause with it, go on with it, and can end with it."""

import pytest

from tenure import Continue, Ctx, Done, Tenure
from tenure.scripts.errors import InstanceEnded
from tenure.testing import InlineWorker


def test_a_reminder_does_not_come_while_its_order_is_suspended(app: Tenure, worker: InlineWorker) -> None:
    @app.task("orders.remind", pausable=True)
    def remind(order: int) -> str:
        return f"order {order} waits for you"

    job = remind.using(instance="order-7", after="48h").enqueue(7)

    app.instances.pause("order-7", reason="stock count")

    assert job.get().status == "paused"
    assert worker.run(later="72h") == []
    assert 47 < job.get().remaining_ms / 3_600_000 <= 48, "it keeps the time it had left"
    assert "suspended" in app.jobs.why(job.id).text
    assert app.jobs.why(job.id).do[0] == "tenure instances resume order-7"

    app.instances.resume("order-7")
    worker.run(later="49h")
    assert job.result() == "order 7 waits for you"


def test_a_running_import_stops_at_once_and_goes_on_at_its_checkpoint(
    app: Tenure, worker: InlineWorker
) -> None:
    pages: list[int] = []

    @app.background("orders.import", pausable=True)
    def import_(ctx: Ctx) -> Continue | Done[int]:
        page = ctx.cursor.get("page", 0)
        if page == 1 and ctx.attempt == 1:
            app.instances.pause("order-7")
            ctx.check()  # raises LeaseLost: the right to write is gone with the word
        pages.append(page)
        return Done(3) if page == 2 else Continue({"page": page + 1}, done=page + 1, total=3)

    job = import_.using(instance="order-7").enqueue()
    worker.run()
    assert (job.get().status, pages) == ("paused", [0])

    app.instances.resume("order-7")
    worker.run()

    assert (job.result(), pages) == (3, [0, 1, 2])
    assert [(one.status, one.cause) for one in job.get().attempts] == [
        ("canceled", "paused"),
        ("succeeded", None),
    ]
    assert job.get().failures == 0, "a pause costs no attempt"


def test_what_is_cleared_on_end_is_canceled_with_its_order(app: Tenure, worker: InlineWorker) -> None:
    @app.task("orders.remind", cleared_on_end=True)
    def remind(order: int) -> None: ...

    @app.task("orders.refund")
    def refund(order: int) -> str:
        return "refunded"

    reminder = remind.using(instance="order-7", after="48h").enqueue(7)
    money = refund.using(instance="order-7").enqueue(7)

    app.instances.end("order-7", reason="the customer withdrew")
    worker.run()

    assert reminder.get().reason == "instance order-7 has ended: the customer withdrew"
    assert reminder.get().status == "canceled"
    assert money.result() == "refunded"
    late = remind.using(instance="order-7").enqueue(7)
    assert late.get().status == "canceled", "made, and canceled at once"
    with pytest.raises(InstanceEnded):
        app.instances.resume("order-7")
