"""What the scripts cost: `python -m bench.store`, on a private server that ends with it.

enqueue   one by one, 500 a call, and by app.enqueue_many with all checks
claim     claim and settle without handlers, so many a call; and the server's own time for each job
lease     take and release of a named lease
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from tenure import Settings, TaskHandle, Tenure
from tenure.lease.ledger import NewJob, new_token
from tenure.lease.outcome import Succeed
from tenure.lease.requests import Options

TASK = "noop"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        app = Tenure(Settings(data=Path(folder)))
        app.task(TASK)(lambda: None)
        try:
            facts = app.store.facts
            print(f"{facts.product} {facts.version}, durability {facts.durability}, by unix socket")
            enqueue(app)
            claim(app)
            lease(app)
        finally:
            app.close()


def enqueue(app: Tenure) -> None:
    task, ledger = app.registry.get(TASK), app.ledger("single")
    one = rate(3_000, lambda: app.enqueue(task, (), {}, Options(tenant="single")))
    many = 500 * rate(60, lambda: ledger.enqueue_many([NewJob(TASK) for _ in range(500)]))
    handle = TaskHandle[[], None](app, task, Options(tenant="single"))
    bulk = 1_000 * rate(20, lambda: app.enqueue_many(handle.call() for _ in range(1_000)))
    print(f"enqueue  one by one {one:>9,.0f}/s    500 a call {many:>9,.0f}/s    enqueue_many {bulk:>9,.0f}/s")


def claim(app: Tenure) -> None:
    ledger = app.ledger("single")

    def round_of(size: int) -> Callable[[], None]:
        def work() -> None:
            leases = ledger.scripts.run(ledger.claim_call("advance", "bench", size, new_token())).leases
            ledger.scripts.run(ledger.settle_call([(lease.id, lease.fence, Succeed()) for lease in leases]))

        return work

    for size in (1, 8, 32, 64):
        rounds = 6_000 // size
        before = server_us(app)
        jobs = size * rate(rounds, round_of(size))
        cost = (server_us(app) - before) / (rounds * size)
        print(f"claim    {size:>3} a call    {jobs:>9,.0f}/s    server {cost:>5.1f} us a job")


def lease(app: Tenure) -> None:
    def pair() -> None:
        with app.lease("bench", ttl="30s"):
            pass

    print(f"lease    take and release {rate(2_000, pair):>6,.0f} pairs/s")


def rate(times: int, work: Callable[[], object]) -> float:
    work()
    began = time.perf_counter()
    for _ in range(times):
        work()
    return times / (time.perf_counter() - began)


def server_us(app: Tenure) -> float:
    cpu = cast("dict[str, float]", app.redis().info("cpu"))
    return 1e6 * (cpu["used_cpu_user"] + cpu["used_cpu_sys"])


if __name__ == "__main__":
    main()
