"""`app.jobs` and the options of tasks, on a real server: what a user's own code sees."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tenure import Retry, Tenure
from tenure.scripts.errors import BadInput, JobFailed
from tenure.testing import InlineWorker


def test_a_task_may_say_that_its_owner_handles_failure(app: Tenure, worker: InlineWorker) -> None:
    @app.task("sync", retry=Retry(1, then="failed"))
    def sync() -> None:
        raise ValueError("no such shop")

    job = sync.enqueue()
    worker.run()

    assert (job.get().status, job.get().dead_reason) == ("failed", "attempts_exhausted")
    with pytest.raises(JobFailed, match="is failed \\(attempts_exhausted\\): ValueError: no such shop"):
        job.result()


# -- start_by ---------------------------------------------------------------------------------------------------------

NOON = datetime(2026, 9, 21, 12, tzinfo=UTC)


def test_a_job_may_have_a_latest_start(app: Tenure, worker: InlineWorker) -> None:
    @app.task("report")
    def report() -> str:
        return "done"

    in_time, late = report.using(start_by="1m").enqueue(), report.using(start_by="1ms").enqueue()
    worker.run("1s")

    assert in_time.result() == "done"
    assert (late.get().status, late.get().dead_reason) == ("dead", "expired")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start_by": "-5m"}, "is not a duration"),
        ({"start_by": float("nan")}, "is not a duration"),
        ({"start_by": 0}, "it could never start"),
        ({"start_by": "5m", "after": "5m"}, "it could never start"),
        ({"start_by": NOON, "at": NOON}, "it could never start"),
        ({"start_by": NOON.replace(tzinfo=None)}, "has no time zone"),
    ],
)
def test_a_latest_start_that_makes_no_sense_is_refused(
    app: Tenure, options: dict[str, Any], words: str
) -> None:
    @app.task("report")
    def report() -> None: ...

    with pytest.raises(BadInput, match=words):
        report.using(**options).enqueue()


def test_a_latest_start_may_be_an_instant(app: Tenure) -> None:
    @app.task("report")
    def report() -> None: ...

    job = report.using(at=NOON, start_by=NOON + timedelta(hours=1)).enqueue()

    assert job.get().start_by == round(NOON.timestamp() * 1000) + 3_600_000
