"""Lives it, and can it work?"""

from __future__ import annotations

import asyncio
import socket
import time

import anyio
import anyio.to_thread
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


def test_a_store_that_says_nothing_is_not_ready_within_two_seconds() -> None:
    """However it is silent: here it takes the connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        with local(Tenure(Settings(redis_url=url)).api()) as client:
            began = time.monotonic()

            answer = client.get("/readyz")

            assert time.monotonic() - began < 5
            refused(answer, 503, "STORE_UNREACHABLE")
            assert "within 2 s" in answer.text


def test_whether_it_is_ready_is_said_though_all_threads_wait_for_the_store(client: TestClient) -> None:
    assert client.portal
    client.portal.call(take_all_threads)

    assert client.get("/readyz").status_code == 200
    assert client.get("/livez").status_code == 200
    refused(client.get("/nowhere"), 404, "NO_SUCH_PATH")


def test_that_it_is_not_ready_is_said_though_all_threads_wait_for_the_store() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"redis://127.0.0.1:{closed.getsockname()[1]}/0"
        with local(Tenure(Settings(redis_url=url)).api()) as client:
            assert client.portal
            client.portal.call(take_all_threads)
            began = time.monotonic()

            refused(client.get("/readyz"), 503, "STORE_UNREACHABLE")

            assert time.monotonic() - began < 4


def take_all_threads() -> None:
    """For five seconds, as requests do that wait for the store."""
    threads, borrower = anyio.to_thread.current_default_thread_limiter(), object()
    threads.total_tokens = 1
    threads.acquire_on_behalf_of_nowait(borrower)
    asyncio.get_running_loop().call_later(5, threads.release_on_behalf_of, borrower)


def test_making_the_api_opens_nothing() -> None:
    Tenure(Settings(redis_url="redis://127.0.0.1:1/0")).api()
