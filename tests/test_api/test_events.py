"""A task watched as it changes, on a real server: uvicorn in a thread, clients on sockets."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import httpx2 as httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from tenure import Tenure
from tenure.api import body, events, hub
from tenure.api.hints import Watched
from tenure.api.progress_app import everyone
from tenure.lease.outcome import NextChunk, Succeed
from tenure.lease.payload import pack
from tenure.lease.requests import Options
from tenure.scripts.errors import StoreUnreachable
from tenure.scripts.keys import watch_channel
from tenure.testing import wait_until

from .conftest import Hand

CURSOR = pack({}, what="cursor")


@dataclass
class Web:
    """The API on a port of its own."""

    api: Any
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def feeds(self) -> Any:
        return self.api.state.hub._feeds

    def start(self) -> str:
        job_id: str = httpx.post(f"{self.url}/background-tasks", json={"task": "orders.sync"}).json()["id"]
        return job_id

    @contextmanager
    def watch(self, job_id: str, **headers: str | bytes) -> Iterator[Events]:
        url = f"{self.url}/background-tasks/{job_id}/events"
        with httpx.stream("GET", url, headers=headers, timeout=60) as answer:
            yield Events(answer)


class Events:
    """The events of one stream, read as they come."""

    def __init__(self, answer: httpx.Response) -> None:
        self.status = answer.status_code
        self.headers = answer.headers
        self._lines = answer.iter_lines()

    def __iter__(self) -> Iterator[dict[str, str]]:
        event: dict[str, str] = {}
        for line in self._lines:
            if line:
                name, _, value = line.partition(":")
                event[name] = value.strip()
            elif event:
                yield event
                event = {}

    def snapshots(self) -> Iterator[dict[str, Any]]:
        """The snapshots, each checked against its id."""
        for event in self:
            if "data" in event and "event" not in event:
                snapshot = json.loads(event["data"])
                line = f"-{snapshot['log'][-1]['n']}" if snapshot["log"] else ""
                assert event["id"] == f"{snapshot['revision']}{line}"
                yield snapshot


@contextmanager
def served(web: Any, *hubs: hub.Hub) -> Iterator[int]:
    """An application at a port of this machine, while the block runs."""
    server = uvicorn.Server(uvicorn.Config(web, "127.0.0.1", 0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        for one in hubs:
            one.close()
        thread.join(60)
    assert not thread.is_alive()


@pytest.fixture
def web(shop: Tenure) -> Iterator[Web]:
    api = shop.api()
    with served(api, api.state.hub) as port:
        yield Web(api, port)


def subscriptions(shop: Tenure) -> int:
    """How many clients of the store listen for changed tasks of this namespace."""
    channel = watch_channel(shop.settings.namespace)
    redis: Any = shop.redis()
    return int(redis.pubsub_numsub(channel)[0][1])


def test_a_watcher_sees_every_stage_and_the_end(web: Web, hand: Hand) -> None:
    job_id = web.start()

    with web.watch(job_id) as events:
        assert events.status == 200
        assert events.headers["content-type"].startswith("text/event-stream")
        assert events.headers["cache-control"] == "no-store"
        snapshots = events.snapshots()
        assert next(snapshots)["status"] == "pending"
        lease = hand.take()
        hand.ledger.report(lease, cursor=CURSOR, done=40, total=100)
        seen = next(snapshot for snapshot in snapshots if snapshot["done"] == 40)
        assert (seen["status"], seen["percent"]) == ("running", 40.0)
        hand.ledger.settle(lease, Succeed(pack(100, what="result")))
        *_, last = snapshots

    assert (last["status"], last["percent"], last["result"]) == ("succeeded", 100.0, 100)
    wait_until(lambda: not web.feeds)


def test_a_stream_begins_by_saying_when_to_come_back(web: Web) -> None:
    with web.watch(web.start()) as events:
        assert next(iter(events)) == {"retry": "2000"}


def test_who_comes_back_gets_the_current_snapshot_only_if_it_is_another(web: Web, hand: Hand) -> None:
    job_id = web.start()
    with web.watch(job_id) as events:
        revision = next(events.snapshots())["revision"]

    with web.watch(job_id, **{"last-event-id": str(revision)}) as events:
        lease = hand.take()
        assert next(events.snapshots())["revision"] > revision

    hand.ledger.report(lease, doing=7)
    with web.watch(job_id, **{"last-event-id": str(revision)}) as events:
        assert next(events.snapshots())["doing"] == 7


def test_a_browser_that_comes_back_after_the_end_is_told_to_stop(web: Web, hand: Hand) -> None:
    job_id = web.start()
    hand.work(Succeed())
    with web.watch(job_id) as events:
        (last,) = events.snapshots()

    with web.watch(job_id, **{"last-event-id": str(last["revision"])}) as events:
        assert events.status == 204


def test_who_comes_back_hears_at_once_that_nothing_is_new(web: Web) -> None:
    job_id = web.start()
    with web.watch(job_id) as events:
        revision = next(events.snapshots())["revision"]

    with web.watch(job_id, **{"last-event-id": str(revision)}) as events:
        assert [next(iter(events)) for _ in range(2)] == [{"retry": "2000"}, {"": "nothing new"}]


@pytest.mark.parametrize(("missed", "gap"), [(100, None), (300, {"from": 2, "to": 201})])
def test_who_comes_back_hears_which_lines_of_the_log_are_lost(
    web: Web, hand: Hand, missed: int, gap: dict[str, int] | None
) -> None:
    job_id = web.start()
    lease = hand.take()
    hand.ledger.report(lease, lines=["first"])
    with web.watch(job_id) as stream:
        seen = next(event["id"] for event in stream if "id" in event)

    hand.ledger.report(lease, lines=["later"] * missed)

    with web.watch(job_id, **{"last-event-id": seen}) as stream:
        _, *gaps = map(dict, takewhile(lambda event: "id" not in event, stream))
    assert [json.loads(event["data"]) for event in gaps] == ([] if gap is None else [gap])


@pytest.mark.parametrize("odd", ["x", "-1", "9" * 40, "1.5", "1-", "1-2-3", "\u00b2", "99", "99-1"])
def test_an_event_id_that_is_none_is_passed_over(web: Web, odd: str) -> None:
    with web.watch(web.start(), **{"last-event-id": odd.encode()}) as events:
        assert next(events.snapshots())["status"] == "pending"


def test_the_headers_of_a_stream_may_be_asked_for_alone(web: Web) -> None:
    answer = httpx.head(f"{web.url}/background-tasks/{web.start()}/events")

    assert answer.status_code == 200
    assert not web.feeds


def test_many_watchers_are_one_subscription_and_one_reader(web: Web, hand: Hand, shop: Tenure) -> None:
    job_id, other = web.start(), web.start()
    reads: list[str] = []
    read = web.api.state.hub._read

    def counted(watched: Watched) -> Any:
        reads.append(watched[1])
        return read(watched)

    web.api.state.hub._read = counted
    ends: list[str] = []

    def watch(watched: str) -> None:
        with web.watch(watched) as events:
            *_, last = events.snapshots()
            ends.append(last["status"])

    threads = [threading.Thread(target=watch, args=(watched,)) for watched in [job_id] * 15 + [other] * 5]
    for thread in threads:
        thread.start()
    wait_until(lambda: sum(feed.watchers for feed in web.feeds.values()) == 20)
    wait_until(lambda: subscriptions(shop) == 1)
    assert len(web.feeds) == 2

    for _ in range(2):
        hand.work(Succeed())
    for thread in threads:
        thread.join(60)

    assert ends == ["succeeded"] * 20
    assert max(reads.count(job_id), reads.count(other)) < 15
    wait_until(lambda: not web.feeds)
    wait_until(lambda: subscriptions(shop) == 0)


def test_watchers_of_three_tenants_in_two_applications_are_one_subscription(shop: Tenure) -> None:
    api, progress = shop.api(), shop.progress(authorize=everyone)
    web = Starlette(routes=[Mount("/tenure", api), Mount("/my", progress)])
    task, tenants = shop.registry.get("orders.sync"), ("acme", "globex", "initech")
    jobs = {tenant: shop.enqueue(task, (), {}, Options(tenant=tenant)).id for tenant in tenants}

    with served(web, api.state.hub, progress.state.hub) as port, ExitStack() as streams:
        followed = [
            Events(
                streams.enter_context(
                    httpx.stream(
                        "GET", f"http://127.0.0.1:{port}{place}/{job}/events?tenant={tenant}", timeout=60
                    )
                )
            )
            for tenant, job in jobs.items()
            for place in ("/tenure/background-tasks", "/my/tasks")
        ]
        for events in followed:
            assert next(iter(events)) == {"retry": "2000"}
        wait_until(lambda: subscriptions(shop) == 1)
        assert [len(one.state.hub._feeds) for one in (api, progress)] == [3, 3]

        for tenant, job in jobs.items():
            shop.ledger(tenant).cancel(job)

        for events in followed:
            *_, last = events
            assert '"status":"canceled"' in last["data"]
        wait_until(lambda: subscriptions(shop) == 0)


def test_a_client_that_goes_away_frees_everything(web: Web, shop: Tenure) -> None:
    job_id = web.start()
    for _ in range(3):
        with web.watch(job_id) as events:
            next(events.snapshots())
            assert len(web.feeds) == 1
        wait_until(lambda: not web.feeds)
    wait_until(lambda: subscriptions(shop) == 0)
    wait_until(lambda: not any(thread.name == "tenure-hints" for thread in threading.enumerate()))


def test_a_storm_of_changes_is_four_snapshots_a_second(web: Web, hand: Hand) -> None:
    job_id = web.start()
    lease = hand.take()

    with web.watch(job_id) as events:
        snapshots = events.snapshots()
        next(snapshots)
        for doing in range(300):
            hand.ledger.report(lease, doing=doing)
        hand.ledger.settle(lease, Succeed())
        rest = list(snapshots)

    assert rest[-1]["status"] == "succeeded"
    assert len(rest) < 10


def test_a_lost_hint_costs_two_seconds(
    web: Web, hand: Hand, shop: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "RECHECK_S", 0.4)
    monkeypatch.setattr(shop.hints, "_tell", lambda *_: None)
    job_id = web.start()

    with web.watch(job_id) as events:
        snapshots = events.snapshots()
        assert next(snapshots)["status"] == "pending"
        hand.take()
        assert next(snapshots)["status"] == "running"


def test_a_hint_makes_it_prompt(web: Web, hand: Hand, shop: Tenure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "RECHECK_S", 3600)
    job_id = web.start()

    with web.watch(job_id) as events:
        snapshots = events.snapshots()
        next(snapshots)
        wait_until(lambda: subscriptions(shop) == 1)
        hand.take()
        assert next(snapshots)["status"] == "running"


def test_a_subscription_that_broke_is_made_again(
    web: Web, hand: Hand, shop: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "RECHECK_S", 3600)
    redis: Any = shop.redis()

    with web.watch(web.start()) as events:
        snapshots = events.snapshots()
        next(snapshots)
        wait_until(lambda: subscriptions(shop) == 1)
        redis.client_kill_filter(_type="pubsub")
        wait_until(lambda: subscriptions(shop) == 0)
        wait_until(lambda: subscriptions(shop) == 1)
        hand.take()
        assert next(snapshots)["status"] == "running"


def test_a_quiet_stream_has_a_heartbeat(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.05)

    with web.watch(web.start()) as stream:
        quiet = (event for event in stream if "" in event)
        assert next(quiet) == {"": "still here"}


def test_a_lost_stretch_of_the_log_is_said(web: Web, hand: Hand) -> None:
    job_id = web.start()
    lease = hand.take()
    hand.ledger.report(lease, lines=["first"])

    with web.watch(job_id) as stream:
        found = iter(stream)
        assert json.loads(next(event for event in found if "id" in event)["data"])["log"][0]["n"] == 1
        hand.ledger.report(lease, lines=[f"line {number}" for number in range(2, 302)])
        gap = next(event for event in found if event.get("event") == "gap")
        snapshot = json.loads(next(found)["data"])

    assert json.loads(gap["data"]) == {"from": 2, "to": 201}
    assert [line["n"] for line in snapshot["log"]] == list(range(202, 302))


def test_a_slow_client_gets_the_newest_snapshot_and_holds_up_nobody(web: Web, hand: Hand) -> None:
    job_id = web.start()
    lease = hand.take()
    slow = socket.create_connection(("127.0.0.1", web.port))
    slow.sendall(f"GET /background-tasks/{job_id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    wait_until(lambda: len(web.feeds) == 1)

    with web.watch(job_id) as events:
        hand.ledger.settle(lease, NextChunk(CURSOR, done=1, total=2))
        hand.work(Succeed())
        *_, last = events.snapshots()
    assert last["status"] == "succeeded"

    slow.settimeout(60)
    everything = b""
    while part := slow.recv(65536):
        everything += part
        if everything.endswith(b"0\r\n\r\n"):
            break
    assert b'"status":"succeeded"' in everything
    slow.close()


def test_a_store_that_is_away_for_a_while_does_not_end_the_stream(
    web: Web, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "RECHECK_S", 0.3)
    away = threading.Event()
    tried = threading.Event()
    read = web.api.state.hub._read

    def may_fail(watched: Watched) -> Any:
        if away.is_set():
            tried.set()
            raise StoreUnreachable("away")
        return read(watched)

    web.api.state.hub._read = may_fail

    with web.watch(web.start()) as events:
        snapshots = events.snapshots()
        next(snapshots)
        away.set()
        hand.work(Succeed())
        assert tried.wait(60)
        away.clear()
        assert next(snapshots)["status"] == "succeeded"


def test_a_body_that_trickles_is_given_up(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "SLOWEST_S", 0.1)
    head = "POST /background-tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

    answer = raw(web, f"{head}Content-Length: 100\r\n\r\n{{")

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"BODY_TOO_SLOW" in answer


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("GET /jobs HTTP/1.0\r\n\r\n", b"403"),
        ("GET /../jobs HTTP/1.1\r\nHost: localhost\r\n\r\n", b"404"),
        ("GET /jobs/..%2f..%2fetc HTTP/1.1\r\nHost: localhost\r\n\r\n", b"404"),
        ("GET http://evil.example/jobs HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"403"),
        ("GET /jobs HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", b"400"),
        (
            "POST /background-tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
            b"400",
        ),
    ],
)
def test_odd_requests_on_the_wire_are_refused(web: Web, request_: str, status: bytes) -> None:
    assert raw(web, request_).split(b" ")[1] == status


def raw(web: Web, request: str) -> bytes:
    """What the server answers to these bytes, up to the end of the connection or of the first part."""
    with socket.create_connection(("127.0.0.1", web.port), timeout=60) as line:
        line.sendall(request.encode())
        found = b""
        while part := line.recv(65536):
            found += part
            if b"}" in found:
                break
        return found


def test_open_streams_do_not_hold_up_a_stop(web: Web) -> None:
    """Closing the hub is what a server's owner does; `test_stopping` has the same with a signal."""
    ended = threading.Event()
    job_id = web.start()

    def watch() -> None:
        with web.watch(job_id) as events:
            list(events)
        ended.set()

    threading.Thread(target=watch).start()
    wait_until(lambda: any(feed.watchers for feed in web.feeds.values()))
    web.api.state.hub.close()

    assert ended.wait(60)


# Long poll: the same without a stream.


def poll(web: Web, job_id: str, **query: int) -> dict[str, Any]:
    answer = httpx.get(f"{web.url}/background-tasks/{job_id}", params=query, timeout=120)
    assert answer.status_code == 200, answer.text
    content: dict[str, Any] = answer.json()
    return content


def test_a_poll_waits_until_the_revision_is_another(
    web: Web, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "RECHECK_S", 0.4)
    job_id = web.start()
    seen = poll(web, job_id)["revision"]
    answers: list[dict[str, Any]] = []
    waiting = threading.Thread(target=lambda: answers.append(poll(web, job_id, since=seen, waitMs=60_000)))
    waiting.start()
    wait_until(lambda: any(feed.watchers for feed in web.feeds.values()))
    assert answers == []

    hand.take()
    waiting.join(60)

    assert answers[0]["revision"] > seen
    assert answers[0]["status"] == "running"
    wait_until(lambda: not web.feeds)


def test_a_poll_that_has_not_seen_the_newest_is_answered_at_once(
    web: Web, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = web.start()
    seen = poll(web, job_id)["revision"]
    hand.take()
    monkeypatch.setattr(web.api.state.hub, "watch", None)  # who waits is a watcher, and would fail

    for since in ({"since": seen}, {"since": seen + 1000}, {}):
        assert poll(web, job_id, waitMs=60_000, **since)["status"] == "running"
    hand.ledger.cancel(job_id)
    ended = poll(web, job_id)
    assert poll(web, job_id, waitMs=60_000, since=ended["revision"]) == ended
    assert not web.feeds


def test_a_poll_in_which_nothing_happens_answers_what_there_is(web: Web) -> None:
    job_id = web.start()
    seen = poll(web, job_id)

    assert poll(web, job_id, since=seen["revision"], waitMs=20) == seen


def test_many_polls_are_one_subscription_and_a_client_that_goes_frees_its_place(
    web: Web, shop: Tenure
) -> None:
    job_id = web.start()
    seen = poll(web, job_id)["revision"]
    lines = [socket.create_connection(("127.0.0.1", web.port)) for _ in range(5)]
    for line in lines:
        path = f"/background-tasks/{job_id}?waitMs=60000&since={seen}"
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    wait_until(lambda: sum(feed.watchers for feed in web.feeds.values()) == 5)
    wait_until(lambda: subscriptions(shop) == 1)

    for line in lines:
        line.close()

    wait_until(lambda: not web.feeds)
    wait_until(lambda: subscriptions(shop) == 0)


def test_open_polls_do_not_hold_up_a_stop(web: Web) -> None:
    job_id = web.start()
    seen = poll(web, job_id)
    answers: list[dict[str, Any]] = []
    waiting = threading.Thread(
        target=lambda: answers.append(poll(web, job_id, since=seen["revision"], waitMs=60_000))
    )
    waiting.start()
    wait_until(lambda: any(feed.watchers for feed in web.feeds.values()))

    web.api.state.hub.close()
    waiting.join(60)

    assert answers == [seen]


@pytest.mark.parametrize("query", ["waitMs=60001", "waitMs=-1", "waitMs=soon", "since=x", "wait=5"])
def test_a_poll_that_cannot_be_meant_is_refused(web: Web, query: str) -> None:
    answer = httpx.get(f"{web.url}/background-tasks/{web.start()}?{query}")

    assert (answer.status_code, answer.json()["code"]) == (400, "BAD_INPUT")
