"""The demo's application, as a user would write one: a cron job, and an import that a menu button starts.

tenure worker tenure.demo.shop:app
"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from .. import Continue, Ctx, Done, Tenure
from .table import Table

CHUNK = 20
PAUSE_S = float(
    os.environ.get("DEMO_PAUSE", "0.03")
)  # as if each row asked a slow service, so that one can watch

app = Tenure()


@app.cron("demo.heartbeat", "0/10 * * * * ?")
def heartbeat(ctx: Ctx) -> str:
    """Every ten seconds. `fire_time` is the planned instant, however late the worker is."""
    assert ctx.fire_time is not None
    return f"planned for {ctx.fire_time:%H:%M:%S}"


@app.background("demo.import", startable=True)
def import_rows(ctx: Ctx, source: str, target: str) -> Continue | Done[int]:
    """Copy the rows of a CSV file into an SQLite table, one transaction a chunk.

    The cursor is the number of the next row, so a chunk that was lost is done again, and the table takes each row once.
    The fence goes along with every write, so a worker that was thought dead and wakes up can change nothing.
    """
    start = ctx.cursor.get("row", 0)
    total = ctx.cursor.get("total") or count_rows(source)
    rows = list(islice(read_rows(source), start, start + CHUNK))
    with Table(Path(target), fence=ctx.fence) as table:
        for at, row in enumerate(rows, start=start):
            table.put(at, row)
            time.sleep(PAUSE_S)
            ctx.report(doing=at + 1, total=total)
    end = start + len(rows)
    if end >= total:
        return Done(end)
    return Continue({"row": end, "total": total}, done=end, total=total, message=f"row {end} of {total}")


def read_rows(source: str) -> Iterator[list[str]]:
    """Rows of a comma- or tab-separated file; the zone table's comment lines are left out."""
    with Path(source).open(encoding="utf-8", newline="") as lines:
        delimiter = "\t" if source.endswith((".tab", ".tsv")) else ","
        yield from csv.reader((line for line in lines if not line.startswith("#")), delimiter=delimiter)


def count_rows(source: str) -> int:
    return sum(1 for _ in read_rows(source))
