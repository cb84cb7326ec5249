"""The demo's application, as a user would write one: a cron job, and an import that a menu button starts.

tenure worker tenure.demo.shop:app
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from .. import Continue, Ctx, Done, Tenure
from .pace import Pace
from .source import delimiter
from .table import Table

SHORTEST_SLEEP_S = 0.01
BOM = b"\xef\xbb\xbf"

app = Tenure()


@app.cron("demo.heartbeat", "0/10 * * * * ?")
def heartbeat(ctx: Ctx) -> str:
    """Every ten seconds. `fire_time` is the planned instant, however late the worker is."""
    assert ctx.fire_time is not None
    return f"planned for {ctx.fire_time:%H:%M:%S}"


@app.background("demo.import", startable=True, unit="rows")
def import_rows(ctx: Ctx, source: str, target: str) -> Continue | Done[int]:
    """Copy the rows of a CSV file into an SQLite table, one transaction a chunk.

    The cursor says where the next row begins, so a chunk that was lost is done again, and the table takes each row
    once. The fence goes along with every write, so a worker that was thought dead and wakes up can change nothing.
    """
    row_number, offset = ctx.cursor.get("row", 0), ctx.cursor.get("offset", 0)
    if not ctx.cursor:
        ctx.stage("counting")
    total = ctx.cursor.get("total") or count_rows(source)
    ctx.stage("importing")
    pace = Pace.of(total)
    owed = 0.0
    with Table(Path(target), fence=ctx.fence) as table:
        for row, end in islice(read_rows(source, offset), pace.chunk):
            table.put(row_number, row)
            row_number, offset = row_number + 1, end
            owed += pace.pause_s
            if owed >= SHORTEST_SLEEP_S:
                time.sleep(owed)
                owed = 0.0
                ctx.report(doing=row_number, total=total)
    if row_number >= total:
        return Done(row_number)
    return Continue(
        {"row": row_number, "offset": offset, "total": total},
        done=row_number,
        total=total,
        message=f"row {row_number} of {total}",
    )


def read_rows(source: str, offset: int = 0) -> Iterator[tuple[list[str], int]]:
    """Each row of a CSV file that begins at the byte `offset` or later, and where it ends; blank lines are none."""
    path = Path(source)
    with path.open("rb") as file:
        file.seek(offset or (len(BOM) if file.read(len(BOM)) == BOM else 0))
        lines = (line.decode() for line in iter(file.readline, b""))
        for row in csv.reader(lines, delimiter=delimiter(path)):
            if row:
                yield row, file.tell()


def count_rows(source: str) -> int:
    return sum(1 for _ in read_rows(source))
