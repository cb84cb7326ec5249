"""`app.jobs` and the options of tasks, on a real server: what a user's own code sees."""

from __future__ import annotations

import pytest

from tenure import Retry, Tenure
from tenure.scripts.errors import JobFailed
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
