"""Lives it, and can it work?"""

from __future__ import annotations

import socket

from starlette.testclient import TestClient

from tenure import Settings, Tenure

from .conftest import local, refused


def test_ready_says_what_the_store_is(client: TestClient) -> None:
    ready = client.get("/readyz").json()

    assert ready["status"] == "ready"
    assert ready["store"]["product"] in ("Valkey", "Redis")
    assert ready["store"]["durability"] in ("memory", "process", "disk")
    assert isinstance(ready["warnings"], list)


def test_without_a_store_it_lives_and_is_not_ready() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"redis://:hunter2@127.0.0.1:{closed.getsockname()[1]}/0"
        with local(Tenure(Settings(redis_url=url)).api()) as client:
            assert client.get("/livez").json() == {"status": "ok"}
            for path in ("/readyz", "/jobs", "/background-tasks", "/schedules", "/background-tasks/x/events"):
                answer = client.get(path)
                problem = refused(answer, 503, "STORE_UNREACHABLE")
                assert answer.headers["retry-after"] == "2"
                assert problem["traceId"]
                assert "hunter2" not in answer.text


def test_making_the_api_opens_nothing() -> None:
    Tenure(Settings(redis_url="redis://127.0.0.1:1/0")).api()
