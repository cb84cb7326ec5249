"""An import into PostgreSQL while its workers are killed, stopped and frozen: each row is there once, and what is shown
of it is true.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from statistics import median

import pytest
from sqlalchemy import create_engine, text

from tenure.lease.eta import Eta, remaining
from tenure.lease.jobs import JobView
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.payload import pack_args
from tenure.testing import wait_until

from ..test_worker import Shop, env, shop
from ..worker_process import WorkerProcess, end_all, start_worker
from .importer import TABLES
from .size import samples, seeds

__all__ = ["env", "shop"]
ROWS = samples(50_000, 1_000_000)
TROUBLES = samples(6, 60)
CHUNK = 500 if TROUBLES > 20 else 250
REST_S = 0 if TROUBLES > 20 else 0.05
"""A freeze lasts as long as a lease. In a small import, of a second of work, one alone would be longer than all that
was foreseen, and nobody can know of the first. There a chunk rests, so that a freeze is a tenth of the work.
"""


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

    def told(self) -> list[Told]:
        """What was told of the end."""
        (finished,) = {view.finished_at for view in self.seen if view.finished_at is not None}
        shown = ((view, remaining(view)) for view in self.seen)
        return [Told(eta, finished - view.read_at) for view, eta in shown if eta is not None]


@dataclass(frozen=True)
class Told:
    eta: Eta
    truth_ms: int

    @property
    def width_ms(self) -> int:
        return self.eta.high_ms - self.eta.low_ms

    @property
    def within(self) -> bool:
        return self.eta.low_ms <= self.truth_ms <= self.eta.high_ms

    @property
    def lie(self) -> bool:
        """Whether the end came later or earlier than its range, by more than the range."""
        return not self.eta.low_ms - self.width_ms <= self.truth_ms <= self.eta.high_ms + self.width_ms


class Crew:
    """Three workers, to which things happen: mostly to the one that holds the import."""

    def __init__(self, start: Callable[[str], WorkerProcess], chance: random.Random) -> None:
        self._start = start
        self._chance = chance
        self._names = (f"w{nth}" for nth in count())
        self.workers: dict[str, WorkerProcess] = {}
        self.troubles: Counter[str] = Counter()
        for _ in range(3):
            self._begin()

    def trouble(self, watch: Watch) -> None:
        """One is killed, stopped, or frozen until the others have taken over."""
        holder = watch.look().worker
        held = holder in self.workers and self._chance.random() < 0.8
        name = holder if holder and held else self._chance.choice([*self.workers])
        what = self._chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
        self.troubles[f"{what.name} of {'the holder' if name == holder else 'another'}"] += 1
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


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_each_row_is_there_once_and_what_was_told_of_the_end_was_true_whatever_becomes_of_the_workers(
    env: dict[str, str], shop: Shop, imports: str, tmp_path: Path, seed: int
) -> None:
    began = time.monotonic()
    args = pack_args([imports, ROWS, CHUNK, REST_S], {})
    many = {"background": "1", "max_lost": "1000000"}
    job = shop.ledger.enqueue(NewJob("import.rows", args, fields=many)).id
    watch = Watch(shop.ledger, job)

    more = {"TENURE_APP": "tests.soak.importer:app", "TENURE_LEASE_MS": "1000", "TENURE_RENEW_MS": "250"}

    crew = Crew(lambda name: start_worker(tmp_path, {**env, **more}, slots=1, name=name), random.Random(seed))
    try:
        for nth in range(1, TROUBLES + 1):
            wait_until(lambda nth=nth: watch.moved(ROWS * nth // (TROUBLES + 2)), "the import to move")
            crew.trouble(watch)
        end = wait_until(lambda: view if (view := watch.look()).ended else None, "the end of the import", 120)
    finally:
        end_all([*crew.workers.values()])

    assert end
    assert end.status == "succeeded", [(one.status, one.cause, one.error) for one in end.attempts]
    with create_engine(imports).begin() as connection:
        found = connection.execute(text("SELECT count(*), min(number), max(number) FROM rows")).one()
    assert tuple(found) == (ROWS, 1, ROWS)
    assert watch.falls() == []
    told = watch.told()
    print(_figures(told))
    print(f"seed {seed}: {time.monotonic() - began:.0f} s, {ROWS:,} rows, {dict(crew.troubles)}")
    print(
        f"{len(end.attempts)} attempts, {sum(one.chunks for one in end.attempts)} chunks, {len(watch.seen)} looks"
    )
    # Of few troubles, each is the first of its kind and lasts a good part of the work: nobody foresees them.
    if TROUBLES > 20:
        assert [(one, other) for one, other in pairwise(told) if one.lie and other.lie] == []


def _figures(told: list[Told]) -> str:
    width = median(one.width_ms / max(1, one.truth_ms) for one in told)
    within, lies = sum(one.within for one in told), sum(one.lie for one in told)
    return (
        f"{len(told)} times an end was told: {within} within the range, {lies} off by more than the range, "
        f"which was {width:.2f} of what was left (median)"
    )
