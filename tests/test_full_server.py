"""A server whose memory is full takes no new work, and everything that ends or frees work still goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from tenure.lease.instances import Instances
from tenure.lease.leases import Leases
from tenure.lease.ledger import LEASE_MS, Ledger, NewJob
from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import Fail, NextChunk, Succeed
from tenure.scripts.errors import StoreFull
from tenure.testing import START, Server

from .given import PAUSABLE, At, Store, claim, running


def test_a_full_server_refuses_a_job_and_changes_nothing(
    ledger: Ledger, store: Store, fill: Callable[[], None]
) -> None:
    running(ledger)
    fill()

    with store.unchanged(), pytest.raises(StoreFull, match="maxmemory"):
        ledger.enqueue(NewJob("report", b"a" * 1000))


def test_a_full_server_gives_no_new_lease(ledger: Ledger, store: Store, fill: Callable[[], None]) -> None:
    leases = Leases(ledger.scripts, ledger.keys, ledger.index, lambda: ledger.scripts.redis)
    ledger.enqueue(NewJob("report"))
    fill()

    with store.unchanged(), pytest.raises(StoreFull):
        leases.take("stock", 30_000)


def test_work_under_way_is_renewed_and_brought_to_its_end(ledger: Ledger, fill: Callable[[], None]) -> None:
    jobs = [running(ledger, fields={"background": "1"}) for _ in range(4)]
    fill()

    assert ledger.renew(jobs) == [START + LEASE_MS] * 4
    ledger.report(jobs[0], cursor=b"c" * 100, done=1, total=2)
    ledger.settle(jobs[0], Succeed(b"r" * 100))
    ledger.settle(jobs[1], NextChunk(b"c" * 100, done=1))
    ledger.settle(jobs[2], Fail("no luck"))
    ledger.cancel(jobs[3].id)

    states = [ledger.get(job.id).status for job in jobs]
    assert states == ["succeeded", "pending", "pending", "canceled"]


def test_an_instance_is_suspended_and_goes_on(ledger: Ledger, fill: Callable[[], None]) -> None:
    """By a process that has made no job, too: whoever looks after a full server."""
    jobs = [running(ledger, fields=PAUSABLE), running(ledger, fields={**PAUSABLE, "background": "1"})]
    fill()
    fresh = Ledgers(ledger.scripts, ledger.keys.namespace).of(ledger.tenant)

    Instances(fresh, step=1).pause("order-7", "the disk is full", "ada")
    assert [ledger.get(job.id).status for job in jobs] == ["paused"] * 2
    Instances(fresh, step=1).resume("order-7")

    assert [ledger.get(job.id).status for job in jobs] == ["pending"] * 2


def test_lost_work_is_taken_back_and_named_leases_are_given_back(
    ledger: Ledger, at: At, fill: Callable[[], None]
) -> None:
    leases = Leases(ledger.scripts, ledger.keys, ledger.index, lambda: ledger.scripts.redis)
    lost = running(ledger)
    lease = leases.take("stock", 30_000)
    fill()

    leases.renew(lease)
    assert leases.release(lease)
    assert at(START + LEASE_MS).reap() == [(lost.id, "pending")]


def test_when_there_is_room_again_everything_goes_on(
    ledger: Ledger, tenure_server: Server, fill: Callable[[], None]
) -> None:
    job = NewJob("report")
    fill()
    with pytest.raises(StoreFull):
        ledger.enqueue(job)

    redis: Any = tenure_server.redis
    redis.config_set("maxmemory", 0)

    assert ledger.enqueue(job).created
    assert claim(ledger).id == job.id


def test_a_full_server_without_the_library_says_that_it_cannot_be_loaded(
    ledger: Ledger, tenure_server: Server, fill: Callable[[], None]
) -> None:
    """A new version's first call, or the first after the server lost its functions."""
    lease = running(ledger)
    fill()
    tenure_server.redis.execute_command("FUNCTION FLUSH")

    with pytest.raises(StoreFull, match=r"scripts of this version .* could not be loaded") as refused:
        ledger.settle(lease, Succeed())

    assert "raise maxmemory" in refused.value.hint
    cast(Any, tenure_server.redis).config_set("maxmemory", 0)
    ledger.settle(lease, Succeed())
