"""Whatever is held, limited, keyed and unknown: a claim returns what `why` says is claimable, and no limit is
passed. A thousand random states, against a plain-Python account of who may start.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from tenure.lease.holds import Holds
from tenure.lease.jobs import Lease
from tenure.lease.ledger import LEASE_MS, Ledger, NewJob, new_token
from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import Fail, GiveBack, NextChunk, Outcome, Stopped, Succeed
from tenure.lease.why import CLAIMABLE, why
from tenure.scripts.errors import TenureError
from tenure.scripts.states import State
from tenure.testing import START, Invariants, dump, wipe

LIVES = int(os.environ.get("TENURE_LIVES", "25"))
STATES = 40
"""Of each life so many states are looked at: a thousand in all."""
POOLS = ("advance", "outbound")
TASKS = ("a", "b", "c")
KEYS = (None, None, None, "x", "y")
PERIOD_MS = 60_000
WIDTH_MS = PERIOD_MS // 60
RATES = {"c": 3}
KEY_RATES = {"y": 4}
OUTCOMES: list[Outcome] = [
    *2 * [Succeed()],
    Fail("no luck", delay_ms=5_000),
    NextChunk(b"c"),
    GiveBack(),
    Stopped(),
]


@dataclass
class Seen:
    """A job as it is seen, with what the model needs of it."""

    id: str
    task: str
    pool: str
    key: str | None
    priority: int
    run_at: int


@dataclass
class Life:
    ledger: Ledger
    random: Random
    now: int = START
    jobs: dict[str, Seen] = field(default_factory=dict[str, Seen])
    leases: list[Lease] = field(default_factory=list[Lease])
    starts: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    unknown: set[str] = field(default_factory=set[str])
    """Tasks that the old worker has met."""

    @property
    def at(self) -> Ledger:
        return self.ledger.at(self.now)

    # -- what may happen ------------------------------------------------------------------------------------------

    def step(self) -> None:
        self.random.choice(
            [
                self.make,
                self.make,
                self.take,
                self.take,
                self.end,
                self.end,
                self.word,
                self.hold,
                self.wait,
                self.reap,
            ]
        )()

    def make(self) -> None:
        task, key = self.random.choice(TASKS), self.random.choice(KEYS)
        fields = {"priority": str(self.random.choice([5, 5, 5, 0]))}
        if task in RATES:
            fields["task_rate"] = f"{RATES[task]} {PERIOD_MS}"
        if key:
            fields |= {"concurrency_key": key, "concurrency_limit": "2"}
        if key in KEY_RATES:
            fields["key_rate"] = f"{KEY_RATES[key]} {PERIOD_MS}"
        when = self.random.choice([0, 0, 0, 0, 7_000])
        jobs = [
            NewJob(task, pool=self.random.choice(POOLS), when=f"+{when}", fields=fields)
            for _ in range(self.random.randint(1, 3))
        ]
        self.at.enqueue_many(jobs)
        for job in jobs:
            self.jobs[job.id] = Seen(job.id, task, job.pool, key, int(fields["priority"]), self.now + when)

    def take(self) -> None:
        """A claim of a worker that knows all tasks, or of an old one that does not know `b`."""
        old = self.random.random() < 0.4
        ignorant = sorted(self.unknown) if old else []
        found = self.claim(self.random.choice(POOLS), self.random.randint(1, 4), ignorant)
        for lease in found:
            if old and lease.task == "b":
                self.unknown.add("b")
                self.at.settle(lease, GiveBack(started=False, unknown=True))
            else:
                self.leases.append(lease)

    def claim(self, pool: str, want: int, unknown: list[str]) -> list[Lease]:
        call = self.at.claim_call(pool, "one", want, new_token(), unknown=unknown)
        found = self.at.scripts.run(call)
        self.at.index.put(found.all_news)
        for lease in found.leases:
            self.note_start(lease)
        return found.leases

    def note_start(self, lease: Lease) -> None:
        job = self.jobs[lease.id]
        for name, limits in ((job.task, RATES), (job.key, KEY_RATES)):
            if name in limits:
                self.starts.setdefault(str(name), []).append(self.now)

    def end(self) -> None:
        if not self.leases:
            return
        lease = self.leases.pop(self.random.randrange(len(self.leases)))
        outcomes: list[Outcome] = [
            Succeed(),
            Succeed(),
            Fail("no", delay_ms=5_000),
            NextChunk(b"c"),
            GiveBack(),
            Stopped(),
        ]
        try:
            self.at.settle(lease, self.random.choice(outcomes))
        except TenureError:
            self.at.settle(lease, Stopped())

    def word(self) -> None:
        if not self.jobs:
            return
        job_id = self.random.choice(list(self.jobs))
        words: list[Callable[[], object]] = [
            lambda: self.at.cancel(job_id),
            lambda: self.at.retry(job_id),
            lambda: self.at.reschedule(job_id, when="+0", priority=self.random.choice([0, 5])),
            lambda: self.at.reschedule(job_id, when="+3000"),
        ]
        with suppress(TenureError):
            self.random.choice(words)()

    def hold(self) -> None:
        what: dict[str, Any] = self.random.choice([{}, {"pool": "outbound"}, {"task": "a"}, {"task": "c"}])
        if self.random.random() < 0.6:
            Holds(self.at).remove(**what)
        else:
            Holds(self.at).add(**what, until=self.random.choice([None, "5s", "1m"]))

    def wait(self) -> None:
        self.now += self.random.choice([1, 500, 1_000, 4_000, 20_000, LEASE_MS])

    def reap(self) -> None:
        self.at.reap()

    # -- what must hold -------------------------------------------------------------------------------------------

    def look(self, seen: Counter[str]) -> None:
        """Compare verdicts, model and claims; the claims are made, and so the state goes on from there."""
        views = {view.id: view for view in self.at.get_many(list(self.jobs))}
        verdicts = {job_id: why(view).verdict for job_id, view in views.items()}
        for view in views.values():
            job = self.jobs[view.id]
            job.run_at, job.priority = view.run_at, view.priority
        seen.update(verdicts.values())
        expected = {
            job_id for job_id, view in views.items() if view.status is State.PENDING and self.is_open(job_id)
        }
        shown = {job_id for job_id, verdict in verdicts.items() if verdict in (CLAIMABLE, "task_unknown")}
        assert shown <= expected
        self.check_order_behind_keys(expected - shown, shown, verdicts)
        for pool in POOLS:
            self.claim_all(pool, shown)

    def is_open(self, job_id: str) -> bool:
        """Whether nothing but the order of its key keeps a pending job from being claimed, by the plain rules."""
        job, held = self.jobs[job_id], {(one.kind, one.name) for one in Holds(self.at).list()}
        if held & {("tenant", None), ("pool", job.pool), ("task", job.task)} or job.run_at > self.now:
            return False
        return self.may_start(job.task, RATES.get(job.task)) and self.has_room(job.key)

    def may_start(self, name: str, limit: int | None) -> bool:
        """Whole sixtieths of the period count as long as any of them is within it."""
        return limit is None or self.counted(name) < limit

    def counted(self, name: str) -> int:
        first = (self.now - PERIOD_MS) // WIDTH_MS
        return sum(start // WIDTH_MS >= first for start in self.starts.get(name, []))

    def has_room(self, key: str | None) -> bool:
        if key is None:
            return True
        redis: Any = self.ledger.scripts.redis
        holders = redis.hlen(self.ledger.keys("holders", key=f"u:{key}"))
        return holders < 2 and self.may_start(key, KEY_RATES.get(key))

    def check_order_behind_keys(self, behind: set[str], shown: set[str], verdicts: dict[str, str]) -> None:
        for job_id in behind:
            assert verdicts[job_id] == "behind_others_of_key", (self.jobs[job_id], verdicts[job_id])
            job = self.jobs[job_id]
            before = [
                one
                for one in (self.jobs[other] for other in shown)
                if (one.key, one.pool, one.priority) == (job.key, job.pool, job.priority)
            ]
            assert any((one.run_at, one.id) < (job.run_at, job.id) for one in before), "nobody goes before it"

    def claim_all(self, pool: str, shown: set[str]) -> None:
        """Everything that may be claimed in a pool, as a worker does that comes again as long as it is told to."""
        wanted = {job_id for job_id in shown if self.jobs[job_id].pool == pool}
        taken: list[str] = []
        for _ in range(50):
            call = self.at.claim_call(pool, "one", 100, new_token())
            found = self.at.scripts.run(call)
            self.at.index.put([found.news, found.reap])
            for lease in found.leases:
                self.note_start(lease)
                self.leases.append(lease)
            taken += [lease.id for lease in found.leases]
            if not (found.leases or found.again):
                break
        free = {job_id for job_id in wanted if not self.is_limited(self.jobs[job_id])}
        assert free <= set(taken), "claimable, and not claimed"
        for name, limit in (RATES | KEY_RATES).items():
            assert self.counted(name) <= limit
        for job_id in wanted - set(taken):
            assert self.was_filled_by_others(self.jobs[job_id]), (
                f"{self.jobs[job_id]} was claimable, and not claimed"
            )
        shown -= set(taken)

    def is_limited(self, job: Seen) -> bool:
        return job.task in RATES or job.key is not None

    def was_filled_by_others(self, job: Seen) -> bool:
        return not (self.may_start(job.task, RATES.get(job.task)) and self.has_room(job.key))


@pytest.mark.parametrize("seed", range(LIVES))
def test_a_claim_returns_what_why_says(ledgers: Ledgers, tenure_namespace: str, seed: int) -> None:
    life = Life(ledgers.of("acme"), Random(seed))
    invariants, seen = Invariants(), Counter[str]()
    redis = ledgers.scripts.redis

    for _ in range(STATES):
        for _ in range(life.random.randint(1, 6)):
            life.step()
        invariants.check(dump(redis, tenure_namespace))
        life.look(seen)
        invariants.check(dump(redis, tenure_namespace))

    wipe(redis, tenure_namespace)
    SEEN.update(seen)


SEEN: Counter[str] = Counter()


def test_all_verdicts_were_seen() -> None:
    """A test of states that never come about proves nothing about them."""
    if not SEEN:
        pytest.skip("no state was looked at")
    assert {
        CLAIMABLE,
        "not_due",
        "held_tenant",
        "held_pool",
        "held_task",
        "rate_limited",
        "task_unknown",
    } <= set(SEEN)
    assert {"key_full", "behind_others_of_key", "state_running", "state_canceled"} <= set(SEEN)
