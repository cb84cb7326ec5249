"""An import into PostgreSQL while its workers are killed, stopped and frozen: each row is there once, and what is shown
of it is true.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from tenure.lease.eta import remaining
from tenure.lease.jobs import JobView
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.payload import pack_args
from tenure.testing import wait_until

from ..test_worker import Shop, env, shop
from ..worker_process import WorkerProcess, end_all, start_worker
from .importer import TABLES
from .size import samples

__all__ = ["env", "shop"]
ROWS = samples(50_000, 1_000_000)
CHUNK = 500
TROUBLES = samples(6, 60)


@pytest.fixture
def imports(postgresql: str) -> str:
    """The URL of a database with the import's tables, empty."""
    with create_engine(postgresql).begin() as connection:
        connection.execute(text(TABLES))
    return postgresql


@dataclass
class Watch:
    """Looks at an import and keeps what it was told, one look for each commit."""

    ledger: Ledger
    job: str
    seen: list[JobView] = field(default_factory=list[JobView])

    def look(self) -> JobView:
        view = self.ledger.get(self.job)
        if not self.seen or _done(view) != _done(self.seen[-1]) or view.ended:
            self.seen.append(view)
        return view

    def moved(self, rows: int) -> JobView | None:
        """The import, when it has come so far or to its end."""
        view = self.look()
        return view if view.ended or _done(view) >= rows else None

    def falls(self) -> list[tuple[int, int]]:
        """Where the progress shown went back."""
        done = [_done(view) for view in self.seen]
        return [(before, after) for before, after in pairwise(done) if after < before]

    def lies(self) -> list[bool]:
        """Of each time that was shown: whether the end came later or earlier than its range, by more than the range."""
        (finished,) = {view.finished_at for view in self.seen if view.finished_at is not None}
        found: list[bool] = []
        for view in self.seen:
            eta = remaining(view)
            if eta is not None:
                low, high = view.read_at + eta.low_ms, view.read_at + eta.high_ms
                found.append(not low - (high - low) <= finished <= high + (high - low))
        return found


class Crew:
    """Three workers, to which things happen: mostly to the one that holds the import."""

    def __init__(self, start: Callable[[str], WorkerProcess], chance: random.Random) -> None:
        self._start = start
        self._chance = chance
        self._names = (f"w{nth}" for nth in count())
        self.workers: dict[str, WorkerProcess] = {}
        for _ in range(3):
            self._begin()

    def trouble(self, watch: Watch) -> None:
        """One is killed, stopped, or frozen until the others have taken over."""
        holder = watch.look().worker
        held = holder in self.workers and self._chance.random() < 0.8
        name = holder if holder and held else self._chance.choice([*self.workers])
        what = self._chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
        if what is signal.SIGSTOP:
            self._freeze(self.workers[name], watch)
            return
        worker = self.workers.pop(name)
        if what is signal.SIGKILL:
            worker.kill()
        else:
            assert worker.stop() in (0, -signal.SIGTERM), "the second: it had not yet begun"
        self._begin()

    def _begin(self) -> None:
        name = next(self._names)
        self.workers[name] = self._start(name)

    def _freeze(self, worker: WorkerProcess, watch: Watch) -> None:
        frozen = [worker.pid, *worker.family()]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        far = _done(watch.look()) + CHUNK
        try:
            wait_until(lambda: watch.moved(far), "the others to go on")
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)


def _done(view: JobView) -> int:
    return (view.progress and view.progress.done) or 0


def test_each_row_is_there_once_whatever_becomes_of_the_workers(
    env: dict[str, str], shop: Shop, imports: str, tmp_path: Path
) -> None:
    args = pack_args([imports, ROWS, CHUNK], {})
    many = {"background": "1", "max_lost": "1000000"}
    job = shop.ledger.enqueue(NewJob("import.rows", args, fields=many)).id
    watch = Watch(shop.ledger, job)

    more = {"TENURE_APP": "tests.soak.importer:app", "TENURE_LEASE_MS": "1000", "TENURE_RENEW_MS": "250"}

    crew = Crew(lambda name: start_worker(tmp_path, {**env, **more}, slots=1, name=name), random.Random(11))
    try:
        for nth in range(1, TROUBLES + 1):
            wait_until(lambda nth=nth: watch.moved(ROWS * nth // (TROUBLES + 2)), "the import to move")
            crew.trouble(watch)
        end = wait_until(lambda: view if (view := watch.look()).ended else None, "the end of the import", 120)
    finally:
        end_all(crew.workers.values())

    assert end.status == "succeeded", [(one.status, one.cause, one.error) for one in end.attempts]
    with create_engine(imports).begin() as connection:
        found = connection.execute(text("SELECT count(*), min(number), max(number) FROM rows")).one()
    assert tuple(found) == (ROWS, 1, ROWS)
    assert watch.falls() == []
    print(
        f"{len(watch.seen)} looks, {len(end.attempts)} attempts, {sum(watch.lies())} of {len(watch.lies())} lies"
    )
