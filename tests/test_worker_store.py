"""The store goes away and comes back: jobs run on, outcomes are kept, nothing is done twice."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError

from tenure.app import Tenure
from tenure.lease.payload import unpack
from tenure.machine import find_server
from tenure.settings import Settings
from tenure.testing import wait_until

from .test_worker import Shop, first_line, lines
from .worker_process import start_worker


class OwnServer:
    """A server that a test may kill."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "own.sock"
        self._folder = folder
        self.start()

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def start(self) -> None:
        binary = find_server(None)
        options = f"--port 0 --unixsocket {self.socket} --appendonly yes --dir {self._folder} --save".split()
        with (self._folder / "server.log").open("ab") as out:
            self.process = subprocess.Popen([str(binary), *options, ""], stdout=out, stderr=out)
        wait_until(self._answers, "the server")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def _answers(self) -> bool:
        try:
            return bool(Redis(unix_socket_path=str(self.socket)).ping())
        except (RedisError, OSError):
            return False


@pytest.fixture
def server(tmp_path: Path) -> Iterator[OwnServer]:
    server = OwnServer(tmp_path)
    yield server
    server.kill()


def test_outcomes_outlive_a_killed_server(server: OwnServer, tmp_path: Path) -> None:
    app = Tenure(Settings(redis_url=server.url))
    shop = Shop(app.ledger())
    note = tmp_path / "note"
    naps = [shop.make("nap", str(note), 0.5) for _ in range(2)]
    quick = [shop.make("echo", at) for at in range(500)]
    worker = start_worker(tmp_path, {"TENURE_REDIS_URL": server.url}, slots=2)
    try:
        wait_until(lambda: len(lines(note)) == 2, "both naps to run")
        server.kill()
        wait_until(lambda: lines(note).count(["woke"]) == 2, "both naps to end without a store")
        server.start()

        for job in naps:
            view = shop.ended(job)
            assert (unpack(view.result), len(view.attempts)) == ("rested", 1)
        for at, job in enumerate(quick):
            view = shop.ended(job)
            assert (unpack(view.result), len(view.attempts)) == (at, 1)
        assert worker.stop() == 0
    finally:
        worker.kill()
        app.close()


def test_a_worker_cut_from_the_store_stops_its_jobs_before_the_lease_ends(
    server: OwnServer, tmp_path: Path
) -> None:
    app = Tenure(Settings(redis_url=server.url))
    shop = Shop(app.ledger())
    note = tmp_path / "note"
    shop.make("checks", str(note))
    times = {"TENURE_REDIS_URL": server.url, "TENURE_LEASE_MS": "1500", "TENURE_RENEW_MS": "300"}
    worker = start_worker(tmp_path, times, slots=1, grace_ms=300)
    try:
        first_line(note)
        os.kill(server.process.pid, signal.SIGSTOP)

        wait_until(lambda: ["LeaseLost"] in lines(note), "the job to hear that its lease is lost")
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
        worker.kill()
        app.close()
