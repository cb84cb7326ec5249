"""Named leases: one holder at a time, renewed and released only by it, and a fence that only grows."""

from __future__ import annotations

import threading
import time
from itertools import permutations

import pytest

from tenure import Tenure
from tenure.lease.jobs import REAP
from tenure.lease.leases import SHORTEST_MS, Leases, NamedLease
from tenure.lease.ledger import LEASE_MS, Ledger
from tenure.scripts import Call
from tenure.scripts.errors import BadInput, LeaseLost, LeaseTaken, StaleFence, StoreUnreachable
from tenure.testing import START, Faults

from .given import At, Store, running

TTL = 30_000


def leases(ledger: Ledger) -> Leases:
    """The named leases at the ledger's instant."""
    return Leases(ledger.scripts, ledger.keys, ledger.index, lambda: ledger.scripts.redis)


# -- one holder -------------------------------------------------------------------------------------------------------


def test_a_free_lease_is_taken_and_a_taken_one_is_refused(ledger: Ledger, store: Store) -> None:
    leases(ledger).take("stock", TTL)

    with store.unchanged(), pytest.raises(LeaseTaken, match=f"over in {TTL} ms"):
        leases(ledger).take("stock", TTL)


def test_a_lease_is_free_at_its_end_and_not_a_millisecond_before(ledger: Ledger, at: At) -> None:
    first = leases(ledger).take("stock", TTL)

    with pytest.raises(LeaseTaken):
        leases(at(START + TTL - 1)).take("stock", TTL)
    second = leases(at(START + TTL)).take("stock", TTL)

    assert second.fence > first.fence


def test_a_released_lease_is_free_at_once(ledger: Ledger) -> None:
    first = leases(ledger).take("stock", TTL)

    assert leases(ledger).release(first)

    assert leases(ledger).take("stock", TTL).fence > first.fence


def test_a_holder_shows_who_it_is_and_its_fence_both(ledger: Ledger, store: Store) -> None:
    """Neither is enough: an owner may have held the lease before, and a fence is no secret."""
    held = leases(ledger).take("stock", TTL)
    others = [
        NamedLease("stock", held.owner, held.fence + 1, TTL, 0.0),
        NamedLease("stock", "another", held.fence, TTL, 0.0),
    ]

    with store.unchanged():
        for other in others:
            assert not leases(ledger).release(other)
            with pytest.raises(StaleFence):
                leases(ledger).renew(other)


def test_the_wake_up_for_who_waits_is_there_for_a_minute(ledger: Ledger, store: Store) -> None:
    leases(ledger).release(leases(ledger).take("stock", TTL))

    assert 0 < int(store.redis.pttl(ledger.keys("handover", name="stock"))) <= 60_000


def test_a_fence_never_comes_again_though_the_lease_was_forgotten(
    ledger: Ledger, at: At, store: Store
) -> None:
    first = leases(ledger).take("stock", TTL)
    at(START + TTL).reap()
    assert not [name for name in store.dump() if ":l:" in name]

    assert leases(at(START - TTL)).take("stock", TTL).fence > first.fence


def test_leases_of_different_names_do_not_meet(ledger: Ledger) -> None:
    for name in ("stock:1", "stock:2", "st:{ock}", "naïve name"):
        leases(ledger).take(name, TTL)


# -- renewal ----------------------------------------------------------------------------------------------------------


def test_a_renewal_counts_from_now(ledger: Ledger, at: At) -> None:
    lease = leases(ledger).take("stock", TTL)

    leases(at(START + TTL - 1)).renew(lease)

    with pytest.raises(LeaseTaken, match="over in 1 ms"):
        leases(at(START + 2 * TTL - 2)).take("stock", TTL)


def test_a_holder_that_came_late_keeps_the_lease_if_nobody_took_it(ledger: Ledger, at: At) -> None:
    lease = leases(ledger).take("stock", TTL)

    leases(at(START + 5 * TTL)).renew(lease)

    assert leases(at(START + 5 * TTL)).release(lease)


def test_a_lease_taken_over_cannot_be_renewed_or_released_by_the_old_holder(
    ledger: Ledger, at: At, store: Store
) -> None:
    old = leases(ledger).take("stock", TTL)
    later = leases(at(START + TTL))
    new = later.take("stock", TTL)

    with store.unchanged():
        with pytest.raises(StaleFence, match=f"held under fence {new.fence}, you held {old.fence}"):
            later.renew(old)
        assert later.release(old) is False


STEPS = ("release by A", "expiry", "take by B", "take by C")


@pytest.mark.parametrize("order", list(permutations(STEPS)), ids=" > ".join)
def test_a_late_release_never_frees_the_lease_of_another(ledger: Ledger, order: tuple[str, ...]) -> None:
    """Check, then delete, in two steps lets a third client steal: here each order of four events leaves one holder."""
    a = leases(ledger).take("stock", TTL)
    now, held = ledger, [a]
    for step in order:
        if step == "expiry":
            now, held = ledger.at(START + TTL), []
        elif step == "release by A":
            released = leases(now).release(a)
            assert released or a not in held
            held = [lease for lease in held if lease is not a]
        else:
            try:
                held.append(leases(now).take("stock", TTL))
            except LeaseTaken:
                assert held, f"refused at {step}, though nobody holds it"
            assert len(held) == 1
    for holder in held:
        leases(now).renew(holder)


def test_any_thread_may_renew_and_release(ledger: Ledger) -> None:
    lease = leases(ledger).take("stock", TTL)
    errors: list[BaseException] = []

    def run(call: object) -> None:
        try:
            call(lease)  # type: ignore[operator]
        except BaseException as exc:
            errors.append(exc)

    for call in (leases(ledger).renew, leases(ledger).release):
        thread = threading.Thread(target=run, args=(call,))
        thread.start()
        thread.join()

    assert errors == []
    assert leases(ledger).take("stock", TTL)


# -- lost replies -----------------------------------------------------------------------------------------------------


def test_a_take_sent_again_by_the_same_owner_gives_the_same_lease(ledger: Ledger, store: Store) -> None:
    args: dict[str, str | int] = {"name": "stock", "owner": "me", "ttl": TTL}
    call = Call("lease_take", ledger.keys.home, args, list)
    ledger.index.register(ledger.tenant)
    first = ledger.scripts.run(call)

    with store.unchanged():
        assert ledger.scripts.run(call) == first
        assert ledger.at(START + TTL - 1).scripts.run(call) == first
    fence, expiry, _ = ledger.at(START + TTL).scripts.run(call)
    assert (fence > first[0], int(expiry)) == (True, START + 2 * TTL)


@pytest.mark.parametrize("script", ["lease_renew", "lease_release"])
def test_a_renewal_or_release_sent_again_is_one(ledger: Ledger, faults: Faults, script: str) -> None:
    lease = leases(ledger).take("stock", TTL)
    call = leases(ledger).renew if script == "lease_renew" else leases(ledger).release
    faults.lose_reply(script)
    with pytest.raises(StoreUnreachable):
        call(lease)

    assert call(lease) in (None, False)


# -- what the holder knows --------------------------------------------------------------------------------------------


def test_a_holder_without_a_confirmed_renewal_knows_that_it_lost(ledger: Ledger) -> None:
    """By its own monotonic clock, counted from before the call was sent: it needs no answer from anybody."""
    lease = leases(ledger).take("stock", TTL)
    lease.check()

    lease.confirm(time.monotonic() - TTL / 1000)

    assert lease.lost
    with pytest.raises(LeaseLost, match="no renewal was confirmed"):
        lease.check()


def test_a_fenced_write_that_was_refused_is_a_stale_fence(ledger: Ledger) -> None:
    lease = leases(ledger).take("stock", TTL)
    lease.require(True)

    with pytest.raises(StaleFence, match=str(lease.fence)):
        lease.require(False)


@pytest.mark.parametrize("name", ["", "a\nb", "a\0b", "x" * 201, "ä" * 101])
def test_a_name_that_cannot_be_one_is_refused(ledger: Ledger, name: str) -> None:
    with pytest.raises(BadInput, match="lease name"):
        leases(ledger).take(name, TTL)


def test_a_ttl_too_short_to_be_kept_is_refused(ledger: Ledger) -> None:
    with pytest.raises(BadInput, match=f"at least {SHORTEST_MS} ms"):
        leases(ledger).take("stock", SHORTEST_MS - 1)


# -- the index --------------------------------------------------------------------------------------------------------


def test_a_long_named_lease_does_not_hide_a_jobs_lease_from_the_reaper(ledger: Ledger, at: At) -> None:
    running(ledger)
    ledger.index.put(ledger.standing())
    leases(ledger).take("stock", 60 * LEASE_MS)

    due = at(START + LEASE_MS).index.take(REAP, 10)

    assert due.tenants == ["acme"]


def test_a_reap_says_when_the_next_lease_of_either_kind_ends(ledger: Ledger, at: At) -> None:
    running(ledger)
    leases(ledger).take("stock", 2 * LEASE_MS)

    at(START + LEASE_MS).reap()

    assert at(START + LEASE_MS).index.take(REAP, 0).next_due_ms == START + 2 * LEASE_MS


# -- through the application, on the server's clock -------------------------------------------------------------------


def test_a_waiting_holder_gets_the_lease_when_it_is_released(app: Tenure) -> None:
    waiting, order = threading.Event(), list[str]()

    def second() -> None:
        waiting.set()
        with app.lease("stock", ttl="30s", wait="20s"):
            order.append("second")

    with app.lease("stock", ttl="30s"):
        thread = threading.Thread(target=second)
        thread.start()
        waiting.wait()
        order.append("first")
    thread.join(timeout=10)

    assert order == ["first", "second"]


def test_a_lease_outlives_its_ttl_while_its_block_runs(app: Tenure) -> None:
    with app.lease("stock", ttl=2) as lease:
        until = time.monotonic() + 4
        while time.monotonic() < until:
            with pytest.raises(LeaseTaken), app.lease("stock"):
                pass
            lease.check()

    with app.lease("stock"):
        pass


def test_the_fences_of_many_threads_grow_in_the_order_they_hold_it(app: Tenure) -> None:
    fences: list[int] = []

    def work() -> None:
        for _ in range(5):
            with app.lease("stock", ttl="10s", wait="30s") as lease:
                fences.append(lease.fence)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(fences) == 40
    assert fences == sorted(set(fences))
