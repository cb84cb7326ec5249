"""Holds and unknown tasks with workers: what has not begun goes back, and nobody asks again for what he cannot run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tenure.lease.holds import Holds
from tenure.lease.ledger import NewJob
from tenure.lease.ledgers import Ledgers
from tenure.lease.tasks import Registry, Task
from tenure.testing import wait_until
from tenure.workers.claims import Claims
from tenure.workers.clock import ServerClock
from tenure.workers.crew import Crew
from tenure.workers.hints import Held, parse
from tenure.workers.outbox import Outbox
from tenure.workers.pool import Pool
from tenure.workers.row import Row
from tenure.workers.trust import Hold

from .test_worker import Shop, Start, env, first_line, lines, note, shop, worker
from .test_worker_parts import EagerPool, clock, exchange, ledgers, rows

__all__ = ["clock", "env", "ledgers", "note", "rows", "shop", "worker"]  # fixtures


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        (b"hold acme tenant ", Held("acme", "tenant", "")),
        (b"hold acme pool outbound", Held("acme", "pool", "outbound")),
        (b"hold acme task report", Held("acme", "task", "report")),
    ],
)
def test_a_hold_is_heard(message: bytes, hint: Held) -> None:
    assert parse(message) == hint


@pytest.mark.parametrize(
    ("held", "goes_back"),
    [
        (Held("acme", "tenant", ""), True),
        (Held("acme", "pool", "advance"), True),
        (Held("acme", "task", "noop"), True),
        (Held("bolt", "tenant", ""), False),
        (Held("acme", "pool", "outbound"), False),
        (Held("acme", "task", "other"), False),
        (Held("acme", "node", "of a newer version"), False),
    ],
)
def test_what_has_not_begun_goes_back_when_it_is_held(ledgers: Ledgers, held: Held, goes_back: bool) -> None:
    ledger = ledgers.of("acme")
    job = ledger.enqueue(NewJob("noop")).id
    (lease,) = ledger.claim("advance", "w1").leases
    registry = Registry()
    registry.add(Task("noop", print))
    outbox = Outbox(ledgers, lambda news: None)
    crew = Crew([Pool("advance", 1, 0.02)], registry, outbox)
    crew.got(Row(1, "advance", lease, Hold(0.0, 0.0), 0.0, 0.0))

    crew.flush(held.holds)
    exchange(ledgers, outbox.posts(time.monotonic()))

    view = ledger.get(job)
    assert (view.status, view.attempts == ()) == (("pending", True) if goes_back else ("running", False))


def test_a_held_job_claimed_ahead_never_starts(worker: Start, shop: Shop, note: Path) -> None:
    for _ in range(200):
        shop.make("noop")
    worker(slots=1, ahead_ms=1_000)
    shop.ended(shop.make("noop"))
    hog = shop.make("steps", str(note), 0, background="1")
    first_line(note)
    behind = [shop.make("mark", str(note)) for _ in range(5)]
    wait_until(lambda: any(shop.view(job).status == "running" for job in behind), "one to be claimed ahead")

    Holds(shop.ledger).add(task="mark")

    wait_until(lambda: all(shop.view(job).status == "pending" for job in behind), "all of them to be back")
    Path(f"{note}.0").touch()
    shop.ended(hog)
    shop.ended(shop.make("noop"))
    assert [line for line in lines(note) if len(line) == 4] == [], "mark writes four words"
    Holds(shop.ledger).remove(task="mark")
    for job in behind:
        assert [attempt.number for attempt in shop.ended(job).attempts] == [1]


def test_a_job_of_a_task_that_is_not_registered_waits_and_the_others_run(worker: Start, shop: Shop) -> None:
    jobs = [shop.make("no.such.task") for _ in range(3)]
    process = worker(slots=1)

    for _ in range(3):
        shop.ended(shop.make("noop"))

    assert [shop.view(job).status for job in jobs] == ["pending"] * 3
    assert [shop.view(job).attempts for job in jobs] == [()] * 3
    assert process.said().count("'no.such.task' is not registered here") == 1


def test_a_burst_ends_though_there_are_jobs_of_a_task_that_is_not_registered(
    worker: Start, shop: Shop
) -> None:
    unknown = shop.make("no.such.task")
    known = shop.make("noop")

    process = worker(burst=True)

    assert process.process.wait(60) == 0
    assert shop.view(known).status == "succeeded"
    assert shop.view(unknown).status == "pending"


def test_a_worker_that_cannot_run_what_is_due_does_not_ask_in_a_circle(
    ledgers: Ledgers, clock: ServerClock, rows: list[Row]
) -> None:
    """It comes again with the next looks, which are made less and less often; a burst is over."""
    ledgers.of("acme").enqueue(NewJob("new"))
    claims = Claims(ledgers, clock, [EagerPool("advance", 2, 0.02)], "w1", 2.0, 5_000, rows.append, ["new"])

    for _ in range(6):
        exchange(ledgers, claims.posts(claims.next_look()))  # a look
        exchange(
            ledgers, claims.posts(time.monotonic())
        )  # the claim that follows, which moves it aside or finds it there

    now = time.monotonic()
    assert rows == []
    assert "claim" not in [post.call.script for post in claims.posts(now)]
    assert claims.next_look() > now
    assert claims.idle(now)
