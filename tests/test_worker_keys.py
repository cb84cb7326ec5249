"""Concurrency keys with workers: who has stopped says so, so that the next one need not wait for the lease to end."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tenure.lease.jobs import DUE
from tenure.lease.ledger import NewJob
from tenure.lease.ledgers import Ledgers
from tenure.lease.tasks import Registry, Task
from tenure.lease.why import why
from tenure.testing import wait_until
from tenure.workers.claims import Claims
from tenure.workers.clock import ServerClock
from tenure.workers.crew import Crew
from tenure.workers.outbox import Outbox
from tenure.workers.pool import Pool
from tenure.workers.row import Row
from tenure.workers.stopping import Stopping
from tenure.workers.trust import Hold
from tenure.workers.wire import Why

from .test_worker import Shop, Start, env, first_line, lines, note, shop, worker
from .test_worker_parts import clock, exchange, ledgers, rows

__all__ = ["clock", "env", "ledgers", "note", "rows", "shop", "worker"]  # fixtures


@pytest.mark.parametrize("task", ["deaf", "checks"], ids=["killed by force", "stops when it asks"])
def test_after_a_cancel_the_next_of_the_key_starts_when_the_worker_has_stopped(
    worker: Start, shop: Shop, note: Path, task: str
) -> None:
    job = shop.make(task, str(note), concurrency_key="stock")
    behind = shop.make("mark", str(note), concurrency_key="stock")
    worker(grace_ms=800)
    first_line(note)

    shop.ledger.cancel(job)
    fence = shop.view(job).fence

    shop.ended(behind)  # the lease of the first lasts a minute
    assert shop.view(job).fence == fence
    wait_until(
        lambda: not shop.ledger.scripts.redis.exists(shop.ledger.keys("lingering")), "nobody to linger"
    )
    assert lines(note)[-1][0] == behind


def test_a_worker_that_is_killed_holds_the_key_for_its_lease_and_no_longer(
    worker: Start, shop: Shop, note: Path
) -> None:
    first = shop.make("nap", str(note), 30, concurrency_key="stock")
    behind = shop.make("mark", str(note), concurrency_key="stock")
    killed = worker(lease_ms=1_500)
    first_line(note)
    said = why(shop.view(behind))

    killed.kill()
    worker(lease_ms=1_500)

    assert said.verdict == "key_full"
    assert f"held by job {first} on " in said.text
    view = shop.ended(behind)
    assert view.started_at is not None
    lost = wait_until(
        lambda: [one for one in shop.view(first).attempts if one.cause], "the loss of the first"
    )[0]
    assert lost.cause == "lease_lost"
    assert lost.ended_at is not None
    assert view.started_at >= lost.ended_at


def test_a_canceled_row_that_has_not_begun_frees_its_key(ledgers: Ledgers) -> None:
    ledger = ledgers.of("acme")
    first, second = (ledger.enqueue(NewJob("noop", fields={"concurrency_key": "a"})).id for _ in range(2))
    (lease,) = ledger.claim("advance", "w1").leases
    registry = Registry()
    registry.add(Task("noop", print))
    outbox = Outbox(ledgers, lambda news: None)
    crew = Crew([Pool("advance", 1, 0.02)], registry, outbox)
    crew.got(Row(1, "advance", lease, Hold(0.0, 0.0), 0.0, 0.0))
    ledger.cancel(lease.id)

    Stopping(crew, 1.0, 60.0).withdrawn("advance", "acme", lease.id, lease.fence, Why.CANCELED)
    exchange(ledgers, outbox.posts(time.monotonic()))

    assert lease.id == first
    assert [one.id for one in ledger.claim("advance", "w2", 9).leases] == [second]


def test_jobs_of_one_key_never_overlap_in_many_slots(worker: Start, shop: Shop, note: Path) -> None:
    jobs = [shop.make("nap", str(note), 0.01, concurrency_key="stock") for _ in range(20)]
    free = [shop.make("noop") for _ in range(20)]

    worker(slots=4)
    worker(slots=4)

    for job in [*jobs, *free]:
        assert shop.ended(job).status == "succeeded"
    words = [line[-1] == "woke" for line in lines(note)]
    assert words == [False, True] * 20, "a nap ended before the next began"


class BusyPool(Pool):
    """One slot is free; others will be soon."""

    def want(self, now: float) -> int:
        return 4

    @property
    def free(self) -> int:
        return 1


def test_a_worker_claims_what_needs_a_key_for_its_free_slots_only(
    ledgers: Ledgers, clock: ServerClock, rows: list[Row]
) -> None:
    ledger = ledgers.of("acme")
    keyed = [ledger.enqueue(NewJob("noop", fields={"concurrency_key": key})).id for key in ("a", "b", "c")]
    claims = Claims(ledgers, clock, [BusyPool("advance", 2, 0.02)], "w1", 2.0, 5_000, rows.append)

    claims.hint("advance", "acme", clock.now_ms() - 1, time.monotonic())
    exchange(ledgers, claims.posts(time.monotonic()))

    assert [row.lease.id for row in rows] == keyed[:1]
    assert ledgers.index.take(DUE + "advance", 9).tenants == ["acme"], "others may have free slots"


class FullPool(BusyPool):
    """No slot is free."""

    @property
    def free(self) -> int:
        return 0


def test_a_worker_that_found_work_for_free_slots_only_does_not_ask_in_a_circle(
    ledgers: Ledgers, clock: ServerClock, rows: list[Row]
) -> None:
    ledgers.of("acme").enqueue(NewJob("noop", fields={"concurrency_key": "a"}))
    claims = Claims(ledgers, clock, [FullPool("advance", 2, 0.02)], "w1", 2.0, 5_000, rows.append)
    claims.hint("advance", "acme", clock.now_ms() - 1, time.monotonic())
    exchange(ledgers, claims.posts(time.monotonic()))

    asked = [post.call.script for post in claims.posts(time.monotonic())]

    assert rows == []
    assert "claim" not in asked
