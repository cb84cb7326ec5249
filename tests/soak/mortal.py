"""Schedulers that are killed: a process that starts one after the other and ends each with -9.

Every second one kills itself before or after a call, which is then exactly there; the others are killed from outside,
wherever they are.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from tenure.lease.ledgers import Ledgers
from tenure.plain_client import PlainClient
from tenure.scheduler.scheduler import Scheduler
from tenure.scripts import Scripts
from tenure.scripts.loader import library

ROOT = Path(__file__).parent.parent.parent
MOST_CALLS = 40
LONGEST_LIFE_S = 0.1


def start(**given: Any) -> subprocess.Popen[bytes]:
    """Start such a process; it ends by itself after so many `deaths`."""
    return subprocess.Popen([sys.executable, "-m", "tests.soak.mortal", json.dumps(given)], cwd=ROOT)


class _KillsItself:
    """Ends this process before or after its `nth` call."""

    def __init__(self, nth: int, *, before: bool) -> None:
        self._left = {True: nth if before else -1, False: -1 if before else nth}

    def before(self, _script: str) -> None:
        self._count(before=True)

    def after(self, _script: str) -> None:
        self._count(before=False)

    def _count(self, *, before: bool) -> None:
        self._left[before] -= 1
        if self._left[before] == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def main(url: str, namespace: str, seed: int, deaths: int) -> None:
    library()  # read once, for all of them
    random = Random(seed)
    for nth in range(deaths):
        from_outside = random.random() < 0.5
        kills = _KillsItself(
            0 if from_outside else random.randint(1, MOST_CALLS), before=random.random() < 0.5
        )
        child = os.fork()
        if child == 0:
            live(url, namespace, f"{seed}-{nth}", kills)
        if from_outside:
            time.sleep(random.random() * LONGEST_LIFE_S)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def live(url: str, namespace: str, name: str, kills: _KillsItself) -> None:
    """Be a scheduler for as long as it lasts."""
    try:
        clients: Any = PlainClient
        ledgers = Ledgers(Scripts(clients.from_url(url, protocol=2), faults=kills), namespace)
        scheduler = Scheduler(ledgers, name)
        for _ in count():
            time.sleep(min(0.01, scheduler.round()))
    finally:
        os._exit(1)


if __name__ == "__main__":
    arguments: Sequence[str] = sys.argv
    main(**json.loads(arguments[1]))
