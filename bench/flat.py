"""Whether an operation costs as much with much in the store: `python -m bench.flat [--quick] [--server PATH]`.

pending   enqueue, claim and settle of 20 jobs, in tenants with 1,000 to 1,000,000 jobs pending
tenants   the same of one job, and a visit to the index, among 1 to 10,000 tenants that have work

All of it is in one server at once and is asked in turns, so that a busy machine is unkind to all alike. The figures are
times from call to answer, of which a quarter took less, as a busy machine makes some late that have done nothing; and
ratios to the smallest. Ends with an error if a ratio is over 1.3.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from tenure import Tenure
from tenure.lease.bulk import enqueue_all
from tenure.lease.jobs import DUE
from tenure.lease.ledger import Ledger, NewJob, new_token
from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import Succeed
from tenure.lease.tasks import DEFAULT_POOL

from .memory import TASK, private

T = TypeVar("T")
LIMIT = 1.3
BATCH = 20
FILL = 500
PENDING = (1_000, 10_000, 100_000, 1_000_000)
TENANTS = (1, 100, 10_000)
TURNS = 400

Times = dict[str, list[float]]
"""Seconds that each operation took."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="to 100,000 jobs and 1,000 tenants, half the turns"
    )
    parser.add_argument(
        "--server", type=Path, help="the server's binary, if not the one Tenure brings with it"
    )
    given = parser.parse_args()
    turns = TURNS // 2 if given.quick else TURNS
    with private(given.server) as app:
        deep = pending(app, PENDING[:3] if given.quick else PENDING, turns)
        wide = tenants(app, (1, 100, 1_000) if given.quick else TENANTS, turns)
    steep = [*report("pending", deep), *report("tenants", wide)]
    if steep:
        sys.exit("\n".join(steep))


def pending(app: Tenure, depths: tuple[int, ...], turns: int) -> dict[int, Times]:
    for depth in depths:
        fill(app.ledger(f"deep-{depth}"), depth)
    times: dict[int, Times] = {depth: {} for depth in depths}
    for turn in range(turns):
        for depth in in_turn(depths, turn):
            work(app.ledger(f"deep-{depth}"), BATCH, times[depth])
    return times


def tenants(app: Tenure, numbers: tuple[int, ...], turns: int) -> dict[int, Times]:
    chance = random.Random(1)
    worlds = {number: Ledgers(app.ledgers().scripts, f"wide{number}") for number in numbers}
    for number, world in worlds.items():
        enqueue_all(world, [(f"t{nth % number}", NewJob(TASK)) for nth in range(2 * number)])
    times: dict[int, Times] = {number: {} for number in numbers}
    for turn in range(turns):
        for number in in_turn(numbers, turn):
            world = worlds[number]
            work(world.of(f"t{chance.randrange(number)}"), 1, times[number])
            take_one = world.index.take_call(DUE + DEFAULT_POOL, 1)
            timed(times[number], "visit", partial(world.scripts.run, take_one))
    return times


def in_turn(sizes: tuple[int, ...], turn: int) -> tuple[int, ...]:
    """Another size comes first in each turn."""
    first = turn % len(sizes)
    return sizes[first:] + sizes[:first]


def fill(ledger: Ledger, jobs: int) -> None:
    for _ in range(0, jobs, FILL):
        ledger.enqueue_many([NewJob(TASK) for _ in range(FILL)])


def work(ledger: Ledger, jobs: int, times: Times) -> None:
    """Make some jobs, claim as many of those that wait longest, settle these."""
    run = ledger.scripts.run
    enqueue = ledger.enqueue_call([NewJob(TASK) for _ in range(jobs)])
    timed(times, "enqueue", partial(run, enqueue))
    claim = ledger.claim_call(DEFAULT_POOL, "bench", jobs, new_token())
    leases = timed(times, "claim", partial(run, claim)).leases
    assert len(leases) == jobs
    settle = ledger.settle_call([(lease.id, lease.fence, Succeed()) for lease in leases])
    timed(times, "settle", partial(run, settle))


def timed(times: Times, name: str, do: Callable[[], T]) -> T:
    began = time.perf_counter()
    answer = do()
    times.setdefault(name, []).append(time.perf_counter() - began)
    return answer


def report(what: str, by_size: dict[int, Times]) -> list[str]:
    """Print the quartiles and ratios; answers what is too steep."""
    steep: list[str] = []
    smallest = min(by_size)
    for name in by_size[smallest]:
        us = {size: 1e6 * statistics.quantiles(times[name], n=4)[0] for size, times in by_size.items()}
        ratios = {size: cost / us[smallest] for size, cost in us.items()}
        shown = "  ".join(f"{size:>9,}: {us[size]:5.0f} us x{ratios[size]:.2f}" for size in us)
        print(f"{what}  {name:<8} {shown}")
        steep += [
            f"{name} with {size:,} {what} takes {ratio:.2f} times as long, over {LIMIT}"
            for size, ratio in ratios.items()
            if ratio > LIMIT
        ]
    return steep


if __name__ == "__main__":
    main()
