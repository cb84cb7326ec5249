"""A long task works in chunks. Each ends with a cursor: who goes on, even after a crash, starts where it stopped."""

from typing import Any

from tenure import Continue, Ctx, Done, Tenure
from tenure.lease.outcome import Lose
from tenure.testing import InlineWorker

ROWS = [f"row {number}" for number in range(100)]


class Table:
    """A table of the user's own that refuses an older fence."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.fence = 0

    def upsert(self, rows: list[str], fence: int) -> None:
        assert fence >= self.fence, "a later holder has written"
        self.fence = fence
        for row in rows:
            self.rows[row] = self.rows.get(row, 0) + 1


def orders_import(app: Tenure, table: Table) -> Any:
    @app.background("orders.import")
    def import_(ctx: Ctx) -> Continue | Done[int]:
        start = ctx.cursor.get("next", 0)
        end = min(start + 30, len(ROWS))
        table.upsert(ROWS[start:end], fence=ctx.fence)
        if end == len(ROWS):
            return Done(end)
        return Continue({"next": end}, done=end, total=len(ROWS), message=f"{end} rows")

    return import_


def test_an_import_in_chunks_takes_each_row_once(app: Tenure, worker: InlineWorker) -> None:
    table = Table()
    job = orders_import(app, table).enqueue()

    worker.run()

    assert job.result() == 100
    assert table.rows == dict.fromkeys(ROWS, 1)
    (attempt,) = job.get().attempts
    assert attempt.chunks == 3, "three chunks said Continue, the fourth was Done"


def test_its_progress_is_what_is_committed(app: Tenure, worker: InlineWorker) -> None:
    job = orders_import(app, Table()).enqueue()
    ledger = app.ledger()
    assert job.get().progress.done is None

    seen = []
    for _ in range(4):
        (lease,) = ledger.claim("advance", "watched").leases
        worker.attempt(lease)
        progress = job.get().progress
        seen.append((progress.done, progress.total, progress.message))

    assert seen[:3] == [(30, 100, "30 rows"), (60, 100, "60 rows"), (90, 100, "90 rows")]
    assert job.get().status == "succeeded"


def test_after_a_crash_the_next_worker_goes_on_from_the_last_chunk(app: Tenure, worker: InlineWorker) -> None:
    table = Table()
    job = orders_import(app, table).enqueue()
    ledger = app.ledger()
    (lease,) = ledger.claim("advance", "first").leases
    worker.attempt(lease)

    (lost,) = ledger.claim("advance", "doomed").leases
    ledger.settle(lost, Lose("kill -9"))
    worker.run()

    assert job.get().status == "succeeded"
    assert table.rows == dict.fromkeys(ROWS, 1)
    assert [(attempt.number, attempt.cause) for attempt in job.get().attempts] == [(1, "killed"), (2, None)]
    assert table.fence > lost.fence
