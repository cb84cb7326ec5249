"""The register of workers: who lives by the server's clock, who was seen, and that it mends itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tenure.lease.ledger import Ledger
from tenure.lease.workers import LIVE_MS, SEEN_MS, Heartbeat, Slots, WorkerState, unserved
from tenure.scripts import Index
from tenure.testing import START

from .given import At

SAID = Heartbeat(
    host="north",
    pid=7,
    version="0.1.0",
    state=WorkerState.ACTIVE,
    pools={"advance": Slots(1, 4), "outbound": Slots(0, 2)},
    tasks=3,
    succeeded=5,
    failed=1,
    age_ms=60_000,
    claimed_ms=2_000,
)


def names(ledger: Ledger) -> list[str]:
    return [worker.name for worker in ledger.index.workers()]


def register_size(ledger: Ledger) -> int:
    redis, key = ledger.scripts.redis, Index(ledger.keys.namespace)("workers")
    size = redis.hlen(key)
    assert isinstance(size, int)
    return size


def test_a_worker_is_read_as_it_said_with_its_times_on_the_servers_clock(ledger: Ledger, at: At) -> None:
    ledger.index.beat("w1", SAID)
    ledger.index.beat("w0", replace(SAID, claimed_ms=None))

    idle, worker = at(START + 1_000).index.workers()

    assert (worker.name, worker.host, worker.pid, worker.version, worker.state) == (
        "w1",
        "north",
        7,
        "0.1.0",
        "active",
    )
    assert (worker.started_at, worker.seen_at, worker.last_claim_at, worker.read_at) == (
        START - 60_000,
        START,
        START - 2_000,
        START + 1_000,
    )
    assert (worker.pools, worker.slots) == (SAID.pools, Slots(1, 6))
    assert (worker.tasks, worker.succeeded, worker.failed) == (3, 5, 1)
    assert (idle.name, idle.last_claim_at) == ("w0", None)


@pytest.mark.parametrize(
    ("later_ms", "live", "listed"),
    [
        (0, True, True),
        (LIVE_MS, True, True),
        (LIVE_MS + 1, False, True),
        (SEEN_MS, False, True),
        (SEEN_MS + 1, False, False),
    ],
)
def test_a_worker_lives_90_s_and_is_remembered_for_10_minutes(
    ledger: Ledger, at: At, later_ms: int, live: bool, listed: bool
) -> None:
    ledger.index.beat("w1", SAID)

    found = at(START + later_ms).index.workers()

    assert [worker.live for worker in found] == ([live] if listed else [])


def test_a_worker_that_has_ended_lives_no_more_and_was_seen(ledger: Ledger) -> None:
    ledger.index.beat("w1", SAID)

    ledger.index.beat("w1", replace(SAID, state=WorkerState.ENDED, pools={"advance": Slots()}))

    (worker,) = ledger.index.workers()
    assert (worker.live, worker.seen, worker.slots) == (False, True, Slots(0, 0))


def test_a_pool_is_served_by_who_lives_and_goes_on_claiming(ledger: Ledger, at: At) -> None:
    ledger.index.beat("stopping", replace(SAID, state=WorkerState.STOPPING))
    ledger.index.beat("suspended", replace(SAID, state=WorkerState.SUSPENDED, pools={"advance": Slots()}))
    pools = ["advance", "outbound", "other"]

    now, later = ledger.index.workers(), at(START + LIVE_MS + 1).index.workers()

    assert unserved(pools, now) == ["outbound", "other"]
    assert unserved(pools, later) == pools


def test_heartbeats_forget_the_workers_of_long_ago_a_few_at_a_time(ledger: Ledger, at: At) -> None:
    for number in range(20):
        ledger.index.beat(f"old{number}", SAID)
    later = at(START + SEEN_MS + 1)

    sizes = []
    for _ in range(3):
        later.index.beat("new", SAID)
        sizes.append(register_size(later))

    assert sizes[0] >= 21 - 8, "a heartbeat looks at eight at most"
    assert sizes[-1] == 1
    assert names(later) == ["new"]


def test_after_the_clock_went_back_an_old_heartbeat_from_ahead_is_no_sign_of_life(
    ledger: Ledger, at: At
) -> None:
    at(START + 3_600_000).index.beat("dead", SAID)

    ledger.index.beat("living", SAID)

    assert names(ledger) == ["living"]
    assert register_size(ledger) == 1


def test_a_lost_register_comes_back_with_the_next_heartbeat(ledger: Ledger) -> None:
    ledger.index.beat("w1", SAID)
    ledger.scripts.redis.delete(Index(ledger.keys.namespace)("workers"))
    assert names(ledger) == []

    ledger.index.beat("w1", SAID)

    assert names(ledger) == ["w1"]


def test_an_entry_that_cannot_be_read_hides_no_other(ledger: Ledger) -> None:
    key = Index(ledger.keys.namespace)("workers")
    ledger.index.beat("w1", SAID)
    for number, entry in enumerate(["", "x", f"{START} ", f"{START} []", f"{START} {{}}", b"\xff"]):
        ledger.scripts.redis.hset(key, f"odd{number}", entry)

    assert names(ledger) == ["w1"]


def test_a_large_register_is_read_whole_in_pages(ledger: Ledger) -> None:
    for number in range(1_200):
        ledger.index.beat(f"w{number:04}", SAID)

    assert names(ledger) == [f"w{number:04}" for number in range(1_200)]
