"""The servers a test process can have: one each, private, gone with the process.

embedded    the server Tenure brings with it (the default)
redis       the redis-server on PATH
cluster     one node in cluster mode that owns all slots: a key outside the slot of a script's key is refused at once
fakeredis   no server: the imitation in this process, for a quick look
redis://…   a server of your own, as TENURE_REDIS_URL takes it; only the tests' own namespaces are touched
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis import Redis, RedisCluster
from redis.exceptions import ConnectionError

from ..embedded import EmbeddedServer
from ..machine import find_server
from ..scripts.errors import MissingExtra, StoreUnreachable
from ..scripts.loader import Client

KINDS = ("embedded", "redis", "cluster", "fakeredis")
START_LIMIT_S = 10.0
SLOTS = 16384


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
        return _private(kind, folder, None)
    if kind == "redis":
        return _private(kind, folder, _redis_server())
    if kind == "cluster":
        return _cluster(folder)
    if kind == "fakeredis":
        return _fake()
    clients: Any = Redis
    redis = clients.from_url(kind, protocol=2)
    return Server("url", kind, redis, redis.close)


def _private(kind: str, folder: Path, binary: Path | None) -> Server:
    server = EmbeddedServer(folder, binary=binary)
    server.ensure()
    redis = Redis(unix_socket_path=str(server.socket), protocol=2)

    def close() -> None:
        redis.close()
        server.close()

    return Server(kind, f"unix://{server.socket}", redis, close)


def _redis_server() -> Path:
    found = shutil.which("redis-server")
    if found is None:
        raise MissingExtra("redis-server is not on PATH", hint="apt-get install redis-server")
    return Path(found)


def _cluster(folder: Path) -> Server:
    """One node that owns every slot. It has no replica and no peer, so it is up as soon as it knows its slots."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    port, bus = _free_ports()
    options = {
        "port": port,
        "cluster-port": bus,
        "bind": "127.0.0.1",
        "cluster-enabled": "yes",
        "save": '""',
        "dir": folder,
        "logfile": folder / "server.log",
    }
    config = "\n".join(f"{name} {value}" for name, value in options.items())
    (folder / "server.conf").write_text(config)
    process = subprocess.Popen([find_server(), folder / "server.conf"])
    plain: Any = Redis(port=port, protocol=2)
    _wait(lambda: bool(plain.ping()), folder)
    plain.cluster("ADDSLOTSRANGE", 0, SLOTS - 1)
    _wait(lambda: plain.cluster("INFO")["cluster_state"] == "ok", folder)
    plain.close()
    redis = RedisCluster(host="127.0.0.1", port=port, protocol=2)

    def close() -> None:
        redis.close()
        process.terminate()
        process.wait()

    return Server("cluster", f"redis://127.0.0.1:{port}", redis, close)


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def _wait(condition: Callable[[], bool], folder: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        try:
            if condition():
                return
        except ConnectionError:
            pass
        time.sleep(0.005)
    raise StoreUnreachable(f"no server came up in {folder}", hint=f"see {folder / 'server.log'}")


def _fake() -> Server:
    try:
        from fakeredis import FakeRedis
    except ImportError:
        raise MissingExtra(
            "the package fakeredis is not installed", hint="pip install 'tenure[testing]'"
        ) from None
    redis = FakeRedis()
    return Server("fakeredis", None, redis, redis.close)
