"""Faults that users of other progress bars have reported, tried here; the numbers are those of the trials.

A bar that jumps back to nothing, one that stands at 99 for ever, and one that never hears of the end.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest
import uvicorn

from tenure import Tenure
from tenure.api import hub
from tenure.api.hints import Watched
from tenure.lease.jobs import Lease
from tenure.lease.ledger import Ledger
from tenure.lease.outcome import Fail, NextChunk, Succeed
from tenure.lease.payload import pack
from tenure.settings import Settings
from tenure.testing import Server, wait_until

from .given import claim
from .line import Line
from .test_api.test_events import Web


def cursor(at: int) -> bytes:
    return pack({"at": at}, what="cursor")


@pytest.fixture
def line(tenure_server: Server) -> Iterator[Line]:
    """The API's way to the store, which the test can cut."""
    if tenure_server.kind not in ("embedded", "redis"):
        pytest.skip("the line leads to a plain server of our own")
    line = Line(str(tenure_server.url))
    yield line
    line.close()


@pytest.fixture
def web(line: Line, tenure_namespace: str) -> Iterator[Web]:
    """The API as a process of its own would have it, behind the line."""
    app = Tenure(Settings(redis_url=line.url, namespace=tenure_namespace))
    app.background("orders.sync", startable=True)(_sync)
    api = app.api()
    server = uvicorn.Server(uvicorn.Config(api, "127.0.0.1", 0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started)
    yield Web(api, server.servers[0].sockets[0].getsockname()[1])
    server.should_exit = True
    api.state.hub.close()
    thread.join(10)
    app.close()


def _sync() -> None: ...


@pytest.fixture
def store(app: Tenure) -> Ledger:
    """The workers' way to the store, which holds."""
    return app.ledger()


def test_a_retry_goes_on_from_its_checkpoint_and_100_is_only_succeeded(web: Web, store: Ledger) -> None:
    """148: fail at 53, retry from checkpoint 40 of 100, finish; never back to 0, never 99 running when nothing runs."""
    job_id = web.start()
    seen: list[tuple[str, int, int | None, int | None, float | None]] = []

    def look() -> None:
        shown = httpx.get(f"{web.url}/background-tasks/{job_id}").json()
        seen.append((shown["status"], shown["attempt"], shown["done"], shown["doing"], shown["percent"]))

    def work(lease: Lease, *, done: int, doing: int) -> None:
        store.report(lease, cursor=cursor(done), done=done, total=100)
        store.report(lease, doing=doing)
        look()

    first = claim(store)
    work(first, done=40, doing=53)
    store.settle(first, Fail("ValueError: row 53 is bad"))
    look()
    second = claim(store)
    look()
    work(second, done=60, doing=75)
    store.settle(second, NextChunk(cursor(100), done=100, total=100))
    look()
    store.settle(claim(store), Succeed())
    look()

    assert second.cursor == cursor(40)
    assert seen == [
        ("running", 1, 40, 53, 40.0),
        ("pending", 1, 40, None, 40.0),
        ("running", 2, 40, None, 40.0),
        ("running", 2, 60, 75, 60.0),
        ("pending", 2, 100, None, 99.9),
        ("succeeded", 2, 100, None, 100.0),
    ]


def test_a_watcher_catches_up_by_itself_after_the_store_was_out_of_reach(
    web: Web, line: Line, store: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """150: the API loses the store while the task moves and ends; its open stream shows the end, no stale "running"."""
    monkeypatch.setattr(hub, "RECHECK_S", 0.5)
    asked = threading.Event()
    read = web.api.state.hub._read

    def read_and_tell(watched: Watched) -> hub.Snapshot:
        if line.silent:
            asked.set()
        snapshot: hub.Snapshot = read(watched)
        return snapshot

    monkeypatch.setattr(web.api.state.hub, "_read", read_and_tell)
    job_id = web.start()
    lease = claim(store)

    with web.watch(job_id) as events:
        snapshots = events.snapshots()
        assert next(one for one in snapshots if one["status"] == "running")["done"] is None
        line.silent = True
        store.report(lease, cursor=cursor(40), done=40, total=100)
        store.settle(lease, Succeed())
        assert asked.wait(10)
        line.silent = False
        line.drop()
        rest = list(snapshots)

    assert [one["status"] for one in rest[-1:]] == ["succeeded"]
    assert rest[-1]["percent"] == 100.0


def test_a_page_that_lost_its_network_catches_up_with_one_request(web: Web, store: Ledger) -> None:
    """150: the page is cut off while the task moves and ends; whatever it asks next tells of the end at once."""
    job_id = web.start()
    lease = claim(store)
    with web.watch(job_id) as events:
        last = next(one for one in events.snapshots() if one["status"] == "running")

    store.report(lease, cursor=cursor(40), done=40, total=100)
    store.settle(lease, Succeed())

    with web.watch(job_id, **{"last-event-id": str(last["revision"])}) as events:
        (streamed,) = events.snapshots()
    polled: dict[str, Any] = httpx.get(
        f"{web.url}/background-tasks/{job_id}?waitMs=60000&since={last['revision']}"
    ).json()
    assert streamed == polled
    assert (polled["status"], polled["percent"], polled["eta"]) == ("succeeded", 100.0, None)
    with web.watch(job_id, **{"last-event-id": str(polled["revision"])}) as events:
        assert events.status == 204
