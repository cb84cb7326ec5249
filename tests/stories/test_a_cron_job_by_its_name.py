"""A schedule has a name, its JobKey. Each instant it planned ends in one record, however many schedulers there are."""

from datetime import datetime

from tenure import Ctx, Tenure
from tenure.lease.ledgers import Ledgers
from tenure.scheduler.plan import month
from tenure.scheduler.scheduler import Scheduler
from tenure.testing import InlineWorker


def test_a_cron_job_runs_with_its_planned_instant(app: Tenure, worker: InlineWorker) -> None:
    seen: list[datetime] = []

    @app.cron("reports.minutely", "0 * * * * ?")
    def report(ctx: Ctx) -> None:
        seen.append(ctx.fire_time)

    app.schedules.declare()
    (upcoming,) = app.schedules.next("reports.minutely", count=1)
    due = upcoming.fire_time
    for name in ("one scheduler", "another", "a third"):
        Scheduler(at(app, due + 17_000), name).round()
    worker.run(later="2m")

    assert [round(instant.timestamp() * 1000) for instant in seen] == [due], (
        "the planned instant, not 17 s later"
    )
    (fire,) = app.schedules.fires("reports.minutely", month=month(due))
    assert (fire.fire_time, fire.outcome, fire.scheduler) == (due, "fired", "one_scheduler")


def test_what_stands_in_the_code_is_stored_once_and_changed_only_when_it_changes(app: Tenure) -> None:
    @app.task("reports.daily")
    def report() -> None: ...

    revisions = [
        app.schedules.put("nightly", task="reports.daily", cron=cron, tz="Asia/Shanghai").revision
        for cron in ("0 0 2 * * ?", "0 0 2 * * ?", "0 30 2 * * ?")
    ]

    assert revisions == [1, 1, 2]


def at(app: Tenure, now: int) -> Ledgers:
    """The application's ledgers at another instant."""
    ledgers = app.ledgers()
    return Ledgers(ledgers.scripts.at(now), ledgers.namespace)
