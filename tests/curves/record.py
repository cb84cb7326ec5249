"""Record how chunked tasks get on: `python -m tests.curves.record NAME...` runs each task of `tasks.py` (all, without
a name) on a real worker and keeps (working ms, done) at each commit in `tests/data/curves/NAME.txt`.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from itertools import count
from pathlib import Path
from random import Random

from sqlalchemy import create_engine, text

from tenure.app import Tenure
from tenure.lease.jobs import JobView
from tenure.lease.ledger import NewJob
from tenure.lease.payload import pack_args
from tenure.settings import Settings
from tenure.testing import servers

from .. import postgres
from ..worker_process import WorkerProcess, end_all, start_worker
from .tasks import app as tasks

FOLDER = Path(__file__).parent.parent / "data" / "curves"


def main(names: list[str]) -> None:
    binaries = postgres.find_binaries()
    assert binaries is not None, "there is no PostgreSQL on this machine"
    with tempfile.TemporaryDirectory() as held, postgres.server(binaries) as url:
        folder = Path(held)
        server = servers.start("redis", folder)
        assert server.url
        try:
            for name in names:
                curve = record(name, server.url, url, folder)
                _keep(name, curve)
                print(f"{name}: {len(curve)} commits in {curve[-1][0] / 1000:.1f} s", flush=True)
        finally:
            server.close()


def record(name: str, redis_url: str, url: str, folder: Path) -> list[tuple[int, int]]:
    """Run the task to its end; (working ms, done) at each commit."""
    namespace = f"curve-{name.replace(chr(46), chr(45))}"
    ledger = Tenure(Settings(redis_url=redis_url, namespace=namespace)).ledger()
    if name == "stalled.lock":
        with create_engine(url).begin() as connection:
            connection.execute(text("CREATE TABLE busy (number bigint)"))
    env = {
        "TENURE_REDIS_URL": redis_url,
        "TENURE_NAMESPACE": namespace,
        "TENURE_APP": "tests.curves.tasks:app",
        "TENURE_LEASE_MS": "1000",
        "TENURE_RENEW_MS": "250",
    }
    crew = _Crew(folder, env)
    fields = {"background": "1", "max_lost": "1000"}
    job = ledger.enqueue(NewJob(name, pack_args([f"{url}#{folder}/{name}"], {}), fields=fields)).id
    curve: dict[int, int] = {}
    trouble = _TROUBLES.get(name, _none)(crew, url, lambda: ledger.get(job).worker or "")
    try:
        while True:
            view = ledger.get(job)
            _take(view, curve)
            if view.ended:
                assert view.status == "succeeded", view.attempts[-1].error
                return [(ms, done) for done, ms in sorted(curve.items())]
            next(trouble)
            time.sleep(0.02)
    finally:
        trouble.close()
        end_all(list(crew.workers.values()))


def _take(view: JobView, curve: dict[int, int]) -> None:
    if view.progress:
        curve.update((done, ms) for ms, done in view.progress.samples)


class _Crew:
    """The workers of one task: a second one stands by."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self._folder, self._env = folder, env
        self._numbers = count()
        self.workers: dict[str, WorkerProcess] = {}
        for _ in range(2):
            self.begin()

    def begin(self) -> None:
        name = f"{self._env['TENURE_NAMESPACE']}-{next(self._numbers)}"
        self.workers[name] = start_worker(self._folder, self._env, slots=1, name=name)


def _none(crew: _Crew, url: str, holder: Callable[[], str]) -> Generator[None, None, None]:
    while True:
        yield


def _wait(seconds: float) -> Generator[None, None, None]:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        yield


def _kill(crew: _Crew, url: str, holder: Callable[[], str]) -> Generator[None, None, None]:
    random = Random(1)
    while True:
        yield from _wait(random.uniform(3, 9))
        if worker := crew.workers.pop(holder(), None):
            worker.kill()
            crew.begin()


def _freeze(crew: _Crew, url: str, holder: Callable[[], str]) -> Generator[None, None, None]:
    random = Random(2)
    while True:
        yield from _wait(random.uniform(1, 3))
        worker = crew.workers[holder() or next(iter(crew.workers))]
        pids = [worker.pid, *worker.family()]
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            yield from _wait(random.uniform(0.5, 2.5))
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)


def _lock(crew: _Crew, url: str, holder: Callable[[], str]) -> Generator[None, None, None]:
    random = Random(3)
    while True:
        yield from _wait(random.uniform(1, 3))
        with create_engine(url).begin() as connection:
            connection.execute(text("LOCK TABLE busy"))
            yield from _wait(random.uniform(0.5, 2))


_TROUBLES = {"restarted.killed": _kill, "restarted.frozen": _freeze, "stalled.lock": _lock}


def _keep(name: str, curve: list[tuple[int, int]]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.txt").write_text("".join(f"{ms} {done}\n" for ms, done in curve))


if __name__ == "__main__":
    main(sys.argv[1:] or sorted(task.key for task in tasks.registry))
