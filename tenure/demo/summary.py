"""What happened, read back from the API and compared with the file."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import zip_longest
from pathlib import Path
from typing import Any

from .client import Client
from .source import delimiter
from .words import count


def summarize(client: Client, task: dict[str, Any], source: Path, target: Path) -> bool:
    """Print the summary; True when every row of the file is in the table exactly once."""
    job = client.get(f"/jobs/{task['id']}")
    print(f"4. The task is {job['status']}; its attempts:")
    for attempt in job["attemptList"]:
        how = attempt["status"] + (f" ({attempt['cause']})" if attempt["cause"] else "")
        print(f"    attempt {attempt['number']}: {how:<20} fence {attempt['fence']}  {attempt['worker']}")
        if attempt["error"]:
            print(f"        {attempt['error']['message'].splitlines()[0]}")
    print("5. The cron job demo.heartbeat, every ten seconds; each planned instant has one record:")
    for fire in reversed(client.fires("demo.heartbeat")):
        print(f"    {fire['fireTime']}  {fire['outcome']:<8} {fire['lagMs']:>5} ms late  job {fire['jobId']}")
    return bool(job["status"] == "succeeded") and _compare(source, target)


def _compare(source: Path, target: Path) -> bool:
    with closing(sqlite3.connect(target)) as table:
        held = table.execute("SELECT count(*), count(DISTINCT fence) FROM rows").fetchone()
        rows, fault = compare(read_again(source), table)
    under = f", under {count(held[1], 'rising fence')}" if held[1] else ""
    print(f"6. {source.name} has {count(rows, 'row')}, the table has {held[0]:,}{under}:")
    whole = "every row is there exactly once" if rows else "there was nothing to import, and nothing is there"
    print(f"    THE ROWS DIFFER: {fault}" if fault else f"    {whole}")
    return not fault


def read_again(source: Path) -> Iterator[list[str]]:
    """The rows as Python's csv module reads the whole file, without the code that imported it."""
    with source.open(encoding="utf-8-sig", newline="") as text:
        yield from (row for row in csv.reader(text, delimiter=delimiter(source)) if row)


def compare(wanted: Iterator[list[str]], table: sqlite3.Connection) -> tuple[int, str]:
    """How many rows were wanted, and the first difference of the table; empty if there is none."""
    rows, fault, highest = 0, "", 0
    found = table.execute("SELECT number, data, fence FROM rows ORDER BY number")
    for number, (row, kept) in enumerate(zip_longest(wanted, found)):
        rows += row is not None
        if fault:
            continue
        if kept is None or row is None or kept[0] != number:
            fault = f"row {number:,} {'has nothing in the file' if row is None else 'is not in the table'}"
        elif json.loads(kept[1]) != row:
            fault = f"row {number:,} is {row!r:.80} in the file and {kept[1]:.80} in the table"
        elif kept[2] < highest:
            fault = f"row {number:,} was written under fence {kept[2]}, after {highest}"
        else:
            highest = kept[2]
    return rows, fault
