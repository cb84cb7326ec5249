"""Whoever writes business rows, as a process of its own that kills itself with -9 at a step."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

from sqlalchemy import MetaData, Table, create_engine, event

from tenure import Settings, Tenure
from tenure.lease import bindings
from tenure.lease.bindings import Binder
from tenure.lease.ledgers import Ledgers
from tenure.rows import BoundRow
from tenure.scripts import Scripts

from . import kills

STEPS = [
    "before bindings_take",
    "after bindings_take",
    "before update",
    "before commit",
    "before bindings_done",
    "after bindings_done",
]


def start(**where: Any) -> subprocess.Popen[bytes]:
    return kills.start("tests.binder_process", **where)


def main(redis_url: str, namespace: str, database: str, table: str, step: str) -> None:
    bindings.HOLD_MS = 300
    killer = kills.Kills(step)
    app = Tenure(Settings(redis_url=redis_url, namespace=namespace))
    engine = create_engine(database)
    target = BoundRow(
        engine,
        Table(table, MetaData(), autoload_with=engine),
        key="id",
        status="import_status",
        task_id="import_task",
        clock="import_clock",
    )

    @event.listens_for(engine, "before_cursor_execute")
    def _(_db: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        killer.reach(f"before {statement.split()[0].lower()}")

    @event.listens_for(engine, "commit")
    def _(_db: Any) -> None:
        killer.reach("before commit")

    app.binding("orders", target, may=lambda user, record: True)
    binder = Binder(
        Ledgers(Scripts(app.redis(), faults=killer), namespace), app.bindings.writers, app.registry
    )
    for _ in range(200):
        time.sleep(binder.round())
    sys.exit(f"the step {step!r} was not reached")


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
