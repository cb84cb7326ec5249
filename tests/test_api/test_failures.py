"""GET /jobs/failure-clusters: what went wrong, gathered, with what a replay of it takes."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from tenure import Tenure
from tenure.lease.outcome import Fail
from tenure.workers.fingerprint import failure

from .conftest import Hand, pointers, refused
from .test_jobs_by_hand import enqueue

GONE = failure("KeyError", "shop.orders.sync", "order 7 is \x1b[31mgone")


def die(shop: Tenure, hand: Hand, error: str = "KeyError: order 7", **options: str) -> str:
    job_id = enqueue(shop, **options)
    hand.work(Fail(error, permanent=True, failure=GONE))
    return job_id


def test_a_reason_has_its_fields_and_its_condition(client: TestClient, shop: Tenure, hand: Hand) -> None:
    first, second = die(shop, hand), die(shop, hand, error="\x1b[2J")

    page = client.get("/jobs/failure-clusters").json()

    assert set(page) == {"items", "nextCursor", "hasMore", "scanned"}
    (group,) = page["items"]
    assert list(group) == [
        *(
            "by",
            "key",
            "count",
            "firstSeen",
            "lastSeen",
            "exception",
            "frame",
            "template",
            "condition",
            "members",
        )
    ]
    assert (group["by"], group["count"], group["exception"]) == ("reason", 2, "KeyError")
    assert (group["frame"], group["template"]) == ("shop.orders.sync", "order # is [#mgone")
    assert group["condition"] == {"fingerprint": group["key"]}
    assert [member["id"] for member in group["members"]] == [second, first]
    assert list(group["members"][1]) == ["id", "type", "status", "deadReason", "at", "error"]
    assert [member["error"] for member in group["members"]] == ["\\x1b[2J", "KeyError: order 7"]


@pytest.mark.parametrize(
    ("by", "condition"),
    [
        ("type", {"type": "reports.daily"}),
        ("instance", {"instance": "i-1"}),
        ("trace", {"traceId": "t-1"}),
    ],
)
def test_the_other_ways_to_gather(
    client: TestClient, shop: Tenure, hand: Hand, by: str, condition: dict[str, str]
) -> None:
    die(shop, hand, instance="i-1", trace="t-1")

    (group,) = client.get(f"/jobs/failure-clusters?by={by}").json()["items"]

    assert (group["count"], group["condition"], group["template"]) == (1, condition, None)


def test_the_jobs_of_a_reason_are_listed_too(client: TestClient, shop: Tenure, hand: Hand) -> None:
    job_id = die(shop, hand)
    enqueue(shop)
    (group,) = client.get("/jobs/failure-clusters").json()["items"]

    listed = client.get(f"/jobs?fingerprint={group['key']}").json()

    assert [job["id"] for job in listed["items"]] == [job_id]
    assert pointers(refused(client.get("/jobs?fingerprint=A%20B"), 400, "BAD_INPUT")) == ["?fingerprint"]


@pytest.mark.parametrize(
    ("query", "places"),
    [
        ("by=colour", ["?by"]),
        ("members=101", ["?members"]),
        ("limit=0", ["?limit"]),
        ("tenant={x}", ["?tenant"]),
        ("odd=1", ["?odd"]),
    ],
)
def test_a_query_that_makes_no_sense_names_each_place(
    client: TestClient, query: str, places: list[str]
) -> None:
    assert pointers(refused(client.get(f"/jobs/failure-clusters?{query}"), 400, "BAD_INPUT")) == places


def test_a_cursor_of_another_list_is_refused(client: TestClient) -> None:
    refused(client.get("/jobs/failure-clusters?cursor=mine"), 400, "BAD_INPUT")


def test_another_tenants_failures_are_not_seen(client: TestClient, shop: Tenure, hand: Hand) -> None:
    die(shop, hand)

    assert client.get("/jobs/failure-clusters?tenant=acme").json()["items"] == []
