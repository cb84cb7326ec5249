"""A function becomes a task; a call of it becomes a job; a worker runs it; its result waits for whoever asks."""

from tenure import Tenure
from tenure.testing import InlineWorker


def test_a_task_becomes_a_job(app: Tenure, worker: InlineWorker) -> None:
    @app.task("invoices.total")
    def total(customer: str, rows: list[int]) -> int:
        return sum(rows)

    job = total.enqueue("acme", [3, 4, 5])
    assert job.get().status == "pending"

    worker.run()

    assert job.get().status == "succeeded"
    assert job.result() == 12


def test_a_task_is_still_a_plain_function(app: Tenure) -> None:
    @app.task("invoices.total")
    def total(customer: str, rows: list[int]) -> int:
        return sum(rows)

    assert total("acme", [3, 4, 5]) == 12
    assert app.ledger().counts() == {}


def test_a_job_for_later_waits_for_its_time(app: Tenure, worker: InlineWorker) -> None:
    @app.task("mail.reminder")
    def remind(customer: str) -> str:
        return f"dear {customer}"

    job = remind.using(after="1h").enqueue("acme")

    assert worker.run() == []
    assert [ran.id for ran in worker.run(later="61m")] == [job.id]
