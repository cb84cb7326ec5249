"""What watching costs: `python -m bench.watchers [--watchers 1000] [--seconds 10]`, on a private server of its own.

One API process, one task that is reported four times a second, and so many streams of its events over loopback. Printed
are the computing time of the API process as a share of one core, how many snapshots a watcher got in a second, how long
after the report was answered it came (median, and of a hundred 99), and how many subscriptions the store has. Ends with
an error if the API process takes more than half a core, or has more than one subscription.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tenure import Settings, Tenure
from tenure.lease.jobs import Lease
from tenure.lease.ledger import Ledger
from tenure.scripts.keys import watch_channel
from tenure.testing.waiting import wait_until

ROOT = Path(__file__).parent.parent
LIMIT = 0.5
PER_S = 4
TIMED = 50
WARM_S = 2.0
app = Tenure()


@app.background("watched")
def watched() -> None: ...


@dataclass
class Seen:
    """What the watchers got: how many snapshots, and of some watchers when each `done` came first."""

    events: int = 0
    at: list[dict[int, float]] = field(default_factory=list[dict[int, float]])


def main(watchers: int = 1000, seconds: float = 10.0) -> bool:
    """Answers whether it stayed under the limit."""
    allow_files(2 * watchers + 500)
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        store = Tenure(Settings(data=Path(folder)))
        port = free_port()
        env = {**os.environ, "PYTHONPATH": str(ROOT), "TENURE_DATA": folder}
        command = [sys.executable, "-m", "tenure", "api", "bench.watchers:app", "--port", str(port)]
        ledger = store.ledger()
        job = watched.using().call()
        ledger.enqueue(job.job)
        (lease,) = ledger.claim("advance", "bench").leases
        log = Path(folder) / "api.log"
        with log.open("wb") as out:
            api = subprocess.Popen(command, cwd=folder, env=env, stdout=out, stderr=out)
        try:
            wait_until(lambda: answers(port), "the API to answer")
            return asyncio.run(measure(store, ledger, lease, api.pid, port, watchers, seconds))
        finally:
            api.send_signal(signal.SIGTERM)
            api.wait(20)
            store.close()


def allow_files(many: int) -> None:
    """Each stream is a file here and one in the API process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < many:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(many, hard), hard))


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/api/livez", timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


async def measure(
    store: Tenure, ledger: Ledger, lease: Lease, pid: int, port: int, watchers: int, seconds: float
) -> bool:
    seen = Seen(at=[{} for _ in range(min(TIMED, watchers))])
    tasks = [asyncio.create_task(watch(port, lease.id, seen, nth)) for nth in range(watchers)]
    while seen.events < watchers:
        await asyncio.sleep(0.1)
    reports = asyncio.create_task(asyncio.to_thread(report, ledger, lease, WARM_S + seconds))
    await asyncio.sleep(WARM_S)
    busy, began, events = computing_s(pid), time.monotonic(), seen.events
    await asyncio.sleep(seconds)
    passed = time.monotonic() - began
    share, each = (computing_s(pid) - busy) / passed, (seen.events - events) / passed / watchers
    sent = await reports
    redis: Any = store.redis()
    subscriptions = int(redis.pubsub_numsub(watch_channel(ledger.keys.namespace))[0][1])
    for task in tasks:
        task.cancel()
    lags = sorted(1000 * (at[n] - when) for at in seen.at for n, when in sent.items() if n in at)
    print(
        f"{watchers:,} watchers of one task: {100 * share:.0f} % of one core, {each:.1f} snapshots a second each, "
        f"{statistics.median(lags):.0f} ms after the report (99 %: {lags[len(lags) * 99 // 100]:.0f} ms), "
        f"{subscriptions} subscription"
    )
    return share < LIMIT and subscriptions == 1


async def watch(port: int, job_id: str, seen: Seen, nth: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    writer.write(
        f"GET /api/background-tasks/{job_id}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    )
    while data := await reader.read(1 << 16):
        seen.events += data.count(b"id: ")
        if nth < len(seen.at):
            _, found, rest = data.partition(b'"done":')
            if found and rest[:1].isdigit():
                seen.at[nth].setdefault(int(rest.partition(b",")[0]), time.monotonic())


def report(ledger: Ledger, lease: Lease, seconds: float) -> dict[int, float]:
    """Report at a steady pace; answers when each report was answered."""
    sent: dict[int, float] = {}
    began = time.monotonic()
    for nth in range(1, round(seconds * PER_S)):
        time.sleep(max(0.0, began + nth / PER_S - time.monotonic()))
        ledger.report(lease, cursor=b"c", done=nth, total=1000, message=f"row {nth}", lines=[f"line {nth}"])
        sent[nth] = time.monotonic()
    return sent


def computing_s(pid: int) -> float:
    """Computing time of a process and its threads; Linux only."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--watchers", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10.0)
    sys.exit(not main(**vars(parser.parse_args())))
