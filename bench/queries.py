"""What a page of jobs costs: `python -m bench.queries [FINISHED DEAD PENDING]`, on a private server that ends with it.

1,000,000 finished, 100,000 dead and 10,000 pending jobs, or as many as are asked for, of 20 tasks, with instances,
records, labels, errors. Of each filter: its first page and one that is 1,000 jobs further on, each asked for 20 times;
the median and the worst time, the computing times of client and server in it, how many jobs the page has and how many
were looked at; and whether the page holds what it should.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from tenure import Settings, Tenure
from tenure.lease.jobs import JobView, Page
from tenure.lease.ledger import Ledger, NewJob, new_token
from tenure.lease.outcome import Fail, Succeed

FINISHED, DEAD, PENDING = 1_000_000, 100_000, 10_000
TASKS = [f"shop.task-{number}" for number in range(20)]
ERRORS = ("TimeoutError: no answer from {n}.example", "KeyError: 'order {n}'", "ValueError: bad row {n}")
TIMES = 20

Asked = tuple[str, dict[str, Any], Callable[[JobView], bool]]
"""A page: its name, the filters, and what holds of each job on it."""


def main(finished: int = FINISHED, dead: int = DEAD, pending: int = PENDING, times: int = TIMES) -> bool:
    """Answers whether every page held what it should."""
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        app = Tenure(Settings(data=Path(folder)))
        try:
            facts = app.store.facts
            print(f"{facts.product} {facts.version}, durability {facts.durability}, by unix socket")
            app.tenants.keep(succeeded="forever")
            half = fill(app.ledger(), finished, dead, pending)
            print(f"{finished:,} finished, {dead:,} dead, {pending:,} pending jobs")
            results = [measure(app, asked, times) for asked in pages(half)]
            return all(results)
        finally:
            app.close()


def fill(ledger: Ledger, finished: int, dead: int, pending: int) -> datetime:
    """Make them all; answers when half of them had been made."""
    chance = random.Random(1)
    many, half = finished + dead, 0
    for at in range(0, many, 500):
        batch = min(500, many - at)
        if at <= many / 2:
            half = ledger.index.take("reap", 0).now_ms
        ledger.enqueue_many([a_job(chance, at + nth) for nth in range(batch)])
        for _ in range(0, batch, 100):
            leases = ledger.scripts.run(ledger.claim_call("advance", "bench", 100, new_token())).leases
            ends = [(lease.id, lease.fence, an_end(chance, many, dead)) for lease in leases]
            ledger.scripts.run(ledger.settle_call(ends))
    for at in range(0, pending, 500):
        ledger.enqueue_many([a_later_one(chance, nth) for nth in range(at, min(at + 500, pending))])
    return datetime.fromtimestamp(half / 1000, UTC)


def a_job(chance: random.Random, number: int) -> NewJob:
    fields: dict[str, Any] = {
        "instance": f"i-{number % 5_000}",
        "labels": f"team=t{number % 7}\ntier={number % 3}",
    }
    if number % 10 == 0:
        fields["record"] = f"order:{number}"
        fields["node"] = f"n-{number % 40}"
    return NewJob(chance.choice(TASKS), fields=fields)


def an_end(chance: random.Random, many: int, dead: int) -> Succeed | Fail:
    if chance.randrange(many) >= dead:
        return Succeed()
    return Fail(
        chance.choice(ERRORS).format(n=chance.randrange(1_000)), permanent=True, stack="frames\n" * 20
    )


def a_later_one(chance: random.Random, number: int) -> NewJob:
    after = f"+{chance.randrange(10**6, 10**7)}"
    return NewJob(chance.choice(TASKS), when=after, fields={"priority": str(number % 10)})


def pages(half: datetime) -> list[Asked]:
    def has(**fields: object) -> Callable[[JobView], bool]:
        return lambda job: all(getattr(job, name) == value for name, value in fields.items())

    def errs(words: str) -> Callable[[JobView], bool]:
        return lambda job: words in str(job.attempts[-1].error)

    task, label = TASKS[3], {"team": "t3"}
    return [
        ("no filter", {}, has()),
        ("status=succeeded", {"status": "succeeded"}, has(status="succeeded")),
        ("status=dead", {"status": "dead"}, has(status="dead")),
        ("status=pending", {"status": "pending"}, has(status="pending")),
        ("task", {"task": task}, has(task=task)),
        ("instance", {"instance": "i-7"}, has(instance="i-7")),
        ("node", {"node": "n-20"}, has(node="n-20")),
        ("record", {"record": ("order", "100")}, has(record=("order", "100"))),
        ("label", {"labels": label}, lambda job: job.labels["team"] == "t3"),
        ("two labels", {"labels": {**label, "tier": "1"}}, lambda job: job.labels["tier"] == "1"),
        ("created to the middle", {"created_to": half}, lambda job: job.created_at < half.timestamp() * 1000),
        ("status=dead, task", {"status": "dead", "task": task}, has(status="dead", task=task)),
        ("status=dead, label", {"status": "dead", "labels": label}, has(status="dead")),
        ("status=pending, task", {"status": "pending", "task": task}, has(status="pending", task=task)),
        ("status=dead, instance", {"status": "dead", "instance": "i-7"}, has(status="dead", instance="i-7")),
        ("node, label", {"node": "n-20", "labels": label}, has(node="n-20")),
        ("q: words of many errors", {"q": "no answer"}, errs("no answer")),
        ("q: words of few errors", {"q": "bad row 77"}, errs("bad row 77")),
        ("q: words of no error", {"q": "nothing of the kind"}, lambda job: False),
    ]


def measure(app: Tenure, asked: Asked, times: int) -> bool:
    name, options, holds = asked
    first, said = timed(app, lambda: app.jobs.list(**options), times)
    good = all(map(holds, first.items))
    cursor = further(app, options, first)
    if cursor:
        later, more = timed(app, lambda: app.jobs.list(cursor=cursor, **options), times)
        good = good and all(map(holds, later.items))
        said += f"  later {more}"
    print(f"{name:<24} {said}{'' if good else '    WRONG'}", flush=True)
    return good


def further(app: Tenure, options: dict[str, Any], page: Page) -> str | None:
    """A cursor 1,000 jobs on, or the last one."""
    cursor, passed = page.next_cursor, 0
    while cursor and passed < 1_000:
        page = app.jobs.list(cursor=cursor, limit=100, **options)
        passed += max(100, len(page.items))
        if page.next_cursor is None:
            return cursor
        cursor = page.next_cursor
    return cursor


def timed(app: Tenure, ask: Callable[[], Page], times: int) -> tuple[Page, str]:
    page, took = ask(), []
    client, server = time.process_time(), server_s(app)
    for _ in range(times):
        began = time.perf_counter()
        page = ask()
        took.append(1_000 * (time.perf_counter() - began))
    client, server = (
        1_000 * spent / times for spent in (time.process_time() - client, server_s(app) - server)
    )
    said = (
        f"{statistics.median(took):>5.1f} ms, worst {max(took):>5.1f} (cpu {client:>4.1f} + {server:>4.1f})"
    )
    return page, f"{said} {len(page.items):>2} of {page.scanned:<5,}"


def server_s(app: Tenure) -> float:
    cpu = cast("dict[str, float]", app.redis().info("cpu"))
    return cpu["used_cpu_user"] + cpu["used_cpu_sys"]


if __name__ == "__main__":
    sys.exit(0 if main(*map(int, sys.argv[1:])) else 1)
