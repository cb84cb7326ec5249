"""Where the demo's import writes: an SQLite table that checks the fence and takes each row once."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from types import TracebackType

from ..scripts.errors import StaleFence

_SCHEMA = """
CREATE TABLE IF NOT EXISTS import (one INTEGER PRIMARY KEY CHECK (one = 1), fence INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS rows (number INTEGER PRIMARY KEY, data TEXT NOT NULL, fence INTEGER NOT NULL);
INSERT OR IGNORE INTO import VALUES (1, 0);
"""


class Table:
    """One transaction under one fence. Leaving the block commits it, or undoes it when the block raised."""

    def __init__(self, path: Path, fence: int) -> None:
        self._path = path
        self._fence = fence

    def __enter__(self) -> Table:
        self._db = sqlite3.connect(self._path, timeout=10, isolation_level=None)
        self._db.executescript(_SCHEMA)
        self._db.execute("BEGIN IMMEDIATE")
        self._claim()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.execute("ROLLBACK" if kind else "COMMIT")
        self._db.close()

    def put(self, number: int, row: list[str]) -> None:
        """Write one row; written before by a chunk whose end got lost, it is the same row."""
        self._db.execute(
            "INSERT INTO rows VALUES (?, ?, ?) ON CONFLICT (number) DO UPDATE SET data = excluded.data",
            (number, json.dumps(row, ensure_ascii=False), self._fence),
        )

    def _claim(self) -> None:
        accepted = self._db.execute(
            "UPDATE import SET fence = ? WHERE fence <= ?", (self._fence, self._fence)
        )
        if accepted.rowcount != 1:
            self._db.execute("ROLLBACK")
            self._db.close()
            raise StaleFence(f"a later holder than fence {self._fence} has written to {self._path.name}")
