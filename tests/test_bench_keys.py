"""Concurrency keys cost the same whatever waits behind one, and however many there are: calls are counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from bench import keys
from tenure import Settings, Tenure
from tenure.lease.index import TenantIndex
from tenure.lease.jobs import DUE, Lease, News
from tenure.lease.ledger import Ledger, NewJob, new_token
from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import Succeed
from tenure.testing import START, Server
from tenure.workers.claims import Claims
from tenure.workers.clock import ServerClock
from tenure.workers.pool import Pool
from tenure.workers.row import Row

BUSY = {"concurrency_key": "busy"}
Count = Callable[[Callable[[], object]], int]
OURS = ("cmdstat_info", "cmdstat_config|resetstat")


@pytest.fixture
def commands(tenure_server: Server) -> Count:
    """How many commands of the server something takes, those of its scripts counted one by one."""
    if tenure_server.kind not in ("embedded", "redis"):
        pytest.skip("only a server of its own counts commands for this test alone")
    redis: Any = tenure_server.redis

    def count(work: Callable[[], object]) -> int:
        redis.config_resetstat()
        work()
        stats = redis.info("commandstats").items()
        return sum(int(of["calls"]) for name, of in stats if name not in OURS)

    return count


def pile(ledger: Ledger, many: int) -> None:
    ledger.enqueue_many([NewJob("busy", fields=BUSY) for _ in range(many)])


def test_what_waits_behind_a_key_costs_nobody_anything(ledgers: Ledgers, commands: Count) -> None:
    few, many = (figures(ledgers.of(f"pile-{many}"), many, commands) for many in (10, 2_000))

    assert few == many


def figures(ledger: Ledger, many: int, commands: Count) -> list[int]:
    """What it takes to claim and end a free job behind them all, to add one, and to hand the key on."""
    pile(ledger, many)
    (holder,) = ledger.claim("advance", "one", 9).leases
    free = ledger.enqueue(NewJob("free")).id
    found: list[Lease] = []
    costs = [
        commands(lambda: found.extend(ledger.claim("advance", "one", 9).leases)),
        commands(lambda: pile(ledger, 1)),
        commands(lambda: ledger.settle(found[0], Succeed())),
        commands(lambda: ledger.settle(holder, Succeed())),
        commands(lambda: found.extend(ledger.claim("advance", "one", 9).leases)),
    ]
    assert [lease.id for lease in found[:1]] == [free]
    assert len(found) == 2
    return costs


def test_a_job_costs_the_same_however_many_keys_there_are(ledgers: Ledgers, commands: Count) -> None:
    costs: list[int] = []
    for many in (20, 1_000):
        ledger = ledgers.of(f"keys-{many}")
        ledger.enqueue_many([NewJob("work", fields={"concurrency_key": f"k{at}"}) for at in range(many)])

        def turn(ledger: Ledger = ledger) -> None:
            found = ledger.scripts.run(ledger.claim_call("advance", "one", 8, new_token())).leases
            ledger.scripts.run(ledger.settle_call([(lease.id, lease.fence, Succeed()) for lease in found]))
            assert len(found) == 8

        costs.append(commands(turn))

    assert costs[0] == costs[1]


def test_the_bench_finds_what_it_looks_for(
    tenure_server: Server,
    tenure_namespace: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The free job behind them all is claimed, and the next of the key after its holder has died."""
    if tenure_server.url is None or tenure_server.kind == "cluster":
        pytest.skip("the bench asks a plain server for its own figures")
    monkeypatch.setattr(keys, "KEYS", 500)
    app = Tenure(
        Settings(redis_url=tenure_server.url, namespace=tenure_namespace, lease_ms=1_000, renew_ms=250)
    )
    try:
        keys.backlog(app, 1_000)
        keys.many(app)
        keys.slow(app)
    finally:
        app.close()

    said = capsys.readouterr().out
    assert "1,000 behind one key: the free job is claimed" in said
    assert "500 keys: 500 jobs" in said


def test_ten_thousand_idle_tenants_cost_a_worker_one_look_a_poll(ledgers: Ledgers) -> None:
    """Their keys are full, or all they have is held: they want no visit before something else happens."""
    index = TenantIndex(ledgers.scripts, ledgers.namespace)
    for start in range(0, 10_000, 1_000):
        index.put(
            News(f"t-{at}", DUE + "advance", 1 << 42, START * 1_000) for at in range(start, start + 1_000)
        )
    rows: list[Row] = []
    clock = ServerClock()
    claims = Claims(
        Ledgers(ledgers.scripts, ledgers.namespace),
        clock,
        [Free("advance", 2, 0.02)],
        "w1",
        2.0,
        5_000,
        rows.append,
    )

    asked: list[str] = []
    for _ in range(5):
        posts = claims.posts(max(claims.next_look(), time.monotonic()))
        asked += [post.call.script for post in posts]
        for post, answer in zip(posts, ledgers.scripts.run_all([post.call for post in posts]), strict=True):
            post.read(answer, time.monotonic())

    assert asked == ["index_take"] * 5
    assert rows == []


class Free(Pool):
    def want(self, now: float) -> int:
        return 10
