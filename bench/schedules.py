"""What scheduling costs: `python -m bench.schedules [--stored 100000] [--due 10000] [--seconds 20]`, on a private
server that ends with it. `make bench` takes a tenth of that.

idle      what a scheduler takes of a core, and the server, while so many schedules are stored and none is due
burst     so many, over 100 tenants, are due in the same second: from then until each has its record and its job, by one
          scheduler process and by two; and the slowest call of a script meanwhile, by the server's slow log
lateness  from the planned instant to the record, at 100 fires a second
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from tenure import Settings, Tenure
from tenure.lease.tasks import Task
from tenure.scheduler.plan import month
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.trigger import Trigger

ROOT = Path(__file__).parent.parent
TASK = Task("noop", lambda nth=0: None)
TENANTS = 100
NEVER_S = 40 * 86_400
app = Tenure()


def main(stored: int, due: int, seconds: float) -> None:
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        client = Tenure(Settings(data=Path(folder)))
        try:
            began = time.perf_counter()
            resting = max(0, stored - due)
            store(client, "rest", resting, lambda nth: int(time.time()) + NEVER_S + nth % 86_400)
            rate = resting / (time.perf_counter() - began)
            print(f"store     {rate:8,.0f}/s, each by itself; load {os.getloadavg()[0]:.1f}")
            idle(client, folder, resting, seconds)
            for schedulers in (1, 2):
                burst(client, folder, due, schedulers, rate)
            lateness(client, folder, seconds)
        finally:
            client.close()


def store(client: Tenure, group: str, many: int, at: Callable[[int], int]) -> None:
    """So many schedules, each with arguments of its own. Each fires once a year, next at the second (epoch) that `at`
    says of its number.
    """
    for nth in range(many):
        moment = datetime.fromtimestamp(at(nth), UTC)
        rule = f"{moment.second} {moment.minute} {moment.hour} {moment.day} {moment.month} ?"
        Schedules(client.ledger(f"t{nth % TENANTS}")).put(
            f"{group}.k{nth}", TASK, [Trigger("default", rule)], kwargs={"nth": nth}
        )


def burst(client: Tenure, folder: str, due: int, schedulers: int, rate: float) -> None:
    """`rate` is how many schedules are stored a second here."""
    before, redis = jobs(client), cast(Any, client.redis())
    moment = int(time.time() + 10 + 1.5 * due / rate)  # they have to be stored before
    store(client, f"burst{schedulers}", due, lambda _: moment)
    with started(folder, schedulers):
        left = moment - time.time()
        if left < 0:
            raise SystemExit(f"storing them took {-left:.0f} s too long here: try fewer")
        redis.config_set("slowlog-max-len", 10_000)
        redis.config_set("slowlog-log-slower-than", 500)
        redis.slowlog_reset()
        lost = lost_core(client)
        time.sleep(left)
        while (fired := jobs(client) - before) < due:
            time.sleep(0.02)
        took = time.time() - moment
        lost = lost_core(client) - lost
    print(
        f"burst     {took:8.2f} s for {fired:,} fires of {TENANTS} tenants in one second, {schedulers} process(es)"
    )
    slow = [
        (one["duration"] / 1000, one["command"].split()[1].decode().split("_", 2)[2])
        for one in redis.slowlog_get(10_000)
        if b"FCALL" in one["command"]
    ]
    if slow:
        ms, name = max(slow)
        over = sum(ms > 5 for ms, _ in slow)
        print(
            f"          {ms:8.2f} ms was the slowest call of a script: {name}; {over} of {due:,} took over 5 ms, "
            f"and the server was put off its core {lost} times"
        )


def lost_core(client: Tenure) -> int:
    """How often the server had to leave its core to another process: its slow log counts that time too."""
    pid = cast("dict[str, int]", client.redis().info("server"))["process_id"]
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.rsplit("nonvoluntary_ctxt_switches:", 1)[1])


def jobs(client: Tenure) -> int:
    """How many jobs there are; asked in one round trip, so that the question costs little of what is measured."""
    pipeline: Any = client.redis().pipeline(transaction=False)
    for nth in range(TENANTS):
        pipeline.hget(client.ledger(f"t{nth}").keys("counts"), "noop|pending")
    return sum(int(found or 0) for found in pipeline.execute())


def idle(client: Tenure, folder: str, stored: int, seconds: float) -> None:
    with started(folder, 1) as (scheduler,):
        time.sleep(2)
        before, began = cpu_s(scheduler.pid), time.perf_counter()
        server = server_s(client)
        time.sleep(seconds)
        took = time.perf_counter() - began
        share = 100 * (cpu_s(scheduler.pid) - before) / took
        of_server = 100 * (server_s(client) - server) / took
        print(
            f"idle      {share:8.2f} % of a core, and the server {of_server:.2f} %, with {stored:,} schedules"
        )


def lateness(client: Tenure, folder: str, seconds: float) -> None:
    """A hundred schedules that fire every second, each at a millisecond of its own."""
    begin = int(time.time()) + 3
    keys: list[tuple[Schedules, str]] = []
    for nth in range(100):
        start = datetime.fromtimestamp(begin + nth / 100, UTC)
        schedules = Schedules(client.ledger(f"t{nth % 10}"))
        schedules.put(f"late.k{nth}", TASK, [Trigger("default", every="1s", start=start)])
        keys.append((schedules, f"late.k{nth}"))
    with started(folder, 1):
        time.sleep(max(0, begin + 2 - time.time()) + seconds)
    late: list[int] = []
    for schedules, key in keys:
        found, _ = schedules.fires(key, month=month(int(time.time() * 1000)), limit=10_000)
        late += [fire.at - fire.fire_time for fire in found if fire.fire_time >= (begin + 2) * 1000]
        schedules.delete(key)
    cuts = statistics.quantiles(late, n=100)
    print(f"lateness  {cuts[49]:8.1f} ms median, {cuts[98]:.1f} ms p99  ({len(late):,} fires, 100 a second)")


@contextmanager
def started(folder: str, many: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Scheduler processes, as `tenure scheduler` runs them."""
    env = {**os.environ, "TENURE_DATA": folder, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tenure", "scheduler", "bench.schedules:app"]
    quiet = subprocess.DEVNULL
    found = [subprocess.Popen(command, env=env, stdout=quiet, stderr=quiet, cwd=ROOT) for _ in range(many)]
    try:
        time.sleep(1.5)
        yield found
    finally:
        for one in found:
            one.send_signal(signal.SIGTERM)
        for one in found:
            one.wait(20)


def cpu_s(pid: int) -> float:
    """What a process has used of processors, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def server_s(client: Tenure) -> float:
    cpu = cast("dict[str, float]", client.redis().info("cpu"))
    return cpu["used_cpu_user"] + cpu["used_cpu_sys"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--stored", type=int, default=100_000)
    parser.add_argument("--due", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=20)
    given = parser.parse_args()
    main(given.stored, given.due, given.seconds)
