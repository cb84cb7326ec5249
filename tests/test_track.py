"""`ctx.track`: chunks end between items, and the cursor never stands for work that the task has not committed."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tenure import Continue, Ctx, Done, Retry, Tenure
from tenure.lease.jobs import JobView
from tenure.testing import InlineWorker
from tenure.workers import track as tracking

Task = Callable[[Ctx], Any]
Run = Callable[[Task], JobView]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock takes a second: with `every="3s"` a chunk has three items."""
    monkeypatch.setattr(tracking, "time", SimpleNamespace(monotonic=itertools.count().__next__))


@pytest.fixture
def run(app: Tenure, worker: InlineWorker) -> Run:
    """Run a function as a background task, with all its chunks and attempts; how it ended."""

    def run(function: Task) -> JobView:
        handle = app.background("loop", retry=Retry(3, delay="1ms", cap="2ms"))(function)
        job = handle.enqueue()
        while not job.get().ended:
            worker.run("1s")
        return app.jobs.get(job.id)

    return run


def test_a_loop_ends_its_chunks_by_time_and_gives_each_item_once(run: Run) -> None:
    seen: list[int] = []
    ends: list[bool] = []

    def work(ctx: Ctx) -> Done[int]:
        rows = ctx.track(range(10), every="3s")
        for row in rows:
            assert rows.done == row, "what is in hand is not done"
            seen.append(row)
        ends.append(rows.finished)
        return Done(len(seen))

    view = run(work)

    assert seen == list(range(10))
    assert ends == [False, False, False, True]
    assert (view.value, view.chunk, len(view.attempts)) == (10, 3, 1)
    assert view.progress is not None
    assert (view.progress.done, view.progress.total) == (10, 10)
    assert [done for _, done in view.progress.samples] == [3, 6, 9, 10]


def of_unknown_length() -> Iterable[int]:
    yield from range(7)


@pytest.mark.parametrize(
    "items",
    [list(range(7)), of_unknown_length, lambda done: range(done, 7), dict.fromkeys(range(7))],
    ids=["a list", "a generator", "a function of how many are done", "a mapping"],
)
def test_each_chunk_goes_on_after_the_one_before(run: Run, items: Any) -> None:
    seen: list[int] = []

    def work(ctx: Ctx) -> None:
        seen.extend(ctx.track(items() if items is of_unknown_length else items, every="2s"))

    view = run(work)

    assert seen == list(range(7))
    assert view.progress is not None
    assert (view.progress.done, view.progress.total) == (7, 7)


def test_a_coroutine_loops_over_what_comes_in_time(run: Run) -> None:
    seen: list[int] = []

    async def rows() -> AsyncIterator[int]:
        for row in range(5):
            yield row

    async def work(ctx: Ctx) -> int:
        async for row in ctx.track(rows(), 5, every="2s"):
            seen.append(row)
        return len(seen)

    view = run(work)

    assert (seen, view.value, view.chunk) == (list(range(5)), 5, 2)


@pytest.fixture
def table(tmp_path: Path) -> Callable[[], sqlite3.Connection]:
    """Opens a transaction on a table `rows`; left by an error, it is rolled back."""

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(tmp_path / "shop.db")

    with connect() as db:
        db.execute("CREATE TABLE rows (n INTEGER PRIMARY KEY)")
    return connect


def rows_in(table: Callable[[], sqlite3.Connection]) -> list[int]:
    with table() as db:
        return [n for (n,) in db.execute("SELECT n FROM rows ORDER BY n")]


def test_a_transaction_around_the_loop_is_committed_before_the_cursor(
    run: Run, table: Callable[[], sqlite3.Connection]
) -> None:
    """Each attempt dies at another row, in the middle of a chunk: what was open is rolled back and done again."""

    def work(ctx: Ctx) -> None:
        before = rows_in(table)
        assert len(before) == ctx.cursor.get("tracked", 0), (
            "the cursor is what the table has, no more and no less"
        )
        with table() as db:
            for row in ctx.track(range(12), every="4s"):
                db.execute("INSERT INTO rows VALUES (?)", (row,))
                if row == 5 * ctx.attempt:
                    raise ValueError(f"row {row}")

    view = run(work)

    assert view.status == "succeeded"
    assert [attempt.error for attempt in view.attempts] == ["ValueError: row 5", "ValueError: row 10", None]
    assert rows_in(table) == list(range(12))


def test_a_cancel_between_two_items_leaves_nothing_half_done(
    app: Tenure, run: Run, table: Callable[[], sqlite3.Connection]
) -> None:
    def work(ctx: Ctx) -> None:
        with table() as db:
            for row in ctx.track(range(9), every="3s"):
                db.execute("INSERT INTO rows VALUES (?)", (row,))
                if row == 4:
                    app.jobs.cancel(ctx.job_id)

    view = run(work)

    assert view.status == "canceled"
    assert rows_in(table) == [0, 1, 2]
    assert view.progress is not None
    assert view.progress.done == 3


def test_an_item_whose_work_broke_off_is_not_done(run: Run) -> None:
    seen: list[int] = []

    def work(ctx: Ctx) -> None:
        for row in ctx.track(range(3)):
            seen.append(row)
            if len(seen) == 2:
                raise ValueError

    assert run(work).status == "succeeded"
    assert seen == [0, 1, 0, 1, 2]


def second_loop(ctx: Ctx) -> None:
    ctx.track([1])
    ctx.track([2])


def checkpoint_beside(ctx: Ctx) -> None:
    for row in ctx.track([1, 2]):
        ctx.checkpoint({"row": row})


def continues(ctx: Ctx) -> Continue:
    for _ in ctx.track(range(5), every="2s"):
        pass
    return Continue({"at": 5})


def foreign_cursor(ctx: Ctx) -> Continue | None:
    if not ctx.cursor:
        return Continue({"after": "x"})
    list(ctx.track([1]))
    return None


def no_items(ctx: Ctx) -> None:
    list(ctx.track(7))  # type: ignore[call-overload]


def odd_total(ctx: Ctx) -> None:
    ctx.track([1], -1)


@pytest.mark.parametrize(
    ("work", "says"),
    [
        (second_loop, "tracks a loop already"),
        (checkpoint_beside, "has a tracked loop: a checkpoint would say another place"),
        (continues, "returned Continue, and its tracked loop has ended the chunk too"),
        (foreign_cursor, "which no ctx.track has left"),
        (no_items, "7 cannot be tracked"),
        (odd_total, "total -1 is out of range"),
    ],
)
def test_what_would_lose_the_place_is_refused_in_words(run: Run, work: Task, says: str) -> None:
    view = run(work)

    assert view.status == "dead"
    assert view.error
    assert "BadInput" in str(view.error.error)
    assert says in str(view.error.error)
