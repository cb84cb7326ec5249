"""Chunked work of the kinds that users have, each with a pace of its own, for recording how it gets on."""

from __future__ import annotations

import hashlib
import os
import random
import sqlite3
import time
import uuid
import zlib
from bisect import insort
from math import log2, sqrt
from pathlib import Path

from sqlalchemy import Engine, create_engine, text

from tenure import Continue, Ctx, Done, Retry, Tenure

app = Tenure()
engines: dict[str, Engine] = {}
kept: list[float] = []
TOTAL = 200
"""Chunks in a curve."""


def _next(ctx: Ctx) -> Continue | Done[int]:
    at = ctx.cursor.get("at", 0) + 1
    return Done(at) if at == TOTAL else Continue({"at": at}, done=at, total=TOTAL)


def _at(ctx: Ctx) -> int:
    return int(ctx.cursor.get("at", 0))


def _engine(url: str) -> Engine:
    database = url.partition("#")[0]
    return engines.setdefault(database, create_engine(database))


def _work(rounds: int) -> None:
    for _ in range(rounds):
        hashlib.sha256(b"x" * 100_000).digest()


@app.background("disturbed.hash")
def disturbed_hash(ctx: Ctx, url: str) -> Continue | Done[int]:
    """The same computing in each chunk."""
    _work(400)
    return _next(ctx)


@app.background("steady.insert")
def steady_insert(ctx: Ctx, url: str) -> Continue | Done[int]:
    """Rows into a table that has no index."""
    with _engine(url).begin() as connection:
        connection.execute(text("CREATE TABLE IF NOT EXISTS plain (number bigint, said text)"))
        connection.execute(
            text("INSERT INTO plain SELECT n, repeat('x', 100) FROM generate_series(1, 20000) AS n")
        )
    return _next(ctx)


@app.background("steady.calls")
def steady_calls(ctx: Ctx, url: str) -> Continue | Done[int]:
    """Calls of a service whose answers take now longer, now shorter."""
    time.sleep(random.lognormvariate(-2.9, 0.5))
    return _next(ctx)


@app.background("steady.files")
def steady_files(ctx: Ctx, url: str) -> Continue | Done[int]:
    """Files of very different sizes are packed."""
    zlib.compress(random.randbytes(round(random.lognormvariate(14, 0.8))))
    return _next(ctx)


@app.background("slowing.pages")
def slowing_pages(ctx: Ctx, url: str) -> Continue | Done[int]:
    """Pages of a table by OFFSET: each page reads all pages before it."""
    size = 5_000
    with _engine(url).begin() as connection:
        if not _at(ctx):
            connection.execute(
                text("CREATE TABLE pages AS SELECT n FROM generate_series(1, :many) AS n"),
                {"many": size * TOTAL},
            )
        connection.execute(
            text("SELECT n FROM pages ORDER BY ctid OFFSET :at LIMIT 100"), {"at": _at(ctx) * size}
        ).all()
    return _next(ctx)


@app.background("slowing.compare")
def slowing_compare(ctx: Ctx, url: str) -> Continue | Done[int]:
    """Each item is compared with all before it: no cost at first, and nothing but cost at the end."""
    _work(6 * _at(ctx))
    return _next(ctx)


@app.background("disturbed.scan")
def disturbed_scan(ctx: Ctx, url: str) -> Continue | Done[int]:
    """A steady part, and after each chunk a look at all that was written so far."""
    with _engine(url).begin() as connection:
        connection.execute(text("CREATE TABLE IF NOT EXISTS scanned (number bigint, said text)"))
        connection.execute(
            text("INSERT INTO scanned SELECT n, repeat('x', 50) FROM generate_series(1, 4000) AS n")
        )
        connection.execute(text("SELECT count(*) FROM scanned WHERE said LIKE '%y%'")).all()
    return _next(ctx)


@app.background("settling.index")
def settling_index(ctx: Ctx, url: str) -> Continue | Done[int]:
    """Rows under random keys into an index that outgrows its cache."""
    with sqlite3.connect(url.partition("#")[2]) as connection:
        connection.execute("PRAGMA cache_size = 50")
        connection.execute("CREATE TABLE IF NOT EXISTS found (id text PRIMARY KEY)")
        connection.executemany("INSERT INTO found VALUES (?)", [(str(uuid.uuid4()),) for _ in range(1_000)])
    connection.close()
    return _next(ctx)


@app.background("disturbed.sorted")
def disturbed_sorted(ctx: Ctx, url: str) -> Continue | Done[int]:
    """A list that is kept sorted while it grows."""
    for _ in range(1_500):
        insort(kept, random.random())
    return _next(ctx)


@app.background("slowing.quota")
def slowing_quota(ctx: Ctx, url: str) -> Continue | Done[int]:
    """A service that lets a few through quickly, and then so many a second."""
    time.sleep(0.02 if _at(ctx) < TOTAL // 10 else 0.08)
    return _next(ctx)


@app.background("slowing.pager")
def slowing_pager(ctx: Ctx, url: str) -> Continue | Done[int]:
    """A service that walks over all pages before the one it is asked for."""
    time.sleep((0.06 + 0.24 * _at(ctx) / TOTAL) * random.uniform(0.8, 1.2))
    return _next(ctx)


@app.background("slowing.lookup")
def slowing_lookup(ctx: Ctx, url: str) -> Continue | Done[int]:
    """A service that looks each row up in a tree of what it has."""
    time.sleep(0.012 * log2(2 + 100 * _at(ctx)) * random.uniform(0.8, 1.2))
    return _next(ctx)


@app.background("slowing.merge")
def slowing_merge(ctx: Ctx, url: str) -> Continue | Done[int]:
    """A store that merges what it has more and more often."""
    time.sleep(0.01 * sqrt(1 + _at(ctx)) * random.uniform(0.8, 1.2))
    return _next(ctx)


@app.background("steady.wait")
def steady_wait(ctx: Ctx, url: str) -> Continue | Done[int]:
    """Calls of a service that takes its time."""
    time.sleep(random.uniform(0.04, 0.08))
    return _next(ctx)


@app.background("bursty.flush")
def bursty_flush(ctx: Ctx, url: str) -> Continue | Done[int]:
    """Rows gather in memory, and each tenth chunk writes them out."""
    _work(40)
    if _at(ctx) % 10 == 9:
        with Path(url.partition("#")[2]).open("wb") as out:
            for _ in range(12):
                out.write(random.randbytes(4_000_000))
                out.flush()
                os.fsync(out.fileno())
    return _next(ctx)


@app.background("bursty.batches")
def bursty_batches(ctx: Ctx, url: str) -> Continue | Done[int]:
    """A supplier sends batches of any size, with a silence before each."""
    if random.random() < 0.2:
        time.sleep(random.uniform(0.1, 0.6))
    _work(60)
    return _next(ctx)


@app.background("bursty.cache")
def bursty_cache(ctx: Ctx, url: str) -> Continue | Done[int]:
    """Nine of ten are known already, in no order."""
    _work(1_200 if random.random() < 0.1 else 60)
    return _next(ctx)


@app.background("stalled.lock")
def stalled_lock(ctx: Ctx, url: str) -> Continue | Done[int]:
    """Rows into a table that somebody else locks now and then."""
    with _engine(url).begin() as connection:
        connection.execute(text("INSERT INTO busy SELECT n FROM generate_series(1, 40000) AS n"))
    return _next(ctx)


@app.background("stalled.once")
def stalled_once(ctx: Ctx, url: str) -> Continue | Done[int]:
    """A service that is away once."""
    time.sleep(6 if _at(ctx) == TOTAL // 8 else 0.06)
    return _next(ctx)


@app.background("stalled.often")
def stalled_often(ctx: Ctx, url: str) -> Continue | Done[int]:
    """A service that is away at times."""
    time.sleep(random.uniform(1, 2) if random.random() < 0.03 else 0.05)
    return _next(ctx)


@app.background("restarted.killed")
def restarted_killed(ctx: Ctx, url: str) -> Continue | Done[int]:
    """Steady, but for what the recorder does to its workers."""
    _work(500)
    return _next(ctx)


@app.background("restarted.frozen")
def restarted_frozen(ctx: Ctx, url: str) -> Continue | Done[int]:
    """Steady, but for what the recorder does to its workers."""
    time.sleep(0.06)
    return _next(ctx)


@app.background("restarted.fails", retry=Retry(1_000, delay="50ms"))
def restarted_fails(ctx: Ctx, url: str) -> Continue | Done[int]:
    """Fails now and then with a chunk in hand, which is done again."""
    time.sleep(0.06)
    if random.random() < 0.08:
        time.sleep(0.5)
        raise ConnectionError("the other side has gone away")
    return _next(ctx)
