"""Tenants and the switch of each; schedules that are paused, resumed and run."""

from __future__ import annotations

from starlette.testclient import TestClient

from tenure import Tenure

from .conftest import refused

URL = "/schedules/reports.nightly"
NIGHTLY = {"task": "reports.daily", "triggers": [{"cron": "0 30 1 * * ?"}]}


def test_a_tenants_switch_is_seen_turned_off_and_on(client: TestClient) -> None:
    assert client.get("/tenants/acme/scheduling").json() == {
        "tenant": "acme",
        "enabled": True,
        "reason": None,
        "by": None,
        "since": None,
        "until": None,
        "revision": 0,
    }

    body = {"enabled": False, "reason": "migration", "until": "2030-01-01T00:00:00Z"}
    off = client.put("/tenants/acme/scheduling", json=body)
    again = client.put("/tenants/acme/scheduling", json=body)

    assert off.status_code == 200
    assert off.json() == again.json() == client.get("/tenants/acme/scheduling").json()
    assert (off.json()["enabled"], off.json()["reason"], off.json()["by"]) == (False, "migration", "api")
    assert off.json()["until"] == "2030-01-01T00:00:00.000Z"
    assert client.put("/tenants/acme/scheduling", json={"enabled": True}).json()["enabled"]
    assert [one["tenant"] for one in client.get("/tenants").json()["items"]] == ["acme"]


def test_settings_that_cannot_be_read_are_told_and_put_anew(client: TestClient, app: Tenure) -> None:
    client.put(URL, json=NIGHTLY)
    app.ledger().scripts.redis.set(app.ledger().keys("scheduling"), "garbage")

    found = client.get("/tenants/default/scheduling").json()
    problem = refused(client.post(f"{URL}/run", json={}), 409, "SCHEDULING_DISABLED")

    assert not found["enabled"]
    assert found["reason"].startswith("the scheduling settings of tenant default cannot be read: ")
    assert "enable-scheduling default" in problem["hint"]
    assert len(client.get("/schedules").json()["items"]) == 1
    assert client.get(f"{URL}/why").json()["text"].startswith("The scheduling settings of tenant default")
    assert client.put("/tenants/default/scheduling", json={"enabled": True}).json()["enabled"]
    assert client.post(f"{URL}/run", json={}).status_code == 202


def test_what_is_wrong_with_a_switch_is_named(client: TestClient) -> None:
    problem = refused(client.put("/tenants/acme/scheduling", json={"until": "soon"}), 400, "BAD_INPUT")
    assert {error["pointer"] for error in problem["errors"]} == {"/enabled", "/until"}

    both = {"enabled": True, "until": "2030-01-01T00:00:00Z"}
    problem = refused(client.put("/tenants/acme/scheduling", json=both), 400, "BAD_INPUT")
    assert {error["pointer"] for error in problem["errors"]} == {"/until"}
    refused(client.put("/tenants/Acme/scheduling", json={"enabled": True}), 400, "BAD_INPUT")


def test_a_schedule_is_paused_and_resumed_under_its_etag(client: TestClient) -> None:
    made = client.put(URL, json=NIGHTLY)

    paused = client.post(
        f"{URL}/pause", json={"reason": "too loud"}, headers={"If-Match": made.headers["etag"]}
    )

    assert paused.json()["paused"]["reason"] == "too loud"
    assert paused.headers["etag"] != made.headers["etag"]
    refused(
        client.post(f"{URL}/resume", json={}, headers={"If-Match": made.headers["etag"]}), 412, "STALE_PLAN"
    )
    assert client.post(f"{URL}/resume", json={}).json()["paused"] is None


def test_a_schedule_is_run_by_hand_for_now_or_a_planned_instant(client: TestClient) -> None:
    client.put(URL, json=NIGHTLY)
    planned = client.get(f"{URL}/next").json()["items"][2]["fireTime"]

    answer = client.post(f"{URL}/run", json={"fireTime": planned})

    assert answer.status_code == 202
    assert client.get(answer.headers["location"]).json()["task"] == "reports.daily"
    assert client.get(f"{URL}/fires").json()["items"] == []
    refused(client.post(f"{URL}/run", json={"fireTime": "2026-12-24T18:00:00Z"}), 400, "BAD_INPUT")
    client.put("/tenants/default/scheduling", json={"enabled": False})
    problem = refused(client.post(f"{URL}/run", json={}), 409, "SCHEDULING_DISABLED")
    assert problem["hint"].startswith("GET /tenants/default/scheduling")


def test_a_run_by_hand_keeps_its_reason_and_honours_if_match(client: TestClient, app: Tenure) -> None:
    made = client.put(URL, json=NIGHTLY)

    ran = client.post(
        f"{URL}/run", json={"reason": "the books were late"}, headers={"If-Match": made.headers["etag"]}
    )

    assert ran.status_code == 202
    said = app.ledger().get(ran.json()["jobId"]).reason
    assert said.startswith("run by hand by ")
    assert said.endswith(": the books were late")
    client.post(f"{URL}/pause", json={})
    stale = client.post(f"{URL}/run", json={}, headers={"If-Match": made.headers["etag"]})
    refused(stale, 412, "STALE_PLAN")
    refused(client.post("/schedules/none/run", json={}, headers={"If-Match": "*"}), 412, "STALE_PLAN")
    assert client.post(f"{URL}/run", json={}, headers={"If-Match": "*"}).status_code == 202
    refused(client.post(f"{URL}/run", json={}, headers={"If-Match": "x"}), 400, "BAD_INPUT")
    assert len(client.get("/jobs").json()["items"]) == 2


def test_why_answers_for_a_schedule_and_an_instant_of_it(client: TestClient) -> None:
    client.put(URL, json=NIGHTLY)
    planned = client.get(f"{URL}/next").json()["items"][0]["fireTime"]

    assert client.get(f"{URL}/why").json()["next"] == planned
    found = client.get(f"{URL}/why", params={"at": planned}).json()
    assert (found["verdict"], found["next"], found["checks"][0]["state"]) == ("not_due", planned, "ok")
    refused(client.get(f"{URL}/why?at=tonight"), 400, "BAD_INPUT")


def test_preview_and_next_mark_each_day_on_which_the_clocks_change(client: TestClient) -> None:
    trigger = {"cron": "0 30 2 ? * SUN", "tz": "Europe/Berlin"}
    client.put(URL, json={**NIGHTLY, "triggers": [trigger]})

    (previewed,) = client.post("/schedules/preview", json={"triggers": [trigger]}).json()["items"]
    found = client.get(f"{URL}/next", params={"count": 100}).json()

    changes = previewed["clockChanges"]
    assert sorted((one["mark"], one["skipped"] or "") for one in changes) == [
        ("gap", ""),
        ("overlap", ""),
        ("overlap", "dst_overlap"),
    ]
    assert [{"trigger": "default", **one} for one in changes] == found["clockChanges"]
    marked = {one["fireTime"]: one for one in found["items"] if one["mark"]}
    for change in changes:
        if change["skipped"] is None:
            assert marked[change["at"]]["mark"] == change["mark"]
            assert marked[change["at"]]["nominal"] == change["nominal"]
            assert change["nominal"].endswith("T02:30:00")
    assert sum(one["mark"] is None for one in found["items"]) > 90
    (gap,) = (one for one in changes if one["mark"] == "gap")
    assert gap["text"] == "the clocks leave out 02:30:00: fires at this time"


def test_triggers_are_previewed_before_anything_is_stored(client: TestClient) -> None:
    body = {
        "triggers": [{"name": "a", "cron": "0 0 2 ? * MON-FRI"}, {"name": "b", "every": "90m"}],
        "count": 2,
    }

    found = client.post("/schedules/preview", json=body).json()["items"]

    assert [one["trigger"] for one in found] == ["a", "b"]
    assert all(len(one["nextFires"]) == 2 for one in found)
    assert found[0]["description"]["en"] == "at 02:00, Monday to Friday"
    assert found[1]["description"] is None
    assert client.get("/schedules").json()["items"] == []
    problem = refused(
        client.post("/schedules/preview", json={"triggers": [{"cron": "61 * * * *"}]}), 400, "BAD_CRON"
    )
    assert problem["errors"][0]["pointer"] == "/triggers/0/cron"
