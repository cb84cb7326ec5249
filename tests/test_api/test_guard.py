"""Who may come in, and what every answer tells a browser."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from tenure import Tenure
from tenure.api.guard import is_loopback, is_loopback_address

from .conftest import refused

START = {"task": "orders.sync"}


@pytest.mark.parametrize(
    "address", ["10.0.0.7", "192.0.2.1", "::2", "testclient", "", "::ffff:10.0.0.7", "0.0.0.0"]
)
def test_only_this_machine_is_served(shop: Tenure, address: str) -> None:
    client = TestClient(shop.api(), base_url="http://localhost", client=(address, 1))

    refused(client.get("/jobs"), 403, "LOOPBACK_ONLY")
    refused(client.get("/livez"), 403, "LOOPBACK_ONLY")
    refused(client.post("/background-tasks", json=START), 403, "LOOPBACK_ONLY")


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"])
def test_any_address_of_this_machine_is_served(shop: Tenure, address: str) -> None:
    client = TestClient(shop.api(), base_url="http://localhost", client=(address, 1))

    assert client.get("/livez").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"x-forwarded-for": "203.0.113.9"},
        {"x-forwarded-for": "127.0.0.1, 203.0.113.9"},
        {"x-forwarded-for": "unknown"},
        {"forwarded": "for=203.0.113.9"},
        {"x-real-ip": "203.0.113.9"},
    ],
)
def test_a_proxy_does_not_open_it_to_the_world(client: TestClient, headers: dict[str, str]) -> None:
    refused(client.get("/jobs", headers=headers), 403, "LOOPBACK_ONLY")


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "localhost.evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.7"),
        *("localhost@evil.example", "localhost/x", "local host", "", "[::1", "localhost:x", "0x7f.0.0.1"),
    ],
)
def test_a_name_that_was_pointed_at_us_is_refused(client: TestClient, host: str) -> None:
    refused(client.get("/jobs", headers={"host": host}), 403, "WRONG_HOST")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8321", "127.0.0.1:1", "[::1]:8321", "shop.localhost"]
)
def test_names_of_this_machine_are_taken(client: TestClient, host: str) -> None:
    assert client.get("/livez", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    [
        *(
            "http://evil.example",
            "null",
            "",
            "http://localhost:3000",
            "https://localhost",
            "http://127.0.0.1",
        ),
        *("http://localhost.evil.example", "http://localhost@evil.example", "file://", "http://"),
    ],
)
def test_a_page_of_another_site_changes_nothing(client: TestClient, origin: str) -> None:
    headers = {"origin": origin}

    refused(client.post("/background-tasks", json=START, headers=headers), 403, "CROSS_ORIGIN")
    refused(client.post("/background-tasks/x/cancel", headers=headers), 403, "CROSS_ORIGIN")
    refused(client.put("/schedules/x", json={}, headers=headers), 403, "CROSS_ORIGIN")
    assert client.get("/jobs").json()["items"] == []


@pytest.mark.parametrize("host", ["localhost", "localhost:80", "127.0.0.1:8321"])
def test_a_page_served_from_here_may_change_things(client: TestClient, host: str) -> None:
    headers = {"origin": f"http://{host}", "host": host}

    assert client.post("/background-tasks", json=START, headers=headers).status_code == 202


def test_a_form_of_another_site_is_no_json(client: TestClient) -> None:
    refused(client.post("/background-tasks", data={"task": "orders.sync"}), 415, "NOT_JSON")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", "/jobs"), ("GET", "/livez"), ("GET", "/nothing"), ("DELETE", "/jobs"), ("GET", "/jobs/x")),
        *(("POST", "/background-tasks"), ("OPTIONS", "/jobs"), ("GET", "/readyz"), ("HEAD", "/jobs")),
    ],
)
def test_every_answer_has_the_headers_for_browsers(client: TestClient, method: str, path: str) -> None:
    for headers in ({}, {"host": "evil.example"}):
        answer = client.request(method, path, headers=headers)

        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers


def test_what_is_loopback_is_decided_by_the_address_not_its_spelling() -> None:
    assert all(map(is_loopback_address, ("127.0.0.1", "::1", "0:0:0:0:0:0:0:1", "::ffff:7f00:1")))
    assert not any(map(is_loopback_address, ("2130706433", "0177.0.0.1", "127.1", "localhost", "")))
    assert is_loopback("a.b.localhost")
    assert not is_loopback("notlocalhost")
