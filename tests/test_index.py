"""The index over tenants: it holds no truth, so whatever is lost or late there costs a delay and never a job."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import permutations

import pytest

from tenure.lease.index import DUE, REAP, TenantIndex
from tenure.lease.jobs import News
from tenure.lease.ledger import LEASE_MS, Ledger, NewJob, new_token
from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import Fail, NextChunk, Succeed
from tenure.scripts import Index
from tenure.testing import START, Died, Faults

from .given import At, claim, running

ADVANCE = DUE + "advance"


def due(ledger: Ledger, queue: str = ADVANCE) -> list[str]:
    """The tenants that want a visit at the ledger's instant."""
    return ledger.index.take(queue, 100).tenants


# -- what the verbs tell it -------------------------------------------------------------------------------------------


def test_an_enqueue_makes_its_tenant_due(ledger: Ledger) -> None:
    ledger.enqueue(NewJob("report"))

    assert due(ledger) == ["acme"]


def test_a_job_for_later_makes_its_tenant_due_then(ledger: Ledger, at: At) -> None:
    ledger.enqueue(NewJob("report", when="+5000"))

    assert ledger.index.take(ADVANCE, 100).next_due_ms == START + 5_000
    assert due(at(START + 4_999)) == []
    assert due(at(START + 5_000)) == ["acme"]


def test_an_earlier_job_moves_the_visit_forward_and_a_later_one_does_not_move_it_back(ledger: Ledger) -> None:
    instants = [
        ledger.index.take(ADVANCE, 0).next_due_ms
        for when in (60_000, 30_000, 90_000)
        if ledger.enqueue(NewJob("report", when=f"+{when}"))
    ]

    assert instants == [START + 60_000, START + 30_000, START + 30_000]


def test_a_claim_that_empties_the_pool_ends_the_visits(ledger: Ledger) -> None:
    ledger.enqueue(NewJob("report"))

    claim(ledger)

    assert due(ledger) == []


def test_a_claim_that_finds_a_later_job_puts_the_visit_off(ledger: Ledger, at: At) -> None:
    ledger.enqueue(NewJob("report"))
    ledger.enqueue(NewJob("report", when="+5000"))

    claim(ledger)

    assert due(at(START + 4_999)) == []
    assert due(at(START + 5_000)) == ["acme"]


@pytest.mark.parametrize("outcome", [Fail("no luck", delay_ms=500), NextChunk(b"cursor", delay_ms=500)])
def test_a_job_that_comes_again_makes_its_tenant_due_again(
    ledger: Ledger, at: At, outcome: Fail | NextChunk
) -> None:
    ledger.settle(running(ledger), outcome)

    assert due(at(START + 499)) == []
    assert due(at(START + 500)) == ["acme"]


def test_a_reaped_job_makes_its_tenant_due(ledger: Ledger, at: At) -> None:
    running(ledger)

    at(START + LEASE_MS).reap()

    assert due(at(START + LEASE_MS)) == ["acme"]


# -- turns ------------------------------------------------------------------------------------------------------------


def test_tenants_take_turns(ledgers: Ledgers, at: At) -> None:
    for tenant in "abc":
        ledgers.of(tenant).enqueue(NewJob("report"))

    visits = [at(START + ms).index.take(ADVANCE, 1).tenants[0] for ms in range(1, 7)]

    assert sorted(visits[:3]) == ["a", "b", "c"]
    assert visits[3:] == visits[:3]


def test_a_visit_under_way_is_left_alone_for_a_while(ledger: Ledger, at: At) -> None:
    """And comes back by itself, if the visitor died."""
    running(ledger)
    ledger.index.put(ledger.standing())
    end = START + LEASE_MS

    first = at(end).index.take(REAP, 10, revisit_ms=1_000)
    second = at(end + 999).index.take(REAP, 10, revisit_ms=1_000)
    third = at(end + 1_001).index.take(REAP, 10, revisit_ms=1_000)

    assert (first.tenants, second.tenants, third.tenants) == (["acme"], [], ["acme"])


# -- late and lost news -----------------------------------------------------------------------------------------------


class LateIndex(TenantIndex):
    """An index to which news arrive when the test says so."""

    def __init__(self, real: TenantIndex) -> None:
        super().__init__(real.scripts, real.keys.namespace)
        self.held: list[list[News]] = []

    def put(self, news: Iterable[News]) -> None:
        self.held.append(list(news))


STEPS = ("claim", "enqueue", "news of the claim", "news of the enqueue")
ORDERS = [
    order
    for order in permutations(STEPS)
    if order.index("claim") < order.index("news of the claim")
    and order.index("enqueue") < order.index("news of the enqueue")
]


@pytest.mark.parametrize("order", ORDERS, ids=" > ".join)
@pytest.mark.parametrize("apart_us", [0, 1_000], ids=["same instant", "1 ms apart"])
def test_no_order_of_an_empty_claim_and_an_enqueue_strands_the_job(
    ledger: Ledger, order: tuple[str, ...], apart_us: int
) -> None:
    """The news of an empty claim must not undo the news of a job made after it."""
    ledger.enqueue(NewJob("earlier"))
    claim(ledger)
    late = {"claim": LateIndex(ledger.index), "enqueue": LateIndex(ledger.index)}
    claimed: list[str] = []

    def do(step: str, now: int) -> None:
        if step == "claim":
            worker = Ledger(ledger.scripts.at(now), ledger.keys, late["claim"])
            claimed.extend(lease.id for lease in worker.claim("advance", "two").leases)
        elif step == "enqueue":
            Ledger(ledger.scripts.at(now), ledger.keys, late["enqueue"]).enqueue(NewJob("report"))
        else:
            for news in late[step.removeprefix("news of the ")].held:
                ledger.index.put(news)

    for number, step in enumerate(order):
        do(step, START + number * apart_us // 1_000)

    assert claimed or due(ledger.at(START + 10)) == ["acme"]


SWEEP = [
    pytest.param(lambda ledger: ledger.enqueue(NewJob("report")), ADVANCE, START, id="a due job"),
    pytest.param(
        lambda ledger: ledger.enqueue(NewJob("report", when="+5000")),
        ADVANCE,
        START + 5_000,
        id="a job for later",
    ),
    pytest.param(lambda ledger: running(ledger), REAP, START + LEASE_MS, id="a running job"),
    pytest.param(
        lambda ledger: ledger.settle(running(ledger), Fail("", delay_ms=700)),
        ADVANCE,
        START + 700,
        id="a retry",
    ),
]


@pytest.mark.parametrize(("work", "queue", "when"), SWEEP)
def test_the_sweep_finds_all_work_though_every_hint_was_lost(
    ledger: Ledger, at: At, work: Callable[[Ledger], object], queue: str, when: int
) -> None:
    work(ledger)
    keys = Index(ledger.keys.namespace)
    for name in (ADVANCE, REAP):
        ledger.scripts.redis.unlink(keys("due", queue=name), keys("seen", queue=name))
    assert due(at(when), queue) == []

    cursor, tenants = ledger.index.sweep("0", 10)
    for tenant in tenants:
        assert tenant == "acme"
        ledger.index.put(ledger.standing())

    assert cursor == "0"
    assert due(at(when - 1), queue) == []
    assert due(at(when), queue) == ["acme"]


@pytest.mark.parametrize("die", ["die_before", "die_after"])
def test_a_process_that_dies_around_its_hint_leaves_work_for_the_sweep(
    ledger: Ledger, faults: Faults, die: str
) -> None:
    getattr(faults, die)("index_put")
    with pytest.raises(Died):
        ledger.enqueue(NewJob("report"))

    assert ledger.index.sweep("0", 10)[1] == ["acme"]
    assert [(news.queue, news.due_ms) for news in ledger.standing()] == [(ADVANCE, START)]


def test_the_sweep_walks_over_all_tenants(ledgers: Ledgers) -> None:
    names = {f"tenant-{number}" for number in range(500)}
    for name in names:
        ledgers.index.register(name)

    found, cursor = set[str](), "0"
    while True:
        cursor, some = ledgers.index.sweep(cursor, 50)
        found |= set(some)
        if cursor == "0":
            break

    assert found == names


def test_old_news_is_passed_over(ledger: Ledger) -> None:
    ledger.index.put([News("acme", ADVANCE, START, version=7)])

    ledger.index.put([News("acme", ADVANCE, None, version=6)])

    assert due(ledger) == ["acme"]


def test_a_finished_tenant_is_visited_no_more(ledger: Ledger, at: At) -> None:
    lease = running(ledger)
    ledger.index.put(ledger.standing())
    ledger.settle(lease, Succeed())

    later = at(START + LEASE_MS)
    assert due(later, REAP) == ["acme"]
    later.reap()

    assert due(later, REAP) == []
    assert due(later) == []


def test_a_late_word_that_nothing_runs_does_not_hide_a_claim(ledger: Ledger, at: At) -> None:
    """A reaper that saw nothing running is overtaken by a claim, and its news arrives last."""
    ledger.enqueue(NewJob("report"))
    seen = ledger.index.take(REAP, 0)
    before = News("acme", REAP, None, START * 1_000)

    lease = claim(ledger)
    ledger.index.put([before])

    assert seen.next_due_ms is None
    assert due(at(lease.expires_at), REAP) == ["acme"]


def test_a_later_lease_does_not_move_the_reapers_visit_back(ledger: Ledger, at: At) -> None:
    first = running(ledger)
    running(at(START + 30_000), worker="another")

    assert due(at(first.expires_at), REAP) == ["acme"]


def guess(ledger: Ledger, due_ms: int | None) -> None:
    """What a worker tells before each claim: a lease may end then."""
    ledger.index.put([News("acme", REAP, due_ms, 0)])


def test_a_guess_before_the_claim_calls_for_a_visit_though_the_worker_dies_right_after_it(
    ledger: Ledger, at: At
) -> None:
    ledger.enqueue(NewJob("report"))

    guess(ledger, START + LEASE_MS)

    assert due(at(START + LEASE_MS), REAP) == ["acme"]


def test_the_guesses_of_a_busy_tenants_workers_do_not_put_off_the_visit_to_a_dead_ones_lease(
    ledger: Ledger, at: At
) -> None:
    """The worker died before it could tell what the claim answered: its guess is all that the index has."""
    ledger.enqueue(NewJob("report"))
    guess(ledger, START + LEASE_MS)
    ledger.scripts.run(ledger.claim_call("advance", "dead", 1, new_token()))

    for after_ms in range(1_000, LEASE_MS, 1_000):
        guess(ledger, START + after_ms + LEASE_MS)

    assert due(at(START + LEASE_MS), REAP) == ["acme"]


@pytest.mark.parametrize("due_ms", [None, START + 1, START + 2 * LEASE_MS])
def test_a_guess_does_not_open_the_door_to_old_news(ledger: Ledger, at: At, due_ms: int | None) -> None:
    """What the index knows of the claim stays newer than the word of a reaper that saw nothing before it."""
    before = News("acme", REAP, None, START * 1_000)
    lease = running(ledger)

    guess(ledger, due_ms)
    ledger.index.put([before])

    assert due(at(lease.expires_at), REAP) == ["acme"]
