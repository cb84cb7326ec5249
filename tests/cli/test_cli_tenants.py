"""`tenure tenants`, and `tenure cron` pause, resume and run."""

from __future__ import annotations

from tenure import Tenure

from .conftest import Cli


def test_scheduling_of_a_tenant_is_disabled_seen_and_enabled(cli: Cli) -> None:
    off = cli("tenants", "disable-scheduling", "acme", "--reason", "migration", "-o", "json").json
    shown = cli("tenants", "show", "acme").out
    listed = cli("tenants", "list").out
    on = cli("tenants", "enable-scheduling", "acme", "-o", "json").json

    assert (off["enabled"], off["reason"], on["enabled"]) == (False, "migration", True)
    assert "disabled" in shown
    assert "acme" in listed
    assert "migration" in listed
    assert cli("tenants", "disable-scheduling", "acme", "--until", "soon").code == 2


def test_settings_that_cannot_be_read_are_shown_beside_the_others_and_written_anew(
    cli: Cli, app: Tenure
) -> None:
    app.task("reports.daily")(lambda: None)
    app.schedules.put("reports.daily", task="reports.daily", cron="0 0 2 * * ?")
    cli("tenants", "disable-scheduling", "beta", "--reason", "migration")
    app.ledger().scripts.redis.set(app.ledger().keys("scheduling"), "garbage")

    listed = cli("tenants", "list")
    shown = cli("tenants", "show", "default")
    run = cli("cron", "run", "reports.daily")

    rows = {line.split()[0]: line.split()[1] for line in listed.out.splitlines()[1:]}
    assert (rows["default"], rows["beta"]) == ("unreadable", "disabled")
    assert (shown.code, "tenure tenants enable-scheduling default" in shown.out) == (0, True)
    assert "enable-scheduling default" in run.err
    assert "cannot be read" in cli("why", "reports.daily").out
    assert cli("tenants", "enable-scheduling", "default").code == 0
    assert cli("cron", "run", "reports.daily").code == 0


def test_a_schedule_is_paused_resumed_and_run(cli: Cli, app: Tenure) -> None:
    app.task("reports.daily")(lambda: None)
    app.schedules.put("reports.daily", task="reports.daily", cron="0 0 2 * * ?")

    paused = cli("cron", "pause", "reports.daily", "--reason", "too loud")
    shown = cli("cron", "show", "reports.daily").out
    resumed = cli("cron", "resume", "--group", "reports")
    made = cli("cron", "run", "reports.daily")

    assert paused.code == resumed.code == made.code == 0
    assert "too loud" in shown
    assert app.jobs.get(made.out.strip()).task == "reports.daily"
    assert cli("cron", "pause").code == 2
    assert cli("cron", "pause", "reports.weekly").code == 3


def test_why_says_when_a_schedule_fires_and_why_it_does_not(cli: Cli, app: Tenure) -> None:
    app.task("reports.daily")(lambda: None)
    app.schedules.put("reports.daily", task="reports.daily", cron="0 0 2 * * ?")

    ahead = cli("why", "reports.daily", "-o", "json").json
    odd = cli("why", "reports.daily", "--at", "2026-12-24T18:00:00Z")
    cli("cron", "pause", "reports.daily", "--reason", "too loud")

    assert (ahead["verdict"], ahead["next"][11:16]) == ("not_due", "02:00")
    assert "not a planned instant" in odd.out
    assert "too loud" in cli("why", "reports.daily").out
    assert cli("why", "reports.weekly").code == 3


def test_what_was_put_in_place_of_the_codes_is_shown_and_put_back(cli: Cli, app: Tenure) -> None:
    app.cron("reports.daily", "0 0 2 * * ?")(lambda: None)
    app.schedules.declare()
    app.schedules.put("reports.daily", task="reports.daily", cron="0 0 3 * * ?")

    shown = cli("cron", "diff").out
    followed = cli("cron", "follow", "reports.daily", "--reason", "as before")

    assert "cron=0 0 2 * * ?" in shown
    assert "cron=0 0 3 * * ?" in shown
    assert followed.code == 0
    assert cli("cron", "diff", "-o", "json").json["items"] == []
