"""A relay as a process of its own, which kills itself with -9 at a step, or is killed from outside."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from sqlalchemy import MetaData, create_engine, event

from tenure import Settings, Tenure
from tenure.lease.ledgers import Ledgers
from tenure.outbox import Outbox
from tenure.scripts import Scripts

from . import kills

STEPS = [
    "before select",
    "before enqueue",
    "after enqueue",
    "before delete",
    "before commit",
    "after commit",
]


def start(**where: Any) -> subprocess.Popen[bytes]:
    return kills.start("tests.relay_process", **where)


def main(redis_url: str, namespace: str, database: str, table: str, batch: int, step: str = "never") -> None:
    killer = kills.Kills(step)
    app = Tenure(Settings(redis_url=redis_url, namespace=namespace))
    ledgers = Ledgers(Scripts(app.redis(), faults=killer), namespace)
    app.ledgers = lambda: ledgers  # type: ignore[method-assign]
    engine = create_engine(database)

    @event.listens_for(engine, "before_cursor_execute")
    def _(_db: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        killer.reach(f"before {statement.split()[0].lower()}")

    @event.listens_for(engine, "commit")
    def _(_db: Any) -> None:
        killer.reach("before commit")

    relay = Outbox(app, MetaData(), table).relay(engine, batch=batch)
    while True:
        wait_s = relay.round()
        killer.reach("after commit")
        if wait_s and step != "never":
            sys.exit(f"the step {step!r} was not reached")


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
