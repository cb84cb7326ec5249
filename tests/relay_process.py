"""A relay as a process of its own, which kills itself with -9 at a step, or is killed from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from sqlalchemy import MetaData, create_engine, event

from tenure import Settings, Tenure
from tenure.lease.ledgers import Ledgers
from tenure.outbox import Outbox
from tenure.scripts import Scripts

ROOT = Path(__file__).parent.parent
STEPS = [
    "before select",
    "before enqueue",
    "after enqueue",
    "before delete",
    "before commit",
    "after commit",
]


def start(**where: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "tests.relay_process", json.dumps(where)], cwd=ROOT)


class _Kills:
    """Reached by the script calls and by the database: ends this process at its step."""

    def __init__(self, step: str) -> None:
        self.step = step

    def before(self, script: str) -> None:
        self.reach(f"before {script}")

    def after(self, script: str) -> None:
        self.reach(f"after {script}")

    def reach(self, step: str) -> None:
        if step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


def main(redis_url: str, namespace: str, database: str, table: str, batch: int, step: str = "never") -> None:
    kills = _Kills(step)
    app = Tenure(Settings(redis_url=redis_url, namespace=namespace))
    ledgers = Ledgers(Scripts(app.redis(), faults=kills), namespace)
    app.ledgers = lambda: ledgers  # type: ignore[method-assign]
    engine = create_engine(database)

    @event.listens_for(engine, "before_cursor_execute")
    def _(_db: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        kills.reach(f"before {statement.split()[0].lower()}")

    @event.listens_for(engine, "commit")
    def _(_db: Any) -> None:
        kills.reach("before commit")

    relay = Outbox(app, MetaData(), table).relay(engine, batch=batch)
    while True:
        wait_s = relay.round()
        kills.reach("after commit")
        if wait_s and step != "never":
            sys.exit(f"the step {step!r} was not reached")


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
