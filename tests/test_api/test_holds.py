"""Holds over HTTP: POST, GET and DELETE /holds."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tenure import Tenure
from tenure.scripts.errors import BadInput

from .conftest import Hand, pointers, refused, start


def test_a_task_is_held_seen_and_released(client: TestClient, hand: Hand) -> None:
    job = start(client)
    body = {"task": "orders.sync", "reason": "stock <count>", "until": "2030-01-01T00:00:00Z"}
    held = client.post("/holds", json=body)
    again = client.post("/holds", json=body)

    assert (held.status_code, again.status_code) == (201, 200)
    assert held.json() == again.json() == client.get("/holds").json()["items"][0]
    assert held.json() == {
        "tenant": "default",
        "pool": None,
        "task": "orders.sync",
        "reason": "stock <count>",
        "by": "api",
        "since": held.json()["since"],
        "until": "2030-01-01T00:00:00.000Z",
    }
    why = client.get(f"/jobs/{job['id']}/why").json()
    assert (why["verdict"], why["by"]) == ("held_task", "api")

    assert client.delete("/holds?task=orders.sync").status_code == 204
    assert client.delete("/holds?task=orders.sync").status_code == 204, "it is released already"
    assert client.get("/holds").json() == {"items": [], "nextCursor": None, "hasMore": False}
    assert hand.take().id == job["id"]


def test_a_pool_and_a_whole_tenant_are_held(client: TestClient) -> None:
    client.post("/holds", json={"pool": "outbound"})
    client.post("/holds", json={"tenant": "acme"})

    assert [(one["pool"], one["task"]) for one in client.get("/holds").json()["items"]] == [
        ("outbound", None)
    ]
    (whole,) = client.get("/holds?tenant=acme").json()["items"]
    assert (whole["tenant"], whole["pool"], whole["task"]) == ("acme", None, None)
    assert client.delete("/holds?tenant=acme").status_code == 204
    assert client.get("/holds?tenant=acme").json()["items"] == []


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, ["/pool"]),
        ({"pool": "outbound", "task": "orders.sync"}, ["/pool"]),
        ({"pool": "No Pool"}, ["/pool"]),
        ({"task": "No Task"}, ["/task"]),
        ({"task": "a", "until": "soon"}, ["/until"]),
        ({"task": "a", "until": "2026-01-01T00:00:00"}, ["/until"]),
        ({"task": "a", "reason": "x" * 4001}, ["/reason"]),
        ({"task": "a", "by": "me"}, ["/by"]),
    ],
)
def test_a_hold_that_breaks_a_rule_is_refused(client: TestClient, body: Any, wrong: list[str]) -> None:
    assert pointers(refused(client.post("/holds", json=body), 400, "BAD_INPUT")) == wrong


def test_a_hold_that_would_be_over_already_is_refused(client: TestClient) -> None:
    answer = client.post("/holds", json={"task": "a", "until": "2020-01-01T00:00:00Z"})

    assert "would be over already" in refused(answer, 400, "BAD_INPUT")["detail"]


def test_a_release_says_what(client: TestClient) -> None:
    assert pointers(refused(client.delete("/holds"), 400, "BAD_INPUT")) == ["?pool"]


def test_the_application_holds_and_releases(shop: Tenure) -> None:
    held = shop.hold(task="orders.sync", reason="stock count", until="2h", by="ada")

    assert shop.hold(task="orders.sync", reason="stock count", until=None, by="ada").since == held.since
    assert [hold.what for hold in shop.holds()] == ["task orders.sync"]
    assert shop.release(task="orders.sync") is True
    assert shop.release(task="orders.sync") is False
    assert shop.hold(tenant="acme").what == "tenant acme"
    assert shop.holds() == []
    with pytest.raises(BadInput, match="nothing is named"):
        shop.hold(reason="everything")
    with pytest.raises(BadInput, match="nothing is named"):
        shop.release()
