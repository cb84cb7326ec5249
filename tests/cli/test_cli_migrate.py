"""`tenure migrate`: read, over, back, and what each shows and refuses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis import Redis
from rq.cron import CronScheduler

from tenure import Tenure
from tenure.cli.migrate import local_zone

from .terminal import Cli

rq_scheduler = pytest.importorskip("rq_scheduler")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

RQ = ("migrate", "rq-scheduler")
APP = {"TENURE_APP": "shop:app"}


@pytest.fixture
def old(old_url: str) -> Iterator[Any]:
    redis = Redis.from_url(old_url)
    yield rq_scheduler.Scheduler(connection=redis, interval=1)
    redis.close()


@pytest.fixture
def tenure(cli: Cli, old_url: str) -> Cli:
    return Cli({**cli.env, **APP, "TENURE_RQ_URL": old_url}, cli.folder)


def later(**parts: float) -> datetime:
    return (datetime.now(UTC) + timedelta(**parts)).replace(tzinfo=None)


def test_read_over_and_back_in_their_order(tenure: Cli, old: Any, app: Tenure) -> None:
    old.enqueue_at(later(hours=1), "shop.greet", "ada", job_id="once")
    old.schedule(later(seconds=-1), "shop.greet", ["bob"], interval=3600, id="hourly")

    nothing = tenure(*RQ, "status", "--tenant", "acme").out
    dry = tenure(*RQ, "--dry-run", "--tenant", "acme")
    assert not app.schedules.list("acme")
    read = tenure(*RQ, "--tenant", "acme", "-o", "json")
    state = tenure(*RQ, "status", "--tenant", "acme", "-o", "json").json
    over = tenure(*RQ, "over", "--tenant", "acme", "-o", "json")
    done = tenure(*RQ, "status", "--tenant", "acme").out
    back = tenure(*RQ, "back", "--tenant", "acme")

    assert "nothing is read" in nothing
    assert "every 3600s" in dry.out
    assert "once" in dry.out
    assert {item["jobKey"]: item["task"] for item in read.json["items"]} == dict.fromkeys(
        ("once", "hourly"), "shop.greet"
    )
    assert "next: tenure migrate rq-scheduler over --tenant acme" in read.err
    assert (state["state"], state["scheduling"], state["oldJobs"]) == (
        "the old scheduler fires",
        "disabled",
        2,
    )
    assert [made["jobKey"] for made in over.json["madeUp"]] == ["hourly"]
    assert "tenure fires" in done
    assert "Tenure's: no old scheduler fires" in done
    assert "hourly" in back.out
    assert "no old scheduler lives: start it" in back.err
    assert [one.code for one in (dry, read, over, back)] == [0, 0, 0, 0]


def test_what_cannot_be_taken_over_is_listed_and_nothing_is(tenure: Cli, old: Any, app: Tenure) -> None:
    old.enqueue_at(later(hours=1), "shop.greeet", "ada", job_id="misspelt")
    old.enqueue_at(later(hours=1), "shop.greet", datetime.now(UTC), job_id="dated")
    old.enqueue_at(later(hours=1), "shop.greet", "ada", job_id="fine")

    dry = tenure(*RQ, "--dry-run")
    read = tenure(*RQ)

    assert (dry.code, read.code) == (4, 4)
    assert "REFUSED: no task 'shop.greeet' is registered (did you mean 'shop.greet'?)" in dry.out
    assert "2 of 3 cannot be taken over" in dry.err
    assert "it holds a datetime.datetime" in read.err
    assert "next: the same command with --dry-run" in read.err
    assert not app.schedules.list()


def test_names_here_are_given_by_options_or_in_a_file(tenure: Cli, old: Any, app: Tenure) -> None:
    old.enqueue_at(later(hours=1), "old.mail.Send", "ada", job_id="a", queue_name="high")
    old.enqueue_at(later(hours=1), "old.mail.greet", "ada", job_id="b")
    old.enqueue_at(later(hours=1), "old.mail.other", "ada", job_id="c", queue_name="left")
    (tenure.folder / "tasks.txt").write_text("# old and new\nold.mail.Send  shop.greet\n\n")
    more = ("--task", "old.mail.greet=shop.greet", "--pool", "high=outbound", "--tasks", "tasks.txt")

    said = tenure(*RQ, *more, "--queue", "high", "--queue", "default")

    assert said.code == 0
    assert "1 jobs of other queues are left alone" in said.err
    found = {str(view.job_key): view.definition for view in app.schedules.list()}
    assert {name: (one.task, one.pool) for name, one in found.items()} == {
        "a": ("shop.greet", "outbound"),
        "b": ("shop.greet", "advance"),
    }


def test_a_living_old_scheduler_is_named_and_the_way_out_too(tenure: Cli, old: Any) -> None:
    old.enqueue_at(later(hours=1), "shop.greet", "ada", job_id="once")
    tenure(*RQ)
    old.register_birth()

    said = tenure(*RQ, "over")

    assert said.code == 4
    assert f"an old scheduler lives: {old.name} (if it is dead, it is forgotten in 1" in said.err
    assert "next: stop the old scheduler and let its jobs end" in said.err


GREET = ("--task", "old_jobs.greet=shop.greet")
CONFIG = """
from datetime import date
from rq import cron
from old_jobs import greet

cron.register(greet, "default", args=("ada",), cron="30 3 * * mon-fri", name="mail.nightly")
cron.register(greet, "high", kwargs={"name": "bob"}, interval=90, job_timeout=20, meta={"team": "mail"})
cron.register(greet, "high", args=("cy",), cron="0 4 * * * 15")
"""


def write_config(tenure: Cli, more: str = "") -> None:
    (tenure.folder / "old_jobs.py").write_text("def greet(name: str) -> None: ...\n")
    (tenure.folder / "cron_config.py").write_text(f"{CONFIG}\n{more}\n")


def test_the_jobs_of_rq_cron_are_read_from_its_file(tenure: Cli, old: Any, app: Tenure) -> None:
    write_config(tenure)
    words = ("migrate", "rq-cron", "cron_config.py", "--tz", "UTC", *GREET)

    dry = tenure(*words, "--dry-run", "-o", "json")
    assert not app.schedules.list()
    read = tenure(*words, "--pool", "high=outbound")
    again = tenure(*words, "--pool", "high=outbound")

    assert [one.code for one in (dry, read, again)] == [0, 0, 0], read.err
    assert "then tenure tenants enable-scheduling default" in read.err
    views = {str(view.job_key): view for view in app.schedules.list()}
    triggers = {name: view.definition.triggers[0] for name, view in views.items()}
    assert {triggers["mail.nightly"].cron, *(one.cron for one in triggers.values())} == {
        "30 3 * * mon-fri",
        None,
        "15 0 4 * * ?",
    }
    assert {one.every for one in triggers.values()} == {"90000ms", None}
    assert {view.definition.pool for view in views.values()} == {"advance", "outbound"}
    assert len(views) == len(dry.json["items"]) == 3
    assert all(view.disabled for view in views.values())


def test_a_living_rq_cron_says_when_its_intervals_fire_next(tenure: Cli, old: Any, app: Tenure) -> None:
    write_config(tenure)
    living = CronScheduler(old.connection, name="living")
    job = living.register(print, "high", interval=90)
    job.func_name = job.name = "old_jobs.greet"
    job.set_enqueue_time(datetime.now(UTC) - timedelta(seconds=50))
    living.register_birth()

    said = tenure("migrate", "rq-cron", "cron_config.py", *GREET, "--dry-run", "-o", "json")

    assert "`rq cron` lives: living" in said.err
    (interval,) = (item for item in said.json["items"] if item["fires"] == "every 90s")
    assert job.next_enqueue_time is not None
    assert datetime.fromisoformat(interval["nextFire"]) == job.next_enqueue_time.replace(microsecond=0)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("cron.register(greet, 'q', ('ada',), cron='0 0 1 * mon 30')", "seconds and both day fields"),
        (
            "cron.register(greet, 'q', interval=5, args=(date(2026, 1, 1),))",
            "can not serialize 'datetime.date'",
        ),
        ("cron.register(len, 'q', interval=5)", "no task 'builtins.len' is registered"),
        ("cron.register(greet, 'q')", "Must specify either interval or cron"),
        ("1 / 0", "division by zero"),
    ],
)
def test_nothing_of_rq_cron_is_passed_over_in_silence(
    tenure: Cli, old: Any, app: Tenure, config: str, says: str
) -> None:
    write_config(tenure, config)

    said = tenure("migrate", "rq-cron", "cron_config.py", *GREET)

    assert said.code in (2, 4)
    assert says in said.err
    assert not app.schedules.list()


def test_mistakes_are_told_in_words(tenure: Cli, old: Any) -> None:
    (tenure.folder / "tasks.txt").write_text("one two three\n")
    for words, says in (
        ((*RQ, "--tz", "Europe/Berln"), "did you mean 'Europe/Berlin'"),
        ((*RQ, "--task", "old.send"), "--task 'old.send' is no pair"),
        ((*RQ, "--tasks", "tasks.txt"), "tasks.txt, line 1: 'one two three' is not a function and a task"),
        ((*RQ, "--pool", "high=A B"), "pool 'A B' is not a pool name"),
    ):
        said = tenure(*words)
        assert (said.code, says in said.err) == (2, True), said
    assert tenure(*RQ, "over").code == 4
    assert tenure(*RQ, TENURE_APP="").code == 2


def test_the_zone_of_this_machine_is_the_one_its_clock_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", ":Asia/Kolkata")
    named = local_zone()
    monkeypatch.delenv("TZ")

    assert named == "Asia/Kolkata"
    assert os.path.exists(f"/usr/share/zoneinfo/{local_zone()}") or local_zone() == "UTC"
