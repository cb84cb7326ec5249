"""Holds: what a person keeps from being claimed waits where nobody else waits for it, and comes back where it stood."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.lease.holds import Hold, Holds
from tenure.lease.jobs import DUE
from tenure.lease.ledger import Ledger, NewJob, new_token
from tenure.lease.outcome import Fail, GiveBack, NextChunk, Succeed
from tenure.lease.why import why
from tenure.scripts.errors import BadInput
from tenure.scripts.keys import wake_channel
from tenure.testing import START

from .given import At, Store, claimed_ids, running
from .listener import Listener

MINUTE = 60_000
HELD: list[dict[str, Any]] = [{}, {"pool": "advance"}, {"task": "report"}]
ids = pytest.mark.parametrize("held", HELD, ids=["tenant", "pool", "task"])


def put(ledger: Ledger, task: str = "report", **job: Any) -> str:
    return ledger.enqueue(NewJob(task, **job)).id


def claims(ledger: Ledger, want: int = 100, pool: str = "advance") -> list[str]:
    """All that can be claimed now, as a worker would that comes again as long as it is told to."""
    found: list[str] = []
    for _ in range(100):
        answer = ledger.claim(pool, "one", want)
        found += [lease.id for lease in answer.leases]
        if not (answer.leases or answer.again):
            return found
    raise AssertionError("it never comes to an end")


@ids
def test_what_is_held_is_not_claimed_until_it_is_released(ledger: Ledger, held: dict[str, Any]) -> None:
    before = put(ledger)
    Holds(ledger).add(**held, reason="stock count", by="ada")
    after = put(ledger)

    assert claims(ledger) == []
    assert ledger.claim("advance", "one").reason == "held"
    assert ledger.index.take(DUE + "advance", 9).tenants == [], "nobody has to ask in vain"
    assert Holds(ledger).remove(**held) is True

    assert ledger.index.take(DUE + "advance", 9).tenants == ["acme"]
    assert claims(ledger) == [before, after]


@ids
def test_a_hold_ends_by_itself_at_its_instant(ledger: Ledger, at: At, held: dict[str, Any]) -> None:
    job = put(ledger)
    Holds(ledger).add(**held, until="1m")

    assert claims(at(START + MINUTE - 1)) == []
    assert ledger.index.take(DUE + "advance", 0).next_due_ms == START + MINUTE
    assert claims(at(START + MINUTE)) == [job]
    assert Holds(at(START + MINUTE)).list() == []


@ids
def test_the_same_hold_again_changes_nothing(
    ledger: Ledger, at: At, store: Store, held: dict[str, Any]
) -> None:
    first, changed = Holds(ledger).add(**held, reason="stock count", by="ada")
    assert changed

    with store.unchanged():
        assert Holds(at(START + 5)).add(**held, reason="stock count", by="ada") == (first, False)
    other, changed = Holds(at(START + 5)).add(**held, reason="longer", by="bob", until="1h")
    assert changed
    assert (other.since, other.reason, other.by) == (START, "longer", "bob")
    assert Holds(ledger).remove(**held) is True
    with store.unchanged():
        assert Holds(ledger).remove(**held) is False


def test_the_holds_of_a_tenant_are_listed(ledger: Ledger) -> None:
    holds = Holds(ledger)
    assert holds.list() == []
    holds.add(task="report", reason="wrong numbers", until="1m")
    holds.add(pool="outbound", by="ada")
    holds.add(reason="stock count")

    assert holds.list() == [
        Hold("acme", "tenant", None, "stock count", "", START, None),
        Hold("acme", "pool", "outbound", "", "ada", START, None),
        Hold("acme", "task", "report", "wrong numbers", "", START, START + MINUTE),
    ]
    assert [hold.what for hold in holds.list()] == ["tenant acme", "pool outbound", "task report"]


def test_a_hold_leaves_other_tenants_pools_and_tasks_alone(ledgers: Any) -> None:
    acme, bolt = ledgers.of("acme"), ledgers.of("bolt")
    Holds(acme).add(task="report")
    Holds(acme).add(pool="outbound")
    Holds(bolt).add()
    mail = put(acme, "mail")
    put(acme)
    put(acme, "mail", pool="outbound")
    put(bolt)

    assert claims(acme) == [mail]
    assert claims(acme, pool="outbound") == claims(bolt) == []


def test_what_runs_goes_on_and_what_is_given_back_stays(ledger: Ledger) -> None:
    lease, given_back = running(ledger), running(ledger)
    chunked = running(ledger, fields={"background": "1"})
    Holds(ledger).add(task="report")

    ledger.settle(lease, Succeed())
    ledger.settle(given_back, GiveBack(started=False))
    ledger.settle(chunked, NextChunk(b"c", done=1))

    assert ledger.get(lease.id).status == "succeeded"
    assert claims(ledger) == []
    Holds(ledger).remove(task="report")
    assert sorted(claims(ledger)) == sorted([given_back.id, chunked.id])


def test_jobs_of_a_held_task_make_nobody_wait_and_come_back_in_order(ledger: Ledger) -> None:
    """A few hundred of them make way at each call; they stand where they stood when the hold ends."""
    held = [ledger.enqueue(NewJob("report")).id for _ in range(450)]
    mail = put(ledger, "mail")
    late = put(ledger, "mail")
    Holds(ledger).add(task="report")

    asked = 0
    found: list[str] = []
    while not found:
        asked += 1
        found = claimed_ids(ledger, 4)
    assert (found, asked) == ([mail, late], 4)

    more = put(ledger)
    Holds(ledger).remove(task="report")
    other = put(ledger, "mail")
    assert claims(ledger, 50) == [*held, more, other]


def test_a_claim_moves_so_many_jobs_aside_and_no_more(ledger: Ledger, store: Store) -> None:
    """Whatever stands at the head, no call is long."""
    ledger.enqueue_many([NewJob("report" if at % 2 else "mail") for at in range(400)])
    Holds(ledger).add(task="report")
    Holds(ledger).add(task="mail")

    assert ledger.claim("advance", "one", 9).again

    assert store.redis.zcard(ledger.keys("queue", line="advance")) >= 250


def test_jobs_of_a_held_task_do_not_stand_before_others_of_their_key(ledger: Ledger) -> None:
    key = {"concurrency_key": "shop"}
    held = [put(ledger, fields=key) for _ in range(300)]
    mail = put(ledger, "mail", fields=key)
    Holds(ledger).add(task="report")

    leases = [lease for _ in range(9) for lease in ledger.claim("advance", "one", 9).leases]
    assert [lease.id for lease in leases] == [mail]
    assert why(ledger.get(held[0])).verdict == "held_task"
    Holds(ledger).remove(task="report")
    assert claims(ledger) == [], "the key is full"
    ledger.settle(leases[0], Succeed())
    assert claims(ledger) == held[:1]


def test_the_urgent_and_the_earliest_are_found_over_all_lines(ledger: Ledger) -> None:
    """The order is that of one queue, whatever lines the jobs stand in."""
    Holds(ledger).add(task="report")
    order = [put(ledger, task, when=f"+{at}") for at, task in enumerate(["report", "mail", "report", "mail"])]
    first = put(ledger, fields={"priority": "0"})
    last = put(ledger, fields={"priority": "9"})
    Holds(ledger).remove(task="report")

    taken = claimed_ids(ledger.at(START + 10), 9)

    assert taken[:3] == [first, *order[:2]]
    assert set(taken) == {first, last, *order}


def test_a_line_of_a_task_that_nothing_holds_vanishes_when_it_is_empty(ledger: Ledger, store: Store) -> None:
    put(ledger)
    Holds(ledger).add(task="report")
    put(ledger)
    assert claims(ledger) == []
    Holds(ledger).remove(task="report")
    for lease_id in claims(ledger):
        ledger.cancel(lease_id)
    ledger.claim("advance", "one")

    meta = store.redis.hgetall(ledger.keys("meta"))
    assert not [name for name in meta if name.startswith((b"lines:", b"gates"))]
    assert not store.redis.exists(ledger.keys("gates"))


def test_a_job_that_stood_aside_comes_back_to_the_queue_when_nothing_holds_its_task(
    ledger: Ledger, at: At, store: Store
) -> None:
    """Else it would wait in a line at which nobody looks any more."""
    job = put(ledger)
    Holds(ledger).add(task="report")
    put(ledger)
    claims(ledger)
    Holds(ledger).remove(task="report")
    lease, other = ledger.claim("advance", "one", 9).leases
    ledger.settle(other, Succeed())
    assert ledger.claim("advance", "one").reason == "no_jobs"

    ledger.settle(lease, Fail("no luck", delay_ms=1_000))

    assert lease.id == job
    assert store.redis.zrange(ledger.keys("queue", line="advance"), 0, -1) == [job.encode()]
    assert claims(at(START + 1_000)) == [job]


def test_a_line_that_vanishes_leaves_those_of_other_tasks(ledger: Ledger) -> None:
    jobs: dict[str, str] = {}
    for task in ("report", "mail", "sync"):
        Holds(ledger).add(task=task)
        jobs[task] = put(ledger, task)
    assert claims(ledger) == []

    for task in ("mail", "report", "sync"):
        Holds(ledger).remove(task=task)
        assert claims(ledger) == [jobs[task]]
        ledger.cancel(jobs[task])


@ids
def test_a_hold_that_is_shortened_ends_when_it_says_now(ledger: Ledger, at: At, held: dict[str, Any]) -> None:
    job = put(ledger)
    Holds(ledger).add(**held, reason="a")
    assert claims(ledger) == []
    assert Holds(ledger).add(**held, reason="a", until="1m")[1]
    assert Holds(ledger).add(**held, reason="b", until="1m")[1], "another word is a change"

    assert ledger.index.take(DUE + "advance", 0).next_due_ms == START + MINUTE
    assert claims(at(START + MINUTE)) == [job]


def test_of_two_holds_the_longer_counts(ledger: Ledger, at: At) -> None:
    job = put(ledger)
    Holds(ledger).add(until="1m")
    Holds(ledger).add(pool="advance", until="2m")

    assert claims(at(START + MINUTE)) == []
    assert ledger.index.take(DUE + "advance", 0).next_due_ms == START + 2 * MINUTE
    Holds(at(START + MINUTE)).remove(pool="advance")
    assert claims(at(START + MINUTE)) == [job]


@ids
def test_a_hold_that_has_ended_is_forgotten_by_whoever_comes_by(
    ledger: Ledger, at: At, store: Store, held: dict[str, Any]
) -> None:
    put(ledger)
    Holds(ledger).add(**held, until="1m")
    claims(ledger)
    claims(at(START + MINUTE))
    claims(at(START + MINUTE))

    assert not store.redis.exists(ledger.keys("gates"))
    assert b"gates" not in store.redis.hgetall(ledger.keys("meta"))


@ids
def test_a_hold_that_has_ended_is_not_held_for_who_releases_it(
    ledger: Ledger, at: At, store: Store, held: dict[str, Any]
) -> None:
    Holds(ledger).add(**held, until="1m")

    assert Holds(at(START + MINUTE)).remove(**held) is False
    assert not store.redis.exists(ledger.keys("gates"))


@ids
def test_a_cancel_a_retry_and_another_time_find_a_held_job(
    ledger: Ledger, at: At, held: dict[str, Any]
) -> None:
    first, second, third = put(ledger), put(ledger), put(ledger)
    Holds(ledger).add(**held)
    assert claims(ledger) == []

    ledger.cancel(first)
    ledger.retry(first)
    ledger.reschedule(second, when="+60000")
    ledger.cancel(third)
    Holds(ledger).remove(**held)

    assert claims(ledger) == [first]
    assert claims(at(START + MINUTE)) == [second]


def test_a_held_job_that_is_not_due_yet_is_due_when_it_was(ledger: Ledger, at: At) -> None:
    Holds(ledger).add(task="report")
    job = put(ledger, when="+60000")
    assert claims(ledger) == []
    Holds(ledger).remove(task="report")

    assert claims(ledger) == []
    assert ledger.index.take(DUE + "advance", 0).next_due_ms == START + MINUTE
    assert claims(at(START + MINUTE)) == [job]


def test_every_pool_with_jobs_of_a_task_hears_of_its_release(ledger: Ledger) -> None:
    here, there = put(ledger), put(ledger, pool="outbound")
    Holds(ledger).add(task="report")
    assert claims(ledger) == claims(ledger, pool="outbound") == []

    Holds(ledger).remove(task="report")

    for pool, job in (("advance", here), ("outbound", there)):
        assert ledger.index.take(DUE + pool, 9).tenants == ["acme"]
        assert claims(ledger, pool=pool) == [job]


def test_what_is_held_is_listed_among_the_pending(ledger: Ledger) -> None:
    first = put(ledger)
    Holds(ledger).add(task="report")
    second = put(ledger)
    claims(ledger)

    assert [job.id for job in ledger.list(status="pending").items] == [first, second]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pool": "advance", "task": "report"}, "both given"),
        ({"pool": "No Pool"}, "not a pool name"),
        ({"task": "No Task"}, "task key"),
        ({"reason": "x" * 4001}, "at most 4000 characters"),
        ({"by": "a\nb"}, "printable"),
        ({"until": "0s"}, "until"),
        ({"until": "soon"}, "until"),
    ],
)
def test_a_hold_that_breaks_a_rule_is_refused(
    ledger: Ledger, store: Store, options: Any, message: str
) -> None:
    with store.unchanged(), pytest.raises(BadInput, match=message):
        Holds(ledger).add(**options)


def test_a_hold_until_an_instant_that_is_past_is_refused(ledger: Ledger, store: Store) -> None:
    from datetime import UTC, datetime

    ledger.index.register("acme")
    with store.unchanged(), pytest.raises(BadInput, match="would be over already"):
        Holds(ledger).add(until=datetime.fromtimestamp(START / 1000, UTC))


@ids
def test_why_says_who_holds_it_until_when_why_and_how_it_is_released(
    ledger: Ledger, held: dict[str, Any]
) -> None:
    job = put(ledger)
    Holds(ledger).add(**held, reason="stock count", by="ada", until="1m")

    found = why(ledger.get(job))

    what = next(iter(held), "tenant")
    assert (found.verdict, found.by, found.since, found.next) == (
        f"held_{what}",
        "ada",
        START,
        START + MINUTE,
    )
    assert "held by ada since 2026-09-21T14:13:20.000Z: stock count" in found.text
    option = f" --{what} {held[what]}" if held else " --all"
    assert found.do[0] == f"tenure hold remove{option} --tenant acme"


def test_a_claim_sent_again_answers_its_leases_though_all_is_held_since(ledger: Ledger) -> None:
    job = put(ledger)
    call = ledger.claim_call("advance", "one", 1, new_token())
    ledger.scripts.run(call)
    Holds(ledger).add()

    assert [lease.id for lease in ledger.scripts.run(call).leases] == [job]


def test_a_hold_is_told_to_workers(ledger: Ledger) -> None:
    listener = Listener(ledger.scripts.redis, wake_channel(ledger.keys.namespace))

    Holds(ledger).add(task="report")

    assert listener.heard() == ["hold acme task report"]
    listener.line.close()
