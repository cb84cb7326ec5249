"""What a person does with a job over HTTP, and why a job waits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from tenure import Tenure
from tenure.lease.outcome import Fail, NextChunk, Succeed
from tenure.lease.requests import Options

from ..given import unknown_outcome
from .conftest import Hand, pointers, refused

NOWHERE = "01J00000000000000000000000"
DEAD = Fail("ValueError: no data", permanent=True)


def enqueue(shop: Tenure, *args: object, task: str = "reports.daily", **options: Any) -> str:
    return shop.enqueue(shop.registry.get(task), args, {}, Options(**options)).id


def test_a_dead_job_is_retried_once_however_often_it_is_asked(
    client: TestClient, shop: Tenure, hand: Hand
) -> None:
    job_id = enqueue(shop, 7)
    hand.work(DEAD)
    asked = {"reason": "data is there", "token": "7f"}

    first, again = (client.post(f"/jobs/{job_id}/retry", json=asked) for _ in range(2))
    refused(client.post(f"/jobs/{job_id}/retry", json={"reason": "data is there"}), 409, "WRONG_STATE")

    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()
    job = first.json()
    assert job["changed"] is True
    assert (job["status"], job["generation"], job["deadReason"], job["operationKey"]) == (
        "pending",
        2,
        None,
        f"{job_id}.0",
    )
    hand.work(Succeed())
    seen = client.get(f"/jobs/{job_id}").json()
    assert [(one["number"], one["generation"]) for one in seen["attemptList"]] == [(1, 1), (2, 2)]


def test_a_retry_with_other_arguments_is_another_operation(
    client: TestClient, shop: Tenure, hand: Hand
) -> None:
    job_id = enqueue(shop, 7)
    hand.work(DEAD)

    job = client.post(f"/jobs/{job_id}/retry", json={"args": [8], "after": "5m"}).json()

    assert (job["args"], job["kwargs"], job["operationKey"]) == ([8], {}, f"{job_id}.1")
    assert job["runAt"] > job["createdAt"]


def test_a_retried_background_task_keeps_its_checkpoint(client: TestClient, shop: Tenure, hand: Hand) -> None:
    job_id = enqueue(shop, task="orders.sync")
    hand.work(NextChunk(b"\x80", done=3, total=9))
    hand.work(DEAD)

    client.post(f"/jobs/{job_id}/retry", json={})

    assert client.get(f"/background-tasks/{job_id}").json()["done"] == 3
    assert hand.work(DEAD).cursor == b"\x80"
    client.post(f"/jobs/{job_id}/retry", json={"from": "start"})
    assert client.get(f"/background-tasks/{job_id}").json()["done"] is None
    assert hand.take().cursor == b""


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ({"args": ["one", "two"]}, ["/args"]),
        ({"args": {}}, ["/args"]),
        ({"kwargs": {"odd": 1}}, ["/kwargs"]),
        ({"generation": 0}, ["/generation"]),
        ({"from": "middle"}, ["/from"]),
        ({"generation": "1"}, ["/generation"]),
        ({"token": "t" * 101}, ["/token"]),
        ({"force": 1}, ["/force"]),
        ({"force": True}, ["/reason"]),
        ({"runAt": "tomorrow"}, ["/runAt"]),
        ({"runAt": "2026-12-01T00:00:00"}, ["/runAt"]),
        ({"runAt": "9999-12-01T00:00:00Z"}, ["/runAt"]),
        ({"after": "-1s"}, ["/after"]),
        ({"after": "1s", "runAt": "now"}, ["/after"]),
        ({"priority": 1, "tenant": "{x}"}, ["/priority", "/tenant"]),
    ],
)
def test_a_retry_that_makes_no_sense_names_each_place(
    client: TestClient, shop: Tenure, hand: Hand, body: dict[str, Any], places: list[str]
) -> None:
    job_id = enqueue(shop, 7)
    hand.work(DEAD)

    assert pointers(refused(client.post(f"/jobs/{job_id}/retry", json=body), 400, "BAD_INPUT")) == places
    assert client.get(f"/jobs/{job_id}").json()["generation"] == 1


def test_what_a_state_forbids_is_a_conflict(client: TestClient, shop: Tenure, hand: Hand) -> None:
    job_id = enqueue(shop)

    refused(client.post(f"/jobs/{job_id}/retry"), 409, "WRONG_STATE")
    hand.work(Succeed())
    for verb in ("retry", "skip", "cancel"):
        refused(client.post(f"/jobs/{job_id}/{verb}"), 409, "WRONG_STATE")
    refused(client.post(f"/jobs/{job_id}/reschedule", json={"runAt": "now"}), 409, "WRONG_STATE")


def test_what_was_decided_on_another_round_or_revision_is_refused(
    client: TestClient, shop: Tenure, hand: Hand
) -> None:
    dead, waiting = enqueue(shop, 1), enqueue(shop, 2, after="1h")
    hand.work(DEAD)

    problem = refused(client.post(f"/jobs/{dead}/retry", json={"generation": 2}), 409, "STALE_PLAN")
    assert "it is in generation 1, not 2" in problem["detail"]
    refused(
        client.post(f"/jobs/{waiting}/reschedule", json={"runAt": "now", "revision": 2}), 409, "STALE_PLAN"
    )


def test_a_key_that_another_job_has_now_is_a_conflict(client: TestClient, shop: Tenure, hand: Hand) -> None:
    job_id = enqueue(shop, task="orders.sync", idempotency_key="k")
    hand.work(DEAD)
    enqueue(shop, task="orders.sync", idempotency_key="k")

    refused(client.post(f"/jobs/{job_id}/retry"), 409, "KEY_REUSED")


@pytest.mark.parametrize(("verb", "reason"), [("cancel", "not needed"), ("skip", "skipped: not needed")])
def test_a_job_is_stopped_and_again_without_harm(
    client: TestClient, shop: Tenure, hand: Hand, verb: str, reason: str
) -> None:
    job_id = enqueue(shop)
    hand.work(DEAD)

    answers = [client.post(f"/jobs/{job_id}/{verb}", json={"reason": "not needed"}) for _ in range(2)]

    assert [(one.status_code, one.json()["status"]) for one in answers] == [(200, "canceled")] * 2
    assert [one.json()["changed"] for one in answers] == [True, False]
    assert shop.jobs.get(job_id).reason == reason
    assert reason in client.get(f"/jobs/{job_id}/why").json()["text"]


def test_a_job_is_rescheduled(client: TestClient, shop: Tenure, hand: Hand) -> None:
    job_id = enqueue(shop, after="1h")
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)

    later = client.post(
        f"/jobs/{job_id}/reschedule", json={"runAt": tomorrow.isoformat(), "priority": 2}
    ).json()
    now = client.post(
        f"/jobs/{job_id}/reschedule", json={"runAt": "now", "revision": later["revision"]}
    ).json()

    assert later["runAt"] == tomorrow.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert (later["priority"], now["priority"]) == (2, 2)
    assert hand.take().id == job_id


def test_a_reschedule_that_asks_for_nothing_is_refused(client: TestClient, shop: Tenure) -> None:
    job_id = enqueue(shop)

    assert pointers(refused(client.post(f"/jobs/{job_id}/reschedule"), 400, "BAD_INPUT")) == ["/runAt"]
    assert pointers(
        refused(client.post(f"/jobs/{job_id}/reschedule", json={"priority": 10}), 400, "BAD_INPUT")
    ) == ["/priority"]


@pytest.mark.parametrize("verb", ["retry", "skip", "cancel", "reschedule"])
def test_a_job_of_another_tenant_is_not_found(client: TestClient, shop: Tenure, verb: str) -> None:
    foreign = enqueue(shop, tenant="acme")

    for job_id in (foreign, NOWHERE):
        refused(client.post(f"/jobs/{job_id}/{verb}", json={"priority": 1} if verb == "reschedule" else {}), 404,
                "NOT_FOUND")  # fmt: skip
        refused(client.get(f"/jobs/{job_id}/why"), 404, "NOT_FOUND")
    assert client.post(f"/jobs/{foreign}/skip", json={"tenant": "acme"}).status_code == 200


def test_why_has_the_fields_of_the_contract(client: TestClient, shop: Tenure) -> None:
    job_id = enqueue(shop, after="1h")

    seen = client.get(f"/jobs/{job_id}/why").json()

    assert list(seen) == ["subject", "verdict", "since", "by", "text", "checks", "next", "do"]
    assert (seen["subject"], seen["verdict"]) == (f"job {job_id}", "not_due")
    assert seen["next"] == client.get(f"/jobs/{job_id}").json()["runAt"]
    assert [(one["name"], one["state"]) for one in seen["checks"]] == [
        ("state", "ok"),
        ("instance", "ok"),
        ("start_by", "ok"),
        ("hold", "ok"),
        ("due", "no"),
        ("rate", "not_reached"),
        ("key", "not_reached"),
        ("served", "not_reached"),
        ("known", "not_reached"),
    ]
    assert seen["do"][0] == f"tenure jobs reschedule {job_id} --now"


def test_a_reason_is_kept_and_logged_without_secrets(
    client: TestClient, shop: Tenure, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    said = {"reason": "leaked: password=tiger99, see postgresql://u:pw1234@db/x"}
    job_id = enqueue(shop)

    client.post(f"/jobs/{job_id}/cancel", json=said)
    client.post(f"/jobs/{job_id}/retry", json=said)
    client.post("/holds", json={**said, "task": "reports.daily"})
    client.post("/instances/i-1/pause", json=said)

    masked = "leaked: password=***, see postgresql://u:***@db/x"
    history = client.get(f"/jobs/{job_id}").json()["history"]
    assert [one["reason"] for one in history] == [masked] * 2
    (hold,) = client.get("/holds").json()["items"]
    assert hold["reason"] == masked
    assert client.get("/instances/i-1").json()["reason"] == masked
    logged = [one for one in caplog.messages if "leaked" in one]
    assert len(logged) == 4
    assert all(one.endswith(masked) for one in logged)


def test_the_history_of_a_job_says_who_did_what_when_and_why(
    client: TestClient, shop: Tenure, hand: Hand
) -> None:
    job_id = enqueue(shop)
    hand.work(DEAD)
    for verb, reason in (
        ("retry", "data is there"),
        ("reschedule", "first of all"),
        ("cancel", "it was not"),
    ):
        more = {"priority": 1} if verb == "reschedule" else {}
        client.post(f"/jobs/{job_id}/{verb}", json={"reason": reason, **more})

    history = client.get(f"/jobs/{job_id}").json()["history"]

    assert [(one["revision"], one["verb"], one["by"], one["reason"]) for one in history] == [
        (4, "retry", "api", "data is there"),
        (5, "reschedule", "api", "first of all"),
        (6, "cancel", "api", "it was not"),
    ]
    assert list(history[0]) == ["revision", "at", "verb", "by", "reason"]
    assert history[0]["at"] <= history[2]["at"]


def test_an_outcome_that_nobody_knew_is_confirmed(client: TestClient, shop: Tenure) -> None:
    enqueue(shop)
    job_id = unknown_outcome(shop.ledger()).id

    refused(client.post(f"/jobs/{job_id}/retry"), 409, "OUTCOME_UNKNOWN")
    yes = client.post(f"/jobs/{job_id}/confirm", json={"happened": True, "note": "the bank has it"})
    refused(client.post(f"/jobs/{job_id}/retry"), 409, "OUTCOME_HAPPENED")
    no = client.post(f"/jobs/{job_id}/confirm", json={"happened": False, "reason": "it was another"})

    assert (yes.json()["confirmed"], no.json()["confirmed"]) == (True, False)
    said = [one["reason"] for one in client.get(f"/jobs/{job_id}").json()["history"]]
    assert said == ["happened: the bank has it", "not happened: it was another"]
    assert client.post(f"/jobs/{job_id}/retry").json()["status"] == "pending"


@pytest.mark.parametrize("body", [{}, {"happened": "yes"}, {"happened": None}])
def test_a_confirmation_says_which(client: TestClient, shop: Tenure, body: dict[str, Any]) -> None:
    job_id = enqueue(shop)

    problem = refused(client.post(f"/jobs/{job_id}/confirm", json=body), 400, "BAD_INPUT")

    assert pointers(problem) == ["/happened"]


def test_nothing_is_confirmed_where_nothing_is_unknown(client: TestClient, shop: Tenure) -> None:
    job_id = enqueue(shop)

    refused(client.post(f"/jobs/{job_id}/confirm", json={"happened": True}), 409, "WRONG_STATE")
