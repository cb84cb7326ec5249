"""Retry and skip of many jobs over HTTP: counts of operations accepted, and each job's own outcome."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tenure import Tenure
from tenure.lease.ids import new_id
from tenure.lease.outcome import Succeed

from .conftest import Hand, pointers, refused
from .test_jobs_by_hand import DEAD, NOWHERE, enqueue


def dead(shop: Tenure, hand: Hand) -> str:
    job_id = enqueue(shop)
    hand.work(DEAD)
    return job_id


def test_a_batch_answers_how_many_were_accepted_and_what_became_of_each(
    client: TestClient, shop: Tenure, hand: Hand
) -> None:
    one, two = dead(shop, hand), dead(shop, hand)
    over = enqueue(shop)
    hand.work(Succeed())

    answer = client.post(
        "/jobs/batch-retry", json={"ids": [one, over, two, NOWHERE], "reason": "mended", "rate": 10}
    )

    batch = answer.json()
    assert answer.status_code == 200
    assert list(batch) == [
        *("id", "tenant", "verb", "status", "conditions", "total", "success", "skipped", "left", "reasons"),
        *("rate", "by", "reason", "createdAt", "begunAt", "finishedAt", "items"),
    ]
    assert (batch["verb"], batch["status"], batch["by"], batch["reason"]) == (
        "retry",
        "done",
        "api",
        "mended",
    )
    assert (batch["total"], batch["success"], batch["skipped"], batch["left"]) == (4, 2, 2, 0)
    assert batch["items"] == [
        {"id": one, "outcome": "accepted", "reason": None},
        {"id": over, "outcome": "skipped", "reason": "WRONG_STATE"},
        {"id": two, "outcome": "accepted", "reason": None},
        {"id": NOWHERE, "outcome": "skipped", "reason": "NOT_FOUND"},
    ]
    assert shop.jobs.get(two).run_at - shop.jobs.get(one).run_at == 100


def test_many_are_skipped(client: TestClient, shop: Tenure, hand: Hand) -> None:
    ids = [dead(shop, hand), enqueue(shop)]

    batch = client.post("/jobs/batch-skip", json={"ids": ids, "reason": "not needed"}).json()

    assert (batch["verb"], batch["success"]) == ("skip", 2)
    assert {shop.jobs.get(job_id).reason for job_id in ids} == {"skipped: not needed"}


def test_a_batch_with_a_token_may_be_sent_again(client: TestClient, shop: Tenure, hand: Hand) -> None:
    body = {"ids": [dead(shop, hand)], "token": new_id()}

    first, again = (client.post("/jobs/batch-retry", json=body) for _ in range(2))

    assert first.json() == again.json()
    assert first.json()["id"] == body["token"]


def test_what_was_done_to_many_can_be_looked_at(client: TestClient, shop: Tenure, hand: Hand) -> None:
    batch = client.post("/jobs/batch-skip", json={"ids": [dead(shop, hand)]}).json()

    listed = client.get("/jobs/replays").json()
    shown = client.get(f"/jobs/replays/{batch['id']}").json()

    assert shown == batch
    assert listed["items"] == [{name: value for name, value in batch.items() if name != "items"}]
    refused(client.get(f"/jobs/replays/{batch['id']}?tenant=acme"), 404, "NOT_FOUND")


@pytest.mark.parametrize("verb", ["batch-retry", "batch-skip"])
@pytest.mark.parametrize(
    ("body", "places"),
    [
        ({}, ["/ids"]),
        ({"ids": []}, ["/ids"]),
        ({"ids": ["nowhere"]}, ["/ids"]),
        ({"ids": [7]}, ["/ids"]),
        ({"ids": NOWHERE}, ["/ids"]),
        ({"ids": [NOWHERE] * 501}, ["/ids"]),
        ({"ids": [NOWHERE], "token": "mine"}, ["/token"]),
        ({"ids": [NOWHERE], "force": True}, ["/force"]),
        ({"ids": [NOWHERE], "tenant": "{x}"}, ["/tenant"]),
    ],
)
def test_a_batch_that_makes_no_sense_names_each_place(
    client: TestClient, verb: str, body: dict[str, Any], places: list[str]
) -> None:
    assert pointers(refused(client.post(f"/jobs/{verb}", json=body), 400, "BAD_INPUT")) == places


@pytest.mark.parametrize("rate", [0, 201, 1.5, "20"])
def test_a_rate_is_from_1_to_200(client: TestClient, rate: Any) -> None:
    body = {"ids": [NOWHERE], "rate": rate}

    assert pointers(refused(client.post("/jobs/batch-retry", json=body), 400, "BAD_INPUT")) == ["/rate"]


def test_jobs_of_another_tenant_are_not_found(client: TestClient, shop: Tenure) -> None:
    foreign = enqueue(shop, tenant="acme")

    batch = client.post("/jobs/batch-skip", json={"ids": [foreign]}).json()

    assert batch["items"] == [{"id": foreign, "outcome": "skipped", "reason": "NOT_FOUND"}]
    assert client.get(f"/jobs/{foreign}?tenant=acme").json()["status"] == "pending"
