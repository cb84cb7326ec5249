"""What goes, goes whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail, NextChunk, Succeed
from tenure.testing import START

from .given import At, Store, claim, running

DAY_MS = 86_400_000


def succeed_one(ledger: Ledger, **job: Any) -> str:
    lease = running(ledger, **job)
    ledger.settle(lease, Succeed(b"r" * 100))
    return lease.id


def test_a_succeeded_job_goes_after_a_day_and_leaves_nothing(ledger: Ledger, at: At, store: Store) -> None:
    lease = running(ledger, args=b"a" * 100, idempotency_key="key", fields={"background": "1"})
    ledger.report(lease, doing=1, total=2, lines=["hello"])
    ledger.settle(lease, NextChunk(b"c" * 100, done=1, total=2))
    ledger.settle(claim(ledger), Fail("no luck", stack="here"))
    again = claim(at(ledger.get(lease.id).run_at))
    at(again.expires_at - 1).settle(again, Succeed(b"r" * 100))
    tomorrow = at(again.expires_at + DAY_MS)

    kept = succeed_one(tomorrow, task="other")

    assert [job.id for job in tomorrow.list().items] == [kept]
    assert tomorrow.counts() == {("other", "succeeded"): 1}
    assert not [key for key in store.dump() if lease.id in key]


def test_a_kept_key_is_free_when_its_job_has_gone(ledger: Ledger, at: At) -> None:
    first = succeed_one(ledger, idempotency_key="key")
    tomorrow = at(ledger.get(first).finished_at + DAY_MS)
    succeed_one(tomorrow)

    assert tomorrow.enqueue(NewJob("report", idempotency_key="key")).created


def test_at_most_two_go_for_each_that_comes(ledger: Ledger, at: At) -> None:
    old = [succeed_one(ledger) for _ in range(5)]
    tomorrow = at(ledger.get(old[0]).finished_at + DAY_MS)

    succeed_one(tomorrow)

    assert [job.id for job in tomorrow.get_many(old)] == old[2:]


def test_what_waits_for_a_person_does_not_go(ledger: Ledger, at: At) -> None:
    lease = running(ledger)
    ledger.settle(lease, Fail("no", permanent=True))
    much_later = at(lease.expires_at + 400 * DAY_MS)
    succeed_one(much_later)

    assert much_later.get(lease.id).status == "dead"


def test_a_journal_behind_a_job_that_does_not_go_keeps_its_bound(ledger: Ledger, at: At) -> None:
    dead = running(ledger)
    ledger.settle(dead, Fail("no", permanent=True))
    ids = [succeed_many(at(START + day * DAY_MS), 600) for day in range(1, 6)][-1]

    newest = at(START + 5 * DAY_MS)
    journal = newest.scripts.redis.llen(newest.keys("journal", task="report"))
    assert journal < 600 + 600 + 300, "the living, those of a day before, and some slack"
    pages = list(pages_of(newest))
    assert pages[: len(ids)] == ids[::-1]
    assert pages[-1] == dead.id


def succeed_many(ledger: Ledger, many: int) -> list[str]:
    ledger.enqueue_many([NewJob("report") for _ in range(many)])
    leases = [lease for _ in range(0, many, 50) for lease in ledger.claim("advance", "one", 50).leases]
    for at in range(0, many, 50):
        ends = [(lease.id, lease.fence, Succeed()) for lease in leases[at : at + 50]]
        ledger.scripts.run(ledger.settle_call(ends))
    return [lease.id for lease in leases]


def pages_of(ledger: Ledger) -> Iterator[str]:
    cursor = None
    while True:
        page = ledger.list(limit=100, cursor=cursor)
        yield from (job.id for job in page.items)
        cursor = page.next_cursor
        if cursor is None:
            return
