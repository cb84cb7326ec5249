"""Which bodies are taken, and what is said of the others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from tenure.api import body as limits

from .conftest import pointers, refused

JSON = {"content-type": "application/json"}


def post(client: TestClient, content: bytes | Iterator[bytes], **headers: str) -> Any:
    return client.post("/background-tasks", content=content, headers={**JSON, **headers})


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "not JSON"),
        (b"nonsense", "line 1, column 1"),
        (b"[]", "not an object"),
        (b'"text"', "not an object"),
        (b"null", "not an object"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        ('{"task": "ü"}'.encode("utf-16"), "not UTF-8"),
        (b'{"task": "\xff"}', "byte 10 is 0xff"),
        (b'{"task": "a", "task": "b"}', "'task' stands twice"),
        (b'{"kwargs": {"x": 1, "x": 1}}', "'x' stands twice"),
        (b'{"args": [NaN]}', "NaN"),
        (b'{"args": [-Infinity]}', "-Infinity"),
        (b'{"args": [1e999]}', "too large"),
        (b'{"args": [9223372036854775808]}', "64 bits"),
        (b'{"args": [-9223372036854775809]}', "64 bits"),
        (b'{"args": [' + b"9" * 10_000 + b"]}", "64 bits"),
        (b'{"args": ' + nested(32).encode() + b"}", "deeper than 32"),
        (b'{"args": ' + b"[" * 100_000 + b"}", "deeper than 32"),
        (b'{"args": ["a\\u0000b"]}', "NUL"),
        (b'{"kw\\u0000": 1}', "NUL"),
        (b'{"args": ["\\ud800"]}', "surrogate"),
        (b'{"args": ["a\x00b"]}', "not JSON"),
    ],
)
def test_what_is_not_json_as_we_take_it_is_refused(client: TestClient, body: bytes, said: str) -> None:
    problem = refused(post(client, body), 400, "BAD_JSON")

    assert said in problem["detail"]


def test_odd_text_is_named_with_its_place(client: TestClient) -> None:
    problem = refused(post(client, b'{"kwargs": {"a/b": [1, "\\u0000"]}}'), 400, "BAD_JSON")

    assert pointers(problem) == ["/kwargs/a~1b/1"]


def test_what_stands_at_a_limit_is_taken(client: TestClient) -> None:
    args = json.dumps([json.loads(nested(28)), 9223372036854775807, -9223372036854775808, "\U0001f680"])

    answer = post(client, b'{"task": "orders.sync", "kwargs": {"shop": ' + args.encode() + b"}}")

    assert answer.status_code == 202, answer.text
    assert client.get(f"/jobs/{answer.json()['id']}").json()["args"] == [json.loads(args)]


def test_a_body_of_the_limit_is_read_and_one_byte_more_is_not(client: TestClient) -> None:
    whole = b'{"task": "' + b"x" * (limits.LIMIT - 12) + b'"}'
    assert len(whole) == limits.LIMIT

    refused(post(client, whole), 400, "BAD_INPUT")
    refused(post(client, whole + b" "), 413, "BODY_TOO_LARGE")


def test_a_large_body_without_a_length_is_cut_off(client: TestClient) -> None:
    parts = (b"x" * 65_536 for _ in range(10_000))

    refused(post(client, parts), 413, "BODY_TOO_LARGE")


@pytest.mark.parametrize("length", ["-1", "nonsense", "9" * 30, "²"])
def test_a_length_that_is_none_changes_nothing(client: TestClient, length: str) -> None:
    answer = client.post(
        "/background-tasks",
        content=iter([b'{"task": "orders.sync"}']),
        headers=[(b"content-type", b"application/json"), (b"content-length", length.encode("latin-1"))],
    )

    assert answer.status_code == 202


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=latin-1",
        "application/jsonp",
    ],
)
def test_another_type_than_json_is_refused(client: TestClient, content_type: str) -> None:
    answer = client.post("/background-tasks", content=b"{}", headers={"content-type": content_type})

    refused(answer, 415, "NOT_JSON")


@pytest.mark.parametrize(
    "content_type", ["application/json; charset=utf-8", "Application/JSON;charset=UTF-8"]
)
def test_json_may_say_that_it_is_utf_8(client: TestClient, content_type: str) -> None:
    body = b'{"task": "orders.sync"}'

    assert (
        client.post("/background-tasks", content=body, headers={"content-type": content_type}).status_code
        == 202
    )


@pytest.mark.parametrize("encoding", ["gzip", "br", "identity, gzip"])
def test_an_encoded_body_is_refused_unread(client: TestClient, encoding: str) -> None:
    refused(post(client, b"\x1f\x8b", **{"content-encoding": encoding}), 415, "ENCODED")


def test_every_wrong_field_is_named_at_once(client: TestClient) -> None:
    answer = client.post(
        "/background-tasks",
        json={
            "task": "orders.sinc",
            "args": "x",
            "kwargs": [],
            "tenant": "Acme!",
            "idempotencyKey": 7,
            "idempotencyFields": [1],
            "resaon": "typo",
            "record": {"type": "order", "number": "7"},
            "binding": "orders",
        },
    )

    problem = refused(answer, 400, "BAD_INPUT")
    messages = {error["pointer"]: error["message"] for error in problem["errors"]}
    assert set(messages) == {
        *(
            "/task",
            "/args",
            "/kwargs",
            "/tenant",
            "/idempotencyKey",
            "/idempotencyFields",
            "/resaon",
            "/record/number",
            "/record/id",
            "/binding",
        ),
    }
    assert "did you mean 'orders.sync'?" in messages["/task"]
    assert "did you mean 'reason'?" in messages["/resaon"]
    assert messages["/record/id"] == "must be given: text"
    assert "no binding 'orders' is registered" in messages["/binding"]


@pytest.mark.parametrize("value", [[], {}, 1, True, "", "x" * 1001])
def test_a_field_of_the_wrong_kind_is_named(client: TestClient, value: object) -> None:
    answer = client.post("/background-tasks", json={"task": "orders.sync", "idempotencyKey": value})

    assert pointers(refused(answer, 400, "BAD_INPUT")) == ["/idempotencyKey"]
