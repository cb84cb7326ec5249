"""A small world on a virtual clock, all of it drawn from one seed: workers, a producer, a reaper, schedulers, a person.

Each actor is a generator that pauses after every verb, so that any of the others may come in between. Faults strike at
the calls themselves: the process dies before or after one, or a reply is lost. Who dies is started again and knows
nothing; who loses a reply asks again. After every call the invariants are checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import TypeVar

from tenure.lease.batches import Batches, BatchState
from tenure.lease.ids import fire_id
from tenure.lease.instances import Instances
from tenure.lease.jobs import DUE, REAP, Lease, News
from tenure.lease.ledger import LEASE_MS, Ledger, NewJob, new_token
from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import Fail, GiveBack, Lose, NextChunk, Outcome, SkipRest, Stopped, Succeed
from tenure.lease.tasks import Task
from tenure.scheduler.fire_record import Fire
from tenure.scheduler.plan import month
from tenure.scheduler.scheduler import Scheduler
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.trigger import Trigger
from tenure.scripts import Scripts
from tenure.scripts.errors import Conflict, InstanceEnded, StaleFence, StoreUnreachable
from tenure.scripts.loader import Arg
from tenure.testing import START, Died, Faults, Invariants, dump

T = TypeVar("T")
Actor = Iterator[None]

TENANTS = ("acme", "other")
TRIES = 20
OUTCOMES: list[Outcome] = [
    Succeed(b"done"),
    Succeed(b"done" * 40),
    SkipRest("nothing to do"),
    NextChunk(b"cursor", done=1, total=3),
    Fail("no luck", delay_ms=2_000),
    Fail("never", permanent=True),
    Lose("exit code -9"),
    GiveBack(),
    GiveBack(started=False),
]
FIELDS: list[dict[str, Arg]] = [
    {},
    {"priority": "0"},
    {"priority": "9"},
    {"background": "1"},
    {"concurrency_key": "a"},
    {"concurrency_key": "a", "priority": "0"},
    {"concurrency_key": "b", "concurrency_limit": "2"},
    {"instance": "order", "exclusive": "1"},
]
BY_HAND: list[tuple[str, Callable[[Ledger, str], object]]] = [
    ("cancel", lambda ledger, job_id: ledger.cancel(job_id, "changed my mind")),
    ("cancel", lambda ledger, job_id: ledger.cancel(job_id, "changed my mind")),
    ("skip", lambda ledger, job_id: ledger.skip(job_id, "not worth it")),
    ("retry", lambda ledger, job_id: ledger.retry(job_id)),
    ("retry", lambda ledger, job_id: ledger.retry(job_id, args=b"others")),
    ("batch", lambda ledger, job_id: Batches(ledger).retry([job_id])),
    ("batch", lambda ledger, job_id: Batches(ledger).skip([job_id, job_id])),
    ("reschedule", lambda ledger, job_id: ledger.reschedule(job_id, when="+0", priority=1)),
]

INSTANCES = ("order-1", "order-2")
WORDS: list[tuple[str, Callable[[Instances, str], object]]] = [
    *2 * [("pause", lambda instances, name: instances.pause(name, "stock count"))],
    *3 * [("resume", lambda instances, name: instances.resume(name))],
    ("end", lambda instances, name: instances.end(name)),
]


class World:
    def __init__(self, scripts: Scripts, namespace: str, seed: int) -> None:
        self.random = Random(seed)
        self.faults = Faults(after_each=self._look)
        self.scripts = Scripts(scripts.redis, START, self.faults, library=scripts.library)
        self.namespace = namespace
        self.now = START
        self.strict = True
        self.calm = False
        self.acknowledged: dict[str, str] = {}
        """Jobs whose enqueue was answered, with their tenants."""
        self.settled: Counter[str] = Counter()
        """How often an outcome that ends the job was accepted."""
        self.seen: Counter[str] = Counter()
        """What happened, and how often."""
        self.events: list[str] = []
        self.invariants = Invariants()
        self.actors: dict[str, Callable[[str], Actor]] = {
            "producer": self.producer,
            "worker one": self.worker,
            "worker two": self.worker,
            "reaper": self.reaper,
            "sweep": self.sweep,
            "scheduler one": self.scheduler,
            "scheduler two": self.scheduler,
            "person": self.person,
            "another person": self.another_person,
        }
        self.running: dict[str, Actor] = {}

    # -- the loop -----------------------------------------------------------------------------------------------------

    def run(self, steps: int) -> None:
        """Live through `steps` steps with faults, then as long as it takes without, until nothing is left to do."""
        for tenant in TENANTS:
            schedules = Schedules(self.ledgers().of(tenant))
            schedules.put("tick", Task("tick", print), [Trigger("default", "0 * * * * ?")])
        for _ in range(steps):
            self._pass_time()
            self._plan_a_fault()
            self._step(self.random.choice(list(self.actors)))
        self._settle_down()

    def ledgers(self) -> Ledgers:
        return Ledgers(self.scripts.at(self.now), self.namespace)

    def ledger(self, tenant: str) -> Ledger:
        return self.ledgers().of(tenant)

    def _step(self, name: str) -> None:
        actor = self.running.get(name) or self.actors[name](name)
        self.running[name] = actor
        try:
            next(actor)
        except StopIteration:
            del self.running[name]
        except Died:
            self._note("death", name)
            del self.running[name]
        except StoreUnreachable:
            self._note("round given up", name)
            del self.running[name]

    def _pass_time(self) -> None:
        """Mostly a little; sometimes past a lease; now and then the server's clock steps back."""
        by = self.random.choice([0, 0, 0, 0, 1, 1, 10, 100, 1_000, 1_000, 3_000, LEASE_MS // 2])
        self.now += by if self.random.random() < 0.98 else -by

    def _plan_a_fault(self) -> None:
        if self.random.random() < 0.2:
            fault = self.random.choice(
                [self.faults.die_before, self.faults.die_after, self.faults.lose_reply]
            )
            scripts = [
                "enqueue",
                "claim",
                "settle",
                "renew",
                "reap",
                "fire",
                "cancel",
                "retry",
                "reschedule",
                "batch_begin",
                "batch_work",
                "instance_flag",
                "instance_walk",
                "index_put",
                "triggers_due",
            ]
            fault(self.random.choice(scripts))
        if self.random.random() < 0.02:
            self.scripts.redis.execute_command("FUNCTION FLUSH")
            self._note("flush")

    def _settle_down(self) -> None:
        """No more faults and no new work: within bounded time every job has ended and every due fire its record."""
        self.calm, self.strict = True, False
        self.faults.forget()
        deadline = self.now + 10 * LEASE_MS
        names = [name for name in self.actors if name not in ("producer", "person", "another person")]
        for tenant in TENANTS:
            for instance in INSTANCES:
                with suppress(InstanceEnded):
                    Instances(self.ledger(tenant)).begin(instance, "")  # a reaper goes on with it
        while self._unfinished():
            assert self.now < deadline, f"long after the last fault there is still work: {self._unfinished()}"
            self.now += 1_000
            for name in names:
                for _ in range(5):
                    self._step(name)
        self.invariants.check(dump(self.scripts.redis, self.namespace))

    def _unfinished(self) -> list[str]:
        states = [(tenant, state) for tenant in TENANTS for _, state in self.ledger(tenant).counts()]
        batches = [(tenant, batch) for tenant in TENANTS for batch in Batches(self.ledger(tenant)).newest()]
        return [
            *(
                f"{state} in {tenant}"
                for tenant, state in states
                if state in ("pending", "running", "paused")
            ),
            *(f"a batch in {tenant}" for tenant, batch in batches if batch.state is BatchState.RUNNING),
        ]

    def _look(self) -> None:
        self.events.append(f"{self.now - START:>9} {self.faults.calls[-1]}")
        if self.strict:
            self.invariants.check(dump(self.scripts.redis, self.namespace))

    def _note(self, what: str, more: str = "") -> None:
        self.seen[what] += 1
        self.events.append(f"{self.now - START:>9} -- {what} {more}")

    # -- the actors ---------------------------------------------------------------------------------------------------

    def again(self, call: Callable[[], T]) -> T:
        """Ask until there is an answer: a lost reply is sent again."""
        for _ in range(TRIES):
            try:
                return call()
            except StoreUnreachable:
                self._note("lost reply")
        raise AssertionError("every reply was lost")

    def producer(self, _name: str) -> Actor:
        tenant = self.random.choice(TENANTS)
        key = self.random.choice([None, None, "one", "two"])
        job = NewJob(
            "work",
            when=f"+{self.random.choice([0, 0, 0, 3_000])}",
            idempotency_key=key,
            unique_mode="active",
            id=fire_id(tenant, "an id that follows from the seed", "", self.now + len(self.events)),
            fields=self.random.choice(FIELDS) | self.membership(),
        )
        answer = self.again(lambda: self.ledger(tenant).enqueue(job))
        self.acknowledged[answer.id] = tenant
        yield

    def membership(self) -> dict[str, str]:
        flags = self.random.choice([{"pausable": "1"}, {"pausable": "1"}, {"cleared_on_end": "1"}, {}])
        return self.random.choice([{}, {"instance": self.random.choice(INSTANCES)} | flags])

    def worker(self, name: str) -> Actor:
        for tenant in self.ledgers().index.take(DUE + "advance", 2).tenants:
            self.ledgers().index.put([News(tenant, REAP, self.now + LEASE_MS, 0)])
            yield
            call = self.ledger(tenant).claim_call("advance", name, self.random.randint(1, 3), new_token())
            claimed = self.again(lambda call=call: self.scripts.at(self.now).run(call))
            yield
            self.again(lambda claimed=claimed: self.ledgers().index.put(claimed.all_news))
            for lease in claimed.leases:
                yield from self.work(tenant, lease)
        yield

    def work(self, tenant: str, lease: Lease) -> Actor:
        for _ in range(self.random.choice([0, 0, 1, 2])):
            yield
            if isinstance(self.again(lambda: self.ledger(tenant).renew([lease]))[0], StaleFence):
                self._note("renewal refused")
                return
        outcome: Outcome = Succeed() if self.calm else self.random.choice(OUTCOMES)
        yield
        try:
            self.again(lambda: self.ledger(tenant).settle(lease, outcome))
        except StaleFence:
            self._note("outcome refused")
            yield
            self.again(lambda: self.ledger(tenant).settle(lease, Stopped()))
            self._note("stopped")
        else:
            self._note(type(outcome).__name__)
            self.settled[lease.id] += isinstance(outcome, (Succeed, SkipRest))
        yield

    def reaper(self, _name: str) -> Actor:
        for tenant in self.ledgers().index.take(REAP, 10, revisit_ms=1_000).tenants:
            ended = self.again(self.ledger(tenant).reap)
            self.seen["reaped"] += len(ended)
            yield
        yield

    def sweep(self, _name: str) -> Actor:
        for tenant in sorted(self.ledgers().index.sweep(100, 500, 10_000).tenants):
            yield
            self.ledgers().index.put(self.ledger(tenant).standing())
        yield

    def scheduler(self, name: str) -> Actor:
        if not self.calm:
            self.again(Scheduler(self.ledgers(), name).round)
        yield

    def person(self, _name: str) -> Actor:
        if self.acknowledged and self.random.random() < 0.7:
            job_id, tenant = self.random.choice(list(self.acknowledged.items()))
            verb, act = self.random.choice(BY_HAND)
            try:
                self.again(lambda: act(self.ledger(tenant), job_id))
                self._note(verb)
            except Conflict:
                self._note(f"{verb} refused")
        yield

    def another_person(self, _name: str) -> Actor:
        """Speaks of instances, in small steps: who dies in one leaves the rest to a reaper."""
        if self.random.random() < 0.7:
            tenant, instance = self.random.choice(TENANTS), self.random.choice(INSTANCES)
            verb, say = self.random.choice(WORDS)
            try:
                self.again(lambda: say(Instances(self.ledger(tenant), step=2), instance))
                self._note(verb)
            except InstanceEnded:
                self._note(f"{verb} refused")
        yield

    # -- what can be asked afterwards ---------------------------------------------------------------------------------

    def fires(self, tenant: str) -> list[Fire]:
        schedules = Schedules(self.ledger(tenant))
        return schedules.fires("tick", month=month(START), limit=10_000)[0][::-1]
