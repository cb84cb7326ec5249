"""`tenure cron`: stored schedules, and cron expressions in words."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tenure import Tenure
from tenure.api import schedule_views
from tenure.lease.instants import rfc3339
from tenure.lease.jobs import FIRE
from tenure.lease.ledgers import Ledgers
from tenure.scheduler.plan import month
from tenure.scheduler.scheduler import Scheduler
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.trigger import Trigger

from .terminal import Cli


@pytest.fixture
def stored(app: Tenure) -> Tenure:
    """An application with two stored schedules."""

    @app.task("reports.daily")
    def daily() -> None: ...

    app.schedules.put("reports.daily", task="reports.daily", cron="0 0 2 ? * MON-FRI", tz="Asia/Shanghai")
    app.schedules.put("tick", task="reports.daily", cron="* * * * * ?")
    return app


def test_schedules_are_listed_by_job_key_page_by_page(cli: Cli, stored: Tenure) -> None:
    first = cli("cron", "list", "--limit", "1", "-o", "json").json
    second = cli("cron", "list", "--limit", "1", "--cursor", first["nextCursor"], "-o", "json").json

    assert [one["jobKey"] for one in first["items"] + second["items"]] == ["reports.daily", "tick"]
    assert (first["hasMore"], second["hasMore"]) == (True, False)
    assert "0 0 2 ? * MON-FRI Asia/Shanghai  reports.daily\n" in cli("cron", "list").out


def test_a_schedule_is_shown_as_the_api_shows_it(cli: Cli, stored: Tenure) -> None:
    said = cli("cron", "show", "reports.daily", "-o", "json")

    assert said.json == schedule_views.schedule(stored.schedules.get("reports.daily"))


def test_a_schedule_shows_what_it_means_and_what_it_fired(cli: Cli, stored: Tenure) -> None:
    import time

    scheduler = Scheduler(stored.ledgers(), "test")
    until = time.monotonic() + 10
    while not stored.ledger().counts() and time.monotonic() < until:
        time.sleep(min(0.05, scheduler.round()))

    shown = cli("cron", "show", "tick").out

    assert "means" in shown
    assert "every second" in shown
    assert "fired" in shown
    assert stored.jobs.list().items[-1].id in shown


def test_the_log_of_a_schedule_is_shown_page_by_page(cli: Cli, stored: Tenure) -> None:
    (due,) = stored.schedules.get("tick").next_fires.values()
    for number in range(2):
        later = Schedules(stored.ledger().at(due + 2_000 + number * 10_000))
        later.put("tick", stored.registry.get("reports.daily"), [Trigger("default", every=f"{number + 1}s")])
    of_month = ("--month", month(due))

    table = cli("cron", "logs", "tick", *of_month)
    first = cli("cron", "logs", "tick", *of_month, "--limit", "1", "-o", "json").json
    second = cli("cron", "logs", "tick", *of_month, "--cursor", first["nextCursor"], "-o", "json").json

    assert "Skipped  superseded: The schedule was changed before it could fire." in table.out
    page = stored.schedules.logs("tick", month=month(due))
    assert [*first["items"], *second["items"]] == [schedule_views.log_entry(one) for one in page.items]
    assert (first["hasMore"], second["hasMore"]) == (True, False)
    assert cli("cron", "logs", "tick", "--month", "26-9").code == 2
    assert cli("cron", "logs", "nothing").code == 3


def test_a_schedule_is_deleted(cli: Cli, stored: Tenure) -> None:
    refused = cli("cron", "delete", "tick", "--revision", "7")
    ran = cli("cron", "run", "tick", "--reason", "a try", "--revision", "1")
    stale = cli("cron", "run", "tick", "--revision", "7")
    gone = cli("cron", "delete", "tick", "--reason", "too loud")
    again = cli("cron", "delete", "tick")

    assert (refused.code, ran.code, stale.code, gone.code, again.code) == (4, 0, 4, 0, 3)
    assert stored.ledger().get(ran.out.strip()).reason.endswith(": a try")
    assert (gone.out, gone.err) == ("", "schedule tick of tenant default is deleted\n")
    assert "tick" in again.err
    assert [str(view.job_key) for view in stored.schedules.list()] == ["reports.daily"]


def test_of_a_deleted_schedule_that_code_declares_it_is_said_that_it_comes_back(
    cli: Cli, app: Tenure
) -> None:
    app.cron("reports.nightly", "0 30 1 * * ?")(lambda: None)
    app.schedules.declare()

    gone = cli("cron", "delete", "reports.nightly", "--reason", "too loud")

    assert gone.code == 0
    assert gone.err.startswith("schedule reports.nightly of tenant default is deleted\nwarning: ")
    assert "it comes back with the next registration" in gone.err
    assert "pause it" in gone.err
    app.schedules.declare()
    assert app.schedules.get("reports.nightly").declared


def test_fires_are_listed_page_by_page_also_of_a_deleted_schedule(cli: Cli, stored: Tenure) -> None:
    now = stored.ledgers().index.take(FIRE, 0).now_ms
    task = stored.registry.get("reports.daily")
    for back, misfire in ((1_200_000, "skip"), (600_000, "fire_once")):
        then = Schedules(stored.ledger("acme").at(now - back))
        then.put("minutely", task, [Trigger("default", "0 * * * * ?")], misfire=misfire)
    Schedules(stored.ledger("acme").at(now)).delete("minutely")

    of_acme = ("--tenant", "acme")
    table = cli("cron", "fires", "minutely", *of_acme)
    first = cli("cron", "fires", "minutely", *of_acme, "--limit", "1", "-o", "json").json
    second = cli("cron", "fires", "minutely", *of_acme, "--cursor", first["nextCursor"], "-o", "json").json

    assert table.out.count(" skipped ") == 2
    assert [one["count"] for one in (*first["items"], *second["items"])] == [10, 10]
    assert (first["hasMore"], second["hasMore"]) == (True, False)
    assert cli("cron", "fires", "reports.daily").code == 0
    assert cli("cron", "fires", "nothing").code == 3
    assert cli("cron", "fires", "minutely", *of_acme, "--cursor", "x").code == 2


def test_the_next_fires_are_told(cli: Cli, stored: Tenure) -> None:
    said = cli("cron", "next", "reports.daily", "-n", "3", "-o", "json")

    assert [fire["fireTime"][11:] for fire in said.json["items"]] == ["18:00:00.000Z"] * 3
    assert cli("cron", "next", "reports.daily", "-n", "3").out.count("default") == 3


def test_an_expression_is_explained_without_a_server(cli: Cli) -> None:
    said = cli("cron", "explain", "0 0 2 ? * MON-FRI", TENURE_REDIS_URL="redis://127.0.0.1:1")

    assert said.code == 0
    assert said.out.startswith("at 02:00, Monday to Friday\n\nnext fires in UTC\n  20")


def test_an_expression_is_explained_in_chinese(cli: Cli) -> None:
    assert "每" in cli("cron", "explain", "0 */5 * * * ?", "--zh").out


def test_days_on_which_the_clocks_change_are_named(cli: Cli) -> None:
    said = cli("cron", "explain", "30 2 * * *", "--tz", "Europe/Berlin")
    changes = cli("cron", "explain", "30 2 * * *", "--tz", "Europe/Berlin", "-o", "json").json["clockChanges"]
    calm = cli("cron", "explain", "30 2 * * *", "--tz", "UTC")

    assert "the clocks leave out 02:30:00: fires at this time" in said.out
    assert "02:30:00 comes twice: not at this time" in said.out
    assert sorted((one["mark"], one["skipped"]) for one in changes if one["skipped"]) == [
        ("overlap", "dst_overlap")
    ]
    assert "clocks" not in calm.out


def test_the_next_fires_name_the_days_on_which_the_clocks_change(cli: Cli, stored: Tenure) -> None:
    berlin, task = Trigger("berlin", "0 30 2 ? * SUN", "Europe/Berlin"), stored.registry.get("reports.daily")
    stored.schedules.of().put("odd", task, [berlin, Trigger("utc", "0 0 4 1 1 ?")])
    (previewed, calm_one) = stored.schedules.preview(triggers=[berlin, Trigger("utc", "0 0 4 1 1 ?")])

    said = cli("cron", "next", "odd", "-n", "100")
    raw = cli("cron", "next", "odd", "-n", "100", "-o", "json").json
    explained = cli("cron", "explain", "0 30 2 ? * SUN", "--tz", "Europe/Berlin").out
    calm = cli("cron", "next", "reports.daily")

    told = said.out.partition("\nwhere the clocks change (tz: Europe/Berlin, dst: standard)\n")[2]
    assert told.count("\n") == 3
    assert explained.endswith(told), "the same words"
    assert "02:30:00 comes twice: not at this time" in told
    assert {line.split()[-1] for line in said.out.splitlines() if line.endswith(("gap", "overlap"))} == {
        "gap",
        "overlap",
    }
    assert len(raw["clockChanges"]) == 3
    assert [one.text for one in stored.schedules.clock_changes("odd")] == [
        one["text"] for one in raw["clockChanges"]
    ]
    assert list(previewed.clock_changes) == stored.schedules.clock_changes("odd")
    assert (len(previewed.fires), calm_one.clock_changes) == (5, ())
    assert "clocks change" not in calm.out


def test_a_rhythm_is_told_in_one_line_for_each_change(cli: Cli) -> None:
    said = cli("cron", "explain", "* * * * * ?", "--tz", "Europe/Berlin")

    assert said.out.count("02:00:00 to 02:59:59 (3600 times) comes twice: fires at this time") == 2


def test_an_expression_that_is_over_says_so(cli: Cli) -> None:
    past = datetime.now(UTC).year - 1

    assert "it never fires again" in cli("cron", "explain", f"0 0 0 1 1 ? {past}").out


def test_a_schedule_is_stored_and_patched(cli: Cli, app: Tenure) -> None:
    body = '{"task": "shop.tick", "triggers": [{"cron": "0 0 2 * * ?"}], "enabled": false}'

    put = cli("cron", "put", "nightly", body, "--app", "shop:app", "--reason", "first")
    patched = cli(
        "cron", "patch", "nightly", '{"overlap": "skip", "enabled": true}', "--app", "shop:app", "-o", "json"
    )
    stale = cli("cron", "patch", "nightly", '{"overlap": "allow"}', "--app", "shop:app", "--revision", "1")
    wrong = cli("cron", "patch", "nightly", '{"overlap": "x", "tenant": "a"}', "--app", "shop:app")

    assert put.code == 0
    assert "paused" in put.out
    assert put.err.strip().endswith("schedule nightly is at revision 1")
    assert (patched.json["overlap"], patched.json["paused"], patched.json["revision"]) == ("skip", None, 2)
    assert (stale.code, wrong.code) == (4, 2)
    assert "/overlap" in wrong.err
    assert "/tenant" in wrong.err
    assert app.schedules.revisions("nightly")[-1].reason == "first"


def test_an_outage_is_explained(cli: Cli, stored: Tenure) -> None:
    said = cli("cron", "explain", "reports.daily", "--outage", "9d", "--misfire", "skip")
    raw = cli("cron", "explain", "reports.daily", "--outage", "9d", "-o", "json").json["items"]
    now = cli("cron", "explain", "reports.daily", "--outage", "0s")

    assert "misfire" in said.out
    assert said.err.startswith("then trigger default fires next at ")
    assert [one["outcome"] for one in raw[0]["decisions"]] in (
        ["skipped", "misfired"],
        ["skipped", "fired"],  # in the minute after it
        ["skipped", "skipped", "misfired"],
    )
    assert now.code == 0
    assert len(now.out.splitlines()) == 1
    assert cli("cron", "explain", "nothing", "--outage", "1h").code == 3


def test_an_outage_names_the_job_that_stands_in_the_way(cli: Cli, stored: Tenure) -> None:
    ledgers = stored.ledgers()
    now = ledgers.index.take(FIRE, 0).now_ms
    early = [Ledgers(ledgers.scripts.at(now - hours * 3_600_000), ledgers.namespace) for hours in (3, 2)]
    task, triggers = (
        stored.registry.get("reports.daily"),
        [Trigger("a", every="1h"), Trigger("b", every="1h")],
    )
    Schedules(early[0].of("default")).put("hourly", task, triggers, overlap="queue")
    Scheduler(early[1], "one").round()

    said = cli("cron", "explain", "hourly", "--outage", "0s")

    assert said.out.count("queue_full") == 2
    assert said.err.count("overlap 'queue': job ") == 1
    assert said.err.endswith(" of the last fire is pending\n")


def test_a_backfill_says_what_it_made_what_was_there_and_what_is_owed(cli: Cli, stored: Tenure) -> None:
    ledgers = stored.ledgers()
    now = ledgers.index.take(FIRE, 0).now_ms
    then = Schedules(stored.ledger().at(now - 3_600_000))
    then.put("minutely", stored.registry.get("reports.daily"), [Trigger("default", "0 * * * * ?")])
    since, until = (rfc3339(now - back) for back in (1_200_000, 900_000))
    asked = ("cron", "backfill", "minutely", "--from", since, "--to", until)

    owed = cli(*asked, "--apply").err
    assert owed.startswith("0 jobs are made, 10 of them due in a second\n5 planned instants from ")
    assert "on are owed and left out" in owed
    plan = json.loads(cli(*asked, "-o", "json").out)
    assert (plan["items"], [one["outcome"] for one in plan["owed"]]) == ([], ["owed"] * 5)
    Scheduler(Ledgers(ledgers.scripts.at(now), ledgers.namespace), "one").round()

    assert "5 planned instants did not run and have no job; --apply" in cli(*asked).err
    assert cli(*asked, "--apply").err == "5 jobs are made, 10 of them due in a second\n"
    assert cli(*asked, "--apply").err == "0 jobs are made, 10 of them due in a second; 5 were there already\n"
    assert cli(*asked).err == "0 planned instants did not run and have no job\n"
    again = json.loads(cli(*asked, "--apply", "-o", "json").out)
    assert (again["made"], len(again["there"]), again["owed"]) == ([], 5, [])


def test_next_says_why_nothing_of_it_fires(cli: Cli, stored: Tenure) -> None:
    assert cli("cron", "next", "tick").err == ""
    cli("cron", "pause", "tick", "--reason", "too loud")
    stored.tenants.disable_scheduling("default", reason="migration")

    said = cli("cron", "next", "tick")
    found = json.loads(cli("cron", "next", "tick", "-o", "json").out)

    assert "scheduling of tenant default is disabled: nothing of it fires" in said.err
    assert "paused since " in said.err
    assert "too loud; nothing of it fires until it is resumed" in said.err
    assert (found["paused"]["reason"], found["schedulingDisabled"]) == ("too loud", True)


def test_a_run_by_hand_as_json_names_its_job(cli: Cli, stored: Tenure) -> None:
    found = json.loads(cli("cron", "run", "tick", "-o", "json").out)

    assert found["jobKey"] == "tick"
    assert stored.jobs.get(found["jobId"]).reason.startswith("run by hand by ")
