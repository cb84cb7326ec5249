"""An import as a user writes one: a chunk is one transaction, which shows its fence before it writes a row."""

from __future__ import annotations

import time

from sqlalchemy import Engine, create_engine, text

from tenure import Continue, Ctx, Done, Retry, Tenure
from tenure.scripts.errors import LeaseLost

app = Tenure()
engines: dict[str, Engine] = {}

PATIENCE = {"options": "-c idle_in_transaction_session_timeout=1000"}
"""A process that is frozen in its transaction holds what it has locked: only the database can end that."""
TABLES = """
DROP TABLE IF EXISTS import, rows;
CREATE TABLE import (id text PRIMARY KEY, fence bigint NOT NULL);
CREATE TABLE rows (number bigint PRIMARY KEY, fence bigint NOT NULL);
"""
CLAIM = text("""
INSERT INTO import VALUES (:id, :fence)
ON CONFLICT (id) DO UPDATE SET fence = excluded.fence WHERE import.fence <= excluded.fence
""")
ROWS = text("""
INSERT INTO rows SELECT number, :fence FROM generate_series(CAST(:first AS bigint), CAST(:last AS bigint)) AS number
ON CONFLICT DO NOTHING
""")


@app.background("import.rows", timeout="1m", retry=Retry(3, delay="10ms"))
def rows(ctx: Ctx, url: str, total: int, chunk: int, rest_s: float) -> Continue | Done[int]:
    """Rows 1 to `total`, `chunk` of them at a time, each time after a rest."""
    time.sleep(rest_s)
    engine = engines.setdefault(url, create_engine(url, connect_args=PATIENCE))
    after = ctx.cursor.get("after", 0)
    last = min(total, after + chunk)
    with engine.begin() as connection:
        if not connection.execute(CLAIM, {"id": ctx.job_id, "fence": ctx.fence}).rowcount:
            raise LeaseLost("a later holder has written")
        connection.execute(ROWS, {"fence": ctx.fence, "first": after + 1, "last": last})
    return Done(last) if last == total else Continue({"after": last}, done=last, total=total)
