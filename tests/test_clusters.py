"""Jobs that died of one thing stand in one cluster, as long as they are dead or failed.

That members, places and samples follow from the rows is an invariant, checked after each of these tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail, Lose, Outcome, Succeed
from tenure.scripts.fields import FIELDS
from tenure.scripts.states import Cause
from tenure.testing import START, Faults
from tenure.workers.fingerprint import failure

from .given import At, Store, claim, running

GONE = failure("KeyError", "shop.orders.sync", "order 7 is gone")
BUSY = failure("TimeoutError", "shop.bank.pay", "no answer in 30 s")


def die(ledger: Ledger, told: str = GONE, task: str = "report", **fields: Any) -> str:
    lease = running(ledger, task, fields=fields)
    ledger.settle(lease, Fail("KeyError: order 7 is gone", permanent=True, failure=told))
    return lease.id


def members(ledger: Ledger, store: Store) -> dict[str, list[str]]:
    """The ids of each cluster, in the order in which they died."""
    found: dict[str, list[str]] = {}
    for name, (_, value) in store.dump().items():
        if name.startswith(ledger.keys("cluster", fingerprint="")):
            found[name.rpartition(":")[2]] = [id_.decode() for id_ in sorted(value, key=value.get)]
    return found


def sample(ledger: Ledger, store: Store, told: str) -> str | None:
    _, samples = store.dump().get(ledger.keys("samples"), ("hash", {}))
    found = samples.get(told.partition("\n")[0].encode())
    return None if found is None else str(found.decode())


def name(told: str) -> str:
    return told.partition("\n")[0]


def test_jobs_that_die_of_one_kind_are_together_and_others_apart(
    ledger: Ledger, at: At, store: Store
) -> None:
    first, other, failed = die(ledger), die(at(START + 1), BUSY), die(at(START + 2), end_as="failed")

    assert members(ledger, store) == {name(GONE): [first, failed], name(BUSY): [other]}
    assert sample(ledger, store, GONE) == f"{START}\nKeyError\nshop.orders.sync\norder # is gone"


def test_an_attempt_that_is_tried_again_is_in_no_cluster(ledger: Ledger, store: Store) -> None:
    lease = running(ledger)

    ledger.settle(lease, Fail("KeyError", failure=GONE))

    assert members(ledger, store) == {}


def lost(ledger: Ledger) -> None:
    lease = running(ledger, fields={"max_lost": "1"})
    ledger.at(lease.expires_at).reap()


def overran(ledger: Ledger) -> None:
    lease = running(ledger, fields={"max_attempts": "1", "timeout": "1000"})
    ledger.at(lease.deadline).reap()


def expired(ledger: Ledger) -> None:
    ledger.enqueue(NewJob("report", fields={"start_by": "+1"}))
    ledger.at(START + 1).reap()


def settled(outcome: Outcome) -> Callable[[Ledger], None]:
    return lambda ledger: ledger.settle(
        running(ledger, fields={"max_attempts": "1", "max_lost": "1"}), outcome
    )


WITHOUT_AN_ERROR: dict[str, tuple[Callable[[Ledger], None], str]] = {
    "lease ended": (lost, "lease_lost"),
    "deadline passed": (overran, "timeout"),
    "not started in time": (expired, "expired"),
    "killed": (settled(Lose("exit code -9")), "killed"),
    "told that its time is up": (settled(Fail("told", Cause.TIMEOUT)), "timeout"),
    "result too large": (settled(Fail("too large", Cause.TOO_LARGE, permanent=True)), "too_large"),
    "a worker that tells no kind": (settled(Fail("ValueError: x")), "raised"),
}


@pytest.mark.parametrize("way", WITHOUT_AN_ERROR)
def test_what_dies_without_an_error_stands_under_its_cause(ledger: Ledger, store: Store, way: str) -> None:
    end, cause = WITHOUT_AN_ERROR[way]

    end(ledger)

    assert list(members(ledger, store)) == [cause]


LEAVE: dict[str, Callable[[Ledger, str], object]] = {
    "retry": lambda ledger, job_id: ledger.retry(job_id),
    "skip": lambda ledger, job_id: ledger.skip(job_id),
    "cancel": lambda ledger, job_id: ledger.cancel(job_id),
}


@pytest.mark.parametrize("way", LEAVE)
def test_a_job_leaves_its_cluster_and_the_last_one_takes_it_along(
    ledger: Ledger, store: Store, way: str
) -> None:
    first, second = die(ledger), die(ledger)

    LEAVE[way](ledger, first)
    left, kept = members(ledger, store), sample(ledger, store, GONE)
    LEAVE[way](ledger, second)

    assert left == {name(GONE): [second]}
    assert kept
    assert members(ledger, store) == {}
    assert sample(ledger, store, GONE) is None


def test_a_job_that_dies_of_something_else_in_its_next_round_is_there(ledger: Ledger, store: Store) -> None:
    job_id = die(ledger)
    ledger.retry(job_id)

    ledger.settle(claim(ledger), Fail("busy", permanent=True, failure=BUSY))

    assert members(ledger, store) == {name(BUSY): [job_id]}


def test_a_cluster_remembers_when_it_was_first_seen(ledger: Ledger, at: At, store: Store) -> None:
    first = die(ledger)
    die(at(START + 5))
    ledger.retry(first)

    assert sample(ledger, store, GONE) == f"{START}\nKeyError\nshop.orders.sync\norder # is gone"


def test_a_batch_of_deaths_is_one_cluster(ledger: Ledger, store: Store) -> None:
    jobs = [NewJob("report") for _ in range(64)]
    ledger.enqueue_many(jobs)
    leases = ledger.claim("advance", "one", 64).leases
    ends = [(lease.id, lease.fence, Fail("x", permanent=True, failure=GONE)) for lease in leases]

    ledger.scripts.run(ledger.settle_call(ends))

    assert {kind: len(ids) for kind, ids in members(ledger, store).items()} == {name(GONE): 64}


def test_a_death_that_is_told_twice_counts_once(ledger: Ledger, store: Store, faults: Faults) -> None:
    lease = running(ledger)
    end = Fail("x", permanent=True, failure=GONE)
    ledger.settle(lease, end)

    with store.unchanged():
        ledger.settle(lease, end)

    assert members(ledger, store) == {name(GONE): [lease.id]}


def test_a_job_that_succeeds_was_never_in_one(ledger: Ledger, store: Store) -> None:
    ledger.settle(running(ledger), Succeed())

    assert members(ledger, store) == {}


@pytest.mark.parametrize("way", LEAVE)
def test_a_job_that_died_before_there_were_clusters_is_handled_all_the_same(
    ledger: Ledger, store: Store, way: str
) -> None:
    """Its row has no fingerprint, and no cluster has it."""
    redis: Any = store.redis
    job_id = die(ledger)
    redis.hdel(ledger.keys("row", id=job_id), FIELDS["fingerprint"])
    redis.delete(
        ledger.keys("cluster", fingerprint=name(GONE)), ledger.keys("clusters"), ledger.keys("samples")
    )

    LEAVE[way](ledger, job_id)

    assert ledger.get(job_id).status == ("pending" if way == "retry" else "canceled")


def test_a_job_shows_what_it_died_of_as_long_as_it_is_dead(ledger: Ledger) -> None:
    job_id = die(ledger)
    assert ledger.get(job_id).fingerprint == name(GONE)

    ledger.retry(job_id)

    assert ledger.get(job_id).fingerprint is None
