"""`tenure worker` and `tenure scheduler`: the processes that do the work. Any number may run on any machine."""

from __future__ import annotations

from shlex import quote

import click

from ..app import Tenure
from ..lease.loop import Loop
from ..lease.pools import BUILT_IN, MOST_SLOTS, lane_of
from ..scheduler.scheduler import Scheduler
from ..workers.ledger_worker import run_worker
from ..workers.naming import worker_name
from ..workers.offers import offers_of
from ..workers.options import WorkerOptions
from .foreground import begin, turning, until_stopped, wait
from .options import app_argument, find_app, warn
from .output import say


@click.command()
@app_argument
@click.option(
    "--pool",
    "pools",
    multiple=True,
    metavar="POOL[=LANE]",
    help="Whose jobs it runs, and in which lane, as in 'io=async(50)'; may be given again. "
    "[default: advance, outbound and all that app.pool() declares]",
)
@click.option(
    "--slots",
    type=click.IntRange(1, MOST_SLOTS),
    envvar="TENURE_SLOTS",
    help="Slots of each pool.  [default: what app.pool() says, else 4]",
)
@click.option("--burst", is_flag=True, help="End when nothing is left to do.")
def worker(app_name: str | None, pools: tuple[str, ...], slots: int | None, burst: bool) -> None:
    """Run the jobs of MODULE:APP. SIGTERM or Ctrl-C stops it warm: what runs may end, the rest is handed back."""
    begin("worker")
    given = [lane_of(pool) for pool in pools]
    app = find_app(app_name)
    names = [pool for pool, _ in given] or [*BUILT_IN, *app.pools]
    options = WorkerOptions(slots=slots, lanes={pool: lane for pool, lane in given if lane})
    offers = offers_of(app, names, options)

    def started() -> None:
        say(f"worker with {', '.join(map(str, offers))}; Ctrl-C stops it")

    try:
        # it forks the slots before the store is opened, so nothing here may open it
        run_worker(app, names, options=options, burst=burst, started=started)
    finally:
        app.close()
    say("worker has stopped")


@click.command()
@app_argument
def scheduler(app_name: str | None) -> None:
    """Store the schedules that MODULE:APP declares, then fire all that are due, of every tenant."""
    begin("scheduler")
    app = find_app(app_name)
    warn(app)
    try:
        store_declared(app)
        loop = Loop(Scheduler(app.ledgers(), worker_name()), "scheduler")
        with until_stopped(), turning([loop, *app.upkeep(lost=app.schedules.declare)]):
            say("scheduler is running; Ctrl-C stops it")
            wait()
    finally:
        app.close()
    say("scheduler has stopped")


def store_declared(app: Tenure) -> None:
    """Store the schedules of the code, and say what is new, what is wrong, and what is stored that no code declares."""
    for one in app.schedules.declare():
        name = f"schedule {one.job_key} of tenant {one.tenant}"
        if one.put is None:
            next_step = f"; next: {one.hint}" if one.hint else ""
            say(f"warning: {name} is not stored as declared: {one.problem}{next_step}")
        elif one.put.changed:
            say(f"{name} is stored as revision {one.put.revision}")
    for tenant, job_key in app.schedules.undeclared():
        where = "" if tenant == "default" else f" --tenant {tenant}"
        say(
            f"warning: schedule {job_key} of tenant {tenant} is stored as declared in code, and this code does not "
            f"declare it; unless another application does, remove it: tenure cron delete {quote(str(job_key))}{where}"
        )
