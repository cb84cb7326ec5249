"""`app.jobs` and the options of tasks, on a real server: what a user's own code sees."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tenure import Continue, Ctx, Done, Retry, Tenure
from tenure.lease.who import whoami
from tenure.scripts.errors import BadInput, JobFailed, WrongState
from tenure.testing import InlineWorker

NOON = datetime(2026, 9, 21, 12, tzinfo=UTC)


def test_a_task_may_say_that_its_owner_handles_failure(app: Tenure, worker: InlineWorker) -> None:
    @app.task("sync", retry=Retry(1, then="failed"))
    def sync() -> None:
        raise ValueError("no such shop")

    job = sync.enqueue()
    worker.run()

    assert (job.get().status, job.get().dead_reason) == ("failed", "attempts_exhausted")
    with pytest.raises(JobFailed, match="is failed \\(attempts_exhausted\\): ValueError: no such shop"):
        job.result()


# -- by hand ----------------------------------------------------------------------------------------------------------


def test_a_dead_job_is_retried_with_other_arguments(app: Tenure, worker: InlineWorker) -> None:
    keys: list[str] = []

    @app.task("invoice", retry=Retry(1))
    def invoice(ctx: Ctx, customer: int, *, draft: bool = False) -> int:
        keys.append(ctx.operation_key)
        if customer < 0:
            raise ValueError(customer)
        return customer

    job = invoice.enqueue(-7)
    worker.run()

    for _ in range(2):
        round_begun = app.jobs.retry(
            job.id, args=[7], kwargs={"draft": True}, reason="a slip of the pen", token="7f"
        )
        assert round_begun == 2
    with pytest.raises(WrongState):
        app.jobs.retry(job.id, args=[7], kwargs={"draft": True})
    worker.run()

    assert job.result() == 7
    assert keys == [f"{job.id}.0", f"{job.id}.1"]
    assert [attempt.status for attempt in job.get().attempts] == ["failed", "succeeded"]


def test_a_background_task_that_is_retried_goes_on_where_it_was(app: Tenure, worker: InlineWorker) -> None:
    seen: list[int] = []

    @app.background("import", retry=Retry(1))
    def rows(ctx: Ctx) -> Continue | Done[int]:
        at = ctx.cursor.get("at", 0)
        seen.append(at)
        if seen == [0, 1]:
            raise ConnectionError("gone for a moment")
        return Done(at) if at == 2 else Continue({"at": at + 1}, done=at + 1, total=3)

    job = rows.enqueue()
    worker.run()
    before = job.get().progress
    app.jobs.retry(job.id)
    worker.run()

    assert before is not None
    assert before.done == 1
    assert (seen, job.result()) == ([0, 1, 1, 2], 2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"args": ["seven", "eight"]}, "does not take these arguments"),
        ({"args": [object()]}, "cannot be stored"),
        ({"kwargs": {"odd": 1}}, "does not take these arguments"),
        ({"after": "-1s"}, "is not a duration"),
        ({"after": "1s", "at": NOON}, "a job has one due time"),
        ({"at": NOON.replace(tzinfo=None)}, "has no time zone"),
        ({"force": True}, "force needs a reason"),
    ],
)
def test_a_retry_that_makes_no_sense_is_refused(
    app: Tenure, worker: InlineWorker, options: dict[str, Any], words: str
) -> None:
    @app.task("invoice", retry=Retry(1))
    def invoice(customer: int) -> None:
        raise ValueError

    job = invoice.enqueue(7)
    worker.run()

    with pytest.raises(BadInput, match=words):
        app.jobs.retry(job.id, **options)
    assert job.get().status == "dead"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "nothing is asked for"),
        ({"now": True, "after": "1s"}, "a job has one due time"),
        ({"priority": 10}, "out of range"),
        ({"priority": True}, "is not a whole number"),
        ({"after": float("nan")}, "is not a duration"),
        ({"at": datetime(9999, 1, 1, tzinfo=UTC)}, "at most ten years ahead"),
    ],
)
def test_a_reschedule_that_makes_no_sense_is_refused(
    app: Tenure, options: dict[str, Any], words: str
) -> None:
    @app.task("report")
    def report() -> None: ...

    job = report.using(after="1h").enqueue()

    with pytest.raises(BadInput, match=words):
        app.jobs.reschedule(job.id, **options)


def test_a_job_is_rescheduled_and_another_skipped(app: Tenure, worker: InlineWorker) -> None:
    @app.task("report")
    def report() -> str:
        return "done"

    sooner, never = report.using(after="1h").enqueue(), report.enqueue()
    app.jobs.reschedule(sooner.id, now=True, priority=1)
    app.jobs.skip(never.id, "no need")
    worker.run()

    assert sooner.result() == "done"
    assert (never.get().status, never.get().reason) == ("canceled", "skipped: no need")


# -- start_by ---------------------------------------------------------------------------------------------------------


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


def test_many_jobs_are_retried_or_skipped_at_once(app: Tenure, worker: InlineWorker) -> None:
    broken = True

    @app.task("sync", retry=Retry(1))
    def sync(number: int) -> int:
        if broken:
            raise ValueError(number)
        return number

    jobs = [sync.enqueue(number) for number in range(4)]
    worker.run()
    broken = False

    retried = app.jobs.retry_many([job.id for job in jobs[:2]], rate=200, reason="mended", by="ada")
    skipped = app.jobs.skip_many([job.id for job in jobs[1:]], reason="not needed")
    worker.run("1s")

    assert (retried.success, retried.by, retried.reason) == (2, "ada", "mended")
    assert (skipped.success, skipped.by) == (3, whoami())
    assert [job.get().status for job in jobs] == ["succeeded", *["canceled"] * 3]


def test_what_went_wrong_is_gathered_and_replayed(app: Tenure, worker: InlineWorker) -> None:
    """From the error in a task to the retry of all that died of it."""
    broken = True

    @app.task("sync", retry=Retry(1))
    def sync(number: int) -> int:
        if broken:
            raise ValueError(f"order {number} is gone")
        return number

    @app.task("mail", retry=Retry(1))
    def mail() -> None:
        raise RuntimeError("no server")

    jobs = [sync.enqueue(number) for number in range(3)]
    other = mail.enqueue()
    worker.run()
    broken = False

    group = next(one for one in app.jobs.failures().items if one.count == 3)
    assert (group.exception, group.template) == ("ValueError", "order # is gone")
    assert group.frame == f"{__name__}.test_what_went_wrong_is_gathered_and_replayed.<locals>.sync"
    preview = app.jobs.replay_preview(fingerprint=group.key)
    done = app.jobs.replay(preview, rate=200, reason="mended", by="ada")
    worker.run("1s")

    assert [job.id for job in preview.jobs] == [job.id for job in jobs]
    assert (done.success, app.jobs.batch(done.id).by, app.jobs.batches()[0].id) == (3, "ada", preview.token)
    assert [job.result() for job in jobs] == [0, 1, 2]
    assert other.get().status == "dead"
    assert [one.key for one in app.jobs.failures(by="type").items] == ["mail"]


def test_a_replay_is_said_by_conditions_or_by_its_preview_and_not_by_both(app: Tenure) -> None:
    preview = app.jobs.replay_preview(task="sync")

    assert app.jobs.replay(task="sync").total == 0
    assert app.jobs.replay(preview.token).id == preview.token
    with pytest.raises(BadInput, match="beside a preview"):
        app.jobs.replay(preview, task="sync")
    with pytest.raises(BadInput, match="1 to 200 jobs a second"):
        app.jobs.replay(task="sync", rate=0)
    assert len(app.jobs.batches()) == 2
