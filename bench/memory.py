"""What a job costs in bytes of the server: `python -m bench.memory [--jobs 50000] [--server /usr/bin/redis-server]`.

Each line is a private server of its own, with that many jobs; `added` is what they have more than the line they are
compared with, for each byte that was added. Ends with an error if a pending job without arguments is over 410 bytes, or
one with 32 bytes more over 1.3 times those and the allocator's rounding.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tenure import Settings, Tenure
from tenure.lease.ledger import Ledger, NewJob, new_token
from tenure.lease.payload import pack_args

TASK = "noop"
PENDING_LIMIT = 410
STEP_LIMIT = 1.3
ROUNDING = 16
"""The server's allocator gives memory in steps of so many bytes, where rows are small."""
BATCH = 500

Make = Callable[[int], NewJob]


@dataclass(frozen=True)
class Case:
    """Jobs of one kind; `worker` has claimed them, if there is one. `more` bytes were added to those of `than`."""

    name: str
    make: Make
    worker: str | None = None
    more: int = 0
    than: str = "no arguments"


def with_arguments(size: int) -> Make:
    """Jobs whose arguments are `size` bytes as they are stored."""
    head = len(pack_args(["x" * size], {})) - size
    args = pack_args(["x" * (size - head)], {})
    assert len(args) == size
    return lambda _: NewJob(TASK, args)


def plain(number: int) -> NewJob:
    return NewJob(TASK)


CASES = [
    Case("no arguments", plain),
    Case("an int", lambda number: NewJob(TASK, pack_args([number], {})), more=4),
    *(Case(f"{size} B of arguments", with_arguments(size), more=size) for size in (64, 65, 300, 600, 1000)),
    Case("an idempotency key of 20 B", lambda number: NewJob(TASK, idempotency_key=f"customer:{number:011}")),
    Case("3 labels", lambda _: NewJob(TASK, fields={"labels": "area=eu\nkind=daily\nteam=billing"})),
    Case("claimed, worker of 8 B", plain, worker="worker-1"),
    Case("claimed, worker of 40 B", plain, worker="w" * 40, more=32, than="claimed, worker of 8 B"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument(
        "--server", type=Path, help="the server's binary, if not the one Tenure brings with it"
    )
    given = parser.parse_args()
    costs: dict[str, float] = {}
    over: list[str] = []
    for case in CASES:
        costs[case.name] = cost = measured(case, given.jobs, given.server)
        added = cost - costs[case.than]
        step = f"{added:+8.0f} B, {added / case.more:.2f} a byte" if case.more else ""
        print(f"memory  {case.name:<28} {cost:6.0f} B a job {step}", flush=True)
        if case.more >= 32 and added > STEP_LIMIT * case.more + ROUNDING:
            over.append(f"{case.name}: {added / case.more:.2f} bytes for each added, over {STEP_LIMIT}")
    if costs["no arguments"] > PENDING_LIMIT:
        over.append(f"no arguments: over {PENDING_LIMIT} B")
    if over:
        sys.exit("\n".join(over))


def measured(case: Case, jobs: int, server: Path | None) -> float:
    """Bytes of a job of that kind."""
    with private(server) as app:
        ledger = app.ledger()
        ledger.enqueue_many([NewJob(TASK)])  # what a tenant and its pool have once
        before = used(app)
        for first in range(0, jobs, BATCH):
            ledger.enqueue_many([case.make(number) for number in range(first, first + BATCH)])
        if case.worker:
            claim_all(ledger, case.worker)
        return (used(app) - before) / jobs


def claim_all(ledger: Ledger, worker: str) -> None:
    while ledger.scripts.run(ledger.claim_call("advance", worker, 200, new_token())).leases:
        pass


@contextmanager
def private(server: Path | None = None) -> Iterator[Tenure]:
    """An application on a server that ends with it."""
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        app = Tenure(Settings(data=Path(folder), server=server))
        app.task(TASK)(lambda: None)
        try:
            yield app
        finally:
            app.close()


def used(app: Tenure) -> int:
    return int(cast("dict[str, int]", app.redis().info("memory"))["used_memory"])


if __name__ == "__main__":
    main()
