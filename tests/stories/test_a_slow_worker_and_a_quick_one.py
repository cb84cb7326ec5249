"""A worker holds a job by a lease that ends by itself. Who comes too late finds a higher fence, and writes nothing."""

from collections.abc import Callable

import pytest

from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Succeed
from tenure.scripts.errors import StaleFence


def test_a_slow_worker_cannot_undo_what_a_quick_one_did(ledger: Ledger, at: Callable[[int], Ledger]) -> None:
    job = ledger.enqueue(NewJob("report"))
    (slow,) = ledger.claim("advance", worker="slow").leases

    later = at(slow.expires_at)
    later.reap()
    (quick,) = later.claim("advance", worker="quick").leases
    later.settle(quick, Succeed(b"by the quick one"))

    with pytest.raises(StaleFence, match=f"you hold {slow.fence}"):
        later.settle(slow, Succeed(b"by the slow one"))
    assert quick.fence > slow.fence
    assert later.get(job.id).result == b"by the quick one"


def test_a_worker_that_renews_keeps_its_job(ledger: Ledger, at: Callable[[int], Ledger]) -> None:
    ledger.enqueue(NewJob("report"))
    (lease,) = ledger.claim("advance", worker="steady").leases

    for seconds in range(15, 301, 15):
        now = at(lease.run_at + seconds * 1_000)
        now.renew([lease])
        assert now.reap() == []

    now.settle(lease, Succeed())


def test_a_job_that_kills_three_workers_is_put_aside(ledger: Ledger, at: Callable[[int], Ledger]) -> None:
    job = ledger.enqueue(NewJob("poison"))
    now = ledger
    for worker in ("first", "second", "third"):
        (lease,) = now.claim("advance", worker).leases
        now = at(lease.expires_at)
        now.reap()

    found = now.get(job.id)
    assert (found.status, found.dead_reason) == ("dead", "lost_too_often")
    assert [attempt.worker for attempt in found.attempts] == ["first", "second", "third"]
