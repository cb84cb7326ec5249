"""What a caller gets back from the application: results, values, and the truth about a lost answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tenure import Continue, Ctx, Done, Tenure
from tenure.handles import TaskHandle
from tenure.scripts import Scripts
from tenure.scripts.errors import JobFailed, StoreUnreachable
from tenure.scripts.loader import Call
from tenure.testing import InlineWorker


def double(number: int) -> int:
    return 2 * number


def test_a_job_shows_what_its_task_returned(app: Tenure, worker: InlineWorker) -> None:
    task = app.task("double")(double)
    job = task.enqueue(21)
    assert job.get().value is None

    worker.run()

    assert job.get().value == 42
    assert app.jobs.get(job.id).value == job.result() == 42


def test_the_result_of_a_chunked_task_is_what_it_is_done_with(app: Tenure, worker: InlineWorker) -> None:
    @app.background("count")
    def count(ctx: Ctx, to: int) -> Continue | Done[int]:
        at = ctx.cursor.get("at", 0) + 1
        return Done(at) if at == to else Continue({"at": at})

    job = count.using(priority=1).enqueue(3)
    worker.run()

    assert job.result() == 3


def test_async_code_waits_for_a_result(app: Tenure, worker: InlineWorker) -> None:
    task = app.task("double")(double)

    async def ask(number: Any) -> int:
        job = await task.aenqueue(number)
        await asyncio.to_thread(worker.run)
        return await job.aresult(timeout="10s")

    assert asyncio.run(ask(21)) == 42


def test_async_code_is_told_that_there_is_no_result(app: Tenure) -> None:
    job = app.task("double")(double).enqueue(21)
    job.cancel("not needed")

    with pytest.raises(JobFailed, match="is canceled"):
        asyncio.run(job.aresult())


@pytest.fixture
def lost(app: Tenure, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers to an enqueue are lost."""
    send = Scripts.send

    def lose(scripts: Scripts, calls: list[Call[Any]]) -> list[Any]:
        answers = send(scripts, calls)
        if calls and calls[0].script == "enqueue":
            raise StoreUnreachable("redis://host cannot be reached", hint="start it")
        return answers

    monkeypatch.setattr(Scripts, "send", lose)


@pytest.mark.usefixtures("lost")
@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({}, "look with app.jobs.get('{id}'); enqueued with an idempotency_key, it could be sent again"),
        ({"idempotency_key": "k"}, "enqueue it again with the same idempotency key: it makes no second job"),
    ],
)
def test_an_enqueue_whose_answer_was_lost_says_that_its_outcome_is_unknown(
    app: Tenure, options: dict[str, Any], hint: str
) -> None:
    task = app.task("double")(double)

    with pytest.raises(StoreUnreachable) as lost:
        task.using(**options).enqueue(7)

    (job,) = app.jobs.list().items
    assert str(lost.value) == (f"redis://host cannot be reached; whether job {job.id} was made is not known")
    assert lost.value.hint.startswith(hint.replace("{id}", job.id))


@pytest.mark.usefixtures("lost")
def test_so_do_many_enqueued_at_once(app: Tenure) -> None:
    task = app.task("double")(double)

    with pytest.raises(StoreUnreachable, match="which of the jobs were made is not known") as lost:
        app.enqueue_many([task.call(1)])

    assert "the same calls again" in lost.value.hint


def test_a_read_says_nothing_of_the_kind(app: Tenure, monkeypatch: pytest.MonkeyPatch) -> None:
    job = app.task("double")(double).enqueue(7)

    def away(*_: Any) -> Any:
        raise StoreUnreachable("redis://host cannot be reached", hint="start it")

    monkeypatch.setattr(Scripts, "send", away)

    with pytest.raises(StoreUnreachable) as refused:
        job.get()

    assert (str(refused.value), refused.value.hint) == ("redis://host cannot be reached", "start it")


def test_a_task_with_other_options_is_enqueued_not_called(app: Tenure) -> None:
    task = app.task("double")(double)

    assert task(21) == 42
    assert type(task.using(priority=1)) is TaskHandle
    assert not callable(task.using(priority=1))
