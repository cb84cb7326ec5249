"""POST /jobs/replay-preview and /jobs/replay-dead: a look, and then just that."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tenure import Tenure
from tenure.lease.ids import new_id
from tenure.lease.outcome import Fail

from ..given import unknown_outcome
from .conftest import Hand, pointers, refused
from .test_jobs_by_hand import enqueue

NOBODY = "01M8R7WKE2WM8C6V02GGWEX30C"  # an id that no replay has


def dead(shop: Tenure, hand: Hand, error: str = "ValueError: no data", **options: Any) -> str:
    job_id = enqueue(shop, **options)
    hand.work(Fail(error, permanent=True))
    return job_id


def test_a_preview_is_shown_and_done_by_its_token_once(client: TestClient, shop: Tenure, hand: Hand) -> None:
    one, two = dead(shop, hand), dead(shop, hand)
    unknown = unknown_outcome(shop.ledger()).id

    seen = client.post("/jobs/replay-preview", json={"type": "reports.daily", "maxAge": "1h"}).json()
    whole = client.post("/jobs/replay-preview").json()
    body = {"token": whole["token"], "rate": 10, "reason": "the bank is back"}
    first, again = (client.post("/jobs/replay-dead", json=body) for _ in range(2))

    assert list(seen) == [
        *("token", "tenant", "conditions", "count", "jobs", "skippedCount", "skipped", "scanned", "hasMore")
    ]
    assert seen["conditions"] == {"status": "dead", "type": "reports.daily", "maxAge": "1h"}
    assert (seen["count"], [job["id"] for job in seen["jobs"]]) == (2, [one, two])
    assert (whole["count"], whole["skippedCount"], whole["hasMore"]) == (2, 1, False)
    assert (whole["skipped"][0]["id"], whole["skipped"][0]["reason"]) == (unknown, "OUTCOME_UNKNOWN")
    assert first.status_code == 200
    assert first.json() == again.json()
    done = first.json()
    assert (done["id"], done["verb"], done["status"], done["by"]) == (whole["token"], "replay", "done", "api")
    assert (done["total"], done["success"], done["skipped"], done["reasons"]) == (
        3,
        2,
        1,
        {"OUTCOME_UNKNOWN": 1},
    )
    assert shop.jobs.get(two).run_at - shop.jobs.get(one).run_at == 100
    assert client.get(f"/jobs/replays/{done['id']}").json() == done
    assert [one["id"] for one in client.get("/jobs/replays").json()["items"]] == [
        whole["token"],
        seen["token"],
    ]


@pytest.mark.parametrize(
    ("body", "finds"),
    [
        ({}, True),
        ({"type": "reports.daily"}, True),
        ({"type": "orders.sync"}, False),
        ({"instance": "i-1"}, True),
        ({"instance": "i-2"}, False),
        ({"traceId": "t-1"}, True),
        ({"error": "No Data"}, True),
        ({"error": "other"}, False),
        ({"fingerprint": "raised"}, True),
        ({"fingerprint": "killed"}, False),
        ({"status": "failed"}, False),
        ({"minAge": "1h"}, False),
        ({"maxAge": "1h"}, True),
        ({"endedFrom": "2030-01-01T00:00:00Z"}, False),
        ({"endedTo": "2000-01-01T00:00:00Z"}, False),
        ({"tenant": "acme"}, False),
    ],
    ids=str,
)
def test_jobs_are_replayed_by_conditions_at_once(
    client: TestClient, shop: Tenure, hand: Hand, body: dict[str, Any], finds: bool
) -> None:
    job_id = dead(shop, hand, instance="i-1", trace="t-1")

    done = client.post("/jobs/replay-dead", json={**body, "reason": "mended"}).json()

    assert (done["status"], done["success"]) == ("done", int(finds))
    assert shop.jobs.get(job_id).status == ("pending" if finds else "dead")


@pytest.mark.parametrize("verb", ["replay-preview", "replay-dead"])
@pytest.mark.parametrize(
    ("body", "places"),
    [
        ({"status": "canceled"}, ["/status"]),
        ({"minAge": "soon", "maxAge": "-1s"}, ["/minAge", "/maxAge"]),
        ({"endedFrom": "noon", "endedTo": "2026-01-01T00:00:00"}, ["/endedFrom", "/endedTo"]),
        ({"limit": 501}, ["/limit"]),
        ({"limit": 0}, ["/limit"]),
        ({"error": "x" * 201}, ["/error"]),
        ({"fingerprint": "A B"}, ["/fingerprint"]),
        ({"instance": 7, "traceId": "\n"}, ["/instance", "/traceId"]),
        ({"task": "reports.daily"}, ["/task"]),
        ({"force": True}, ["/force"]),
    ],
    ids=str,
)
def test_a_replay_that_makes_no_sense_names_each_place(
    client: TestClient, verb: str, body: dict[str, Any], places: list[str]
) -> None:
    assert pointers(refused(client.post(f"/jobs/{verb}", json=body), 400, "BAD_INPUT")) == places


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ({"rate": 201}, ["/rate"]),
        ({"rate": 0}, ["/rate"]),
        ({"token": "mine"}, ["/token"]),
        ({"token": NOBODY, "type": "reports.daily"}, ["/type"]),
        ({"token": NOBODY, "limit": 5}, ["/limit"]),
    ],
    ids=str,
)
def test_what_only_the_word_itself_may_not_say(
    client: TestClient, body: dict[str, Any], places: list[str]
) -> None:
    assert pointers(refused(client.post("/jobs/replay-dead", json=body), 400, "BAD_INPUT")) == places


def test_a_token_of_nobody_or_of_another_tenant_is_not_found(
    client: TestClient, shop: Tenure, hand: Hand
) -> None:
    job_id = dead(shop, hand)
    token = client.post("/jobs/replay-preview").json()["token"]

    refused(client.post("/jobs/replay-dead", json={"token": new_id()}), 404, "NOT_FOUND")
    refused(client.post("/jobs/replay-dead", json={"token": token, "tenant": "acme"}), 404, "NOT_FOUND")
    assert shop.jobs.get(job_id).status == "dead"


def test_a_group_of_failures_gives_the_condition_that_replays_it(
    client: TestClient, shop: Tenure, hand: Hand
) -> None:
    dead(shop, hand, instance="i-1")

    for by in ("reason", "type", "instance", "trace"):
        (group,) = client.get(f"/jobs/failure-clusters?by={by}").json()["items"]
        assert client.post("/jobs/replay-preview", json=group["condition"]).json()["count"] == 1
