"""What one worker does: `python -m bench.worker [--jobs 20000] [--slots 2]`, on a private server that ends with it.

drain   no-op jobs with lease, fence and attempt record, claimed, run and settled: from the first to the last
lane    jobs that wait for 100 ms, 100 at a time in one process: 1,000 of them are ten times 100 ms of work
chunks  from the return of Continue to the first line of the next chunk, on the same worker, when nothing else waits
idle    from the call of enqueue to the first line of the task, one job at a time, all slots free
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from tenure import Continue, Ctx, Tenure
from tenure.lease.ledger import NewJob
from tenure.lease.payload import pack_args
from tenure.settings import Settings

ROOT = Path(__file__).parent.parent
app = Tenure()


@app.task("noop")
def noop(*_: object) -> None: ...


@app.task("rest", pool="io")
async def rest() -> None:
    await asyncio.sleep(0.1)


@app.task("stamp")
def stamp(path: str) -> None:
    now = time.time()
    with Path(path).open("a") as file:
        file.write(f"{now}\n")


@app.background("chunks")
def chunks(ctx: Ctx, path: str, many: int) -> Continue | None:
    began = time.time()
    at = ctx.cursor.get("at", 0) + 1
    with Path(path).open("a") as file:
        file.write(f"{began} {time.time()}\n")
    return None if at == many else Continue({"at": at}, done=at, total=many)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--samples", type=int, default=300)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        client = Tenure(Settings(data=Path(folder)))
        try:
            drain(client, folder, given.jobs, given.slots)
            lane(client, folder)
            hand_over(client, folder, given.samples)
            idle(client, folder, given.samples, given.slots)
        finally:
            client.close()


def drain(client: Tenure, folder: str, jobs: int, slots: int) -> None:
    ledger = client.ledger()
    for _ in range(0, jobs, 200):
        ledger.enqueue_many([NewJob("noop") for _ in range(200)])
    worker = start(folder, slots)
    try:
        began = until_done(client, 1)
        ended = until_done(client, jobs)
    finally:
        stop(worker)
    print(f"drain   {jobs / (ended - began):8,.0f} jobs/s  ({jobs} no-op jobs, 1 worker, {slots} slots)")


def lane(client: Tenure, folder: str, jobs: int = 1_000, width: int = 100) -> None:
    worker = start(folder, 1, "io", lanes={"io": f"async({width})"})
    ledger = client.ledger()
    try:
        ledger.enqueue(NewJob("rest", pool="io"))
        began = until_done(client, 1, "rest")  # it is up, and has a pace
        for _ in range(0, jobs, 200):
            ledger.enqueue_many([NewJob("rest", pool="io") for _ in range(200)])
        ended = until_done(client, jobs + 1, "rest")
    finally:
        stop(worker)
    print(f"lane    {ended - began:8.2f} s  ({jobs} jobs of 100 ms, 1 process, async({width}))")


def hand_over(client: Tenure, folder: str, samples: int) -> None:
    path = Path(folder, "chunks")
    worker = start(folder, 1)
    try:
        args = pack_args([str(path), samples + 11], {})
        client.ledger().enqueue(NewJob("chunks", args, fields={"background": "1"}))
        until_done(client, 1, "chunks")
    finally:
        stop(worker)
    stamps = [tuple(map(float, line.split())) for line in path.read_text().splitlines()[10:]]
    gaps = [(begun - ended) * 1000 for (_, ended), (begun, _) in pairwise(stamps)]
    cuts = statistics.quantiles(gaps, n=100)
    print(f"chunks  {cuts[49]:8.2f} ms median, {cuts[98]:.2f} ms p99  (end to next start, {samples} samples)")


def until_done(client: Tenure, jobs: int, task: str = "noop") -> float:
    while client.ledger().counts().get((task, "succeeded"), 0) < jobs:
        time.sleep(0.005)
    return time.perf_counter()


def idle(client: Tenure, folder: str, samples: int, slots: int) -> None:
    path = Path(folder, "stamps")
    path.touch()
    worker = start(folder, slots)
    delays: list[float] = []
    try:
        for at in range(samples + 10):
            before = time.time()
            client.ledger().enqueue(NewJob("stamp", pack_args([str(path)], {})))
            while len(stamps := path.read_text().split()) <= at:
                time.sleep(0.001)
            if at >= 10:
                delays.append((float(stamps[at]) - before) * 1000)
            time.sleep(0.01)
    finally:
        stop(worker)
    cuts = statistics.quantiles(delays, n=100)
    print(f"idle    {cuts[49]:8.2f} ms median, {cuts[98]:.2f} ms p99  (enqueue to start, {samples} samples)")


def start(
    folder: str, slots: int, pool: str = "advance", lanes: dict[str, str] | None = None
) -> subprocess.Popen[bytes]:
    env = {**os.environ, "TENURE_DATA": folder, "PYTHONPATH": str(ROOT)}
    code = (
        "from tenure.workers import WorkerOptions, run_worker; from bench import worker; "
        f"options = WorkerOptions(slots={slots}, lanes={lanes or {}}); "
        f"run_worker(worker.app, [{pool!r}], options=options, logging_level='WARNING')"
    )
    return subprocess.Popen([sys.executable, "-c", code], env=env)


def stop(worker: subprocess.Popen[bytes]) -> None:
    worker.send_signal(signal.SIGTERM)
    worker.wait(20)


if __name__ == "__main__":
    main()
