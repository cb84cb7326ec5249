"""The store's clients and the check at the start, against real servers with everything wrong with them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from redis import Redis, RedisCluster
from redis import exceptions as redis_errors

from tenure import connection, plain_client
from tenure.connection import BoundedRetry, Store, check, connect
from tenure.machine import find_server
from tenure.scripts.errors import (
    BadInput,
    DurabilityUnavailable,
    StoreError,
    StoreEvicts,
    StoreFull,
    StoreReadOnly,
    StoreRefused,
    StoreTooOld,
    StoreUnreachable,
)
from tenure.scripts.store_errors import store_error
from tenure.settings import Settings
from tenure.testing import wait_until

Start = Callable[..., "Server"]
Words = tuple[str | int, ...]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Server:
    """A server of one test on a loopback port, with the options given."""

    def __init__(self, folder: Path, options: dict[str, str]) -> None:
        folder.mkdir(exist_ok=True)
        self.port = free_port()
        options = {"port": str(self.port), "bind": "127.0.0.1", "dir": str(folder), "save": "", **options}
        self.args = [word for name, value in options.items() for word in (f"--{name}", value)]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self) -> None:
        binary = os.environ.get("TENURE_SERVER") or shutil.which("redis-server") or str(find_server())
        self.process = subprocess.Popen([binary, *self.args], stdout=subprocess.DEVNULL)
        wait_until(self.listens)

    def listens(self) -> bool:
        with socket.socket() as line:
            return line.connect_ex(("127.0.0.1", self.port)) == 0

    def raw(self, *words: str) -> Any:
        redis: Any = Redis
        client = redis.from_url(self.url)
        try:
            return client.execute_command(*words)
        finally:
            client.close()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Server] = []

    def one(**options: str) -> Server:
        names = {name.replace("_", "-"): value for name, value in options.items()}
        started.append(Server(tmp_path / f"server{len(started)}", names))
        return started[-1]

    yield one
    for server in started:
        server.stop()


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Store]:
    store = connect(Settings(data=tmp_path / "data"))
    yield store
    store.close()


def ask(store: Store, *words: str | int) -> Any:
    client: Any = store.redis
    return client.execute_command(*words)


CALLS: list[Words] = [("GET", "job"), ("FCALL", "get", 1, "job")]
IDS = ["command", "script"]
LIBRARY = """#!lua name=tests
redis.register_function('get', function(keys) return redis.call('GET', keys[1]) end)
redis.register_function('echo', function(_, args) return args[1] end)"""


def store_one(store: Store) -> None:
    """What `CALLS` read, each in its way."""
    ask(store, "FUNCTION LOAD", "REPLACE", LIBRARY)
    ask(store, "SET", "job", "1")


def kill_embedded(store: Store) -> None:
    assert store.server is not None
    os.kill(int((store.server.folder / "server.pid").read_text()), signal.SIGKILL)


def test_the_embedded_store_gives_bytes_and_reaches_process(embedded: Store) -> None:
    ask(embedded, "SET", "job", "1")

    assert ask(embedded, "GET", "job") == b"1"
    assert embedded.facts.durability == "process"
    assert (embedded.facts.declared, embedded.facts.cluster) == (False, False)
    assert "embedded server in" in embedded.address


def test_an_embedded_store_asked_for_disk_syncs_each_answer(tmp_path: Path, embedded: Store) -> None:
    asks = connect(replace(embedded.settings, durability="disk"))

    assert asks.facts.durability == "disk"
    assert embedded.check().durability == "disk"

    asks.close()


@pytest.mark.parametrize("call", CALLS, ids=IDS)
def test_a_killed_embedded_server_is_started_by_the_next_call(embedded: Store, call: Words) -> None:
    store_one(embedded)

    kill_embedded(embedded)

    assert ask(embedded, *call) == b"1"


def test_a_pipeline_outlives_the_server_too(embedded: Store) -> None:
    client: Any = embedded.redis
    pipeline = client.pipeline(transaction=False)
    ask(embedded, "PING")
    for number in range(100):
        pipeline.set(f"job:{number}", number)

    kill_embedded(embedded)

    assert pipeline.execute() == [True] * 100


def test_a_waiting_client_hears_of_the_death_and_can_go_on(embedded: Store) -> None:
    blocking: Any = embedded.blocking
    heard: list[Any] = []

    def wait() -> None:
        while not (heard and isinstance(heard[-1], list | tuple)):
            try:
                heard.append(blocking.blpop("wake", 30))
            except redis_errors.ConnectionError as exc:
                heard.append(exc)

    waiter = threading.Thread(target=wait)
    waiter.start()
    wait_until(lambda: b"cmd=blpop" in ask(embedded, "CLIENT", "LIST"))
    kill_embedded(embedded)
    wait_until(lambda: b"cmd=blpop" in ask(embedded, "CLIENT", "LIST"))
    ask(embedded, "RPUSH", "wake", "up")
    waiter.join(10)

    assert isinstance(heard[0], redis_errors.ConnectionError)
    assert list(heard[-1]) == [b"wake", b"up"]


def test_a_forked_child_uses_the_store_and_does_not_end_it(embedded: Store) -> None:
    ask(embedded, "SET", "job", "1")

    child = os.fork()
    if child == 0:
        fine = ask(embedded, "INCR", "job") == 2
        embedded.close()
        os._exit(0 if fine else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ask(embedded, "GET", "job") == b"2"


def test_threads_share_a_store(embedded: Store) -> None:
    def count() -> None:
        for _ in range(200):
            ask(embedded, "INCR", "n")

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ask(embedded, "GET", "n") == b"1600"


# -- calls of scripts, which are read without redis-py's pool around them ---------------------------------------------


class Interrupted(BaseException):
    pass


@pytest.fixture
def interrupt() -> Iterator[Callable[[], None]]:
    """`interrupt()`: what the test's thread waits for soon is interrupted, as by ctrl-C."""

    def handle(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, handle)
    yield lambda: cast(None, signal.setitimer(signal.ITIMER_REAL, 0.05))
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def echo(store: Store, word: str) -> Any:
    return ask(store, "FCALL", "echo", 0, word)


def test_calls_sent_together_are_answered_in_their_order_with_errors_among_them(embedded: Store) -> None:
    store_one(embedded)
    client: Any = embedded.redis
    calls: list[Words] = [("FCALL", "echo", 0, f"word {number}") for number in range(500)]
    calls[250] = ("FCALL", "nothing", 0)

    kill_embedded(embedded)
    replies = client.ask_all(calls)

    assert "Function not found" in str(replies[250])
    replies[250] = b"word 250"
    assert replies == [f"word {number}".encode() for number in range(500)]
    assert echo(embedded, "next") == b"next"


def test_calls_are_under_way_while_others_are_asked_and_answered(embedded: Store) -> None:
    store_one(embedded)
    client: Any = embedded.redis

    first = client.begin([("FCALL", "echo", 0, "one"), ("FCALL", "nothing", 0)])
    second = client.begin([("FCALL", "echo", 0, "two")])

    assert echo(embedded, "three") == b"three"
    assert second.replies() == [b"two"]
    one, unknown = first.replies()
    assert one == b"one"
    assert "Function not found" in str(unknown)


def test_calls_that_were_under_way_when_the_server_died_are_sent_again(embedded: Store) -> None:
    store_one(embedded)
    client: Any = embedded.redis
    echo(embedded, "zero")
    begun = client.begin([("FCALL", "echo", 0, "one")])

    kill_embedded(embedded)
    sent_to_nobody = client.begin([("FCALL", "echo", 0, "two")])

    assert [begun.replies(), sent_to_nobody.replies()] == [[b"one"], [b"two"]]


def test_calls_that_are_dropped_leave_no_reply_to_the_next(embedded: Store) -> None:
    store_one(embedded)
    client: Any = embedded.redis

    for _ in range(plain_client.SPARE + 1):
        client.begin([("FCALL", "echo", 0, "one")]).drop()

    assert [echo(embedded, word) for word in ("two", "three")] == [b"two", b"three"]


def test_a_call_that_is_interrupted_while_it_waits_leaves_no_reply_to_the_next(
    embedded: Store, interrupt: Callable[[], None]
) -> None:
    store_one(embedded)
    echo(embedded, "zero")
    ask(embedded, "CLIENT", "PAUSE", 60_000, "WRITE")

    interrupt()
    with pytest.raises(Interrupted):
        echo(embedded, "one")
    ask(embedded, "CLIENT", "UNPAUSE")

    assert [echo(embedded, word) for word in ("two", "three")] == [b"two", b"three"]


def test_nor_does_one_that_is_interrupted_before_it_waits(
    embedded: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send_only(connection: Any, command: Words) -> None:
        connection.send_packed_command(connection.pack_command(*command))
        raise Interrupted

    store_one(embedded)
    with monkeypatch.context() as broken:
        broken.setattr(plain_client, "_ask", send_only)
        with pytest.raises(Interrupted):
            echo(embedded, "one")

    assert [echo(embedded, word) for word in ("two", "three")] == [b"two", b"three"]


def test_a_refused_call_keeps_its_connection(start: Start) -> None:
    server = start()
    store = connect(Settings(redis_url=server.url))
    for _ in range(3):
        with pytest.raises(redis_errors.ResponseError, match="Function not found"):
            ask(store, "FCALL", "missing", 0)

    assert server.raw("CLIENT", "LIST").count(b"cmd=fcall") == 1
    store.close()


def test_a_fork_and_its_parent_hear_their_own_answers(embedded: Store) -> None:
    store_one(embedded)

    def all_mine(name: str) -> bool:
        return all(echo(embedded, f"{name}{n}") == f"{name}{n}".encode() for n in range(300))

    assert all_mine("before")
    child = os.fork()
    if child == 0:
        os._exit(0 if all_mine("child") else 1)

    assert all_mine("parent")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_hear_their_own_answers_and_leave_connections_to_pipelines(start: Start) -> None:
    server = start()
    most = plain_client.SPARE + 2
    store = connect(Settings(redis_url=f"{server.url}?max_connections={most}"))
    store_one(store)
    heard: list[bool] = []

    def listen(name: str) -> None:
        heard.extend(echo(store, f"{name}-{n}") == f"{name}-{n}".encode() for n in range(100))

    threads = [threading.Thread(target=listen, args=(str(n),)) for n in range(most)]
    server.raw("CLIENT", "PAUSE", "60000", "WRITE")
    for thread in threads:
        thread.start()
    wait_until(lambda: server.raw("CLIENT", "LIST").count(b"cmd=fcall") == most)
    server.raw("CLIENT", "UNPAUSE")
    for thread in threads:
        thread.join()

    assert heard == [True] * 100 * most
    assert store.redis.pipeline(transaction=False).get("job").execute() == [b"1"]
    store.close()


@pytest.mark.parametrize(
    ("options", "durability", "warns"),
    [
        ({"appendonly": "no", "appendfsync": "no"}, "memory", ["memory only"]),
        ({"appendonly": "yes", "appendfsync": "everysec"}, "process", ["up to 2 s"]),
        ({"appendonly": "yes", "appendfsync": "no"}, "process", []),
        ({"appendonly": "yes", "appendfsync": "always"}, "disk", []),
    ],
)
def test_what_a_server_reaches_is_seen(
    start: Start, options: dict[str, str], durability: str, warns: list[str]
) -> None:
    store = connect(Settings(redis_url=start(**options).url))

    assert store.facts.durability == durability
    assert len(store.facts.warnings) == len(warns)
    assert all(words in text for words, text in zip(warns, store.facts.warnings, strict=True))
    store.close()


@pytest.mark.parametrize(
    ("options", "asked"),
    [({"appendonly": "no"}, "process"), ({"appendonly": "yes"}, "disk")],
)
def test_more_durability_than_there_is_is_refused(start: Start, options: dict[str, str], asked: Any) -> None:
    server = start(**options)

    with pytest.raises(DurabilityUnavailable, match=asked) as refused:
        connect(Settings(redis_url=server.url, durability=asked))

    assert "appendonly yes" in refused.value.hint


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_a_server_that_evicts_is_refused(start: Start, policy: str) -> None:
    server = start(maxmemory_policy=policy)

    with pytest.raises(StoreEvicts, match=policy):
        connect(Settings(redis_url=server.url))


def test_a_full_server_is_refused(start: Start) -> None:
    server = start(maxmemory="1")

    with pytest.raises(StoreFull, match="maxmemory"):
        connect(Settings(redis_url=server.url))


def test_a_replica_is_refused_and_its_primary_named(start: Start) -> None:
    primary = start()
    replica = start(replicaof=f"127.0.0.1 {primary.port}")

    with pytest.raises(StoreReadOnly, match=f"replica of 127.0.0.1:{primary.port}"):
        connect(Settings(redis_url=replica.url))


def test_a_primary_that_misses_its_replicas_is_refused(start: Start) -> None:
    server = start(min_replicas_to_write="1")

    with pytest.raises(StoreReadOnly, match="too few replicas"):
        connect(Settings(redis_url=server.url))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_server_with_a_full_disk_is_refused(start: Start, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], check=False).returncode:
        pytest.skip("no right to mount")
    try:
        server = start(dir=str(disk), appendonly="yes")
        for number in range(100):
            try:
                server.raw("SET", f"job:{number}", "x" * 10_000)
            except redis_errors.ResponseError:
                break

        with pytest.raises(StoreFull, match="cannot write to its disk"):
            connect(Settings(redis_url=server.url))
        server.stop()
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_password_is_asked_for_and_never_shown(start: Start) -> None:
    server = start(requirepass="s3cret")

    with pytest.raises(StoreRefused, match="password"):
        connect(Settings(redis_url=server.url))
    with pytest.raises(StoreRefused) as refused:
        connect(Settings(redis_url=f"redis://:wr0ng@127.0.0.1:{server.port}/0"))
    store = connect(Settings(redis_url=f"redis://:s3cret@127.0.0.1:{server.port}/0"))

    assert "wr0ng" not in f"{refused.value} {refused.value.hint}"
    assert "s3cret" not in store.address
    store.close()


def test_a_user_without_rights_is_told_so(start: Start) -> None:
    server = start()
    server.raw("ACL", "SETUSER", "ann", "on", ">pw", "~*", "&*", "-@all", "+ping", "+client")

    with pytest.raises(StoreRefused, match="forbids"):
        connect(Settings(redis_url=f"redis://ann:pw@127.0.0.1:{server.port}/0"))


def test_where_the_configuration_is_hidden_the_operators_word_counts(start: Start) -> None:
    server = start()
    server.raw("ACL", "SETUSER", "ann", "on", ">pw", "~*", "&*", "+@all", "-config")
    url = f"redis://ann:pw@127.0.0.1:{server.port}/0"

    silent = connect(Settings(redis_url=url))
    told = connect(Settings(redis_url=url, durability="disk"))

    assert (silent.facts.durability, silent.facts.declared) == ("memory", True)
    assert (told.facts.durability, told.facts.declared) == ("disk", True)
    assert "your word" in told.facts.warnings[0]
    silent.close()
    told.close()


def test_an_old_server_is_refused() -> None:
    with FakeServer({"redis_version": "6.2.14"}) as old, pytest.raises(StoreTooOld, match=r"6\.2\.14"):
        connect(Settings(redis_url=old.url))


def test_nobody_at_the_address_is_told_at_once() -> None:
    began = time.monotonic()

    with pytest.raises(StoreUnreachable, match=r"127\.0\.0\.1:1.*cannot be reached"):
        connect(Settings(redis_url="redis://:s3cret@127.0.0.1:1/0"))

    assert time.monotonic() - began < 1


@pytest.mark.parametrize(
    ("url", "error", "says"),
    [
        ("redis://host.invalid:6379/0", StoreUnreachable, "cannot be reached"),
        ("unix:///nowhere/redis.sock", StoreUnreachable, "cannot be reached"),
        ("redis://127.0.0.1:6379/0?colour=red", BadInput, "colour"),
        ("redis://127.0.0.1:6379/0?socket_timeout=soon", BadInput, "socket_timeout"),
    ],
)
def test_a_wrong_url_says_what_is_wrong(url: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        connect(Settings(redis_url=url))


def test_a_database_that_does_not_exist_is_named(start: Start) -> None:
    server = start(databases="1")

    with pytest.raises(StoreRefused, match="no such database"):
        connect(Settings(redis_url=server.url.replace("/0", "/5")))


def test_tls_where_there_is_none_is_named(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ANSWER_LIMIT_S", 0.3)
    server = start()

    with pytest.raises(StoreUnreachable) as refused:
        connect(Settings(redis_url=server.url.replace("redis:", "rediss:")))

    assert "TLS" in refused.value.hint


def test_a_unix_socket_works(start: Start, tmp_path: Path) -> None:
    start(unixsocket=str(tmp_path / "redis.sock"))

    store = connect(Settings(redis_url=f"unix://{tmp_path}/redis.sock"))

    assert ask(store, "PING") in (b"PONG", True)
    store.close()


def test_a_server_in_cluster_mode_gets_a_cluster_client(start: Start) -> None:
    server = start(cluster_enabled="yes", cluster_port=str(free_port()))
    server.raw("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
    wait_until(lambda: server.raw("CLUSTER INFO")["cluster_state"] == "ok")

    store = connect(Settings(redis_url=server.url))

    assert store.facts.cluster
    assert isinstance(store.redis, RedisCluster)
    assert ask(store, "SET", "{a}job", "1") in (True, b"OK")
    store.close()


@pytest.mark.parametrize("call", CALLS, ids=IDS)
def test_a_store_that_comes_back_within_the_patience_is_waited_for(start: Start, call: Words) -> None:
    server = start(appendonly="yes")
    store = connect(Settings(redis_url=server.url))
    store_one(store)
    assert ask(store, *call) == b"1"
    server.stop()
    back = threading.Timer(0.5, server.start)
    back.start()

    try:
        assert ask(store, *call) == b"1"
    finally:
        back.join()
        store.close()


@pytest.mark.parametrize("call", CALLS, ids=IDS)
def test_patience_ends(start: Start, call: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "RETRY_LIMIT_S", 0.3)
    server = start()
    store = connect(Settings(redis_url=server.url))
    ask(store, "PING")
    server.stop()
    began = time.monotonic()

    with pytest.raises(redis_errors.ConnectionError):
        ask(store, *call)

    assert 0.2 < time.monotonic() - began < 2
    store.close()


@pytest.mark.parametrize("call", CALLS, ids=IDS)
def test_a_server_that_hangs_costs_one_time_out(
    start: Start, call: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "RETRY_LIMIT_S", 0.3)
    monkeypatch.setattr(connection, "ANSWER_LIMIT_S", 0.5)
    server = start()
    store = connect(Settings(redis_url=server.url))
    ask(store, "PING")
    server.process.send_signal(signal.SIGSTOP)

    with pytest.raises(redis_errors.TimeoutError) as late:
        ask(store, *call)

    assert isinstance(store_error(late.value, store.address), StoreUnreachable)
    store.close()


def test_a_look_at_a_server_that_hangs_is_short(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CHECK_LIMIT_S", 0.3)
    server = start()
    store = connect(Settings(redis_url=server.url))
    server.process.send_signal(signal.SIGSTOP)
    began = time.monotonic()

    with pytest.raises(StoreUnreachable):
        store.check()

    assert time.monotonic() - began < connection.ANSWER_LIMIT_S / 2
    store.close()


def test_a_look_does_not_wait_for_a_server_that_loads_its_data() -> None:
    with FakeServer({"redis_version": "7.2.4", "loading": "1"}) as loading:
        redis: Any = Redis
        probe = redis.from_url(loading.url, protocol=2)

        with pytest.raises(StoreUnreachable, match="loading"):
            check(probe, Settings(redis_url=loading.url), loading_s=0.0)
        probe.close()


def test_an_answer_that_passes_by_is_waited_for_and_a_refusal_is_not() -> None:
    calls: list[Exception | None] = [
        redis_errors.BusyLoadingError("x"),
        redis_errors.ReadOnlyError("x"),
        None,
    ]
    dropped: list[Exception] = []

    def call() -> str:
        problem = calls.pop(0)
        if problem:
            raise problem
        return "done"

    assert BoundedRetry(5).call_with_retry(call, dropped.append) == "done"
    assert len(dropped) == 2

    calls[:] = [redis_errors.AuthenticationError("x"), None]
    with pytest.raises(redis_errors.AuthenticationError):
        BoundedRetry(5).call_with_retry(call, dropped.append)


@pytest.mark.parametrize(
    ("raised", "becomes", "says"),
    [
        (
            redis_errors.ResponseError("NOREPLICAS Not enough good replicas"),
            StoreReadOnly,
            "too few replicas",
        ),
        (redis_errors.ResponseError("MISCONF Errors writing to the AOF"), StoreFull, "disk"),
        (redis_errors.ResponseError("BUSY Redis is busy running a script"), StoreUnreachable, "script"),
        (redis_errors.ResponseError("unknown command 'FCALL'"), StoreTooOld, "FCALL"),
        (redis_errors.OutOfMemoryError("command not allowed"), StoreFull, "maxmemory"),
        (redis_errors.BusyLoadingError("Redis is loading"), StoreUnreachable, "loading"),
        (redis_errors.NoPermissionError("no permissions"), StoreRefused, "forbids"),
        (redis_errors.RedisClusterException("cannot be connected"), StoreUnreachable, "cluster"),
        (redis_errors.ResponseError("WRONGTYPE Operation"), StoreError, "WRONGTYPE"),
        (ConnectionResetError(104, "reset"), StoreUnreachable, "reset"),
    ],
)
def test_each_complaint_of_redis_py_becomes_an_error_of_ours(
    raised: Exception, becomes: type[StoreError], says: str
) -> None:
    error = store_error(raised, "redis://:s3cret@host:1/0")

    assert type(error) is becomes
    assert says in str(error)
    assert "redis://***@host:1/0" in str(error)
    assert error.hint


class FakeServer:
    """Answers every INFO with the facts given and the rest with OK: for versions no machine still has."""

    def __init__(self, info: dict[str, str]) -> None:
        text = "".join(f"{name}:{value}\r\n" for name, value in info.items()).encode()
        self._info = b"$%d\r\n%s\r\n" % (len(text), text)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        line, _ = self._listener.accept()
        with line:
            while data := line.recv(4096):
                line.sendall(
                    self._info if b"INFO" in data.split(b"\r\n")[2:3] else b"+OK\r\n" * data.count(b"*")
                )

    def __enter__(self) -> FakeServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self._thread.join(5)
