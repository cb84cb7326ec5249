"""Two who could meet, meeting at every step: in every order of their calls one of them holds the job."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, TypeVar

import pytest

from tenure.lease.instances import Instances
from tenure.lease.jobs import Lease
from tenure.lease.ledger import LEASE_MS, Ledger, NewJob
from tenure.lease.outcome import Fail, NextChunk, Succeed
from tenure.lease.walk import go_on
from tenure.scripts.errors import StaleFence, WrongState
from tenure.testing import START, Faults, Invariants

from .given import PAUSABLE, Store

T = TypeVar("T")
Steps = Iterator[str]
"""An actor: each `next` is one call to the ledger, and says what it was."""


def interleavings(first: int, second: int) -> list[str]:
    """All orders of `first` steps of A and `second` steps of B, as words like ABBA."""
    total = first + second
    return [
        "".join("A" if place in chosen else "B" for place in range(total))
        for chosen in combinations(range(total), first)
    ]


def play(order: str, actors: dict[str, Steps]) -> list[str]:
    """Let the actors step in this order; one that has ended passes."""
    return [f"{who}: {did}" for who in order if (did := next(actors[who], None))]


@pytest.fixture
def strict(store: Store, faults: Faults) -> Iterator[None]:
    """Check the invariants after every single call, not only at the end."""
    invariants = Invariants()
    faults.after_each = lambda: invariants.check(store.dump())
    yield
    faults.after_each = None


def work(ledger: Ledger, worker: str, done: list[str]) -> Steps:
    """Claim, renew, settle; stop at the first refusal."""
    leases = ledger.claim("advance", worker).leases
    yield "claim"
    for lease in leases:
        renewed = ledger.renew([lease])[0]
        yield "renew"
        if isinstance(renewed, StaleFence):
            return
        try:
            ledger.settle(lease, Succeed(worker.encode()))
            done.append(worker)
        except StaleFence:
            pass
        yield "settle"


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("order", interleavings(3, 3))
def test_two_workers_and_one_job(ledger: Ledger, order: str) -> None:
    job = ledger.enqueue(NewJob("report"))
    done: list[str] = []

    play(order, {"A": work(ledger, "A", done), "B": work(ledger, "B", done)})

    assert done == [order[0]], "who claimed first finishes, the other finds nothing"
    assert ledger.get(job.id).result == order[0].encode()


def reap_and_take(ledger: Ledger, done: list[str]) -> Steps:
    """The lease has ended: reap it, claim the job, settle it."""
    later = ledger.at(START + LEASE_MS)
    later.reap()
    yield "reap"
    yield from work(later, "B", done)


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("order", interleavings(3, 4))
def test_a_slow_worker_and_the_one_that_takes_over(ledger: Ledger, order: str) -> None:
    """A's clock stands still at the start of its lease; it believes in it at every step."""
    job = ledger.enqueue(NewJob("report"))
    done: list[str] = []

    play(order, {"A": work(ledger, "A", done), "B": reap_and_take(ledger, done)})

    assert len(done) <= 1
    assert ledger.get(job.id).result == "".join(done).encode()


def cancel(ledger: Ledger, job_id: str, done: list[str]) -> Steps:
    try:
        ledger.cancel(job_id)
        done.append("cancel")
    except WrongState:
        pass
    yield "cancel"


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("order", interleavings(3, 1))
def test_a_worker_and_a_person_who_cancels(ledger: Ledger, order: str) -> None:
    job = ledger.enqueue(NewJob("report"))
    done: list[str] = []

    play(order, {"A": work(ledger, "A", done), "B": cancel(ledger, job.id, done)})

    found = ledger.get(job.id)
    assert (found.status, done) in [("succeeded", ["A"]), ("canceled", ["cancel"])]
    assert not [attempt for attempt in found.attempts if attempt.status == "running"]


def chunks(ledger: Ledger, worker: str, kept: list[Lease]) -> Steps:
    """Two chunks: claim, end a chunk, claim again, succeed; a refusal ends it."""
    for outcome in (NextChunk(b"cursor", done=1, total=2), Succeed()):
        leases = ledger.claim("advance", worker).leases
        yield "claim"
        for lease in leases:
            try:
                ledger.settle(lease, outcome)
                kept.append(lease)
            except StaleFence:
                return
            yield "settle"


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("order", interleavings(4, 4))
def test_two_workers_share_the_chunks_of_one_task(ledger: Ledger, order: str) -> None:
    job = ledger.enqueue(NewJob("import", fields={"background": "1"}))
    kept: list[Lease] = []

    play(order, {"A": chunks(ledger, "A", kept), "B": chunks(ledger, "B", kept)})

    fences = [lease.fence for lease in kept]
    assert fences == sorted(set(fences))
    assert [attempt.number for attempt in ledger.get(job.id).attempts] == [1]


def enqueue(ledger: Ledger, who: str, made: list[str]) -> Steps:
    answer = ledger.enqueue(NewJob("report", idempotency_key="order-7", unique_mode="active"))
    made.append(answer.id)
    yield "enqueue"


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("order", interleavings(3, 2))
def test_a_key_and_the_end_of_the_job_that_holds_it(ledger: Ledger, order: str) -> None:
    """Whether a second enqueue finds the first job or makes a new one depends on one thing: has the first one ended?"""
    first = ledger.enqueue(NewJob("report", idempotency_key="order-7", unique_mode="active"))
    done: list[str] = []
    made: list[str] = []

    def twice() -> Steps:
        yield from enqueue(ledger, "B", made)
        yield from enqueue(ledger, "B", made)

    play(order, {"A": work(ledger, "A", done), "B": twice()})

    ended_before = [order[:place].count("A") == 3 for place, who in enumerate(order) if who == "B"]
    assert [job_id != first.id for job_id in made] == ended_before
    assert len(set(made) - {first.id}) <= 1


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("order", interleavings(2, 2))
def test_two_reapers_take_a_lost_job_back_once(ledger: Ledger, order: str) -> None:
    job = ledger.enqueue(NewJob("report"))
    ledger.claim("advance", "lost")
    later = ledger.at(START + LEASE_MS)
    reaped: list[str] = []

    def reaper() -> Steps:
        for _ in range(2):
            reaped.extend(job_id for job_id, _ in later.reap())
            yield "reap"

    play(order, {"A": reaper(), "B": reaper()})

    assert reaped == [job.id]
    assert ledger.get(job.id).losses == 1


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("order", interleavings(2, 2))
def test_a_time_out_and_the_workers_own_outcome(ledger: Ledger, order: str) -> None:
    """Both may come; the attempt ends once, with the cause of whoever was first."""
    job = ledger.enqueue(NewJob("report", fields={"timeout": "1000"}))
    (lease,) = ledger.claim("advance", "one").leases
    late = ledger.at(lease.deadline)

    def worker() -> Steps:
        for _ in range(2):
            try:
                late.settle(lease, Fail("too slow"))
            except StaleFence:
                yield "refused"
            yield "settled"

    def reaper() -> Steps:
        for _ in range(2):
            late.reap()
            yield "reap"

    play(order, {"A": worker(), "B": reaper()})

    found = ledger.get(job.id)
    assert found.failures == 1
    assert found.attempts[0].cause == ("raised" if order[0] == "A" else "timeout")


# -- a person who suspends, resumes or ends an instance ---------------------------------------------------------------


def say(ledger: Ledger, flag: str) -> Steps:
    """The flag, and the walk over two jobs, step by step: the last one sees that it is over."""
    epoch = Instances(ledger, step=1).begin("order-7", flag)
    yield "flag"
    while epoch and go_on(ledger, "order-7", epoch, steps=1, step=1):
        yield "walk"
    yield "over"


SAY = 3
MEMBER = {**PAUSABLE, "cleared_on_end": "1"}


def behind_another(ledger: Ledger, **job: Any) -> str:
    """A job that the walk comes to with its second step."""
    ledger.at(START - 1).enqueue(NewJob("report", when="+9999999999", fields={"instance": "order-7"}))
    return ledger.enqueue(NewJob("report", **{"fields": MEMBER, **job})).id


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("order", interleavings(3, SAY))
@pytest.mark.parametrize(("flag", "state"), [("suspended", "paused"), ("ended", "canceled")])
def test_a_worker_and_a_person_who_suspends_or_ends_its_instance(
    ledger: Ledger, flag: str, state: str, order: str
) -> None:
    """Either the outcome came first, or the worker is refused: never both, and never neither."""
    job_id = behind_another(ledger)
    done: list[str] = []

    play(order, {"A": work(ledger, "A", done), "B": say(ledger, flag)})

    found = ledger.get(job_id)
    assert (found.status, done) in [("succeeded", ["A"]), (state, [])]
    assert not [attempt for attempt in found.attempts if attempt.status == "running"]
    assert found.failures == found.losses == 0


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("order", interleavings(4, SAY))
def test_chunks_and_a_person_who_suspends_their_instance(ledger: Ledger, order: str) -> None:
    """A chunk that was accepted is kept, and the next one begins there when the instance is resumed."""
    job_id = behind_another(ledger, fields={**PAUSABLE, "background": "1"})
    kept: list[Lease] = []

    play(order, {"A": chunks(ledger, "A", kept), "B": say(ledger, "suspended")})
    before = ledger.get(job_id)
    Instances(ledger).resume("order-7")
    list(chunks(ledger, "B", kept))

    assert before.status == ("succeeded" if len(kept) == 2 and before.ended else "paused")
    assert before.cursor == (b"cursor" if before.chunk else b"")
    found = ledger.get(job_id)
    assert (found.failures, found.losses) == (0, 0)
    assert found.chunk == 1 or found.chunk == 2
    fences = [lease.fence for lease in kept]
    assert fences == sorted(set(fences))


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("order", interleavings(2, SAY))
@pytest.mark.parametrize(("flag", "state"), [("suspended", "paused"), ("ended", "canceled"), ("", "pending")])
def test_a_producer_and_a_person(ledger: Ledger, flag: str, state: str, order: str) -> None:
    """Whenever a job is made, it ends where the flag wants it."""
    made: list[str] = [behind_another(ledger)]
    if not flag:
        Instances(ledger).pause("order-7")

    def produce() -> Steps:
        for _ in range(2):
            made.append(ledger.enqueue(NewJob("report", when="+60000", fields=MEMBER)).id)
            yield "enqueue"

    play(order, {"A": produce(), "B": say(ledger, flag)})
    drain(ledger)

    assert [job.status for job in ledger.get_many(made)] == [state] * 3


def drain(ledger: Ledger) -> None:
    """Go on with whatever walk was left: a longer list of jobs takes more steps than an order of calls has."""
    go_on(ledger, "order-7")


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("order", interleavings(2, SAY))
@pytest.mark.parametrize(("flag", "state"), [("suspended", "paused"), ("ended", "canceled")])
def test_a_reaper_and_a_person(ledger: Ledger, flag: str, state: str, order: str) -> None:
    """A lost attempt ends as lost or as paused, and the job where the flag wants it."""
    job_id = behind_another(ledger)
    ledger.claim("advance", "lost")
    later = ledger.at(START + LEASE_MS)

    def reaper() -> Steps:
        for _ in range(2):
            later.reap()
            yield "reap"

    play(order, {"A": reaper(), "B": say(later, flag)})

    found = ledger.get(job_id)
    assert found.status == state
    assert (found.attempts[0].cause, found.losses) in [("lease_lost", 1), (state, 0)]


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("order", interleavings(SAY, SAY))
def test_the_last_word_on_an_instance_counts(ledger: Ledger, order: str) -> None:
    job_id = behind_another(ledger)
    Instances(ledger).pause("order-7")

    play(order, {"A": say(ledger, ""), "B": say(ledger, "suspended")})
    drain(ledger)

    last = "pending" if order.index("A") > order.index("B") else "paused"
    assert ledger.get(job_id).status == last


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("order", interleavings(3, SAY))
def test_a_person_who_cancels_a_job_and_one_who_resumes_its_instance(ledger: Ledger, order: str) -> None:
    job_id = behind_another(ledger)
    Instances(ledger).pause("order-7")
    done: list[str] = []

    def cancel_and_work() -> Steps:
        yield from cancel(ledger, job_id, done)
        yield from work(ledger, "A", done)

    play(order, {"A": cancel_and_work(), "B": say(ledger, "")})

    assert (ledger.get(job_id).status, done) == ("canceled", ["cancel"])
