"""What concurrency keys cost: `python -m bench.keys [JOBS]`, on a private server that ends with it.

backlog   so many jobs (1,000,000) wait behind one busy key: how long claims and settles of others take, how soon a free
          job behind them all starts, and how soon the next of the key after its holder has died
many      claim and settle over 10 keys and over 10,000: the server's time for each job
slow      calls that took the server over 5 ms
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from tenure import Settings, Tenure
from tenure.lease.ledger import Ledger, NewJob, new_token
from tenure.lease.outcome import Succeed

from .store import server_us

JOBS, KEYS, BATCH = 1_000_000, 10_000, 500
SLOW_US = 5_000
LEASE_MS = 2_000
BUSY = {"concurrency_key": "busy"}


def main() -> None:
    jobs = int(sys.argv[1].replace(",", "").replace("_", "")) if sys.argv[1:] else JOBS
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        app = Tenure(Settings(data=Path(folder), lease_ms=LEASE_MS, renew_ms=LEASE_MS // 4))
        try:
            app.store.redis.execute_command("CONFIG", "SET", "slowlog-log-slower-than", SLOW_US)
            backlog(app, jobs)
            many(app)
            slow(app)
        finally:
            app.close()


def backlog(app: Tenure, jobs: int) -> None:
    ledger = app.ledger("single")
    pile(ledger, jobs)
    (holder,) = ledger.claim("advance", "doomed", 4).leases
    free = ledger.enqueue(NewJob("free")).id
    took, found = timed(lambda: ledger.claim("advance", "bench", 4))
    assert [lease.id for lease in found.leases] == [free], "the free job, and nothing of the busy key"
    ledger.settle(found.leases[0], Succeed())
    claims, settles, makes = [], [], []
    for _ in range(500):
        makes.append(timed(lambda: ledger.enqueue_many([NewJob("free") for _ in range(4)]))[0])
        ms, found = timed(lambda: ledger.scripts.run(ledger.claim_call("advance", "bench", 4, new_token())))
        claims.append(ms)
        ends = [(lease.id, lease.fence, Succeed()) for lease in found.leases]
        settles.append(timed(lambda ends=ends: ledger.scripts.run(ledger.settle_call(ends)))[0])
        if ledger.reap():
            break
    print(f"backlog  {jobs:>9,} behind one key: the free job is claimed in {took:.2f} ms")
    for name, found_ms in (("enqueue of 4", makes), ("claim of 4", claims), ("settle of 4", settles)):
        print(f"         {name:<13} p50 {statistics.median(found_ms):.2f} ms, worst {max(found_ms):.2f} ms")
    next_ = wait_for_next(ledger, holder.expires_at)
    print(f"         its holder died: the next is claimed {next_} ms after the end of the lease")


def pile(ledger: Ledger, jobs: int) -> None:
    for at in range(0, jobs, BATCH):
        ledger.enqueue_many([NewJob("busy", fields=BUSY) for _ in range(min(BATCH, jobs - at))])


def wait_for_next(ledger: Ledger, lease_end: int) -> int:
    """As a worker's reaper does it, every second."""
    while True:
        ledger.reap()
        found = ledger.claim("advance", "next", 4).leases
        if found:
            assert [lease.task for lease in found] == ["busy"]
            return ledger.get(found[0].id).started_at - lease_end  # type: ignore[operator]
        time.sleep(1)


def many(app: Tenure) -> None:
    for keys in (10, KEYS):
        ledger = app.ledger(f"keys-{keys}")
        for at in range(0, KEYS, BATCH):
            fields = [{"concurrency_key": f"k{one % keys}"} for one in range(at, at + BATCH)]
            ledger.enqueue_many([NewJob("work", fields=one) for one in fields])
        before, done = server_us(app), 0
        while found := ledger.scripts.run(ledger.claim_call("advance", "bench", 8, new_token())).leases:
            ends = [(lease.id, lease.fence, Succeed()) for lease in found]
            ledger.scripts.run(ledger.settle_call(ends))
            done += len(found)
        print(
            f"many     {keys:>6,} keys: {done:,} jobs, server {(server_us(app) - before) / done:.1f} us a job"
        )


def slow(app: Tenure) -> None:
    entries = cast("list[list[Any]]", app.store.redis.execute_command("SLOWLOG", "GET", 10))
    print(f"slow     {len(entries)} calls over {SLOW_US // 1000} ms")
    for _, _, took_us, command, *_ in entries:
        print(f"         {took_us:>8,} us  {b' '.join(command[:2]).decode()}")


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    answer = work()
    return (time.perf_counter() - began) * 1000, answer


if __name__ == "__main__":
    main()
