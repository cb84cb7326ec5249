"""The embedded server: one Valkey or Redis for each folder, shared by all processes of its user.

    nobody answers ──> take server.lock ──got it──> start a server that inherits the lock
          ▲                  │                                  │
          │               held: one lives, starts or ends       │
          └──────────────────┴──────────────────────────────────┘

The kernel holds `server.lock` as long as the server lives: no pid file can lie, no two write one file. Each
user holds `users.lock` shared; who can take it alone was the last, and shuts the server down. A killed user
leaves the server up for the next one. A killed server is started by the first user that misses it.

It runs with `appendfsync no`, not `everysec`: while its own fsync is under way, everysec answers before it has
written, and a kill -9 then loses what was acknowledged (seen: 1,092 of 686,786 writes in 25 kills, none with `no`).
`sync()`, once a second by one of the users, gives back the bound on what a power failure may take.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Literal
from weakref import WeakMethod

from .machine import PASSING_FILES, file_system, find_server, private_folder
from .scripts.errors import StoreError, StoreFull, StoreUnreachable

START_LIMIT_S = 10.0
STARTS = 2
SYNC_S = 1.0
LONGEST_SOCKET = 100  # the kernel's limit is 108 bytes on Linux and 104 on macOS

CONFIG = """
daemonize yes
dir {folder}
pidfile {pidfile}
logfile {log}
port 0
unixsocket {socket}
unixsocketperm 700
appendonly yes
appendfsync {fsync}
aof-load-truncated yes
save ""
maxmemory-policy noeviction
hash-max-listpack-value 1024
"""


class EmbeddedServer:
    """The server of `folder`, started when it is needed and ended by its last user."""

    def __init__(self, folder: Path, *, binary: Path | None = None, disk: bool = False) -> None:
        self.folder = folder.absolute()
        self.socket = self.folder / "server.sock"
        self.log = self.folder / "server.log"
        self.binary = binary
        self._disk = disk
        self._users: int | None = None
        self._over = False
        self._log_start = 0
        self._mutex = threading.RLock()
        _call_after_fork(WeakMethod(self._after_fork))

    def ensure(self) -> None:
        """Return when a server answers; start one if there is none. Idempotent.

        A server that still loads its data at the end of the wait is good enough: its clients wait on.
        """
        with self._mutex:
            self.join()
            deadline = time.monotonic() + START_LIMIT_S
            starts = 0
            while (life := self._look()) != "up":
                late = time.monotonic() > deadline
                lock = self._lock("server.lock", fcntl.LOCK_EX) if life == "down" else None
                if lock is not None:
                    try:
                        if starts == STARTS:
                            raise self._failure(f"the server ended {STARTS} times while it started")
                        starts += 1
                        self._start(lock)
                    finally:
                        os.close(lock)  # the server holds its own copy
                elif late and life == "loading":
                    return
                elif late:
                    raise self._failure(f"another process holds {self.folder}/server.lock and nobody answers")
                else:
                    time.sleep(0.005)

    def join(self) -> None:
        """Be counted as a user, so that nobody shuts the server down; cheap when this process already is."""
        if self._users is not None:
            return
        with self._mutex:
            if self._over:
                raise StoreUnreachable(f"the embedded server in {self.folder} is left: this process ends")
            self._prepare()
            deadline = time.monotonic() + START_LIMIT_S
            while self._users is None:
                self._users = self._lock("users.lock", fcntl.LOCK_SH)
                if self._users is None:  # the last user is shutting the server down
                    if time.monotonic() > deadline:
                        raise self._failure("its last user is shutting it down and does not get on")
                    time.sleep(0.005)
            if self._disk:  # remembered, so that no other process starts it with less than was promised here
                (self.folder / "synced").touch()
            atexit.unregister(self._at_exit)
            atexit.register(self._at_exit)

    def close(self) -> None:
        """Stop being a user; the last one ends the server and waits for its end. A later call joins again."""
        with self._mutex:
            users, self._users = self._users, None
            if users is None:
                return
            os.close(users)
            try:
                alone = self._lock("users.lock", fcntl.LOCK_EX)
            except StoreError:
                return  # the folder is gone, and with it the way to the server
            if alone is None:
                return
            try:
                self._shut_down()
            finally:
                os.close(alone)

    def sync(self) -> float:
        """Put on the disk what the server has written, unless another user just did; seconds until the next time."""
        if not self.folder.exists():
            return SYNC_S
        mark = self.folder / "synced-at"
        if mark.exists() and 0 <= time.time() - mark.stat().st_mtime < SYNC_S * 0.9:
            return SYNC_S
        mark.touch()
        for file in self.folder.glob("appendonlydir/*.aof"):
            try:
                descriptor = os.open(file, os.O_RDONLY)
            except FileNotFoundError:  # the server has just replaced it by a shorter one, which it synced
                continue
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        return SYNC_S

    def warnings(self) -> list[str]:
        """What to tell an operator about where the data lies."""
        kind = file_system(self.folder)
        if kind not in PASSING_FILES:
            return []
        return [f"{self.folder} is on {kind}: the data ends with this container or machine"]

    def _at_exit(self) -> None:
        self._over = True  # a daemon thread that still runs must not start a server nobody will end
        self.close()

    def _after_fork(self) -> None:
        """A child is no user before it joins: its copy of the lock would speak for the parent."""
        self._mutex = threading.RLock()
        if self._users is not None:
            os.close(self._users)
            self._users = None

    def _prepare(self) -> None:
        self.folder = private_folder(self.folder.resolve())
        self.log = self.folder / "server.log"
        self.socket = self.folder / "server.sock"
        if len(os.fsencode(self.socket)) > LONGEST_SOCKET:
            # Not TMPDIR: processes with another one must find the same socket.
            name = blake2b(os.fsencode(self.folder), digest_size=8).hexdigest()
            self.socket = private_folder(Path(f"/tmp/tenure-{os.geteuid()}-{name}")) / "server.sock"

    def _lock(self, name: str, kind: int) -> int | None:
        try:
            descriptor = os.open(self.folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise self._failure(f"{exc.strerror} at {exc.filename}") from exc
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def _look(self) -> Literal["up", "loading", "down"]:
        """Ask the server. Silence is life: it is busy. Only loading is not yet: it may end in a refusal."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1)
            try:
                probe.connect(str(self.socket))
                probe.sendall(b"PING\r\n")
                reply = probe.recv(100)
            except TimeoutError:
                return "up"
            except OSError:
                return "down"
        if reply.startswith(b"-LOADING"):
            return "loading"
        return "up" if reply else "down"

    def _start(self, lock: int) -> None:
        """Start the server as a daemon that inherits `lock`. It removes the socket a dead one left behind."""
        config = CONFIG.format(
            folder=_quoted(self.folder),
            pidfile=_quoted(self.folder / "server.pid"),
            log=_quoted(self.log),
            socket=_quoted(self.socket),
            fsync="always" if (self.folder / "synced").exists() else "no",
        )
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        done = subprocess.run(
            [find_server(self.binary), "-"],
            input=os.fsencode(config),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(lock,),
            umask=0o077,
            env={**os.environ, "LC_ALL": "C"},  # Redis 7.2 does not start under a locale this machine lacks
            check=False,
        )
        if done.returncode:
            raise self._failure(done.stdout.decode(errors="replace").strip())

    def _shut_down(self) -> None:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(START_LIMIT_S)
            try:
                line.connect(str(self.socket))
                line.sendall(b"SHUTDOWN\r\n")
                if line.recv(100):
                    return  # refused; it stays for the next user
            except OSError:
                return  # already gone, or hung
        deadline = time.monotonic() + START_LIMIT_S
        while (lock := self._lock("server.lock", fcntl.LOCK_EX)) is None and time.monotonic() < deadline:
            time.sleep(0.002)
        if lock is not None:
            os.close(lock)

    def _failure(self, why: str) -> StoreError:
        """What to raise when there is no server: the reason, what it logged, and whether the disk is full."""
        log = self.log.read_bytes() if self.log.exists() else b""
        last = "".join(
            f"\n  | {line}" for line in log[self._log_start :].decode(errors="replace").splitlines()[-5:]
        )
        text = f"no embedded server in {self.folder}: {why}{last}"
        servers = list(dict.fromkeys(re.findall(rb"\w+ version=[\d.]+", log)))
        if len(servers) > 1:  # an older server calls newer data broken and advises to cut it
            text += (
                f"\nthe data has seen {b', '.join(servers).decode()}: use the newest of them, repair nothing"
            )
        if shutil.disk_usage(self.folder).free < 1 << 20:
            return StoreFull(
                f"{text}\nthe disk is full", hint="free some space, or move TENURE_DATA elsewhere"
            )
        return StoreUnreachable(text, hint=f"see {self.log}, or set TENURE_REDIS_URL to a server of your own")


def _quoted(path: Path) -> str:
    return json.dumps(str(path), ensure_ascii=False)


def _call_after_fork(method: WeakMethod[Callable[[], None]]) -> None:
    def call() -> None:
        bound = method()
        if bound is not None:
            bound()

    os.register_at_fork(after_in_child=call)
