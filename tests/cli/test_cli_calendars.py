"""`tenure calendars`: times that triggers leave out, stored by name."""

from __future__ import annotations

import pytest

from tenure import Tenure
from tenure.lease.who import whoami

from .terminal import Cli


def test_a_calendar_is_stored_listed_shown_and_deleted(cli: Cli, app: Tenure) -> None:
    put = cli(
        *(
            "calendars",
            "put",
            "quiet",
            "--dates",
            "2026-12-25,2026-12-26",
            "--weekdays",
            "sat",
            "--weekdays",
            "SUN",
        ),
        *(
            "--window",
            "22:00-06:00",
            "--outside",
            "05:00-23:00",
            "--cron",
            "* * * 13 * ?",
            "--tz",
            "Europe/Berlin",
        ),
        *("--reason", "night\x1b[31m"),
    )

    assert put.code == 0
    found = app.calendars.get("quiet")
    assert found.data == {
        "dates": ["2026-12-25", "2026-12-26"],
        "weekdays": ["SAT", "SUN"],
        "window": [{"from": "22:00", "to": "06:00"}, {"from": "05:00", "to": "23:00", "outside": True}],
        "cron": ["* * * 13 * ?"],
        "tz": "Europe/Berlin",
    }
    assert found.by == whoami()
    shown = cli("calendars", "show", "quiet")
    assert "no schedule" in shown.out
    assert "\x1b" not in shown.out
    assert cli("calendars", "list").out.splitlines()[1].startswith("quiet ")
    assert cli("calendars", "list", "-o", "json").json["items"][0]["name"] == "quiet"
    assert cli("calendars", "show", "quiet", "-o", "json").json["revision"] == 1
    assert cli("calendars", "delete", "quiet").err.strip() == "calendar quiet of tenant default is deleted"
    assert cli("calendars", "delete", "quiet").code == 3


def test_a_calendar_that_is_used_is_not_deleted(cli: Cli, app: Tenure) -> None:
    @app.cron("daily", "0 0 2 * * ?", calendar="quiet")
    def daily() -> None: ...

    app.calendars.put("quiet", {"weekdays": ["SUN"]})
    app.schedules.declare()

    said = cli("calendars", "delete", "quiet")

    assert said.code == 4
    assert "used by daily" in said.err
    assert "daily" in cli("calendars", "show", "quiet").out


def test_what_code_declares_in_a_calendar_that_is_not_stored_is_told(app: Tenure) -> None:
    @app.cron("daily", "0 0 2 * * ?", calendar="quiet")
    def daily() -> None: ...

    (declared,) = app.schedules.declare()

    assert "calendar 'quiet', which is not stored" in str(declared.problem)


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("put", "quiet"), 2, "is not a calendar"),
        (("put", "quiet", "--window", "night"), 2, "--window 22:00-06:00"),
        (("put", "quiet", "--dates", "2026-02-30"), 2, "2026-02-30"),
        (("put", "Quiet", "--weekdays", "SUN"), 2, "calendar name"),
        (("put", "quiet", "--weekdays", "SUN", "--revision", "3"), 4, "at revision 0, not 3"),
        (("show", "quiet"), 3, "tenure calendars list"),
    ],
)
def test_a_mistake_is_told(cli: Cli, app: Tenure, args: tuple[str, ...], code: int, says: str) -> None:
    said = cli("calendars", *args)

    assert said.code == code
    assert says in said.err
