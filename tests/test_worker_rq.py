"""RQ's own tools run a worker, see it and command it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from rq.command import send_kill_horse_command, send_stop_job_command
from rq.job import Job as RqJob
from rq.suspension import resume, suspend
from rq.worker import BaseWorker

from tenure.app import Tenure
from tenure.testing import wait_until

from .test_worker import Shop, Start, env, first_line, lines, note, shop, worker
from .worker_process import WorkerProcess, start

__all__ = ["env", "note", "shop", "worker"]  # fixtures

KIND = "tenure.workers.LedgerWorker"
Command = Callable[..., WorkerProcess]


@pytest.fixture
def rq(env: dict[str, str], tmp_path: Path) -> Iterator[Command]:
    """The command line of RQ, on the test's server with one slot."""
    started: list[WorkerProcess] = []

    def run(command: str, *options: str) -> WorkerProcess:
        url = env["TENURE_REDIS_URL"]
        words = [sys.executable, "-m", "rq.cli", command, "-u", url, "-w", KIND, *options]
        started.append(start(tmp_path, {**env, "TENURE_SLOTS": "1"}, *words))
        return started[-1]

    yield run
    for one in started:
        with suppress(ProcessLookupError):
            os.killpg(one.pid, signal.SIGKILL)  # a pool's workers outlive it
        one.process.wait(60)


@pytest.fixture
def redis(app: Tenure) -> Iterator[Redis]:
    redis = app.rq_redis()
    yield redis
    resume(redis)
    redis.close()


def state(redis: Redis, name: str) -> str | None:
    """What RQ's register says of a worker."""
    every: list[Any] = BaseWorker.all(connection=redis)
    return next((one.get_state() for one in every if one.name == name), None)


def test_rq_worker_runs_it_rq_info_sees_it_and_stop_job_cancels(
    rq: Command, redis: Redis, shop: Shop, note: Path
) -> None:
    process = rq("worker", "--name", "w-7", "advance", "outbound")
    assert shop.ended(shop.make("echo", 5)).status == "succeeded"
    job = shop.make("nap", str(note), 600)
    first_line(note)

    def seen() -> str:
        info = rq("info")
        assert info.process.wait(60) == 0, info.said()
        return info.said() if "busy" in info.said() and "1 finished" in info.said() else ""

    assert "w-7" in wait_until(seen, "the worker in `rq info`")

    wait_until(lambda: RqJob.exists(job, connection=redis), "the job in RQ's register")

    send_stop_job_command(redis, job)

    assert shop.ended(job).status == "canceled"
    assert process.stop() == 0, process.said()


def test_rq_worker_runs_a_lane_that_the_settings_name(
    env: dict[str, str], tmp_path: Path, shop: Shop, note: Path
) -> None:
    jobs = [shop.make("meets", str(note), 5, pool="mail") for _ in range(5)]
    words = [sys.executable, "-m", "rq.cli", "worker", "-u", env["TENURE_REDIS_URL"], "-w", KIND, "mail"]

    process = start(tmp_path, {**env, "TENURE_SLOTS": "1", "TENURE_LANES": "mail=async(5)"}, *words)

    try:
        assert [shop.ended(job).status for job in jobs] == ["succeeded"] * 5
        assert process.stop() == 0, process.said()
    finally:
        process.kill()


def test_rq_worker_pool_runs_workers_side_by_side_and_stops_them(rq: Command, shop: Shop, note: Path) -> None:
    jobs = [shop.make("nap", str(note), 600) for _ in range(2)]
    pool = rq("worker-pool", "-n", "2", "advance")
    wait_until(lambda: len(lines(note)) == 2, "both to run")
    assert len({shop.view(job).worker for job in jobs}) == 2

    for job in jobs:
        shop.ledger.cancel(job)
    pool.signal(signal.SIGTERM)

    assert pool.process.wait(60) == 0, pool.said()


def test_kill_horse_kills_what_runs_and_the_ledger_calls_it_lost(
    worker: Start, redis: Redis, shop: Shop, note: Path
) -> None:
    job = shop.make("nap", str(note), 600, max_lost=1)
    worker(slots=1, name="w-8")
    first_line(note)

    send_kill_horse_command(redis, "w-8")

    attempt = shop.ended(job).attempts[0]
    assert (attempt.cause, attempt.error) == ("killed", "killed on request")


def test_a_suspended_worker_claims_nothing_until_rq_resumes(worker: Start, redis: Redis, shop: Shop) -> None:
    job = shop.make("noop")
    suspend(redis)
    worker(slots=1, name="w-9")
    wait_until(lambda: state(redis, "w-9") == "suspended", "the worker to show that it is suspended")
    later = shop.make("noop")
    assert [shop.view(one).status for one in (job, later)] == ["pending", "pending"]

    resume(redis)

    assert [shop.ended(one).status for one in (job, later)] == ["succeeded", "succeeded"]


@pytest.mark.parametrize(
    ("queue", "app", "says", "next_"),
    [
        ("advance", "", "error BAD_INPUT: no application was named", "set TENURE_APP=module:app"),
        ("advance", "nosuch:app", "error BAD_INPUT: there is no module 'nosuch'", "PYTHONPATH"),
        ("advance", "broken:app", "cannot be imported: ZeroDivisionError: division by zero", "repair that"),
        ("BAD QUEUE", "worker_shop:app", "error BAD_INPUT: pool 'BAD QUEUE' is not a pool name", "'advance'"),
    ],
)
def test_a_mistake_is_told_by_rqs_command_in_two_lines_as_by_ours(
    env: dict[str, str], tmp_path: Path, queue: str, app: str, says: str, next_: str
) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    words = [sys.executable, "-m", "rq.cli", "worker", "-u", env["TENURE_REDIS_URL"], "-w", KIND, queue]
    extra = os.pathsep.join([str(tmp_path), env.get("PYTHONPATH", ""), *sys.path])

    said = subprocess.run(
        words,
        env={**os.environ, **env, "TENURE_APP": app, "PYTHONPATH": extra},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (said.returncode, said.stdout) == (2, "")
    first, second = said.stderr.strip().splitlines()
    assert says in first
    assert next_ in second.partition("  next: ")[2]


def test_max_jobs_is_how_many_a_worker_runs(rq: Command, shop: Shop) -> None:
    jobs = [shop.make("noop") for _ in range(5)]

    process = rq("worker", "--max-jobs", "3", "advance")

    assert process.process.wait(60) == 0, process.said()
    assert sorted(shop.view(job).status for job in jobs) == ["pending"] * 2 + ["succeeded"] * 3
