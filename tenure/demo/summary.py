"""What happened, read back from the API and compared with the file."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from .client import Client
from .shop import read_rows


def summarize(client: Client, task: dict[str, Any], source: Path, target: Path) -> bool:
    """Print the summary; True when every row of the file is in the table exactly once."""
    job = client.get(f"/jobs/{task['id']}")
    print(f"4. The task is {job['status']}; its attempts:")
    for attempt in job["attemptList"]:
        how = attempt["status"] + (f" ({attempt['cause']})" if attempt["cause"] else "")
        print(f"    attempt {attempt['number']}: {how:<20} fence {attempt['fence']}  {attempt['worker']}")
    print("5. The cron job demo.heartbeat, every ten seconds; each planned instant has one record:")
    for fire in reversed(client.fires("demo.heartbeat")):
        print(f"    {fire['fireTime']}  {fire['outcome']:<8} {fire['lagMs']:>5} ms late  job {fire['jobId']}")
    return _compare(source, target)


def _compare(source: Path, target: Path) -> bool:
    wanted = list(read_rows(str(source)))
    with sqlite3.connect(target) as db:
        found = db.execute("SELECT number, data, fence FROM rows ORDER BY number").fetchall()
    fences = sorted({fence for _, _, fence in found})
    same = [json.loads(data) for _, data, _ in found] == wanted and [row[0] for row in found] == list(
        range(len(wanted))
    )
    print(
        f"6. {source.name} has {len(wanted)} rows, the table has {len(found)}, under {len(fences)} rising fences:"
    )
    print("    every row is there exactly once" if same else "    THE ROWS DIFFER")
    return same
