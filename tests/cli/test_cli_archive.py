"""`tenure archive`: the process that fills it, and how things stand there."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from tenure import Tenure
from tenure.lease.ledger import NewJob
from tenure.lease.outcome import Succeed
from tenure.scheduler.plan import month
from tenure.scheduler.schedules import Schedules
from tenure.testing import wait_until, wipe

from ..given import claim
from .terminal import Cli


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/archive.db"


def test_what_is_new_is_archived_once_and_shown_when_the_ledger_has_let_it_go(
    cli: Cli, app: Tenure, done: str, url: str
) -> None:
    where = {"TENURE_ARCHIVE_URL": url, "TENURE_SPOOL": "spool"}
    assert cli("archive", "run", "--once", **where).code == 0
    shown = cli("jobs", "show", done, "-o", "json").json
    watched = cli("jobs", "watch", done).out

    wipe(app.redis(), app.settings.namespace)

    assert cli("jobs", "show", done, "-o", "json", **where).json == shown
    assert cli("jobs", "watch", done, **where).out == watched
    assert cli("jobs", "show", done).code == 3
    assert cli("archive", "check", **where).code == 0


def test_an_archived_background_task_is_watched_as_it_ended(cli: Cli, app: Tenure, url: str) -> None:
    where = {"TENURE_ARCHIVE_URL": url, "TENURE_SPOOL": "spool"}
    ledger = app.ledger()
    task = ledger.enqueue(NewJob("sync", fields={"background": "1"})).id
    ledger.settle(claim(ledger), Succeed())
    watched = cli("background", "watch", task).out
    cli("archive", "run", "--once", **where)

    wipe(app.redis(), app.settings.namespace)

    again = cli("background", "watch", task, **where)
    assert (again.code, again.out) == (0, watched)
    assert cli("background", "watch", task).code == 3


def test_a_check_of_an_archive_that_is_away_says_what_to_do_first(cli: Cli) -> None:
    said = cli("archive", "check", TENURE_ARCHIVE_URL="sqlite:////nowhere/at/all.db")

    assert said.code == 1
    assert "ARCHIVE_UNREACHABLE" in said.err
    assert "start the database, or correct TENURE_ARCHIVE_URL" in said.err
    assert "archive check" not in said.err


def test_an_archive_that_is_away_leaves_what_is_new_in_the_spool(cli: Cli, done: str, url: str) -> None:
    where = {"TENURE_ARCHIVE_URL": "sqlite:////nowhere/at/all.db", "TENURE_SPOOL": "spool"}

    said = cli("archive", "run", "--once", **where)

    assert said.code == 1
    assert "ARCHIVE_UNREACHABLE: the archive is away: what is new is in the spool" in said.err
    assert "the spool in" in said.err  # a test's folder is emptied
    status = cli("archive", "status", "-o", "json", **where).json
    assert (status["state"], status["spooled"]) == ("unreachable", 1)
    assert cli("jobs", "show", "0" * 26, **where).code == 1
    back = {**where, "TENURE_ARCHIVE_URL": url}
    assert cli("archive", "run", "--once", **back).code == 0
    status = cli("archive", "status", "-o", "json", **back).json
    assert (status["state"], status["spooled"], status["archive"]) == ("ok", 0, url)
    assert "spooled" in cli("archive", "status", **back).out


def test_an_entry_is_spooled_until_it_is_stored(cli: Cli, app: Tenure, url: str) -> None:
    app.task("reports.daily")(print)
    app.schedules.put("tick", task="reports.daily", cron="* * * * * ?")
    (due,) = app.schedules.get("tick").next_fires.values()
    Schedules(app.ledger().at(due)).delete("tick")
    (entry,) = app.schedules.logs("tick", month=month(due)).items
    away = {"TENURE_ARCHIVE_URL": "sqlite:////nowhere/at/all.db", "TENURE_SPOOL": "spool"}
    back = {**away, "TENURE_ARCHIVE_URL": url}

    def state(where: dict[str, str], event: str = entry.event_id) -> object:
        return cli("archive", "status", "--event", event, "-o", "json", **where).json["event"]

    assert state(away) == "unknown"
    cli("archive", "run", "--once", **away)
    assert state(away) == "spooled"
    cli("archive", "run", "--once", **back)
    assert (state(back), state(back, "0" * 22)) == ("stored", "not archived")


def test_what_the_database_lacks_is_told(cli: Cli, url: str) -> None:
    where = {"TENURE_ARCHIVE_URL": url}
    empty = cli("archive", "check", **where)
    cli("archive", "run", "--once", **where, TENURE_SPOOL="spool")
    with sqlite3.connect(url.removeprefix("sqlite:///")) as db:
        db.execute("DROP INDEX tenure_log_page")
    cli("archive", "run", "--once", **where, TENURE_SPOOL="spool")

    said = cli("archive", "check", "-o", "json", **where)

    assert (empty.code, empty.out.count("is missing")) == (1, 4)
    assert said.code == 1
    assert "columns and indexes of one that is there are yours to change" in said.err
    assert said.json == {
        "problems": [
            "index tenure_log_page of tenure_log on (tenant, job_key, month, position, event_id) is missing: "
            "CREATE INDEX tenure_log_page ON tenure_log (tenant, job_key, month, position, event_id)"
        ]
    }
    assert cli("archive", "status", "-o", "json", **where, TENURE_SPOOL="spool").json["state"] == "incomplete"


@pytest.mark.parametrize("verb", ["run", "check", "status"])
def test_without_an_archive_it_says_how_to_name_one(cli: Cli, verb: str) -> None:
    said = cli("archive", verb)

    assert said.code == 2
    assert "TENURE_ARCHIVE_URL is not set" in said.err


def test_an_archive_process_keeps_it_up_to_date_until_it_is_stopped(
    cli: Cli, app: Tenure, done: str, url: str
) -> None:
    process = cli.start("archive", "run", TENURE_ARCHIVE_URL=url, TENURE_SPOOL="spool")
    archived = Tenure(replace(app.settings, archive_url=url)).archive
    assert archived

    def is_there() -> bool:
        return not archived.check() and archived.job("default", done) is not None

    wait_until(is_there, "the job in the archive")
    process.terminate()
    assert process.wait(20) == 0
