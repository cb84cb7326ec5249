"""A connection that falls silent is noticed, by whoever waits on it and in a bounded time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import TimeoutError

from tenure import Tenure, connection
from tenure.api.hints import Hints, Watched
from tenure.lease import waits
from tenure.lease.leases import Leases
from tenure.lease.ledger import Ledger
from tenure.lease.waits import Subscription, pop
from tenure.scripts.errors import LeaseTaken, StoreUnreachable
from tenure.scripts.keys import wake_channel, watch_channel
from tenure.settings import Settings
from tenure.testing import Server, wait_until
from tenure.workers.hints import Due, Listener, Look

from .line import Line


@pytest.fixture
def line(tenure_server: Server) -> Iterator[Line]:
    if tenure_server.url is None or tenure_server.kind == "cluster":
        pytest.skip("a line leads to one plain server")
    line = Line(tenure_server.url)
    yield line
    line.close()


@pytest.fixture
def far(line: Line, tenure_namespace: str) -> Iterator[Tenure]:
    """An application at the other end of the line."""
    app = Tenure(Settings(redis_url=line.url, namespace=tenure_namespace))
    yield app
    app.close()


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "QUIET_S", 0.1)
    monkeypatch.setattr(waits, "ANSWER_S", 0.2)


def within(seconds: float, do: Callable[[], object]) -> BaseException | None:
    """What it raised; fails when it has not ended by then."""
    raised: list[BaseException | None] = []

    def run() -> None:
        try:
            do()
            raised.append(None)
        except BaseException as exc:
            raised.append(exc)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert raised, f"it still waits after {seconds:g} s"
    return raised[0]


# A pop.


def test_a_pop_gives_up_on_a_server_that_falls_silent(far: Tenure, line: Line, tenure_namespace: str) -> None:
    client, key = far.blocking_redis(), f"{tenure_namespace}:w"
    assert pop(client, key, 0.01) is False
    line.silent = True

    raised = within(5, lambda: pop(client, key, 0.2))

    assert isinstance(raised, TimeoutError)


def test_a_late_answer_is_not_read_as_that_to_another_call(
    far: Tenure, line: Line, app: Tenure, tenure_namespace: str
) -> None:
    client, key = far.blocking_redis(), f"{tenure_namespace}:w"
    pop(client, key, 0.01)
    before = line.connections
    line.silent = True
    within(5, lambda: pop(client, key, 0.2))
    line.silent = False
    other: Any = app.redis()
    other.rpush(key, "up")

    assert pop(client, key, 5) is True
    assert line.connections == before + 1, "the silent connection is used no more"


def test_connecting_to_a_silent_server_is_given_up_too(
    far: Tenure, line: Line, tenure_namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.WAITING, "socket_timeout", 0.3)
    client = far.blocking_redis()  # not connected yet
    line.silent = True

    assert isinstance(within(5, lambda: pop(client, f"{tenure_namespace}:w", 0.1)), TimeoutError)
    assert isinstance(within(5, lambda: Subscription(client, "c")), TimeoutError)


# A lease that is waited for.


def test_who_waits_for_a_lease_hears_that_the_store_does_not_answer(
    far: Tenure, line: Line, app: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "ANSWER_LIMIT_S", 0.5)
    monkeypatch.setattr(connection, "RETRY_LIMIT_S", 0.5)
    waiting = threading.Event()
    real = far.blocking_redis

    def client() -> Any:
        waiting.set()
        return real()

    monkeypatch.setattr(far, "blocking_redis", client)

    def wait() -> None:
        with far.lease("stock", wait="500ms"):
            pass

    with app.lease("stock", ttl="60s"):
        assert isinstance(within(5, wait), LeaseTaken)
        waiting.clear()
        result: list[BaseException | None] = []
        thread = threading.Thread(target=lambda: result.append(within(8, wait)), daemon=True)
        thread.start()
        assert waiting.wait(30)
        line.silent = True
        thread.join(10)

    # the wait, a second, and one call with its time-out
    assert [type(one) for one in result] == [StoreUnreachable]


# Releases.


def test_a_release_that_fails_does_not_replace_what_the_block_raised(
    ledger: Ledger, faults: Any, caplog: pytest.LogCaptureFixture
) -> None:
    faults.lose_reply("lease_release")

    with pytest.raises(ZeroDivisionError), leases(ledger).hold("stock"):
        _ = 1 / 0

    assert "'stock' was not released" in caplog.text


def test_a_release_that_fails_does_not_fail_what_the_block_did(
    ledger: Ledger, faults: Any, caplog: pytest.LogCaptureFixture
) -> None:
    faults.lose_reply("lease_release")

    with leases(ledger).hold("stock"):
        pass

    assert "ends by itself" in caplog.text


def test_a_lease_is_held_though_the_index_could_not_be_told(ledger: Ledger, faults: Any) -> None:
    faults.lose_reply("index_put")

    with leases(ledger).hold("stock") as lease:
        lease.check()


def leases(ledger: Ledger) -> Leases:
    return Leases(ledger.scripts, ledger.keys, ledger.index, lambda: ledger.scripts.redis)


# Subscriptions.


@pytest.mark.usefixtures("_impatient")
def test_a_subscription_that_is_only_quiet_goes_on(far: Tenure, app: Tenure) -> None:
    subscription = Subscription(far.blocking_redis(), "quiet")
    first = subscription.next(30)
    assert first is not None
    assert first["type"] == "subscribe"

    assert subscription.next(1.0) is None, "it asked several times, and was answered"

    publisher: Any = app.redis()
    publisher.publish("quiet", "word")
    message = subscription.next(30)
    assert message is not None
    assert message["data"] == b"word"
    subscription.close()


@pytest.mark.usefixtures("_impatient")
def test_a_subscription_that_falls_silent_is_noticed(far: Tenure, line: Line) -> None:
    subscription = Subscription(far.blocking_redis(), "quiet")
    subscription.next(30)
    line.silent = True

    assert isinstance(within(5, lambda: subscription.next(3600)), TimeoutError)
    subscription.close()


@pytest.mark.usefixtures("_impatient")
def test_what_came_before_we_looked_is_read_before_a_silence_is_believed(far: Tenure, app: Tenure) -> None:
    """A process that was stopped wakes to a time-out that is long past, and to the answer in its socket."""
    subscription = Subscription(far.blocking_redis(), "quiet")
    subscription.next(30)
    time.sleep(0.15)
    assert subscription.next(0) is None, "asked"
    publisher: Any = app.redis()
    publisher.publish("quiet", "word")
    time.sleep(0.3)

    message = subscription.next(0)

    assert message is not None
    assert message["data"] == b"word"
    subscription.close()


@pytest.mark.usefixtures("_impatient")
def test_a_worker_subscribes_again_when_its_subscription_falls_silent(
    far: Tenure, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.workers.hints.retry_after", lambda failures: 0.05)
    channel = wake_channel(far.settings.namespace)
    one = Listener(far.blocking_redis(), channel, frozenset({"advance"}), lambda: None)
    wait_until(lambda: list(one.heard) == [Look()], "the subscription")
    before = line.connections

    line.silent = True
    wait_until(lambda: line.connections > before, "another connection")
    line.silent = False

    wait_until(lambda: list(one.heard) == [Look(), Look()], "the second subscription")
    publish(line, channel, "due advance acme 17")
    wait_until(lambda: one.heard[-1] == Due("advance", "acme", 17), "the hint")
    one.close()


@pytest.mark.usefixtures("_impatient")
def test_the_api_subscribes_again_when_its_subscription_falls_silent(
    far: Tenure, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.lease.loop.retry_after", lambda failures: 0.05)
    heard: list[Watched | None] = []
    hear = heard.append
    hints = Hints(far)
    hints.listen(hear)
    wait_until(lambda: heard == [None], "the subscription")
    before = line.connections

    line.silent = True
    wait_until(lambda: line.connections > before, "another connection")
    line.silent = False

    wait_until(lambda: heard == [None, None], "the second subscription")
    publish(line, watch_channel(far.ledgers().namespace), "acme J1 7")
    wait_until(lambda: heard[-1] == ("acme", "J1"), "the hint")
    hints.leave(hear)


def publish(line: Line, channel: str, text: str) -> None:
    redis: Any = Redis
    client = redis.from_url(line.url)
    client.publish(channel, text)
    client.close()
