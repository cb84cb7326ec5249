"""The index over tenants: it holds no truth, so whatever is lost or late there costs a delay and never a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import groupby, pairwise, permutations
from typing import Any

import pytest
from redis import RedisCluster
from redis.exceptions import ConnectionError

from tenure.lease.census import EVERY_MS, PAUSE_S, Census
from tenure.lease.index import KNOWN_S, TenantIndex
from tenure.lease.jobs import DUE, FIRE, REAP, News
from tenure.lease.ledger import LEASE_MS, Ledger, NewJob, new_token
from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import Fail, NextChunk, Succeed
from tenure.lease.sweep import PAUSE_MS, ROUND_MS, TENANTS, Sweep
from tenure.lease.workers import SEEN_MS, Heartbeat, WorkerState
from tenure.scripts import Index, Keys, Scripts
from tenure.scripts.errors import StoreUnreachable
from tenure.scripts.loader import texts
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
    ledgers: Ledgers, ledger: Ledger, at: At, work: Callable[[Ledger], object], queue: str, when: int
) -> None:
    work(ledger)
    keys = Index(ledger.keys.namespace)
    for name in (ADVANCE, REAP):
        ledger.scripts.redis.unlink(keys("due", queue=name), keys("seen", queue=name))
    assert due(at(when), queue) == []

    Sweep(ledgers).round()

    assert due(at(when - 1), queue) == []
    assert due(at(when), queue) == ["acme"]


@pytest.mark.parametrize("die", ["die_before", "die_after"])
def test_a_process_that_dies_around_its_hint_leaves_work_for_the_sweep(
    ledgers: Ledgers, ledger: Ledger, faults: Faults, die: str
) -> None:
    getattr(faults, die)("index_put")
    with pytest.raises(Died):
        ledger.enqueue(NewJob("report"))

    Sweep(ledgers).round()

    assert due(ledger) == ["acme"]


def later(ledgers: Ledgers, after_ms: int) -> Ledgers:
    return Ledgers(ledgers.scripts.at(START + after_ms), ledgers.namespace)


def walk(ledgers: Ledgers, for_ms: int, processes: int = 1) -> Counter[str]:
    """Which tenants the sweep reads, how often, when all processes ask in each half second."""
    found = Counter[str]()
    for after_ms in range(0, for_ms, PAUSE_MS):
        for _ in range(processes):
            found.update(later(ledgers, after_ms).index.sweep(TENANTS, PAUSE_MS, ROUND_MS).tenants)
    return found


@pytest.mark.parametrize(("tenants", "seconds"), [(3, 10), (500, 10), (2_000, 10), (5_000, 26)])
@pytest.mark.parametrize("processes", [1, 3])
def test_the_sweep_walks_over_all_tenants_once_in_a_time_that_is_known(
    ledgers: Ledgers, tenants: int, seconds: int, processes: int
) -> None:
    """And no more often when there are more processes."""
    names = {f"tenant-{number}" for number in range(tenants)}
    ledgers.index.register(*names)

    found = walk(ledgers, seconds * 1_000, processes)

    assert set(found) == names
    assert sum(found.values()) < 1.2 * tenants


def test_a_sweep_that_finds_no_tenant_looks_again_soon(ledgers: Ledgers, ledger: Ledger) -> None:
    """They may have been lost, and the census about to find them."""
    assert walk(ledgers, 2 * PAUSE_MS) == {}

    ledger.index.register("acme")

    assert later(ledgers, 2 * PAUSE_MS).index.sweep(TENANTS, PAUSE_MS, ROUND_MS).tenants == ["acme"]


def test_a_page_of_the_sweep_is_three_round_trips(ledgers: Ledgers, faults: Faults) -> None:
    for number in range(50):
        ledgers.of(f"tenant-{number}").enqueue(NewJob("report"))
    faults.calls.clear()

    Sweep(ledgers).round()

    assert Counter(faults.calls) == {"index_sweep": 1, "standing": 50, "index_put": 50}
    assert [script for script, _ in groupby(faults.calls)] == ["index_sweep", "standing", "index_put"]


def test_a_page_of_the_sweep_is_not_read_a_millisecond_before_its_time(
    ledgers: Ledgers, ledger: Ledger
) -> None:
    ledger.index.register("acme")
    wait = ledger.index.sweep(TENANTS, PAUSE_MS, ROUND_MS).wait_ms

    early = later(ledgers, wait - 1).index.sweep(TENANTS, PAUSE_MS, ROUND_MS)

    assert (early.tenants, early.wait_ms) == ([], 1)
    assert later(ledgers, wait).index.sweep(TENANTS, PAUSE_MS, ROUND_MS).tenants == ["acme"]


@pytest.mark.parametrize("damage", [b"no number", b"99999999999999999999", b"-7"])
def test_a_damaged_place_of_the_sweep_does_not_end_it(
    ledgers: Ledgers, ledger: Ledger, damage: bytes
) -> None:
    ledger.index.register("acme")
    for field in ("cursor", "next"):
        ledger.scripts.redis.hset(Index(ledgers.namespace)("walk"), field, damage)

    assert set(walk(ledgers, ROUND_MS)) == {"acme"}


def test_a_tenant_that_cannot_be_read_is_said_once_and_holds_up_nobody(
    ledgers: Ledgers, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    ledger.enqueue(NewJob("report"))
    lose_hints(ledger)
    ledgers.index.register("broken")
    home = Keys(ledgers.namespace, "broken").home
    ledger.scripts.redis.set(home, "garbage")

    sweep = Sweep(ledgers)
    for after_ms in (0, ROUND_MS):
        sweep._ledgers = later(ledgers, after_ms)
        sweep.round()

    assert due(ledger) == ["acme"]
    assert [record.message[:30] for record in caplog.records] == ["tenant broken cannot be read, "]
    ledger.scripts.redis.delete(home)


def test_a_due_time_that_is_no_instant_is_looked_at(ledgers: Ledgers, ledger: Ledger) -> None:
    ledger.enqueue(NewJob("report"))
    lose_hints(ledger)
    ledger.scripts.redis.hset(ledger.keys.home, ADVANCE, "garbage")

    Sweep(ledgers).round()

    assert due(ledger) == ["acme"]
    claim(ledger)


# -- the index itself is lost -----------------------------------------------------------------------------------------


def lose_hints(ledger: Ledger) -> None:
    keys = Index(ledger.keys.namespace)
    for name in (ADVANCE, REAP, FIRE):
        ledger.scripts.redis.unlink(keys("due", queue=name), keys("seen", queue=name))


def lose_index(ledger: Ledger, *names: str) -> None:
    lose_hints(ledger)
    for name in names or ("tenants", "walk"):
        ledger.scripts.redis.unlink(Index(ledger.keys.namespace)(name))


def take_census(census: Census, rounds: int = 10_000) -> int:
    """Let it run until it has made its pass, if it makes one; how many rounds that took."""
    for number in range(rounds):
        if census.round() > PAUSE_S:
            return number
    raise AssertionError("it never ends")


@pytest.mark.parametrize("lost", [("tenants", "walk"), ("tenants",), ("walk",)])
def test_the_census_finds_all_tenants_again_and_the_sweep_their_work(
    ledgers: Ledgers, ledger: Ledger, lost: tuple[str, ...]
) -> None:
    names = [f"tenant-{number}" for number in range(30)]
    for name in names:
        ledgers.of(name).enqueue(NewJob("report"))
    take_census(Census(ledgers))
    lose_index(ledger, *lost)

    take_census(Census(ledgers))
    Sweep(later(ledgers, ROUND_MS)).round()

    assert sorted(due(ledger)) == sorted(names)


def test_one_lost_tenant_is_missed(ledgers: Ledgers, ledger: Ledger) -> None:
    for name in ("acme", "other"):
        ledgers.of(name).enqueue(NewJob("report"))
    take_census(Census(ledgers))
    ledger.scripts.redis.srem(Index(ledgers.namespace)("tenants"), "acme")

    take_census(Census(ledgers))

    assert set(walk(ledgers, ROUND_MS)) == {"acme", "other"}


def test_a_tenant_that_came_since_the_last_census_is_missed_too(ledgers: Ledgers) -> None:
    ledgers.index.register("acme")
    assert ledgers.index.census([], EVERY_MS, going=False)
    ledgers.index.register("other", "third")
    assert not ledgers.index.census([], EVERY_MS, going=False)

    ledgers.index.scripts.redis.srem(Index(ledgers.namespace)("tenants"), "other")

    assert ledgers.index.census([], EVERY_MS, going=False)


def test_who_makes_the_first_census_of_an_empty_store_is_not_told_to_begin_again(ledgers: Ledgers) -> None:
    assert not ledgers.index.census([], EVERY_MS, going=True)


def test_a_tenant_that_is_gone_for_good_is_looked_for_once(ledgers: Ledgers, ledger: Ledger) -> None:
    ledgers.index.register("acme", "gone")
    take_census(Census(ledgers))
    ledger.scripts.redis.srem(Index(ledgers.namespace)("tenants"), "gone")

    assert [take_census(Census(ledgers)) > 0 for _ in range(3)] == [True, False, False]


def test_a_census_is_taken_by_one_process_and_only_when_there_is_reason(
    ledgers: Ledgers, ledger: Ledger
) -> None:
    ledger.enqueue(NewJob("report"))

    first, second = Census(ledgers), Census(ledgers)
    passes = [take_census(one) > 0 for one in (first, second, first)]
    soon = take_census(Census(later(ledgers, EVERY_MS - 1))) > 0
    in_time = take_census(Census(later(ledgers, EVERY_MS))) > 0

    assert (passes, soon, in_time) == ([True, False, False], False, True)


def test_a_census_that_takes_longer_than_the_time_between_two_is_left_alone(ledgers: Ledgers) -> None:
    going, other = Census(ledgers), Census(later(ledgers, EVERY_MS + 1))
    assert going.round() == PAUSE_S

    going._ledgers = later(ledgers, EVERY_MS)
    going.round()

    assert other.round() > PAUSE_S


def test_a_census_that_fails_on_the_way_begins_again(
    ledgers: Ledgers, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(**_options: Any) -> Any:
        raise ConnectionError("gone")

    ledger.enqueue(NewJob("report"))
    lose_index(ledger)
    census = Census(ledgers)
    with monkeypatch.context() as broken:
        broken.setattr(ledgers.scripts.redis, "scan", gone)
        with pytest.raises(StoreUnreachable):
            census.round()

    take_census(census)

    assert set(walk(ledgers, ROUND_MS)) == {"acme"}


def test_the_census_reads_every_primary_of_a_cluster() -> None:
    class Node:
        def __init__(self, name: str) -> None:
            self.name = name

    class Cluster(RedisCluster):
        """Three primaries with two pages each."""

        def __init__(self) -> None: ...

        def __del__(self) -> None: ...

        def get_primaries(self) -> list[Any]:
            return [Node(name) for name in "abc"]

        def scan(self, cursor: int, target_nodes: Node, **_options: Any) -> Any:  # type: ignore[override]
            return {target_nodes.name: 1 - cursor}, [f"{target_nodes.name}{cursor}".encode()]

    pages = Scripts(Cluster()).pages("*", 10)

    assert [name for page in pages for name in page] == [b"a0", b"a1", b"b0", b"b1", b"c0", b"c1"]


def test_keys_that_only_look_like_a_tenants_home_are_no_tenants(ledgers: Ledgers, ledger: Ledger) -> None:
    ledger.enqueue(NewJob("report"))
    pushed = Keys(ledgers.namespace, "other")("handover", name="}:meta")
    strange = [f"{ledgers.namespace}:{{Not a Slug}}:meta", f"{ledgers.namespace}:{{@}}:meta"]
    ledger.scripts.redis.rpush(pushed, "x")
    for name in strange:
        ledger.scripts.redis.set(name, "x")
    lose_index(ledger)

    take_census(Census(ledgers))

    assert set(walk(ledgers, ROUND_MS)) == {"acme"}
    for name in [pushed, *strange]:
        ledger.scripts.redis.delete(name)


def test_a_process_that_lives_on_makes_its_tenant_known_again_within_a_minute(ledgers: Ledgers) -> None:
    now = 0.0
    index = TenantIndex(ledgers.scripts, ledgers.namespace, lambda: now)
    ledger = Ledger(ledgers.scripts, Keys(ledgers.namespace, "acme"), index)
    ledger.enqueue(NewJob("report"))
    lose_index(ledger)

    now = KNOWN_S - 1
    ledger.enqueue(NewJob("report"))
    before = set(walk(ledgers, ROUND_MS))
    now = KNOWN_S
    ledger.enqueue(NewJob("report"))

    assert before == set()
    ledger.scripts.redis.unlink(Index(ledgers.namespace)("walk"))
    assert set(walk(ledgers, ROUND_MS)) == {"acme"}


# -- order of news ----------------------------------------------------------------------------------------------------


def test_old_news_is_passed_over(ledger: Ledger) -> None:
    ledger.index.put([News("acme", ADVANCE, START, version=7)])

    ledger.index.put([News("acme", ADVANCE, None, version=6)])

    assert due(ledger) == ["acme"]


def test_news_of_a_tenant_makes_it_known(ledger: Ledger) -> None:
    ledger.index.put([News("acme", REAP, START, 1)])

    assert ledger.index.tenants() == ["acme"]


def test_the_index_says_whether_news_was_of_use(ledger: Ledger) -> None:
    said = [
        ledger.scripts.run(ledger.index.put_call(News("acme", REAP, due_ms, version)))
        for due_ms, version in [
            (START + 5_000, 0),  # a guess, the first there is
            (START + 6_000, 0),  # which can put nothing off
            (START + 4_000, 0),
            (None, 0),  # and end nothing
            (START + 7_000, 5),
            (START + 8_000, 4),  # older than what is known
            (START + 9_000, 5),
        ]
    ]

    assert said == [True, False, True, False, True, False, True]
    assert ledger.index.take(REAP, 0).next_due_ms == START + 9_000


def test_a_finished_tenant_is_visited_no_more(ledger: Ledger, at: At) -> None:
    lease = running(ledger)
    ledger.index.put(ledger.standing())
    ledger.settle(lease, Succeed())

    later = at(START + LEASE_MS)
    assert due(later, REAP) == ["acme"]
    later.reap()

    assert due(later, REAP) == []
    assert due(later) == []


def test_nothing_is_kept_of_a_tenant_that_wants_no_visit(ledger: Ledger) -> None:
    keys = Index(ledger.keys.namespace)

    for due_ms, version in ((START, 5), (None, 6)):
        ledger.index.put([News("acme", REAP, due_ms, version)])

    assert not ledger.scripts.redis.exists(keys("due", queue=REAP))
    assert not ledger.scripts.redis.exists(keys("seen", queue=REAP))


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


# -- the register of workers ------------------------------------------------------------------------------------------


def beat(ledgers: Ledgers, worker: str, after_ms: int = 0) -> None:
    said = Heartbeat("north", 7, "0.1.0", WorkerState.ACTIVE, {}, 3, 0, 0, 0, None)
    later(ledgers, after_ms).index.beat(worker, said)


def registered(ledgers: Ledgers) -> list[str]:
    return sorted(texts(ledgers.scripts.redis.hkeys(Index(ledgers.namespace)("workers"))))


@pytest.mark.parametrize("silent_ms", [SEEN_MS, -SEEN_MS])
def test_a_worker_is_forgotten_when_it_was_silent_for_too_long(ledgers: Ledgers, silent_ms: int) -> None:
    """Or was heard too far ahead, before the clock went back."""
    beat(ledgers, "old")

    beat(ledgers, "new", silent_ms)
    assert registered(ledgers) == ["new", "old"]
    beat(ledgers, "new", silent_ms + silent_ms // abs(silent_ms))
    assert registered(ledgers) == ["new"]


def test_of_many_silent_workers_eight_are_forgotten_at_a_time(ledgers: Ledgers) -> None:
    for number in range(20):
        beat(ledgers, f"old-{number}")
    ledgers.scripts.redis.hset(Index(ledgers.namespace)("workers"), "damaged", "no time at all")

    left = []
    for _ in range(4):
        beat(ledgers, "new", SEEN_MS + 1)
        left.append(len(registered(ledgers)))

    assert 22 - 8 <= left[0] <= 22 - 7
    assert all(before - after in (7, 8) for before, after in pairwise(left) if before > 8)
    for _ in range(4):
        beat(ledgers, "new", SEEN_MS + 1)
    assert registered(ledgers) == ["new"]
