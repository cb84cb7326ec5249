"""Whoever asks over HTTP is told what to ask next over HTTP."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from tenure.api.next_steps import over_http

from .conftest import refused

NOWHERE = "01J00000000000000000000000"


@pytest.mark.parametrize(
    ("method", "path", "hint"),
    [
        *(("GET", f"/jobs/{NOWHERE}{more}", "GET /jobs") for more in ("", "/why")),
        *(("POST", f"/jobs/{NOWHERE}/{verb}", "GET /jobs") for verb in ("retry", "skip", "cancel")),
        ("GET", "/jobs/chain/nobody", "GET /jobs"),
        ("GET", f"/jobs/replays/{NOWHERE}", "GET /jobs/replays"),
        ("GET", "/schedules/reports.weekly", "GET /schedules"),
        ("POST", "/schedules/reports.weekly/run", "GET /schedules"),
        ("GET", "/calendars/holidays", "GET /calendars"),
    ],
)
def test_what_is_not_found_says_where_to_look(client: TestClient, method: str, path: str, hint: str) -> None:
    assert refused(client.request(method, path), 404, "NOT_FOUND")["hint"] == hint


def test_each_command_that_has_a_request_is_told_as_one() -> None:
    assert over_http("tenure jobs show 01J") == "GET /jobs/01J"
    assert over_http("tenure cron next a/b.c") == "GET /schedules/a%2Fb.c/next"
    assert over_http("tenure cron show reports.daily") == "GET /schedules/reports.daily"
    assert over_http("tenure cron explain '* *'") == "POST /schedules/preview"
    assert over_http("tenure failures list shows them") == "GET /jobs/failure-clusters shows them"


@pytest.mark.parametrize(
    "hint", ["", "leave one out", "tenure jobs list it", "say tenure cron list", "tenure demo"]
)
def test_any_other_hint_stays_as_it_is(hint: str) -> None:
    assert over_http(hint) == hint
