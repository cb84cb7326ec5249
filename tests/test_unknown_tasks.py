"""Rolling deploys: a job of a task that a worker does not know goes at once to one that does, as no attempt."""

from __future__ import annotations

from typing import Any

from tenure.lease.jobs import DUE, Claim
from tenure.lease.ledger import Ledger, NewJob, new_token
from tenure.lease.outcome import GiveBack, Succeed
from tenure.lease.why import why
from tenure.testing import START

from .given import At, Store

NEW = "billing.new"


def put(ledger: Ledger, task: str = NEW, **job: Any) -> str:
    return ledger.enqueue(NewJob(task, **job)).id


def claim(ledger: Ledger, *unknown: str, want: int = 9, worker: str = "old") -> Claim:
    return ledger.scripts.run(ledger.claim_call("advance", worker, want, new_token(), unknown=unknown))


def ids(found: Claim) -> list[str]:
    return [lease.id for lease in found.leases]


def refuse(ledger: Ledger, found: Claim) -> None:
    for lease in found.leases:
        ledger.settle(lease, GiveBack(started=False, unknown=True))


def test_a_job_that_its_worker_does_not_know_is_no_attempt_and_goes_to_one_that_does(ledger: Ledger) -> None:
    job = put(ledger)
    refuse(ledger, claim(ledger))

    assert claim(ledger, NEW).reason == "task_unknown"
    view = ledger.get(job)
    assert (view.status, view.attempts, view.failures, view.losses) == ("pending", (), 0, 0)
    assert ledger.index.take(DUE + "advance", 9).tenants == ["acme"], (
        "a worker that knows it is not waited for"
    )
    assert ids(claim(ledger, worker="new")) == [job]


def test_a_worker_that_does_not_know_a_task_gets_all_others(ledger: Ledger) -> None:
    first = put(ledger)
    refuse(ledger, claim(ledger))
    new = [put(ledger) for _ in range(300)]
    old = [put(ledger, "report") for _ in range(3)]

    assert ids(claim(ledger, NEW)) == old
    assert ids(claim(ledger, worker="new", want=400)) == [first, *new]


def test_jobs_that_came_before_anybody_said_so_make_way(ledger: Ledger) -> None:
    """They stand in the queue; a worker that names the task need not be given them first."""
    new = [put(ledger) for _ in range(3)]
    old = put(ledger, "report")

    found = [job for _ in range(3) for job in ids(claim(ledger, NEW, want=2))]

    assert found == [old]
    assert ids(claim(ledger, worker="new")) == new


def test_jobs_of_a_key_make_way_too(ledger: Ledger) -> None:
    key = {"concurrency_key": "shop"}
    new = [put(ledger, fields=key) for _ in range(3)]
    old = put(ledger, "report", fields=key)

    found = [job for _ in range(3) for job in ids(claim(ledger, NEW))]

    assert found == [old]
    ledger.cancel(old)
    assert ledger.get(new[0]).blocker == "key_full"


def test_a_task_that_nobody_reports_any_more_is_like_any_other(ledger: Ledger, at: At, store: Store) -> None:
    put(ledger)
    refuse(ledger, claim(ledger))
    later = at(START + 600_001)

    ledger.settle(claim(ledger, worker="new").leases[0], Succeed())
    claim(later, worker="new")
    job = put(later)

    assert not store.redis.exists(ledger.keys("gates"))
    assert not [
        name for name in store.redis.hgetall(ledger.keys("meta")) if name.startswith((b"lines:", b"gates"))
    ]
    assert ids(claim(later, worker="new")) == [job]


def test_that_a_task_is_unknown_is_noted_now_and_then_and_not_with_each_claim(
    ledger: Ledger, at: At, store: Store
) -> None:
    put(ledger)
    refuse(ledger, claim(ledger))
    redis, gates = store.redis, ledger.keys("gates")
    noted = redis.hgetall(gates)

    claim(at(START + 29_999), NEW)
    assert redis.hgetall(gates) == noted
    claim(at(START + 30_000), NEW)
    assert redis.hgetall(gates) == {f"unknown {NEW}".encode(): f"{START + 30_000} 0".encode()}

    later = at(START + 629_999)
    assert put(later)
    assert len(redis.zrange(ledger.keys("queue", line=f"advance/{NEW}"), 0, -1)) == 2, "it is noted still"


def test_who_takes_jobs_of_a_task_notes_once_that_it_is_known(ledger: Ledger, at: At, store: Store) -> None:
    for _ in range(3):
        put(ledger)
    refuse(ledger, claim(ledger))
    claim(at(START + 5), worker="new", want=1)
    noted = store.redis.hgetall(ledger.keys("gates"))

    claim(at(START + 9), worker="new", want=1)

    assert noted == {f"unknown {NEW}".encode(): f"{START} {START + 5}".encode()}
    assert store.redis.hgetall(ledger.keys("gates")) == noted


def test_why_says_that_no_worker_knows_the_task_until_one_has_taken_a_job_of_it(
    ledger: Ledger, at: At
) -> None:
    first = put(ledger)
    refuse(ledger, claim(ledger))
    second = put(ledger)

    found = why(ledger.get(first))
    assert (found.verdict, found.since) == ("task_unknown", START)
    assert "no worker that knows billing.new has come by" in found.text

    assert ids(claim(at(START + 1), worker="new", want=1)) == [first]
    assert why(ledger.get(second)).verdict == "claimable"


def test_a_held_task_that_a_worker_does_not_know_is_held(ledger: Ledger) -> None:
    from tenure.lease.holds import Holds

    put(ledger)
    refuse(ledger, claim(ledger))
    Holds(ledger).add(task=NEW)

    assert claim(ledger, NEW).reason == "held"
    assert claim(ledger, worker="new").reason == "held"
