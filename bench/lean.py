"""Whether what is measured is the whole work: `python -m bench.lean [--jobs 10000]`, on a private server.

A worker drains no-op jobs as in `bench.worker`: plain ones, and then ones with 100 bytes of arguments and an
idempotency key, spread over 1,000 tenants. Of each, 100 random jobs are then asked for over the HTTP API: each has its
attempt with fence, worker and duration. And all that the store holds is sound: counts and figures equal the rows,
nothing is left in a queue. Ends with an error otherwise.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from tenure import Settings, Tenure
from tenure.lease.bulk import enqueue_all
from tenure.lease.ledger import NewJob
from tenure.lease.payload import pack_args
from tenure.testing import Invariants, dump

from .worker import start, stop

TASK = "noop"
SAMPLE = 100
DRAIN_LIMIT_S = 300.0

Jobs = list[tuple[str, NewJob]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--tenants", type=int, default=1_000)
    given = parser.parse_args()
    broken: list[str] = []
    for name, jobs in (("plain", plain(given.jobs)), ("laden", laden(given.jobs, given.tenants))):
        found = check(jobs)
        print(f"lean    {name}: {len(jobs):,} jobs drained, {SAMPLE} looked at, {len(found)} things wrong")
        broken += found
    if broken:
        sys.exit("\n".join(broken[:20]))


def plain(many: int) -> Jobs:
    return [("default", NewJob(TASK)) for _ in range(many)]


def laden(many: int, tenants: int) -> Jobs:
    args = pack_args(["x" * 92], {})
    return [
        (f"t{nth % tenants}", NewJob(TASK, args, idempotency_key=f"customer:{nth}")) for nth in range(many)
    ]


def check(jobs: Jobs) -> list[str]:
    """Drain the jobs; what is wrong afterwards."""
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        app = Tenure(Settings(data=Path(folder)))
        try:
            enqueue_all(app.ledgers(), jobs)
            worker = start(folder, slots=2)
            try:
                drained(app, jobs)
            finally:
                stop(worker)
            wrong = Invariants().broken(dump(app.redis(), app.settings.namespace))
            return [*wrong, *left_out(app, random.Random(1).sample(jobs, SAMPLE))]
        finally:
            app.close()


def drained(app: Tenure, jobs: Jobs) -> None:
    until = time.monotonic() + DRAIN_LIMIT_S
    for tenant in dict.fromkeys(tenant for tenant, _ in jobs):
        while not {"pending", "running"}.isdisjoint(state for _, state in app.ledger(tenant).counts()):
            if time.monotonic() > until:
                sys.exit(f"the jobs of {tenant} were not drained in {DRAIN_LIMIT_S:.0f} s")
            time.sleep(0.01)


def left_out(app: Tenure, sample: Sequence[tuple[str, NewJob]]) -> list[str]:
    """What the API does not show of jobs that have succeeded."""
    wrong: list[str] = []
    with TestClient(app.api(), base_url="http://localhost", client=("127.0.0.1", 50000)) as client:
        for tenant, job in sample:
            seen = client.get(f"/jobs/{job.id}", params={"tenant": tenant}).json()
            wrong += [f"{job.id} of {tenant}: {said}" for said in missing(seen, job)]
    return wrong


def missing(seen: dict[str, Any], job: NewJob) -> list[str]:
    (attempt,) = seen.get("attemptList") or [{}]
    facts = {
        "it succeeded": seen.get("status") == "succeeded",
        "it has one attempt that succeeded": attempt.get("status") == "succeeded",
        "a fence": bool(attempt.get("fence")),
        "a worker": bool(attempt.get("worker")),
        "a duration": isinstance(attempt.get("durationMs"), int),
        "its idempotency key": seen.get("idempotencyKey") == job.idempotency_key,
        "its arguments": [*seen.get("args", [])] == (["x" * 92] if job.args else []),
    }
    return [f"not so: {name}" for name, holds in facts.items() if not holds]


if __name__ == "__main__":
    main()
