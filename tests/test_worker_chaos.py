"""Workers, fork servers and slots are killed at random while jobs run: nothing is lost, nothing is accepted twice."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from tenure.testing import wait_until

from .test_worker import Shop, Start, env, lines, note, shop, worker
from .worker_process import alive

__all__ = ["env", "note", "shop", "worker"]  # fixtures

JOBS, KILLS = 400, 8


@pytest.mark.parametrize("pool", ["advance", "io"])
def test_what_is_killed_at_random_loses_nothing(pool: str, worker: Start, shop: Shop, note: Path) -> None:
    """In a lane, too, where one death is that of many; what died with others runs alone then."""
    chance = random.Random(7)
    mark, nap = ("mark", "nap") if pool == "advance" else ("mark.beside", "nap.beside")
    jobs = [shop.make(mark, str(note), pool=pool, max_lost=100) for _ in range(JOBS // 2)]
    jobs += [shop.make(nap, str(note), 0.02, pool=pool, max_lost=100) for _ in range(JOBS // 2)]
    workers = [worker(pool, lease_ms=1_000) for _ in range(2)]

    for kill in range(1, KILLS + 1):
        wait_until(lambda enough=kill * JOBS // 20: len(lines(note)) > enough, "some more jobs to run")
        at = chance.randrange(2)
        victim = chance.choice([workers[at].pid, *workers[at].family()])
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda victim=victim: not alive(victim), "its death")
        if workers[at].process.poll() is not None or not workers[at].family():
            workers[at] = worker(pool, lease_ms=1_000)

    for job in jobs:
        view = shop.ended(job, seconds=30)
        assert view.status == "succeeded"
        assert [attempt.status for attempt in view.attempts].count("succeeded") == 1
        fences = [attempt.fence for attempt in view.attempts]
        assert fences == sorted(set(fences))
