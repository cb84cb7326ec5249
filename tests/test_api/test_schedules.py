"""Schedules by JobKey over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tenure import Tenure
from tenure.api.plain import instant
from tenure.lease.jobs import FIRE
from tenure.lease.ledgers import Ledgers
from tenure.lease.tasks import Task
from tenure.scheduler.scheduler import Scheduler
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.trigger import Trigger

from .conftest import pointers, refused

NIGHTLY = {
    "task": "reports.daily",
    "args": [3],
    "triggers": [{"cron": "0 30 1 * * ?", "tz": "Europe/Berlin"}],
}
URL = "/schedules/reports.nightly"


def test_a_schedule_is_made_seen_and_made_anew(client: TestClient) -> None:
    made = client.put(URL, json=NIGHTLY)
    same = client.put(URL, json=NIGHTLY)
    other = client.put(URL, json={**NIGHTLY, "args": [4]})

    assert [(answer.status_code, answer.headers["etag"]) for answer in (made, same, other)] == [
        (201, '"1"'),
        (200, '"1"'),
        (200, '"2"'),
    ]
    assert made.headers["location"] == URL
    seen = client.get(URL)
    assert seen.headers["etag"] == '"2"'
    assert seen.json() == other.json()
    assert list(seen.json()) == [
        *("jobKey", "tenant", "revision", "task", "args", "kwargs", "triggers", "misfire", "overlap"),
        *("paused", "declared", "override", "effective", "exhausted"),
    ]
    (trigger,) = seen.json()["triggers"]
    assert (trigger["name"], trigger["cron"], trigger["tz"], trigger["lastFire"]) == (
        "default",
        "0 30 1 * * ?",
        "Europe/Berlin",
        None,
    )
    assert trigger["nextFire"].endswith(":30:00.000Z")


def test_a_change_of_what_has_moved_on_is_refused(client: TestClient) -> None:
    client.put(URL, json=NIGHTLY)
    client.put(URL, json={**NIGHTLY, "args": [4]})

    refused(client.put(URL, json={**NIGHTLY, "args": [5]}, headers={"if-match": '"1"'}), 412, "STALE_PLAN")

    assert client.get(URL).json()["args"] == [4]
    assert client.put(URL, json={**NIGHTLY, "args": [5]}, headers={"if-match": '"2"'}).status_code == 200


@pytest.mark.parametrize("stale", [{"if-match": '"1"'}, {"if-none-match": "*"}])
def test_a_change_of_nothing_by_one_who_has_seen_something_else_is_refused(
    client: TestClient, stale: dict[str, str]
) -> None:
    client.put(URL, json=NIGHTLY)
    client.put(URL, json={**NIGHTLY, "args": [4]})

    refused(client.put(URL, json={**NIGHTLY, "args": [4]}, headers=stale), 412, "STALE_PLAN")
    refused(client.patch(URL, json={}, headers=stale), 412, "STALE_PLAN")

    assert client.patch(URL, json={}, headers={"if-match": '"2"'}).json()["revision"] == 2


def test_if_match_star_changes_only_what_is_there(client: TestClient) -> None:
    refused(client.put(URL, json=NIGHTLY, headers={"if-match": "*"}), 412, "STALE_PLAN")

    client.put(URL, json=NIGHTLY)

    assert client.put(URL, json={**NIGHTLY, "args": [9]}, headers={"if-match": "*"}).status_code == 200


def test_if_none_match_star_makes_only_what_is_new(client: TestClient) -> None:
    assert client.put(URL, json=NIGHTLY, headers={"if-none-match": "*"}).status_code == 201

    refused(client.put(URL, json={**NIGHTLY, "args": [9]}, headers={"if-none-match": "*"}), 412, "STALE_PLAN")


@pytest.mark.parametrize("header", ["1", 'W/"1"', '"1", "2"', '"x"', '""', '"' + "9" * 40 + '"'])
def test_an_if_match_that_is_no_etag_of_ours_is_refused(client: TestClient, header: str) -> None:
    refused(client.put(URL, json=NIGHTLY, headers={"if-match": header}), 400, "BAD_INPUT")


@pytest.mark.parametrize(
    ("change", "code", "places"),
    [
        ({"task": "reports.dialy"}, "UNKNOWN_TASK", ["/task"]),
        ({"task": None}, "BAD_INPUT", ["/task"]),
        ({"args": [1, 2]}, "BAD_INPUT", ["/args"]),
        ({"triggers": []}, "BAD_INPUT", ["/triggers"]),
        ({"triggers": "0 0 2 * * ?"}, "BAD_INPUT", ["/triggers", "/triggers"]),
        ({"triggers": [7]}, "BAD_INPUT", ["/triggers/0", "/triggers"]),
        ({"triggers": [{"cron": "0 2 * *"}]}, "BAD_CRON", ["/triggers/0/cron"]),
        ({"triggers": [{"cron": "0 0 31 2 *"}]}, "BAD_CRON", ["/triggers/0/cron"]),
        ({"triggers": [{"cron": "0-99999999/1 * * * *"}]}, "BAD_CRON", ["/triggers/0/cron"]),
        ({"triggers": [{"cron": ",".join("1" * 400) + " * * * *"}]}, "BAD_CRON", ["/triggers/0/cron"]),
        ({"triggers": [{"cron": "@daily", "tz": "Europe/Berlim"}]}, "BAD_INPUT", ["/triggers/0/tz"]),
        ({"triggers": [{"cron": "@daily", "tz": "../etc/passwd"}]}, "BAD_INPUT", ["/triggers/0/tz"]),
        ({"triggers": [{"cron": "@daily", "dst": "never"}]}, "BAD_INPUT", ["/triggers/0/dst"]),
        ({"triggers": [{"cron": "@daily", "name": "A B"}]}, "BAD_INPUT", ["/triggers"]),
        ({"triggers": [{"cron": "@daily"}, {"cron": "@hourly"}]}, "BAD_INPUT", ["/triggers"]),
        ({"triggers": [{"cron": "@daily"}] * 101}, "BAD_INPUT", ["/triggers", "/triggers"]),
        ({"triggers": [{"corn": "@daily"}]}, "BAD_INPUT", ["/triggers/0/corn", "/triggers/0/cron"]),
        ({"triggers": [{"cron": "@daily", "every": "5m"}]}, "BAD_INPUT", ["/triggers/0/every"]),
        ({"misfire": "never"}, "BAD_INPUT", ["/misfire"]),
        ({"overlap": "maybe"}, "BAD_INPUT", ["/overlap"]),
        ({"enabled": "no"}, "BAD_INPUT", ["/enabled"]),
        ({"flow": "x"}, "BAD_INPUT", ["/flow"]),
        ({"tenant": "{x}"}, "BAD_INPUT", ["/tenant"]),
    ],
)
def test_what_is_wrong_with_a_schedule_is_named(
    client: TestClient, change: dict[str, Any], code: str, places: list[str]
) -> None:
    answer = client.put(URL, json={**NIGHTLY, **change})

    problem = answer.json()
    assert answer.status_code == 400, problem
    assert pointers(problem) == places
    assert problem["code"] == code or len(places) > 1
    assert client.get("/schedules").json()["items"] == []


def test_a_trigger_that_never_fires_again_is_refused(client: TestClient) -> None:
    answer = client.put(URL, json={**NIGHTLY, "triggers": [{"cron": "0 0 20 19 8 ? 2019"}]})

    assert answer.status_code == 400
    assert "never fires again" in answer.json()["detail"]


@pytest.mark.parametrize("key", ["a.", ".b", "%20a", "a%0Ab", "x" * 201])
def test_a_job_key_that_is_none_is_refused(client: TestClient, key: str) -> None:
    refused(client.put(f"/schedules/{key}", json=NIGHTLY), 400, "BAD_INPUT")


@pytest.mark.parametrize("key", ["a:b.c", "{x}", "日次.集計", "*", "a.b.c"])
def test_a_job_key_may_be_any_printable_text(client: TestClient, key: str) -> None:
    made = client.put(f"/schedules/{key}", json=NIGHTLY)

    assert made.json()["jobKey"] == key
    assert client.get(made.headers["location"]).json()["jobKey"] == key


def test_schedules_are_listed_by_name_in_pages(client: TestClient) -> None:
    names = sorted(["a.a", "b.a", "b.b", "c", "d.d"])
    for name in names:
        client.put(f"/schedules/{name}", json=NIGHTLY)

    seen: list[str] = []
    url = "/schedules?limit=2"
    while url:
        page = client.get(url).json()
        seen += [item["jobKey"] for item in page["items"]]
        url = f"/schedules?limit=2&cursor={page['nextCursor']}" if page["hasMore"] else ""

    assert seen == names


def test_the_next_fires_of_all_triggers_come_in_order(client: TestClient) -> None:
    triggers = [{"name": "hourly", "cron": "@hourly"}, {"name": "half", "cron": "30 * * * *"}]
    client.put(URL, json={**NIGHTLY, "triggers": triggers})

    planned = client.get(f"{URL}/next?count=4").json()["items"]

    assert [one["fireTime"] for one in planned] == sorted(one["fireTime"] for one in planned)
    assert {one["trigger"] for one in planned} == {"hourly", "half"}
    assert len(planned) == 4


def test_fires_are_listed_newest_first_over_months(client: TestClient, shop: Tenure) -> None:
    """Each edit of a schedule that is overdue leaves a record of the instants it passes over, one for each month."""
    instants = [1_790_000_000_000 + day * 20 * 86_400_000 for day in range(4)]
    for number, at in enumerate(instants):
        then = Schedules(shop.ledger().at(at))
        then.put(
            "reports.nightly", shop.registry.get("reports.daily"), [Trigger("a", "@daily")], args=[number]
        )
    fires = f"{URL}/fires"

    everything = client.get(fires).json()
    paged: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = client.get(f"{fires}?limit=1&cursor={cursor}").json()
        paged += [item["fireTime"] for item in page["items"]]
        cursor = page["nextCursor"]

    records = everything["items"]
    assert {record["outcome"] for record in records} == {"skipped"}
    assert {record["reason"] for record in records} == {"superseded"}
    assert sum(record["count"] for record in records) == 3 * 20
    assert list(records[0]) == [
        *("jobKey", "trigger", "fireTime", "outcome", "reason", "jobId", "at", "lagMs", "scheduler"),
        *("until", "count"),
    ]
    times = [record["fireTime"] for record in records]
    assert times == sorted(times, reverse=True)
    assert len({time[:7] for time in times}) > 1
    assert paged == times


def test_fires_are_those_of_a_trigger_of_the_schedule(client: TestClient) -> None:
    client.put(URL, json=NIGHTLY)

    assert client.get(f"{URL}/fires?trigger=default").json()["items"] == []
    assert pointers(refused(client.get(f"{URL}/fires?trigger=x:y"), 400, "BAD_INPUT")) == ["?trigger"]
    for cursor in ("x", "MjAyNjEzOjE", "MjAyNjAxOi0y"):
        refused(client.get(f"{URL}/fires?cursor={cursor}"), 400, "BAD_INPUT")


def test_fires_of_a_deleted_schedule_are_read_as_long_as_they_are_kept(
    client: TestClient, shop: Tenure
) -> None:
    now = shop.ledgers().index.take(FIRE, 0).now_ms
    then = Schedules(shop.ledger().at(now - 300_000))
    triggers = [Trigger("default", "0 * * * * ?"), Trigger("b", "30 * * * * ?")]
    then.put("reports.nightly", shop.registry.get("reports.daily"), triggers)
    assert client.delete(URL).status_code == 204

    first = client.get(f"{URL}/fires?limit=1").json()
    of_b = client.get(f"{URL}/fires?trigger=b").json()["items"]

    everything = client.get(f"{URL}/fires").json()["items"]
    assert {(one["trigger"], one["reason"]) for one in everything} == {
        ("default", "deleted"),
        ("b", "deleted"),
    }
    assert [one for one in everything if one["trigger"] == "b"] == of_b
    assert client.get(f"{URL}/fires?cursor={first['nextCursor']}").status_code == 200
    told = client.get(f"{URL}/why?at={of_b[0]['fireTime']}").json()
    assert told["verdict"] == "skipped_deleted"
    refused(client.get(URL), 404, "NOT_FOUND")
    refused(client.get(f"{URL}/fires?trigger=c"), 404, "NOT_FOUND")
    refused(client.get("/schedules/reports.never/fires"), 404, "NOT_FOUND")
    refused(client.get(f"/schedules/reports.never/why?at={of_b[0]['fireTime']}"), 404, "NOT_FOUND")
    assert pointers(refused(client.get(f"{URL}/fires?trigger=x:y"), 400, "BAD_INPUT")) == ["?trigger"]


def test_the_execution_log_is_paged_by_month(client: TestClient, shop: Tenure) -> None:
    """Each edit of an overdue schedule leaves an entry of the instants it passes over."""
    instants = [1_790_000_000_000 + day * 2 * 86_400_000 for day in range(4)]
    for number, at in enumerate(instants):
        then = Schedules(shop.ledger().at(at))
        then.put(
            "reports.nightly", shop.registry.get("reports.daily"), [Trigger("a", "@daily")], args=[number]
        )
    logs = f"{URL}/logs?month=202609"

    everything = client.get(logs).json()
    paged: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = client.get(f"{logs}&limit=1&cursor={cursor}").json()
        paged += [item["eventId"] for item in page["items"]]
        assert page["hasMore"] == (page["nextCursor"] is not None)
        cursor = page["nextCursor"]

    entries = everything["items"]
    assert paged == [entry["eventId"] for entry in entries]
    assert len(set(paged)) == 3
    assert entries[0].keys() == {
        *("eventId", "jobKey", "trigger", "fireTime", "status", "executed", "reason", "message", "jobId"),
        *("createTime", "until", "count"),
    }
    assert (entries[0]["status"], entries[0]["executed"], entries[0]["reason"]) == (
        *("Skipped", False),
        "superseded",
    )
    assert entries[0]["createTime"] == instant(instants[3])
    assert [entry["createTime"] for entry in entries] == [instant(at) for at in reversed(instants[1:])]
    assert client.get(f"{URL}/logs").json()["items"] == []  # of this month


def test_the_execution_log_takes_a_month_and_its_own_cursors(client: TestClient) -> None:
    client.put(URL, json=NIGHTLY)

    for month in ("2026-09", "202613", "x"):
        assert pointers(refused(client.get(f"{URL}/logs?month={month}"), 400, "BAD_INPUT")) == ["?month"]
    for cursor in ("x", "MjAyNjAxOi0y"):
        assert pointers(refused(client.get(f"{URL}/logs?cursor={cursor}"), 400, "BAD_INPUT")) == ["?cursor"]
    refused(client.get(f"{URL}/logs?limit=101"), 400, "BAD_INPUT")


@pytest.mark.parametrize("method", ["DELETE", "GET"])
def test_what_takes_no_body_refuses_one_and_touches_nothing(client: TestClient, method: str) -> None:
    """A tenant named in it would be passed over, and another tenant's schedule deleted."""
    client.put(URL, json=NIGHTLY)

    answer = client.request(method, URL, json={"tenant": "acme"})

    refused(answer, 400, "BAD_INPUT")
    assert "query string" in answer.json()["hint"]
    assert client.get(URL).status_code == 200


def test_a_schedule_is_deleted(client: TestClient) -> None:
    client.put(URL, json=NIGHTLY)

    gone = client.delete(f"{URL}?reason=not%20needed")

    assert (gone.status_code, gone.content) == (204, b"")
    refused(client.get(URL), 404, "NOT_FOUND")
    refused(client.delete(URL), 404, "NOT_FOUND")
    made = client.put(URL, json=NIGHTLY)
    assert (made.status_code, made.headers["etag"]) == (201, '"2"'), "an old ETag never fits again"


def test_of_a_deleted_schedule_that_code_declares_it_is_said_that_it_comes_back(
    client: TestClient, app: Tenure
) -> None:
    app.cron("reports.nightly", "0 30 1 * * ?")(lambda: None)
    app.schedules.declare()

    gone = client.delete(URL)

    assert gone.status_code == 200
    assert (gone.json()["jobKey"], gone.json()["declared"]) == ("reports.nightly", True)
    assert "comes back with the next registration" in gone.json()["hint"]
    assert client.get(URL).status_code == 404


def test_who_deleted_a_schedule_that_has_fired_is_known_as_long_as_its_records(
    client: TestClient, app: Tenure
) -> None:
    now = app.ledgers().index.take(FIRE, 0).now_ms
    early = Schedules(app.ledger().at(now - 3_600_000))
    early.put("minutely", Task("reports.daily", lambda: None), [Trigger("default", "0 * * * * ?")])

    client.delete("/schedules/minutely?reason=too%20loud")

    (end,) = app.schedules.revisions("minutely")
    assert (end.verb, end.reason, end.definition) == ("delete", "too loud", None)
    assert end.by
    due = -(-(now - 3_600_000) // 60_000) * 60_000
    why = client.get("/schedules/minutely/why", params={"at": instant(due)}).json()
    assert f"by {end.by} (too loud)" in why["text"]
    early.put("minutely", Task("reports.daily", lambda: None), [Trigger("default", "0 0 * * * ?")])
    assert [one.verb for one in app.schedules.revisions("minutely")] == ["put", "delete"]


def test_a_backfill_makes_what_its_dry_run_shows(client: TestClient, app: Tenure) -> None:
    now = app.ledgers().index.take(FIRE, 0).now_ms
    early = Schedules(app.ledger().at(now - 3_600_000))
    early.put("minutely", app.registry.get("reports.daily"), [Trigger("default", "0 * * * * ?")])
    url, span = (
        "/schedules/minutely/backfill",
        {"from": instant(now - 1_200_000), "to": instant(now - 900_000)},
    )

    early_plan = client.post(url, json={**span, "dryRun": True}).json()
    early_made = client.post(url, json=span).json()
    Scheduler(app.ledgers(), "one").round()
    plan = client.post(url, json={**span, "dryRun": True})
    made = client.post(url, json={**span, "rate": 5, "reason": "the disk was full"})
    again = client.post(url, json=span)

    items = plan.json()["items"]
    assert [(one["trigger"], one["revision"], one["outcome"]) for one in items] == 5 * [
        ("default", 1, "skipped(coalesced)")
    ]
    assert (early_plan["items"], early_made["made"]) == ([], [])
    assert (
        [one["fireTime"] for one in early_plan["owed"]]
        == [one["fireTime"] for one in early_made["owed"]]
        == [one["fireTime"] for one in items]
    )
    assert (plan.status_code, made.status_code, plan.json()["hasMore"]) == (200, 202, False)
    assert (len(made.json()["made"]), made.json()["there"]) == (5, [])
    assert (again.json()["made"], again.json()["there"]) == ([], made.json()["made"])
    jobs = [app.ledger().get(one) for one in made.json()["made"]]
    assert [instant(job.fire_time) for job in jobs] == [one["fireTime"] for one in items]
    assert {job.reason.rpartition(": ")[2] for job in jobs} == {"the disk was full"}
    assert [job.run_at - job.created_at for job in jobs] == [0, 200, 400, 600, 800]
    assert client.post(url, json={**span, "dryRun": True}).json()["items"] == []


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({}, ["/from", "/to"]),
        ({"from": "yesterday", "to": 5, "rate": 201}, ["/from", "/rate", "/to"]),
        ({"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "dryRun": "yes"}, ["/dryRun"]),
    ],
)
def test_a_backfill_names_all_that_is_wrong(client: TestClient, body: object, found: list[str]) -> None:
    problem = refused(client.post(f"{URL}/backfill", json=body), 400, "BAD_INPUT")

    assert sorted(pointers(problem)) == found


def test_a_backfill_of_what_is_not_there_or_not_past_is_refused(client: TestClient) -> None:
    past = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}

    refused(client.post(f"{URL}/backfill", json=past), 404, "NOT_FOUND")
    client.put(URL, json=NIGHTLY)
    later = {**past, "to": "2099-01-01T00:00:00Z"}
    refused(client.post(f"{URL}/backfill", json=later), 400, "BAD_INPUT")
    odd = client.post(f"{URL}/backfill", json={**past, "trigger": "none"})
    assert odd.status_code == 400


def test_a_deletion_of_what_has_moved_on_is_refused(client: TestClient) -> None:
    client.put(URL, json=NIGHTLY)
    client.put(URL, json={**NIGHTLY, "args": [4]})

    refused(client.delete(URL, headers={"if-match": '"1"'}), 412, "STALE_PLAN")
    refused(client.delete(URL, headers={"if-match": "1"}), 400, "BAD_INPUT")

    assert client.delete(URL, headers={"if-match": '"2"'}).status_code == 204
    assert client.put(URL, json=NIGHTLY).status_code == 201
    assert client.delete(URL, headers={"if-match": "*"}).status_code == 204


def test_a_deletion_is_of_one_tenants_schedule(client: TestClient) -> None:
    client.put(URL, json={**NIGHTLY, "tenant": "acme"})

    refused(client.delete(URL), 404, "NOT_FOUND")
    refused(client.delete(f"{URL}?tennant=acme"), 400, "BAD_INPUT")

    assert client.delete(f"{URL}?tenant=acme").status_code == 204


def test_a_foreign_schedule_is_not_found(client: TestClient) -> None:
    client.put(URL, json={**NIGHTLY, "tenant": "acme"})

    for path in ("", "/next", "/fires"):
        refused(client.get(f"{URL}{path}"), 404, "NOT_FOUND")
        refused(client.get(f"{URL}{path}?tenant=globex"), 404, "NOT_FOUND")
        assert client.get(f"{URL}{path}?tenant=acme").status_code == 200
    assert client.get("/schedules").json()["items"] == []


# -- enabled, and patches ---------------------------------------------------------------------------------------------


def test_a_schedule_may_be_stored_paused_and_says_who_paused_it(client: TestClient) -> None:
    made = client.put(URL, json={**NIGHTLY, "enabled": False, "reason": "not yet"})
    left = client.put(URL, json={**NIGHTLY, "args": [4]})
    enabled = client.put(URL, json={**NIGHTLY, "args": [4], "enabled": True})
    same = client.put(URL, json={**NIGHTLY, "args": [4], "enabled": True})

    assert (made.json()["paused"]["by"], made.json()["paused"]["reason"]) == ("api", "not yet")
    assert left.json()["paused"] == made.json()["paused"]
    assert enabled.json()["paused"] is None
    assert [one.json()["revision"] for one in (made, left, enabled, same)] == [1, 2, 3, 3]


def test_a_patch_changes_what_it_names_and_leaves_the_rest(client: TestClient, shop: Tenure) -> None:
    shop.schedules.put(
        "reports.nightly", task="reports.daily", cron="0 30 1 * * ?", tz="Europe/Berlin", pool="outbound",
        kwargs={"day": 3}, misfire={"policy": "fire_all", "max": 7},
    )  # fmt: skip
    before = client.get(URL).json()

    patch = {"misfire": {"rate": 5}, "overlap": "skip", "enabled": False, "reason": "quiet week"}
    after = client.patch(URL, json=patch, headers={"if-match": '"1"'})

    assert (after.status_code, after.headers["etag"]) == (200, '"2"')
    found = after.json()
    assert found["misfire"] == {"policy": "fire_all", "max": 7, "rate": 5, "priority": 9}
    assert (found["overlap"], found["paused"]["reason"]) == ("skip", "quiet week")
    for part in ("task", "args", "kwargs", "triggers"):
        assert found[part] == before[part]
    assert shop.schedules.get("reports.nightly").definition.pool == "outbound"


def test_a_null_takes_a_part_back_and_an_array_is_replaced_whole(client: TestClient) -> None:
    client.put(URL, json={**NIGHTLY, "misfire": "skip"})
    other = {"cron": "0 0 3 * * ?"}

    found = client.patch(URL, json={"misfire": None, "args": None, "triggers": [other]}).json()

    assert (found["misfire"], found["args"]) == ("fire_once", [])
    assert [(one["cron"], one["tz"]) for one in found["triggers"]] == [("0 0 3 * * ?", "UTC")]


def test_a_patch_that_changes_nothing_is_no_revision(client: TestClient) -> None:
    client.put(URL, json=NIGHTLY)

    for patch in ({}, {"args": [3]}, {"enabled": True}, {"misfire": "fire_once"}):
        assert client.patch(URL, json=patch).json()["revision"] == 1


def test_another_task_brings_its_own_options(client: TestClient, shop: Tenure) -> None:
    @shop.task("quick", pool="outbound")
    def quick(day: int) -> None: ...

    client.put(URL, json=NIGHTLY)

    client.patch(URL, json={"task": "quick"})

    found = shop.schedules.get("reports.nightly").definition
    assert (found.task, found.pool) == ("quick", "outbound")


def test_a_patch_leaves_a_task_that_this_process_does_not_know(client: TestClient, shop: Tenure) -> None:
    task = Task("gone.away", print)
    Schedules(shop.ledger()).put("reports.nightly", task, [Trigger("default", "0 0 2 * * ?")], args=[b"x"])

    assert client.patch(URL, json={"overlap": "skip"}).status_code == 200
    assert pointers(refused(client.patch(URL, json={"args": [1]}), 400, "UNKNOWN_TASK")) == ["/task"]


@pytest.mark.parametrize(
    ("patch", "wrong"),
    [
        (
            {"triggers": [{"cron": "99 * * * * ?", "tz": "Mars"}], "misfire": "never", "overlap": "maybe"},
            ["/misfire", "/overlap", "/triggers/0/cron", "/triggers/0/tz"],
        ),
        ({"args": [1, 2, 3], "enabled": 1, "x": 2}, ["/args", "/enabled", "/x"]),
        ({"triggers": None}, ["/triggers"]),
        ({"task": None}, ["/task"]),
        ({"tenant": "A B", "x": 1}, ["/tenant", "/x"]),
        ({"kwargs": {"nights": 1}}, ["/args"]),
    ],
)
def test_a_wrong_patch_names_all_that_is_wrong_and_changes_nothing(
    client: TestClient, patch: dict[str, Any], wrong: list[str]
) -> None:
    client.put(URL, json=NIGHTLY)

    assert sorted(pointers(refused(client.patch(URL, json=patch), 400, "BAD_INPUT"))) == wrong
    assert client.get(URL).json()["revision"] == 1


def test_a_patch_of_another_revision_is_refused(client: TestClient) -> None:
    refused(client.patch(URL, json={"overlap": "skip"}), 404, "NOT_FOUND")
    client.put(URL, json=NIGHTLY)

    for headers in ({"if-match": '"7"'}, {"if-none-match": "*"}):
        refused(client.patch(URL, json={"overlap": "skip"}, headers=headers), 412, "STALE_PLAN")

    assert client.patch(URL, json={"overlap": "skip"}, headers={"if-match": "*"}).status_code == 200


def test_a_patch_is_of_what_stands_when_it_is_made(
    client: TestClient, shop: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two people patch different parts at once: both changes stand."""
    client.put(URL, json=NIGHTLY)
    real = Schedules.put_definition

    def overtaken(schedules: Schedules, *args: Any, **options: Any) -> Any:
        monkeypatch.setattr(Schedules, "put_definition", real)
        shop.schedules.put("reports.nightly", task="reports.daily", cron="0 0 5 * * ?", args=[3])
        return real(schedules, *args, **options)

    monkeypatch.setattr(Schedules, "put_definition", overtaken)
    found = client.patch(URL, json={"overlap": "skip"}).json()

    assert (found["overlap"], found["triggers"][0]["cron"], found["revision"]) == ("skip", "0 0 5 * * ?", 3)


def test_a_patch_may_say_that_it_is_one(client: TestClient) -> None:
    client.put(URL, json=NIGHTLY)
    kind = {"content-type": "application/merge-patch+json"}

    assert client.patch(URL, content=b'{"overlap": "skip"}', headers=kind).status_code == 200
    refused(client.put(URL, content=b"{}", headers=kind), 415, "NOT_JSON")


# -- dry runs ---------------------------------------------------------------------------------------------------------

OUTAGE = {"from": "2026-03-01T00:00:01Z", "until": "2026-03-03T12:00:00Z"}


def test_a_preview_says_what_becomes_of_an_outage(client: TestClient) -> None:
    body = {"triggers": [{"cron": "0 0 2 * * ?"}, {"name": "b", "every": "1d"}], "outage": OUTAGE, "count": 1}

    daily, every = client.post("/schedules/preview", json=body).json()["items"]

    skipped, fired = daily["outage"]["decisions"]
    assert {**daily["outage"], "decisions": None} == {
        "trigger": "default",
        "at": "2026-03-03T12:00:00.000Z",
        "decisions": None,
        "nextFire": "2026-03-04T02:00:00.000Z",
        "note": None,
    }
    assert skipped == {
        "fireTime": "2026-03-01T02:00:00.000Z",
        "outcome": "skipped",
        "reason": "coalesced",
        "dueAt": None,
        "priority": None,
        "until": "2026-03-02T02:00:00.000Z",
        "count": 2,
    }
    assert fired == {
        "fireTime": "2026-03-03T02:00:00.000Z",
        "outcome": "misfired",
        "reason": "fire_once",
        "dueAt": "2026-03-03T12:00:00.000Z",
        "priority": None,
    }
    assert [one.get("count", 1) for one in every["outage"]["decisions"]] == [1, 1]


def test_a_stored_schedule_says_what_becomes_of_an_outage(client: TestClient) -> None:
    client.put(URL, json={**NIGHTLY, "misfire": "skip"})

    own = client.post(f"{URL}/dry-run", json={"outage": OUTAGE}).json()["items"]
    other = client.post(f"{URL}/dry-run", json={"outage": OUTAGE, "misfire": {"policy": "fire_all"}}).json()[
        "items"
    ]
    now = client.post(f"{URL}/dry-run").json()["items"]

    assert [one["outcome"] for one in own[0]["decisions"]] == ["skipped"]
    assert [one["outcome"] for one in other[0]["decisions"]] == ["misfired"] * 3
    assert now[0]["decisions"] == []


def test_a_dry_run_lets_nothing_run_that_finds_a_job_in_its_way(client: TestClient, shop: Tenure) -> None:
    ledgers = shop.ledgers()
    now = ledgers.index.take(FIRE, 0).now_ms
    early = Ledgers(ledgers.scripts.at(now - 3_600_000), ledgers.namespace)
    trigger, task = Trigger("default", every="1h"), shop.registry.get("reports.daily")
    Schedules(early.of("default")).put("reports.nightly", task, [trigger], overlap="skip")
    Scheduler(Ledgers(ledgers.scripts.at(now), ledgers.namespace), "one").round()
    outage = {"from": instant(now + 1), "until": instant(now + 3_600_000)}

    (run,) = client.post(f"{URL}/dry-run", json={"outage": outage}).json()["items"]

    (job,) = shop.ledger().list().items
    assert run["note"] == f"overlap 'skip': job {job.id} of the last fire is pending"
    assert [(one["outcome"], one["reason"], one["dueAt"]) for one in run["decisions"]] == [
        ("skipped", "overlap", None)
    ]


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"outage": {"from": "x"}, "misfire": "x"}, ["/misfire", "/outage/from", "/outage/until"]),
        ({"outage": {"from": OUTAGE["until"], "until": OUTAGE["from"]}}, ["/outage"]),
        ({"outage": 7}, ["/outage"]),
    ],
)
def test_a_wrong_outage_is_named(client: TestClient, change: dict[str, Any], wrong: list[str]) -> None:
    client.put(URL, json=NIGHTLY)

    for place, body in (("preview", {"triggers": [{"cron": "@daily"}]}), ("reports.nightly/dry-run", {})):
        answer = client.post(f"/schedules/{place}", json={**body, **change})
        assert sorted(pointers(refused(answer, 400, "BAD_INPUT"))) == wrong
