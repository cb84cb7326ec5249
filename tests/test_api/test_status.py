"""What the API says of a tenant as a whole, and of the workers."""

from __future__ import annotations

from starlette.testclient import TestClient

from tenure import Tenure
from tenure.lease.outcome import Fail, Succeed
from tenure.lease.workers import Heartbeat, Slots, WorkerState
from tenure.scripts.states import State

from .conftest import Hand, pointers
from .test_jobs import enqueue

SAID = Heartbeat("north", 7, "0.1.0", WorkerState.ACTIVE, {"advance": Slots(1, 4)}, 3, 5, 1, 60_000, None)


def test_jobs_are_counted_by_state_and_task(client: TestClient, shop: Tenure, hand: Hand) -> None:
    for task in ("reports.daily", "reports.daily", "orders.sync"):
        enqueue(shop, task=task)
    hand.work(Succeed())
    hand.work(Fail("no", permanent=True))
    enqueue(shop, tenant="other")

    seen = client.get("/jobs/summary").json()

    assert (seen["tenant"], seen["total"]) == ("default", 3)
    assert {state: number for state, number in seen["states"].items() if number} == {
        "pending": 1,
        "succeeded": 1,
        "dead": 1,
    }
    assert set(seen["states"]) == set(State)
    assert sum(sum(states.values()) for states in seen["tasks"].values()) == 3
    assert shop.jobs.summary("other").tasks == {"reports.daily": {"pending": 1}}


def test_workers_are_listed_by_name_in_pages(client: TestClient, shop: Tenure) -> None:
    for name in ("w3", "w1", "w2"):
        shop.ledgers().index.beat(name, SAID)

    first = client.get("/workers?limit=2").json()
    rest = client.get(f"/workers?cursor={first['nextCursor']}").json()

    assert [one["name"] for one in first["items"] + rest["items"]] == ["w1", "w2", "w3"]
    assert (first["hasMore"], rest["hasMore"], rest["nextCursor"]) == (True, False, None)
    worker = first["items"][0]
    assert (worker["live"], worker["state"], worker["pid"], worker["tasks"]) == (True, "active", 7, 3)
    assert (worker["slots"], worker["pools"]) == (
        {"used": 1, "offered": 4},
        {"advance": {"used": 1, "offered": 4}},
    )
    assert worker["startedAt"] < worker["seenAt"]
    assert worker["lastClaimAt"] is None


def test_an_unknown_parameter_is_refused(client: TestClient) -> None:
    assert pointers(client.get("/workers?tenant=a").json()) == ["?tenant"]
    assert pointers(client.get("/jobs/summary?task=a").json()) == ["?task"]


def test_the_runtime_status_has_the_fields_of_the_contract(
    client: TestClient, shop: Tenure, hand: Hand
) -> None:
    shop.ledgers().index.beat("w1", SAID)
    empty = client.get("/jobs/runtime-status?tenant=other").json()
    for task in ("reports.daily", "reports.daily", "orders.sync"):
        enqueue(shop, task=task)
    hand.work(Fail("no", permanent=True))

    seen = client.get("/jobs/runtime-status").json()

    assert set(seen) >= {
        *("workers", "slots", "inFlight", "stuck", "backlog", "behindKeys", "oldestWaitMs", "waitMs", "dead"),
        *("lastClaimAt", "failureRate", "meanDurationMs", "pools", "tasks"),
    }
    assert (seen["workers"], seen["slots"]) == ({"live": 1, "seen": 1}, {"used": 1, "offered": 4})
    assert (seen["backlog"], seen["dead"], seen["failureRate"]) == (2, 1, 1.0)
    assert seen["attempts"] == {"ended": 1, "failed": 1}
    assert seen["waitMs"]["p50"] >= 0
    assert seen["oldestWaitMs"] >= 0
    assert seen["lastClaimAt"] is not None
    assert seen["pools"]["advance"]["backlog"] == 2
    assert sum(task["due"] for task in seen["tasks"].values()) == 2
    assert empty["waitMs"] == {"p50": None, "p95": None, "p99": None, "samples": 0}
    assert (empty["oldestWaitMs"], empty["failureRate"], empty["meanDurationMs"]) == (None, None, None)
    assert shop.jobs.status().backlog == 2
