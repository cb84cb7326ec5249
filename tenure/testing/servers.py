"""The servers a test process can have: one each, private, gone with the process.

embedded    the server Tenure brings with it (the default)
redis       the redis-server on PATH
cluster     one node in cluster mode that owns all slots: a key outside the slot of a script's key is refused at once
fakeredis   no server: the imitation in this process, for a quick look
redis://…   a server of your own, as TENURE_REDIS_URL takes it; only the tests' own namespaces are touched
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis import RedisCluster
from redis.exceptions import ConnectionError

from ..embedded import LONGEST_SOCKET
from ..machine import find_server
from ..plain_client import PlainClient
from ..scripts.errors import MissingExtra, StoreUnreachable, install
from ..scripts.loader import Client
from ..workers.orphans import die_with_parent

KINDS = ("embedded", "redis", "cluster", "fakeredis")
START_LIMIT_S = 10.0
SLOTS = 16384
LOG = "server.log"


@dataclass(frozen=True)
class Server:
    """A running server. `url` is None when there is none to connect to (fakeredis)."""

    kind: str
    url: str | None
    redis: Client
    close: Callable[[], None]


def start(kind: str, folder: Path) -> Server:
    """Start a server of one of `KINDS` with its files in `folder`, or connect to the one a URL names."""
    if kind == "embedded":
        return _private(kind, folder, find_server())
    if kind == "redis":
        return _private(kind, folder, _redis_server())
    if kind == "cluster":
        return _cluster(folder)
    if kind == "fakeredis":
        return _fake()
    clients: Any = PlainClient
    redis = clients.from_url(kind, protocol=2)
    return Server("url", kind, redis, redis.close)


def _private(kind: str, folder: Path, binary: Path) -> Server:
    """A server on a unix socket, as durable as the embedded one."""
    path = folder / "server.sock"
    if len(os.fsencode(path)) > LONGEST_SOCKET:
        path = Path(tempfile.mkdtemp(prefix="tenure-", dir="/tmp")) / "server.sock"
    options = {"port": 0, "unixsocket": path, "unixsocketperm": 700, "appendonly": "yes"}
    process = _launch(binary, folder, options)
    redis = PlainClient(unix_socket_path=str(path), protocol=2)
    _wait(lambda: _answers(redis), process, folder)
    return Server(kind, f"unix://{path}", redis, lambda: _end(process, redis))


def _redis_server() -> Path:
    found = shutil.which("redis-server")
    if found is None:
        raise MissingExtra("redis-server is not on PATH", hint="apt-get install redis-server")
    return Path(found)


def _cluster(folder: Path) -> Server:
    """One node that owns every slot. It has no replica and no peer, so it is up as soon as it knows its slots."""
    port, bus = _free_ports()
    options = {"port": port, "cluster-port": bus, "bind": "127.0.0.1", "cluster-enabled": "yes"}
    process = _launch(find_server(), folder, options)
    node: Any = PlainClient(port=port, protocol=2)
    _wait(lambda: _answers(node), process, folder)
    node.cluster("ADDSLOTSRANGE", 0, SLOTS - 1)
    _wait(lambda: node.cluster("INFO")["cluster_state"] == "ok", process, folder)
    node.close()
    redis = RedisCluster(host="127.0.0.1", port=port, protocol=2)
    return Server("cluster", f"redis://127.0.0.1:{port}", redis, lambda: _end(process, redis))


def _launch(binary: Path, folder: Path, options: Mapping[str, object]) -> subprocess.Popen[bytes]:
    """Start a server that ends with this process, however that ends."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    common: dict[str, object] = {"dir": folder, "logfile": folder / LOG, "save": '""'}
    config = "\n".join(f"{name} {value}" for name, value in {**common, **options}.items())
    (folder / "server.conf").write_text(config)
    parent = os.getpid()
    return subprocess.Popen(
        [binary, folder / "server.conf"],
        env={**os.environ, "LC_ALL": "C"},
        preexec_fn=lambda: die_with_parent(parent, signal.SIGKILL),
    )


def _end(process: subprocess.Popen[bytes], redis: Client) -> None:
    redis.close()
    process.kill()
    process.wait()


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def _answers(redis: Any) -> bool:
    try:
        return bool(redis.ping())
    except ConnectionError:
        return False


def _wait(condition: Callable[[], bool], process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            raise StoreUnreachable(f"no server came up in {folder}", hint=f"see {folder / LOG}")
        time.sleep(0.005)


def _fake() -> Server:
    try:
        from fakeredis import FakeRedis
    except ImportError:
        raise MissingExtra("the package fakeredis is not installed", hint=install("testing")) from None
    redis = FakeRedis()
    return Server("fakeredis", None, redis, redis.close)
