"""Start a background task as a menu button would, look at it, cancel it."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from tenure import Tenure
from tenure.bindings import Bound
from tenure.lease.outcome import Fail, NextChunk, Succeed
from tenure.lease.payload import pack
from tenure.lease.requests import Options

from .conftest import Hand, local, pointers, refused, start


def test_a_start_answers_where_to_look_next(client: TestClient) -> None:
    answer = client.post("/background-tasks", json={"task": "orders.sync", "kwargs": {"shop": "south"}})

    content = answer.json()
    assert answer.status_code == 202
    assert (content["created"], content["status"]) == (True, "pending")
    assert content["links"] == {
        "self": f"/background-tasks/{content['id']}",
        "events": f"/background-tasks/{content['id']}/events",
        "page": f"/progress/tasks/{content['id']}/page",
    }
    assert answer.headers["location"] == content["links"]["self"]
    assert client.get(answer.headers["location"]).json()["id"] == content["id"]


def test_a_second_press_of_the_button_starts_nothing(client: TestClient) -> None:
    first = client.post("/background-tasks", json={"task": "orders.sync", "idempotencyKey": "sync-north"})
    second = client.post("/background-tasks", json={"task": "orders.sync", "idempotencyKey": "sync-north"})

    assert (first.status_code, second.status_code) == (202, 200)
    assert second.json() == {**first.json(), "created": False}
    assert len(client.get("/background-tasks").json()["items"]) == 1


def test_a_task_says_which_record_it_works_for(client: TestClient) -> None:
    task = start(client, record={"type": "order", "id": "4711"})

    assert client.get(f"/background-tasks/{task['id']}").json()["record"] == {"type": "order", "id": "4711"}
    assert client.get(f"/jobs/{task['id']}").json()["record"] == {"type": "order", "id": "4711"}
    for place in ("/background-tasks", "/jobs"):
        found = [
            client.get(place, params={"record": f"order:{order}"}).json()["items"] for order in (4711, 4712)
        ]
        assert [[one["id"] for one in items] for items in found] == [[task["id"]], []]
    for odd, wrong in (
        ("order:4711", ["/record"]),
        ({"type": "order"}, ["/record/id"]),
        ({"type": "a b", "id": "7"}, ["/record"]),
        ({"type": "order", "id": 7, "number": 8}, ["/record/number", "/record/id"]),
    ):
        answer = client.post("/background-tasks", json={"task": "orders.sync", "record": odd})
        assert pointers(refused(answer, 400, "BAD_INPUT")) == wrong


def test_of_the_tasks_with_a_concurrency_key_one_runs_at_a_time(client: TestClient, hand: Hand) -> None:
    first, second = (start(client, concurrencyKey="shop:7") for _ in range(2))

    hand.take()

    assert client.get(f"/jobs/{first['id']}").json()["concurrencyKey"] == "shop:7"
    why = client.get(f"/jobs/{second['id']}/why").json()
    no = [one for one in why["checks"] if one["state"] == "no"]
    assert (why["verdict"], no) == (
        "key_full",
        [{"name": "key", "state": "no", "text": "concurrency key: shop:7"}],
    )
    answer = client.post("/background-tasks", json={"task": "orders.sync", "concurrencyKey": "x" * 201})
    assert pointers(refused(answer, 400, "BAD_INPUT")) == ["/concurrencyKey"]


def test_the_key_is_free_again_when_the_task_has_ended(client: TestClient, hand: Hand) -> None:
    first = start(client, idempotencyKey="sync-north")
    hand.work(Succeed())

    again = start(client, idempotencyKey="sync-north")

    assert again["created"]
    assert again["id"] != first["id"]


def test_other_arguments_under_the_same_key_are_a_conflict(client: TestClient) -> None:
    start(client, idempotencyKey="sync", kwargs={"shop": "north"})

    answer = client.post(
        "/background-tasks",
        json={"task": "orders.sync", "idempotencyKey": "sync", "kwargs": {"shop": "south"}},
    )

    refused(answer, 409, "KEY_REUSED")


def test_arguments_may_be_the_idempotency_key(client: TestClient) -> None:
    first = start(client, idempotencyFields=["shop"], kwargs={"shop": "north"})

    assert start(client, idempotencyFields=["shop"], args=["north"]) == {**first, "created": False}
    assert start(client, idempotencyFields=["shop"], args=["south"])["created"]


def test_an_argument_that_is_named_twice_makes_the_same_key(client: TestClient) -> None:
    first = start(client, idempotencyFields=["shop"])

    assert start(client, idempotencyFields=["shop", "shop"]) == {**first, "created": False}


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (
            {"idempotencyKey": "k", "idempotencyFields": ["shop", "day"]},
            {
                "/idempotencyFields": "stands beside idempotencyKey; leave one out",
                "/idempotencyFields/1": "idempotency field 'day' is not an argument of orders.sync; "
                "its arguments are: shop",
            },
        ),
        (
            {"idempotencyFields": []},
            {"/idempotencyFields": "must name an argument of the task, or be left out"},
        ),
        ({"idempotencyFields": [7]}, {"/idempotencyFields": "must be an array of text"}),
        (
            {"idempotencyKey": "ü" * 501},
            {"/idempotencyKey": f"idempotency key {'ü' * 501!r:.60} is not allowed: text of 1 to 1000 bytes"},
        ),
        (
            {"binding": "orders"},
            {"/record": 'must be given with a binding: {"type": "order", "id": "4711"}'},
        ),
        ({"args": 5, "kwargs": {"x": 1}}, {"/args": "must be an array, it is 5"}),
        (
            {
                "args": ["a", "b"],
                "idempotencyKey": "k",
                "idempotencyFields": ["x"],
                "binding": "order",
                "concurrencyKey": "ü" * 101,
            },
            {
                "/args": "task orders.sync does not take these arguments: too many positional arguments; "
                "its signature is orders.sync(shop: 'str' = 'north')",
                "/idempotencyFields": "stands beside idempotencyKey; leave one out",
                "/binding": "no binding 'order' is registered; did you mean 'orders'?",
                "/record": 'must be given with a binding: {"type": "order", "id": "4711"}',
                "/concurrencyKey": f"concurrency_key {'ü' * 101!r:.60} is not allowed: text of 1 to 200 bytes",
            },
        ),
    ],
    ids=["both", "none named", "no text", "long key", "no record", "args alone", "all"],
)
def test_all_that_is_wrong_with_a_start_is_told_at_once_in_the_words_of_its_body(
    shop: Tenure, client: TestClient, body: dict[str, Any], wrong: dict[str, str]
) -> None:
    shop.binding("orders", print, may=lambda user, record: True)

    answer = client.post("/background-tasks", json={"task": "orders.sync", **body})

    problem = answer.json()
    assert answer.status_code == 400
    assert {one["pointer"]: one["message"] for one in problem["errors"]} == wrong
    assert client.get("/background-tasks").json()["items"] == []


def test_an_unknown_task_is_told_with_the_nearest(client: TestClient) -> None:
    problem = refused(client.post("/background-tasks", json={"task": "orders.sinc"}), 400, "UNKNOWN_TASK")

    assert "did you mean 'orders.sync'?" in problem["errors"][0]["message"]


@pytest.mark.parametrize(
    "name", ["os.system", "builtins.eval", "__class__", "orders.sync.__globals__", "../orders"]
)
def test_a_name_from_outside_never_reaches_code(client: TestClient, name: str) -> None:
    refused(client.post("/background-tasks", json={"task": name}), 400, "UNKNOWN_TASK")


@pytest.mark.parametrize(
    ("task", "why"), [("orders.purge", "not offered"), ("reports.daily", "no background task")]
)
def test_only_what_is_offered_may_be_started(client: TestClient, task: str, why: str) -> None:
    problem = refused(client.post("/background-tasks", json={"task": task}), 403, "NOT_STARTABLE")

    assert why in problem["detail"]
    assert client.get("/jobs").json()["items"] == []


@pytest.mark.parametrize(
    ("body", "at"), [({"args": [1, 2, 3]}, "/args"), ({"kwargs": {"shp": "north"}}, "/kwargs")], ids=str
)
def test_arguments_the_task_does_not_take_are_refused_with_its_signature(
    client: TestClient, body: dict[str, Any], at: str
) -> None:
    problem = refused(
        client.post("/background-tasks", json={"task": "orders.sync", **body}), 400, "BAD_INPUT"
    )

    assert pointers(problem) == [at]
    assert "orders.sync(shop: 'str' = 'north')" in problem["errors"][0]["message"]


def test_progress_is_committed_work_and_what_is_being_done_stands_apart(
    client: TestClient, hand: Hand
) -> None:
    task = start(client)
    lease = hand.take()
    hand.ledger.report(lease, cursor=pack({"after": 40}, what="cursor"), done=40, total=100)
    hand.ledger.report(lease, doing=53, message="page 6", lines=["read page 6"])

    seen = client.get(f"/background-tasks/{task['id']}").json()

    assert (seen["status"], seen["done"], seen["doing"], seen["total"]) == ("running", 40, 53, 100)
    assert (seen["percent"], seen["message"], seen["attempt"], seen["chunk"]) == (40.0, "page 6", 1, 0)
    assert seen["eta"]["state"] == "estimating"
    assert [(line["n"], line["text"]) for line in seen["log"]] == [(1, "read page 6")]


def test_stage_unit_and_warnings_are_shown_and_cannot_steer_a_terminal(
    client: TestClient, hand: Hand
) -> None:
    task = start(client)
    url = f"/background-tasks/{task['id']}"
    fresh = client.get(url).json()
    assert (fresh["stage"], fresh["unit"], fresh["warnings"]) == (None, "rows", 0)

    hand.ledger.report(hand.take(), stage="prices \x1b[2J", warnings=2, lines=["warning: row 7\x1b[2J"])

    seen = client.get(url).json()
    assert (seen["stage"], seen["unit"], seen["warnings"]) == ("prices \\x1b[2J", "rows", 2)
    assert seen["log"][0]["text"] == "warning: row 7\\x1b[2J"


def test_a_failure_stays_where_it_was_and_the_retry_goes_on_from_there(
    client: TestClient, hand: Hand
) -> None:
    url = f"/background-tasks/{start(client)['id']}"
    lease = hand.take()
    hand.ledger.report(lease, cursor=pack({"after": 40}, what="cursor"), done=40, total=100)
    hand.ledger.report(lease, doing=53)
    hand.ledger.settle(lease, Fail("ValueError: row 53 is bad", delay_ms=0))

    failed = client.get(url).json()
    assert (failed["status"], failed["percent"], failed["doing"]) == ("pending", 40.0, None)
    assert failed["error"] == {"type": "ValueError", "message": "row 53 is bad", "attempt": 1}

    hand.ledger.settle(lease := hand.take(), NextChunk(pack({}, what="cursor"), done=100, total=100))
    assert lease.attempt == 2
    between = client.get(url).json()
    assert (between["status"], between["percent"], between["chunk"]) == ("pending", 99.9, 1)

    hand.work(Succeed(pack({"rows": 100}, what="result")))
    done = client.get(url).json()
    assert (done["status"], done["percent"], done["eta"], done["error"]) == ("succeeded", 100.0, None, None)
    assert done["result"] == {"rows": 100}
    assert done["finishedAt"] is not None


def test_cancel_holds_and_may_be_asked_twice(
    client: TestClient, hand: Hand, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tenure.api")
    task_id = start(client)["id"]
    url = f"/background-tasks/{task_id}"
    hand.take()

    first = client.post(f"{url}/cancel", json={"reason": "wrong shop"})
    second = client.post(f"{url}/cancel")

    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json()["status"] == "canceled"
    assert first.json()["changed"] is True
    assert second.json() == {**first.json(), "changed": False}
    said = [line for line in caplog.messages if task_id in line and "cancel" in line]
    assert said == [
        f"{task_id} canceled, it was running: wrong shop",
        f"{task_id} cancel changed nothing: no reason given",
    ]


def test_a_change_takes_its_tenant_from_the_body_alone(client: TestClient) -> None:
    task = start(client, tenant="acme")

    problem = refused(client.post(f"/background-tasks/{task['id']}/cancel?tenant=acme"), 400, "BAD_INPUT")

    assert pointers(problem) == ["?tenant"]
    assert "say it in the body" in problem["errors"][0]["message"]
    assert client.post(f"/background-tasks/{task['id']}/cancel", json={"tenant": "acme"}).status_code == 200


def test_what_has_succeeded_cannot_be_canceled(client: TestClient, hand: Hand) -> None:
    url = f"/background-tasks/{start(client)['id']}"
    hand.work(Succeed())

    problem = refused(client.post(f"{url}/cancel"), 409, "WRONG_STATE")

    assert problem["hint"] == "nothing changes a succeeded job; to do its work again make a new one"


def test_a_reason_stands_in_the_log_and_cannot_forge_a_line(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tenure.api")

    start(client, reason="menu\r\nINFO forged")

    assert "menu\\r\\nINFO forged" in caplog.text


def test_a_list_shows_background_tasks_only_newest_first_in_pages(client: TestClient, shop: Tenure) -> None:
    shop.enqueue(shop.registry.get("reports.daily"), [], {}, Options())
    made = [start(client)["id"] for _ in range(5)]

    seen: list[str] = []
    cursor = ""
    while True:
        page = client.get(f"/background-tasks?limit=2&cursor={cursor}").json()
        seen += [item["id"] for item in page["items"]]
        cursor = page["nextCursor"]
        assert page["hasMore"] == (cursor is not None)
        if not cursor:
            break

    assert sorted(seen) == sorted(made)
    assert len(seen) == 5


def test_a_list_is_filtered_by_state_and_task(client: TestClient, hand: Hand) -> None:
    done = start(client)["id"]
    hand.work(Succeed())
    waiting = start(client)["id"]

    def ids(query: str) -> list[str]:
        return [item["id"] for item in client.get(f"/background-tasks?{query}").json()["items"]]

    assert ids("status=succeeded") == [done]
    assert ids("status=pending&task=orders.sync") == [waiting]
    assert ids("task=orders.purge") == []
    assert ids("status=dead") == []


def test_a_foreign_id_is_not_found_whatever_is_asked_of_it(client: TestClient, shop: Tenure) -> None:
    foreign = start(client, tenant="acme")["id"]
    unknown = foreign[:-1] + ("0" if foreign[-1] != "0" else "1")

    for tenant in ("", "?tenant=globex"):
        for job_id in (foreign, unknown):
            for path in ("/background-tasks/{}", "/background-tasks/{}/events", "/jobs/{}"):
                problem = refused(client.get(path.format(job_id) + tenant), 404, "NOT_FOUND")
                assert "acme" not in str(problem)
            answer = client.post(
                f"/background-tasks/{job_id}/cancel", json={"tenant": tenant[8:] or "default"}
            )
            refused(answer, 404, "NOT_FOUND")
    for path in ("/jobs", "/background-tasks", "/jobs?status=pending"):
        assert client.get(path).json()["items"] == []
    assert client.get(f"/background-tasks/{foreign}?tenant=acme").json()["status"] == "pending"


def test_links_name_the_tenant(client: TestClient) -> None:
    content = start(client, tenant="acme")

    assert content["links"]["self"] == f"/background-tasks/{content['id']}?tenant=acme"
    assert client.get(content["links"]["self"]).status_code == 200


def test_a_job_that_is_no_background_task_is_not_found_among_them(client: TestClient, shop: Tenure) -> None:
    job = shop.enqueue(shop.registry.get("reports.daily"), [], {}, Options())

    refused(client.get(f"/background-tasks/{job.id}"), 404, "NOT_FOUND")
    refused(client.post(f"/background-tasks/{job.id}/cancel"), 404, "NOT_FOUND")
    assert client.get(f"/jobs/{job.id}").json()["status"] == "pending"


@pytest.mark.parametrize("job_id", ["x", "..%2f..", "a:b", "%00", "{x}", "%F0%9F%9A%80", "1" * 300])
def test_an_id_that_cannot_be_one_is_not_found(client: TestClient, job_id: str) -> None:
    assert client.get(f"/background-tasks/{job_id}").status_code == 404
    assert client.post(f"/background-tasks/{job_id}/cancel").status_code == 404


def test_links_hold_under_the_prefix_of_a_mount(shop: Tenure) -> None:
    web = Starlette(routes=[Mount("/very/tenure", shop.api())])

    with local(web) as client:
        content = client.post("/very/tenure/background-tasks", json={"task": "orders.sync"}).json()

        assert content["links"]["self"] == f"/very/tenure/background-tasks/{content['id']}"
        assert client.get(content["links"]["self"]).json()["id"] == content["id"]


@pytest.mark.parametrize(
    ("body", "done", "cursor"),
    [({}, 3, b"\x80"), ({"from": "checkpoint"}, 3, b"\x80"), ({"from": "start"}, None, b"")],
    ids=str,
)
def test_a_task_is_retried_from_its_checkpoint_or_from_the_start(
    client: TestClient, shop: Tenure, hand: Hand, body: dict[str, Any], done: int | None, cursor: bytes
) -> None:
    task_id = start(client)["id"]
    hand.work(NextChunk(b"\x80", done=3, total=9))
    hand.work(Fail("ValueError: no data", permanent=True))

    asked = {**body, "reason": "mended", "token": "7f"}
    first, again = (client.post(f"/background-tasks/{task_id}/retry", json=asked) for _ in range(2))

    assert first.json()["changed"] is True
    assert (first.status_code, first.json()) == (200, again.json())
    assert (first.json()["status"], first.json()["done"]) == ("pending", done)
    assert [(deed.verb, deed.reason) for deed in shop.jobs.get(task_id).history] == [("retry", "mended")]
    assert hand.take().cursor == cursor


def test_what_cannot_be_retried_is_refused(client: TestClient, shop: Tenure, hand: Hand) -> None:
    task_id = start(client)["id"]
    other = shop.enqueue(shop.registry.get("reports.daily"), (), {}, Options()).id

    refused(client.post(f"/background-tasks/{task_id}/retry"), 409, "WRONG_STATE")
    refused(client.post(f"/background-tasks/{other}/retry"), 404, "NOT_FOUND")
    refused(client.post(f"/background-tasks/{task_id}/retry", json={"generation": 7}), 409, "STALE_PLAN")
    problem = refused(
        client.post(f"/background-tasks/{task_id}/retry", json={"from": "middle"}), 400, "BAD_INPUT"
    )
    assert pointers(problem) == ["/from"]


def test_a_client_names_a_binding_and_sees_how_its_row_follows(shop: Tenure, client: TestClient) -> None:
    rows: list[Bound] = []
    shop.binding("orders", rows.append, may=lambda user, record: (user, record.id) == ("api", "7"))

    task = start(client, record={"type": "order", "id": "7"}, binding="orders")

    assert [(row.status, row.task_id) for row in rows] == [("accepted", task["id"])]
    shown = client.get(f"/background-tasks/{task['id']}").json()["binding"]
    assert (shown["name"], shown["state"], shown["error"]) == ("orders", "written", None)


def test_whoever_may_not_gets_no_task_and_no_row(shop: Tenure, client: TestClient) -> None:
    rows: list[Bound] = []
    shop.binding("orders", rows.append, may=lambda user, record: False)
    asked = {"task": "orders.sync", "record": {"type": "order", "id": "7"}}

    refused(client.post("/background-tasks", json={**asked, "binding": "orders"}), 403, "NOT_ALLOWED")
    unknown = client.post("/background-tasks", json={**asked, "binding": "order"})
    assert pointers(refused(unknown, 400, "UNKNOWN_BINDING")) == ["/binding"]
    for target in ({"table": "orders"}, {"column": "status"}):
        answer = client.post("/background-tasks", json={**asked, "binding": "orders", **target})
        assert pointers(refused(answer, 400, "BAD_INPUT")) == [f"/{next(iter(target))}"]
    without = {"task": "orders.sync", "binding": "orders"}
    refused(client.post("/background-tasks", json=without), 400, "BAD_INPUT")

    assert client.get("/background-tasks").json()["items"] == []
    assert rows == []


def test_who_cannot_be_asked_for_may_start_nothing(
    shop: Tenure, client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    def may(user: str, record: object) -> bool:
        raise ConnectionError("no answer from db://tenure:hunter2222@rights \x1b[31m")

    shop.binding("orders", print, may=may)
    asked = {"task": "orders.sync", "binding": "orders", "record": {"type": "order", "id": "7"}}

    problem = refused(client.post("/background-tasks", json=asked), 500, "RIGHTS_UNKNOWN")

    assert (
        "`may` of binding 'orders' raised ConnectionError: no answer from db://tenure:***@"
        in problem["detail"]
    )
    assert "nothing was made" in problem["detail"]
    assert "\x1b" not in problem["detail"]
    assert problem["traceId"] in caplog.text
    assert "in may" in caplog.text
    assert client.get("/background-tasks").json()["items"] == []


def test_a_row_that_cannot_be_written_is_shown_and_changes_nothing(
    shop: Tenure, client: TestClient, hand: Hand
) -> None:
    def broken(bound: Bound) -> None:
        raise OSError("the database is away \x1b[31m")

    shop.binding("orders", broken, may=lambda user, record: True)
    task = start(client, record={"type": "order", "id": "7"}, binding="orders")
    hand.work(Succeed())

    shown = client.get(f"/background-tasks/{task['id']}").json()

    assert (shown["status"], shown["binding"]["state"], shown["binding"]["tries"]) == (
        "succeeded",
        "failing",
        1,
    )
    assert shown["binding"]["error"] == "OSError: the database is away \\x1b[31m"
