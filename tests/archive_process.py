"""An archiver as a process of its own, which kills itself with -9 at a step."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from tenure import Settings, Tenure
from tenure.archive import Archive, Archiver, Spool
from tenure.lease.ledgers import Ledgers
from tenure.scripts import Scripts

from . import kills

READING = ["before books_since", "after book_read", "after ended_read", "after read"]
WRITING = ["before insert", "before commit", "after commit"]
FORGETTING = ["before delete", "after delete"]


def start(**where: Any) -> subprocess.Popen[bytes]:
    return kills.start("tests.archive_process", **where)


class _Kills(kills.Kills):
    """Reached by its databases too."""

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
    killer = _Kills(step, nth)
    app = Tenure(Settings(redis_url=redis_url, namespace=namespace))
    ledgers = Ledgers(Scripts(app.redis(), faults=killer), namespace)
    archive, folder = Archive.at(url), Spool(Path(spool))
    killer.watch(archive.engine)
    killer.watch(folder.engine)
    archiver = Archiver(ledgers, archive, folder)
    while archiver.round() == 0.0:
        pass
    if step != "never":
        sys.exit(f"the step {step!r} was not reached")


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
