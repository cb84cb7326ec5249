"""The ledger as a list, and one job with its attempts."""

from __future__ import annotations

import base64
import io
import json
import zipfile
import zlib

import pytest
from starlette.testclient import TestClient

from tenure import Retry, Tenure
from tenure.lease import cursors
from tenure.lease.filters import Filters
from tenure.lease.outcome import Fail, Succeed
from tenure.lease.payload import pack, unpack_args
from tenure.lease.requests import Options

from .conftest import Hand, pointers, refused, start


def enqueue(shop: Tenure, *args: object, tenant: str = "default", task: str = "reports.daily") -> str:
    return shop.enqueue(shop.registry.get(task), args, {}, Options(tenant=tenant)).id


def test_a_job_shows_each_attempt(client: TestClient, shop: Tenure, hand: Hand) -> None:
    job_id = enqueue(shop, 7)
    first = hand.work(Fail("ValueError: no data", delay_ms=0, stack="secret frames"))
    second = hand.work(Succeed())

    seen = client.get(f"/jobs/{job_id}").json()

    assert (seen["status"], seen["args"], seen["attempts"]) == (
        "succeeded",
        [7],
        {"counted": 1, "max": 3, "lost": 0, "maxLost": 3},
    )
    failed, succeeded = seen["attemptList"]
    assert (failed["status"], failed["cause"], failed["fence"]) == ("failed", "raised", first.fence)
    assert failed["error"] == {"type": "ValueError", "message": "no data"}
    assert (succeeded["status"], succeeded["cause"], succeeded["fence"]) == ("succeeded", None, second.fence)
    assert succeeded["durationMs"] >= 0
    assert seen["effects"] is None
    assert "secret frames" not in str(seen)


def test_jobs_are_listed_newest_first_in_pages_without_gap_or_repeat(
    client: TestClient, shop: Tenure
) -> None:
    made = [enqueue(shop) for _ in range(7)]
    made += [enqueue(shop, task="orders.sync") for _ in range(3)]

    seen: list[str] = []
    url = "/jobs?limit=3"
    while url:
        page = client.get(url).json()
        seen += [item["id"] for item in page["items"]]
        url = f"/jobs?limit=3&cursor={page['nextCursor']}" if page["hasMore"] else ""

    assert len(seen) == 10
    assert set(seen) == set(made)
    created = [client.get(f"/jobs/{job_id}").json()["createdAt"] for job_id in seen]
    assert created == sorted(created, reverse=True)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("instance=i-1", [0, 1]),
        ("node=n 1", [0]),
        ("trace=t-1", [1]),
        ("record=order:4711:a", [0]),
        ("label=team%3Da", [0, 1]),
        ("label=team%3Da&label=tier%3D1", [0]),
        ("label=team%3Db", []),
        ("task=orders.sync&instance=i-1", [1]),
        ("q=key-2", [2]),
        ("q=no such ROW", [0]),
        ("status=dead&q=row", [0]),
        ("createdFrom=2020-01-01T00:00:00Z&createdTo=2100-01-01T00:00:00Z", None),
        ("createdTo=2020-01-01T00:00:00Z", []),
    ],
)
def test_jobs_are_found_by_what_they_belong_to(
    client: TestClient, shop: Tenure, hand: Hand, query: str, found: list[int] | None
) -> None:
    daily, sync = shop.registry.get("reports.daily"), shop.registry.get("orders.sync")
    record, labels = ("order", "4711:a"), {"team": "a", "tier": "1"}
    made = [shop.enqueue(daily, (), {}, Options(instance="i-1", node="n 1", record=record, labels=labels)).id]
    hand.work(Fail("KeyError: No such row", permanent=True))
    made.append(shop.enqueue(sync, (), {}, Options(instance="i-1", trace="t-1", labels={"team": "a"})).id)
    made.append(shop.enqueue(daily, (), {}, Options(idempotency_key="key-2")).id)

    page = client.get(f"/jobs?{query}").json()

    assert {job["id"] for job in page["items"]} == {
        made[at] for at in ([0, 1, 2] if found is None else found)
    }
    assert (page["hasMore"], page["nextCursor"]) == (False, None)
    assert page["scanned"] >= len(page["items"])


@pytest.mark.parametrize(
    ("query", "places"),
    [
        ("record=order", ["?record"]),
        ("label=team", ["?label"]),
        ("label=team%3Da&label=team%3Db", ["?label"]),
        ("trace=a/b", ["?trace"]),
        ("instance=%0a", ["?instance"]),
        ("createdFrom=2021-01-01T00:00:00Z&createdTo=2020-01-01T00:00:00Z", ["?createdTo"]),
        ("createdFrom=yesterday&createdTo=1", ["?createdFrom", "?createdTo"]),
        (f"q={'x' * 201}", ["?q"]),
        (f"q={'é' * 150}", ["?q"]),
    ],
)
def test_a_filter_that_breaks_a_rule_is_named(client: TestClient, query: str, places: list[str]) -> None:
    assert pointers(refused(client.get(f"/jobs?{query}"), 400, "BAD_INPUT")) == places


def test_background_tasks_are_found_by_their_record(client: TestClient) -> None:
    wanted = start(client, record={"type": "order", "id": "7"})["id"]
    start(client, kwargs={"shop": "south"})

    page = client.get("/background-tasks?record=order:7").json()

    assert [task["id"] for task in page["items"]] == [wanted]


def test_a_running_job_shows_its_lease(client: TestClient, shop: Tenure, hand: Hand) -> None:
    job_id = enqueue(shop)
    lease = hand.take()

    (seen,) = client.get("/jobs?status=running").json()["items"]

    assert (seen["id"], seen["worker"], seen["fence"]) == (job_id, "hand", lease.fence)
    assert seen["leaseUntil"] is not None


@pytest.mark.parametrize(
    ("query", "places"),
    [
        ("limit=0", ["?limit"]),
        ("limit=101", ["?limit"]),
        ("limit=1.5", ["?limit"]),
        ("limit=%D9%A3", ["?limit"]),
        ("limit=1e9", ["?limit"]),
        ("status=done", ["?status"]),
        ("tenant=A", ["?tenant"]),
        ("tenant=a&tenant=b", ["?tenant"]),
        ("statsu=dead", ["?statsu"]),
        ("limit=0&status=x&tenant=%00&p=1", ["?p", "?tenant", "?status", "?limit"]),
    ],
)
def test_wrong_parameters_are_named_all_at_once(client: TestClient, query: str, places: list[str]) -> None:
    answer = client.get(f"/jobs?{query}")

    assert answer.status_code == 400
    assert pointers(answer.json()) == places


OF = ("jobs", "", "default", *Filters().named())


def wrapped(value: object) -> str:
    data = base64.urlsafe_b64encode(zlib.compress(json.dumps(value).encode())).decode()
    return cursors.write(data, OF)


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "!!!!",
        "ü",
        wrapped([]),
        wrapped(7),
        wrapped({"journal:reports.daily": "x"}),
        wrapped({"journal:reports.daily": 1e400}),
        wrapped({"journal:reports.daily": 10**30}),
        wrapped({"journal:reports.daily": -7}),
        base64.urlsafe_b64encode(b"[" * 9000).decode(),
        cursors.write("", OF),
        cursors.write("x", OF),
        cursors.write(base64.urlsafe_b64encode(zlib.compress(b"[" * 9000)).decode(), OF),
        "A" * 20_000,
    ],
)
def test_a_cursor_of_another_list_is_refused(client: TestClient, shop: Tenure, cursor: str) -> None:
    enqueue(shop)

    refused(client.get("/jobs", params={"cursor": cursor}), 400, "BAD_INPUT")


def test_what_the_name_of_an_argument_says_is_secret_is_masked_wherever_a_job_is_shown(
    client: TestClient, shop: Tenure
) -> None:
    @shop.task("bank.pay")
    def pay(amount: int, api_key: str, *rest: object, **more: object) -> None: ...

    job = pay.enqueue(
        7, "k-123456", {"password": "hunter2", "user": "ada"}, token="t-123456", note="Bearer abcdef123"
    )

    shown = [
        client.get(f"/jobs/{job.id}").json(),
        client.get("/jobs").json()["items"][0],
        client.post(f"/jobs/{job.id}/reschedule", json={"priority": 1}).json(),
    ]

    assert [one["args"] for one in shown] == [[7, "***", {"password": "***", "user": "ada"}]] * 3
    assert [one["kwargs"] for one in shown] == [{"token": "***", "note": "Bearer ***"}] * 3
    args, kwargs = unpack_args(shop.jobs.get(job.id).args)
    assert (args[1], kwargs["token"]) == ("k-123456", "t-123456"), "only what is shown is masked"


def test_what_a_result_names_as_a_secret_is_masked_and_only_that(
    client: TestClient, shop: Tenure, hand: Hand
) -> None:
    job = enqueue(shop)
    result = {"password": "hunter2", "rows": [{"token": 7, "said": "password=x"}]}
    hand.work(Succeed(pack(result, what="result")))

    shown = client.get(f"/jobs/{job}").json()["result"]

    assert shown == {"password": "***", "rows": [{"token": "***", "said": "password=x"}]}
    assert shop.jobs.get(job).value == result, "only what is shown is masked"


def test_a_job_shows_its_limits(client: TestClient, shop: Tenure) -> None:
    @shop.task("slow", timeout="2h", retry=Retry(7), pool="outbound")
    def slow() -> None: ...

    seen = client.get(f"/jobs/{slow.enqueue().id}").json()

    assert (seen["timeoutMs"], seen["pool"]) == (7_200_000, "outbound")
    assert seen["attempts"] == {"counted": 0, "max": 7, "lost": 0, "maxLost": 3}


def test_a_cursor_goes_on_with_the_tenant_and_the_filters_it_came_from(
    client: TestClient, shop: Tenure
) -> None:
    for tenant in ("default", "acme"):
        for _ in range(3):
            enqueue(shop, tenant=tenant)
    lists = ("/jobs?limit=1", "/jobs?limit=1&tenant=acme", "/jobs?limit=1&task=reports.daily")
    lists += ("/jobs?limit=1&status=pending", "/tasks?limit=1", "/tenants?limit=1")
    cursors_of = {path: client.get(path).json()["nextCursor"] for path in lists}

    for path in lists:
        for of, cursor in cursors_of.items():
            answer = client.get(f"{path}&cursor={cursor}")
            if of == path:
                assert answer.status_code == 200
            else:
                assert "is of another list" in refused(answer, 400, "BAD_INPUT")["detail"]


def test_tasks_are_listed_with_what_may_be_started(client: TestClient) -> None:
    page = client.get("/tasks?limit=2").json()
    rest = client.get(f"/tasks?cursor={page['nextCursor']}").json()

    found = {item["task"]: item["startable"] for item in page["items"] + rest["items"]}
    assert found == {"orders.purge": False, "orders.sync": True, "reports.daily": False}
    assert (page["hasMore"], rest["hasMore"]) == (True, False)


def test_a_chain_is_shown_as_a_tree_and_handed_on_as_a_zip(
    client: TestClient, shop: Tenure, hand: Hand
) -> None:
    root = enqueue(shop)
    hand.work(Fail("password=hunter2", permanent=True))
    daily = shop.registry.get("reports.daily")
    child = shop.enqueue(daily, (), {}, Options(trace=root)).id

    seen = client.get(f"/jobs/chain/{root}").json()
    zipped = client.get(f"/jobs/chain/{root}/diagnostic-bundle")

    assert [(job["id"], job["depth"], job["parentId"]) for job in seen["items"]] == [
        (root, 0, None),
        (child, 0, None),
    ]
    assert (seen["traceId"], seen["truncated"], seen["hasMore"], seen["nextCursor"]) == (
        root,
        False,
        False,
        None,
    )
    assert zipped.headers["content-type"] == "application/zip"
    assert zipped.headers["content-disposition"] == 'attachment; filename="tenure-chain.zip"'
    with zipfile.ZipFile(io.BytesIO(zipped.content)) as archive:
        assert not any(b"hunter2" in archive.read(name) for name in archive.namelist())
        assert f"jobs/0001-{root}.json" in archive.namelist()


def test_a_long_chain_is_shown_in_parts(client: TestClient, shop: Tenure) -> None:
    daily = shop.registry.get("reports.daily")
    made = [shop.enqueue(daily, (), {}, Options(trace="order-7")).id for _ in range(5)]

    first = client.get("/jobs/chain/order-7?limit=3").json()
    second = client.get(f"/jobs/chain/order-7?limit=3&cursor={first['nextCursor']}").json()

    assert [job["id"] for job in first["items"] + second["items"]] == made
    assert (first["truncated"], second["truncated"]) == (True, False)


@pytest.mark.parametrize(
    ("path", "status"),
    [("/jobs/chain/nobody", 404), ("/jobs/chain/a%20b", 400), ("/jobs/chain/nobody/diagnostic-bundle", 404)],
)
def test_a_chain_that_is_not_there(client: TestClient, path: str, status: int) -> None:
    refused(client.get(path), status, "NOT_FOUND" if status == 404 else "BAD_INPUT")


def test_a_chain_of_another_tenant_is_not_there(client: TestClient, shop: Tenure) -> None:
    job_id = enqueue(shop, tenant="acme")

    refused(client.get(f"/jobs/chain/{job_id}"), 404, "NOT_FOUND")
    assert client.get(f"/jobs/chain/{job_id}?tenant=acme").status_code == 200
