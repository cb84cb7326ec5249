"""A job that fails is tried again after a pause that grows; after its last attempt it is dead, and says why."""

import pytest

from tenure import Retry, RetryAfter, Skip, Tenure
from tenure.scripts.errors import JobFailed
from tenure.testing import InlineWorker


def test_a_job_that_fails_once_succeeds_at_its_second_attempt(app: Tenure, worker: InlineWorker) -> None:
    calls = iter([1, 2])

    @app.task("bank.pay")
    def pay(order: int) -> str:
        if next(calls) == 1:
            raise ConnectionError("the bank does not answer")
        return "paid"

    job = pay.enqueue(7)
    worker.run()
    assert job.get().status == "pending"
    assert worker.run() == [], "not before the pause is over"

    worker.run(later="40s")

    assert job.result() == "paid"
    assert [attempt.status for attempt in job.get().attempts] == ["failed", "succeeded"]
    assert job.get().attempts[0].error == "ConnectionError: the bank does not answer"


def test_a_job_whose_attempts_are_used_up_is_dead_and_says_why(app: Tenure, worker: InlineWorker) -> None:
    @app.task("bank.pay", retry=Retry(2, delay="10s"))
    def pay(order: int) -> None:
        raise ValueError("no such order")

    job = pay.enqueue(7)
    worker.run()
    worker.run(later="15s")

    assert (job.get().status, job.get().dead_reason) == ("dead", "attempts_exhausted")
    with pytest.raises(JobFailed, match="no such order"):
        job.result()


def test_a_task_may_ask_to_come_back_later_or_say_that_there_is_nothing_to_do(
    app: Tenure, worker: InlineWorker
) -> None:
    @app.task("shop.poll")
    def poll(shop: str) -> None:
        raise RetryAfter("5m", "429 Too Many Requests") if shop == "busy" else Skip("no new orders")

    busy, idle = poll.enqueue("busy"), poll.enqueue("idle")
    worker.run()

    assert (busy.get().status, busy.get().attempts[0].cause) == ("pending", "refused")
    assert (idle.get().status, idle.get().reason) == ("succeeded", "no new orders")
