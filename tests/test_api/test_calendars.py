"""Calendars by name over HTTP: GET /calendars; GET, PUT, DELETE /calendars/{name}."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tenure import Tenure

from .conftest import pointers, refused

URL = "/calendars/holidays"
BODY = {"calendar": {"dates": ["2026-12-25"]}, "reason": "the new plan"}


def test_a_calendar_is_made_seen_and_made_anew(client: TestClient) -> None:
    made, same = (client.put(URL, json=BODY) for _ in range(2))
    other = client.put(URL, json={"calendar": {"weekdays": ["SUN"]}}, headers={"if-match": '"1"'})

    assert [(one.status_code, one.headers["etag"]) for one in (made, same, other)] == [
        (201, '"1"'),
        (200, '"1"'),
        (200, '"2"'),
    ]
    assert made.headers["location"] == URL
    assert made.json() == same.json()
    assert list(made.json()) == [
        *("name", "tenant", "revision", "calendar", "usedBy", "storedAt", "by", "reason"),
    ]
    assert (made.json()["calendar"], made.json()["reason"], made.json()["by"]) == (
        {"dates": ["2026-12-25"]},
        "the new plan",
        "api",
    )
    seen = client.get(URL)
    assert (seen.json(), seen.headers["etag"]) == (other.json(), '"2"')


def test_a_change_of_what_has_moved_on_is_refused(client: TestClient) -> None:
    refused(client.put(URL, json=BODY, headers={"if-match": "*"}), 412, "STALE_PLAN")
    client.put(URL, json=BODY, headers={"if-none-match": "*"})
    other = {"calendar": {"weekdays": ["SUN"]}}

    for headers in ({"if-match": '"7"'}, {"if-none-match": "*"}):
        refused(client.put(URL, json=other, headers=headers), 412, "STALE_PLAN")
    refused(client.delete(URL, headers={"if-match": '"7"'}), 412, "STALE_PLAN")

    assert client.put(URL, json=other, headers={"if-match": "*"}).status_code == 200


def test_calendars_are_listed_page_by_page(client: TestClient) -> None:
    for name in ("b", "a"):
        client.put(f"/calendars/{name}", json={**BODY, "tenant": "acme"})

    first = client.get("/calendars?tenant=acme&limit=1").json()
    second = client.get(f"/calendars?tenant=acme&cursor={first['nextCursor']}").json()

    assert [one["name"] for one in first["items"] + second["items"]] == ["a", "b"]
    assert (first["hasMore"], second["hasMore"]) == (True, False)
    assert client.get("/calendars").json()["items"] == []


def test_a_calendar_that_is_used_is_not_deleted(client: TestClient) -> None:
    client.put(URL, json=BODY)
    schedule = {"task": "reports.daily", "triggers": [{"cron": "0 0 2 * * ?", "calendar": "holidays"}]}
    assert client.put("/schedules/nightly", json=schedule).status_code == 201

    problem = refused(client.delete(URL), 409, "IN_USE")

    assert "nightly" in problem["detail"]
    assert client.get(URL).json()["usedBy"] == ["nightly"]
    client.delete("/schedules/nightly")
    assert client.delete(URL).status_code == 204
    refused(client.get(URL), 404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, ["/calendar"]),
        ({"calendar": []}, ["/calendar"]),
        ({"calendar": {}}, ["/calendar"]),
        ({"calendar": {"tz": "UTC"}}, ["/calendar"]),
        (
            {"calendar": {"day": "x", "dates": "x", "window": 3}, "x": 1},
            ["/x", "/calendar/day", "/calendar/dates", "/calendar/window"],
        ),
        ({"calendar": {"dates": "2026-12-25", "tz": "Mars"}, "tenant": "A"}, ["/tenant", "/calendar/tz"]),
    ],
)
def test_everything_wrong_is_named_at_once(
    client: TestClient, body: dict[str, Any], wrong: list[str]
) -> None:
    assert sorted(pointers(refused(client.put(URL, json=body), 400, "BAD_INPUT"))) == sorted(wrong)


def test_a_name_that_none_may_have_is_refused(client: TestClient) -> None:
    refused(client.put("/calendars/No%20name", json=BODY), 400, "BAD_INPUT")


def test_a_schedule_and_a_preview_name_a_calendar_that_is_stored(client: TestClient, shop: Tenure) -> None:
    triggers = [{"cron": "0 0 2 * * ?"}, {"name": "b", "cron": "0 0 3 * * ?", "calendar": "holidays"}]
    body = {"task": "reports.daily", "triggers": triggers, "misfire": "never"}

    for answer in (
        client.put("/schedules/nightly", json=body),
        client.post("/schedules/preview", json={"triggers": triggers}),
    ):
        assert "/triggers/1/calendar" in pointers(refused(answer, 400, "BAD_INPUT"))

    shop.calendars.put("holidays", {"cron": "* * 3 * * ?"})
    found = client.post("/schedules/preview", json={"triggers": triggers}).json()["items"]
    assert [len(one["nextFires"]) for one in found] == [5, 0]
