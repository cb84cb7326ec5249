"""Workflow instances over HTTP: POST /instances/{id}/pause, resume, end; how one stands, and why it does not go on."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from tenure import Tenure
from tenure.lease.requests import Options
from tenure.scripts.errors import InstanceEnded

from .conftest import Hand, pointers, refused


@pytest.fixture
def remind(shop: Tenure) -> str:
    """A job of order-7, at its node `remind`, due in an hour."""

    @shop.task("orders.remind", pausable=True, cleared_on_end=True)
    def remind(order: int) -> None: ...

    return remind.using(instance="order-7", node="remind", after="1h").enqueue(7).id


def test_an_instance_is_suspended_and_resumed(client: TestClient, remind: str) -> None:
    paused = client.post("/instances/order-7/pause", json={"reason": "stock count"})
    again = client.post("/instances/order-7/pause", json={"reason": "another"})
    job = client.get(f"/jobs/{remind}").json()
    seen = client.get("/instances/order-7").json()
    resumed = client.post("/instances/order-7/resume").json()

    assert paused.status_code == again.status_code == 200
    assert paused.json() == again.json() == seen
    assert seen == {
        "id": "order-7",
        "tenant": "default",
        "state": "suspended",
        "since": seen["since"],
        "by": "api",
        "reason": "stock count",
        "walking": False,
        "jobs": 1,
        "states": {"paused": 1},
        "nextDueAt": None,
    }
    assert (job["status"], job["instanceId"]) == ("paused", "order-7")
    assert 3_500_000 < job["remainingMs"] <= 3_600_000
    assert [deed["verb"] for deed in job["history"]] == ["pause"]
    assert (resumed["state"], resumed["since"], resumed["states"]) == ("normal", None, {"pending": 1})
    assert resumed["nextDueAt"] == client.get(f"/jobs/{remind}").json()["runAt"]


def test_an_ended_instance_stays_so(client: TestClient, shop: Tenure, remind: str) -> None:
    ended = client.post("/instances/order-7/end", json={"reason": "withdrawn"}).json()

    assert (ended["state"], ended["states"]) == ("ended", {"canceled": 1})
    for path in ("/instances/order-7/pause", "/instances/order-7/resume", f"/jobs/{remind}/retry"):
        problem = refused(client.post(path, json={}), 409, InstanceEnded.code)
        assert "order-7" in problem["detail"]
    late = shop.enqueue(shop.registry.get("orders.remind"), [8], {}, Options(instance="order-7"))
    job = client.get(f"/jobs/{late.id}").json()
    assert (late.created, job["status"]) == (True, "canceled")


def test_why_says_it_of_an_instance_and_of_a_node_of_it(
    client: TestClient, shop: Tenure, hand: Hand, remind: str
) -> None:
    client.post("/instances/order-7/pause", json={"reason": "stock count"})

    whole = client.get("/instances/order-7/why").json()
    node = client.get("/instances/order-7/why", params={"node": "remind"}).json()
    nobody = client.get("/instances/order-7/why", params={"node": "ship"}).json()

    assert list(whole) == ["subject", "verdict", "since", "by", "text", "checks", "next", "do"]
    assert (whole["subject"], whole["verdict"]) == ("instance order-7", "instance_suspended")
    assert whole["do"] == ["tenure instances resume order-7", "tenure instances end order-7"]
    assert (node["subject"], node["verdict"]) == (f"job {remind}", "state_paused")
    assert node == client.get(f"/jobs/{remind}/why").json()
    assert node["since"] == whole["since"]
    assert "it has no jobs of node ship" in nobody["text"]


def test_the_newest_unfinished_job_speaks_for_its_node(client: TestClient, shop: Tenure, hand: Hand) -> None:
    made = [
        shop.enqueue(
            shop.registry.get("reports.daily"), [], {}, Options(instance="order-7", node=node, after=after)
        ).id
        for node, after in (("count", "1h"), ("count", "2h"), ("ship", "3h"), ("count", "4h"))
    ]
    client.post(f"/jobs/{made[3]}/cancel")

    assert client.get("/instances/order-7/why?node=count").json()["subject"] == f"job {made[1]}"
    client.post(f"/jobs/{made[0]}/cancel")
    client.post(f"/jobs/{made[1]}/cancel")
    assert client.get("/instances/order-7/why?node=count").json()["subject"] == f"job {made[3]}"


def test_an_instance_belongs_to_its_tenant(client: TestClient, remind: str) -> None:
    elsewhere = client.post("/instances/order-7/pause", json={"tenant": "acme"}).json()

    assert (elsewhere["state"], elsewhere["jobs"]) == ("suspended", 0)
    assert client.get("/instances/order-7").json()["state"] == "normal"
    assert client.get("/instances/order-7?tenant=acme").json()["state"] == "suspended"


def test_an_instance_of_which_nothing_is_known_is_normal(client: TestClient) -> None:
    seen = client.get("/instances/never").json()

    assert (seen["state"], seen["jobs"], seen["states"]) == ("normal", 0, {})


def test_what_is_wrong_is_named(client: TestClient) -> None:
    odd = refused(client.post("/instances/order-7/pause", json={"reason": 7, "until": "x"}), 400, "BAD_INPUT")
    assert sorted(pointers(odd)) == ["/reason", "/until"]
    assert pointers(refused(client.get("/instances/order-7?node=a"), 400, "BAD_INPUT")) == ["?node"]
    refused(client.post(f"/instances/{'x' * 201}/pause"), 400, "BAD_INPUT")
    refused(client.get("/instances/%00"), 400, "BAD_INPUT")


def test_tasks_say_what_their_jobs_do_with_an_instance(client: TestClient, remind: str) -> None:
    found = {
        item["task"]: (item["pausable"], item["clearedOnEnd"])
        for item in client.get("/tasks").json()["items"]
    }

    assert found["orders.remind"] == (True, True)
    assert found["reports.daily"] == (False, False)
