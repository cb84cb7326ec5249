"""An archiver as a process of its own, which kills itself with -9 at a step."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from tenure import Settings, Tenure
from tenure.archive import Archive, Archiver, Spool
from tenure.lease.ledgers import Ledgers
from tenure.scripts import Scripts

ROOT = Path(__file__).parent.parent
READING = ["before books_since", "after book_read", "after ended_read", "after read"]
WRITING = ["before insert", "before commit", "after commit"]
FORGETTING = ["before delete", "after delete"]


def start(**where: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "tests.archive_process", json.dumps(where)], cwd=ROOT)


class _Kills:
    """Reached by script calls and databases: ends this process at its step, the `nth` time."""

    def __init__(self, step: str, nth: int) -> None:
        self.step = step
        self.left = nth

    def before(self, script: str) -> None:
        self.reach(f"before {script}")

    def after(self, script: str) -> None:
        self.reach(f"after {script}")

    def reach(self, step: str) -> None:
        if step == self.step:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, engine: Engine) -> None:
        """Its statements that change something, and their commits."""
        changing: list[str] = []

        @event.listens_for(engine, "before_cursor_execute")
        def _(_db: Any, _cursor: Any, statement: str, *_more: Any) -> None:
            word = statement.split()[0].lower()
            if word in ("insert", "delete"):
                changing.append(word)
                self.reach(f"before {word}")

        @event.listens_for(engine, "commit")
        def _(_db: Any) -> None:
            if changing:
                self.reach("before commit")

        @event.listens_for(engine, "checkin")
        def _(*_: Any) -> None:
            if changing:
                self.reach("after commit" if changing[0] == "insert" else "after delete")
            changing.clear()


def main(redis_url: str, namespace: str, url: str, spool: str, step: str, nth: int = 1) -> None:
    kills = _Kills(step, nth)
    app = Tenure(Settings(redis_url=redis_url, namespace=namespace))
    ledgers = Ledgers(Scripts(app.redis(), faults=kills), namespace)
    archive, folder = Archive.at(url), Spool(Path(spool))
    kills.watch(archive.engine)
    kills.watch(folder.engine)
    archiver = Archiver(ledgers, archive, folder)
    while archiver.round() == 0.0:
        pass
    if step != "never":
        sys.exit(f"the step {step!r} was not reached")


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
