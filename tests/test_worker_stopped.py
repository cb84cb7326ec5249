"""A fork server that is stopped, by a debugger or an operator, takes no orders: what must end ends all the same."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tenure.app import Tenure
from tenure.testing import Server, wait_until

from .test_worker import HINTED_S, Shop, first_line
from .worker_process import WorkerProcess, alive, end_all, start_worker


@pytest.fixture
def worker(
    tenure_server: Server, tenure_namespace: str, tmp_path: Path
) -> Iterator[Callable[[], WorkerProcess]]:
    """Starts a worker of one slot."""
    if tenure_server.url is None or tenure_server.kind == "cluster":
        pytest.skip("RQ's worker class needs a plain server")
    env = {"TENURE_REDIS_URL": tenure_server.url, "TENURE_NAMESPACE": tenure_namespace}
    started: list[WorkerProcess] = []

    def begin() -> WorkerProcess:
        started.append(start_worker(tmp_path, env, slots=1, grace_ms=300))
        return started[-1]

    yield begin
    end_all(started)


@pytest.fixture
def shop(app: Tenure) -> Shop:
    return Shop(app.ledger())


@pytest.fixture
def stopped() -> Iterator[Callable[[int], None]]:
    """Stops processes, until the end of the test."""
    pids: list[int] = []

    def stop(pid: int) -> None:
        pids.append(pid)
        os.kill(pid, signal.SIGSTOP)

    yield stop
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_a_canceled_job_is_ended_though_the_fork_server_is_stopped(
    worker: Callable[[], WorkerProcess], shop: Shop, tmp_path: Path, stopped: Callable[[int], None]
) -> None:
    note = tmp_path / "note"
    job = shop.make("holds.gil", str(note), timeout=600_000)
    process = worker()
    pid = int(first_line(note)[0])
    fork_server = process.family()[0]
    stopped(fork_server)

    shop.ledger.cancel(job)

    wait_until(lambda: not alive(pid), "the end of the slot", seconds=HINTED_S)
    wait_until(lambda: "the fork server does not answer" in process.said(), "the warning")
    os.kill(fork_server, signal.SIGCONT)
    shop.ended(shop.make("noop"))


def test_a_job_out_of_time_is_told_to_the_ledger_though_the_fork_server_is_stopped(
    worker: Callable[[], WorkerProcess], shop: Shop, tmp_path: Path, stopped: Callable[[int], None]
) -> None:
    note = tmp_path / "note"
    job = shop.make("swallows", str(note), timeout=1_000, max_attempts=1)
    process = worker()
    first_line(note)
    stopped(process.family()[0])

    view = shop.ended(job)

    assert [attempt.cause for attempt in view.attempts] == ["timeout"]
    assert str(view.attempts[0].error).startswith("killed:")
