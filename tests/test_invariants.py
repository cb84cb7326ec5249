"""The invariants have teeth: whatever is damaged in a store, one of them says so; a sound store is left in peace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tenure.lease.batches import Batches
from tenure.lease.instances import Instances
from tenure.lease.leases import Leases
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import Fail, NextChunk, Outcome, Succeed
from tenure.lease.tasks import Task
from tenure.scheduler.calendar_store import Calendars
from tenure.scheduler.plan import month
from tenure.scheduler.scheduler import Scheduler
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.trigger import Trigger
from tenure.scripts import Index
from tenure.testing import START, Invariants, Server, wipe

from .given import Store, paused, running

FIRE = START + 40_000


class Scene:
    """A store with some of everything, open to damage."""

    def __init__(self, ledger: Ledger) -> None:
        self.redis: Any = ledger.scripts.redis
        self.key = ledger.keys
        self.index = Index(ledger.keys.namespace)
        self.waiting = ledger.enqueue(NewJob("work", b"a" * 600, when="+60000", idempotency_key="one")).id
        self.cut = ledger.enqueue(NewJob("work", b"a" * 150, when="+60000")).id
        self.done = ended(ledger, Succeed(b"r"), idempotency_key="two", unique_mode="active")
        self.failed = ended(ledger, Fail("no luck", delay_ms=60_000))
        self.dead = ended(ledger, Fail("never", permanent=True))
        self.chunked = ended(
            ledger, NextChunk(b"c", done=1, total=2, delay_ms=60_000), fields={"background": "1"}
        )
        self.held = running(ledger, "work").id
        self.urgent = ledger.enqueue(NewJob("work", when="+60000", fields={"start_by": "+90000"})).id
        ledger.reschedule(self.waiting, priority=1)
        batches = Batches(ledger)
        self.batch = batches.plan("retry", "replay", [(self.dead, 1, ""), (self.done, 1, "WRONG_STATE")])
        batches.begin(self.batch)
        overdue = NewJob("work", fields={"start_by": "+0"})
        ledger.enqueue(overdue)
        ledger.reap()
        self.expired = overdue.id
        self.paused = paused(ledger).id
        self.cleared = ledger.enqueue(NewJob("work", fields={"instance": "old", "cleared_on_end": "1"})).id
        Instances(ledger).end("old")
        Leases(ledger.scripts, ledger.keys, ledger.index, lambda: ledger.scripts.redis).take("stock", 30_000)
        Schedules(ledger).put("tick", Task("tick", print), [Trigger("default", "0 * * * * ?")])
        Calendars(ledger).put("quiet", {"weekdays": ["SUN"]})
        Schedules(ledger).put("tock", Task("tick", print), [Trigger("a", "0 0 9 * * ?", calendar="quiet")])

    def row(self, job_id: str) -> str:
        return self.key("row", id=job_id)


def this_minute(scene: Scene) -> str:
    return scene.key("minute", slot=str(START // 60_000 % 61))


def ended(ledger: Ledger, outcome: Outcome, **job: Any) -> str:
    lease = running(ledger, "work", **job)
    ledger.settle(lease, outcome)
    return lease.id


@pytest.fixture
def scene(ledger: Ledger, tenure_server: Server, tenure_namespace: str) -> Iterator[Scene]:
    yield Scene(ledger)
    wipe(tenure_server.redis, tenure_namespace)


Damage = Callable[[Scene], object]

DAMAGES: list[tuple[str, str, Damage]] = [
    ("a foreign key", "I40", lambda s: s.redis.set(s.key.base + "odd", 1)),
    ("a key of the wrong type", "I40", lambda s: s.redis.set(s.key("queue", line="other"), 1)),
    ("a long field", "layout", lambda s: s.redis.hset(s.row(s.held), "b", "x" * 65)),
    ("an unknown field", "layout", lambda s: s.redis.hset(s.row(s.held), "odd", 1)),
    ("a piece gone", "layout", lambda s: s.redis.hdel(s.row(s.cut), "a+2")),
    ("a piece too many", "layout", lambda s: s.redis.hset(s.row(s.cut), "a+4", "x")),
    ("pieces beside a short value", "layout", lambda s: s.redis.hset(s.row(s.cut), "a", "x")),
    ("a long value gone", "layout", lambda s: s.redis.delete(s.key("blob", field="a", id=s.waiting))),
    ("a long value too many", "layout", lambda s: s.redis.set(s.key("blob", field="o", id=s.held), 1)),
    ("a row gone", "I3", lambda s: s.redis.delete(s.row(s.failed))),
    ("no entry in the queue", "I3", lambda s: s.redis.zrem(s.key("queue", line="advance"), s.failed)),
    ("an entry out of order", "I3", lambda s: s.redis.zincrby(s.key("queue", line="advance"), 1, s.failed)),
    ("running, but not in the set", "I3", lambda s: s.redis.zrem(s.key("running"), s.held)),
    ("in the set, but not running", "I3", lambda s: s.redis.zadd(s.key("running"), {s.done: 1})),
    ("a latest start that nobody looks at", "I3", lambda s: s.redis.delete(s.key("starts"))),
    ("a latest start of a running job", "I3", lambda s: s.redis.zadd(s.key("starts"), {s.held: START})),
    ("expired, but started", "I15", lambda s: s.redis.hset(s.row(s.dead), "R", "expired")),
    ("succeeded twice", "I3", lambda s: s.redis.rpush(s.key("succeeded"), s.done)),
    ("dead, but not among the dead", "I3", lambda s: s.redis.delete(s.key("stopped", state="dead"))),
    ("dead without a reason", "I3", lambda s: s.redis.hdel(s.row(s.dead), "R")),
    ("a count off by one", "I3", lambda s: s.redis.hincrby(s.key("counts"), "work|dead", 1)),
    ("a figure off by one", "I3", lambda s: s.redis.hincrby(s.key("figures"), "running|advance", 1)),
    ("a figure of jobs that try again", "I3", lambda s: s.redis.hdel(s.key("figures"), "again|work")),
    ("a claim of a task without jobs", "I3", lambda s: s.redis.hset(s.key("figures"), "claimed|gone", 1)),
    ("a wait that nobody had", "I14", lambda s: s.redis.hincrby(this_minute(s), "0|advance", 1)),
    ("a failure that is not counted", "I14", lambda s: s.redis.hincrby(this_minute(s), "f|work", -1)),
    ("a slot of another minute", "layout", lambda s: s.redis.hincrby(this_minute(s), "m", 1)),
    ("not in the journal", "I3", lambda s: s.redis.lrem(s.key("journal", task="work"), 0, s.held)),
    ("errors of nobody", "I3", lambda s: s.redis.hset(s.key("errors", id="nobody"), "1", "why")),
    (
        "an error of an attempt that runs",
        "I14",
        lambda s: s.redis.hset(s.key("errors", id=s.held), "1", "why"),
    ),
    (
        "a history of nobody",
        "I3",
        lambda s: s.redis.rpush(s.key("history", id="nobody"), "2\n1\nskip\nada\n"),
    ),
    ("a change by hand that is not told", "I5", lambda s: s.redis.hset(s.row(s.held), "g", "2")),
    ("a history of two revisions at once", "I5", lambda s: repeat_history(s, s.waiting)),
    ("a history ahead of its job", "I5", lambda s: s.redis.hset(s.row(s.waiting), "v", "1")),
    (
        "a verb that nobody knows",
        "I5",
        lambda s: s.redis.rpush(s.key("history", id=s.held), "2\n1\nodd\nada\n"),
    ),
    ("dead, but in no cluster", "I3", lambda s: s.redis.delete(s.key("cluster", fingerprint="expired"))),
    ("in the cluster of another", "I3", lambda s: s.redis.hset(s.row(s.dead), "fp", "other")),
    ("in a cluster and not dead", "I3", lambda s: s.redis.hset(s.row(s.held), "fp", "raised")),
    ("a cluster without a sample", "I3", lambda s: s.redis.delete(s.key("samples"))),
    ("a cluster that nobody finds", "I3", lambda s: s.redis.delete(s.key("clusters"))),
    ("a cluster of the future", "I3", lambda s: s.redis.hset(s.key("samples"), "raised", f"{START + 1}\n")),
    (
        "deaths to tell of, told in no words",
        "I3",
        lambda s: s.redis.hset(s.key("notices"), "report|expired", "soon"),
    ),
    ("a batch that nobody goes on with", "I43", lambda s: s.redis.delete(s.key("batch_work"))),
    ("a batch that nobody finds", "I3", lambda s: s.redis.delete(s.key("batches"))),
    ("jobs of no batch", "I3", lambda s: s.redis.rpush(s.key("batch_jobs", id="nobody"), f"{s.dead} 1")),
    ("a job of a batch gone", "I3", lambda s: s.redis.rpop(s.key("batch_jobs", id=s.batch))),
    (
        "a batch that is done too early",
        "I3",
        lambda s: s.redis.hset(s.key("batch", id=s.batch), "state", "done"),
    ),
    (
        "skipped for another reason",
        "I3",
        lambda s: s.redis.hset(s.key("batch_skips", id=s.batch), s.done, "ODD"),
    ),
    ("accepted one too many", "I3", lambda s: s.redis.hset(s.key("batch", id=s.batch), "accepted", "1")),
    ("a key that points nowhere", "I2", lambda s: s.redis.hset(s.key("unique"), "digest", "nobody")),
    ("a key that points to nobody any more", "I2", lambda s: s.redis.delete(s.key("unique"))),
    ("an attempt gone", "I13", lambda s: s.redis.hdel(s.row(s.failed), "a1")),
    ("running without an attempt", "I13", lambda s: end_attempt(s, s.held)),
    ("dead with an open attempt", "I13", lambda s: open_attempt(s, s.dead)),
    ("more failures than allowed", "I13", lambda s: s.redis.hset(s.row(s.failed), "k", "4")),
    ("all attempts used and still pending", "I13", lambda s: s.redis.hset(s.row(s.failed), "k", "3")),
    (
        "dead of failures it did not have",
        "I15",
        lambda s: s.redis.hset(s.row(s.dead), "R", "attempts_exhausted"),
    ),
    ("an attempt that failed of nothing", "I15", lambda s: uncause(s, s.failed)),
    ("a fence from the future", "I8", lambda s: s.redis.hset(s.row(s.held), "f", str(1 << 60))),
    ("another fence than its attempt", "I7", lambda s: s.redis.hset(s.row(s.held), "f", "1")),
    ("a lease past its deadline", "I11", lambda s: s.redis.hset(s.row(s.held), "x", "1")),
    ("due work that nobody is told of", "I43", lambda s: s.redis.hdel(s.key("meta"), "due:advance")),
    ("a tenant that the sweep does not know", "I43", lambda s: s.redis.delete(s.index("tenants"))),
    (
        "working time that runs while it waits",
        "I33",
        lambda s: s.redis.hset(s.key("progress", id=s.chunked), "since", 1),
    ),
    ("less than nothing done", "I34", lambda s: s.redis.hset(s.key("progress", id=s.chunked), "done", -1)),
    ("a paused job without its time", "I3", lambda s: s.redis.hdel(s.row(s.paused), "rm")),
    ("a paused job with less than no time", "I3", lambda s: s.redis.hset(s.row(s.paused), "rm", "-1")),
    ("time that remains of no paused job", "I3", lambda s: s.redis.hset(s.row(s.held), "rm", "1")),
    ("a paused job in no list", "I3", lambda s: s.redis.delete(s.key("stopped", state="paused"))),
    (
        "a paused job whose instance nobody has suspended",
        "I3",
        lambda s: s.redis.delete(s.key("instance", instance="order-7")),
    ),
    ("a job that has not followed its instance", "I3", lambda s: join(s, s.held, "order-7", "pz")),
    ("a job that outlives its instance", "I3", lambda s: join(s, s.held, "old", "ce")),
    (
        "something of a normal instance",
        "I3",
        lambda s: s.redis.hset(s.key("instance", instance="new"), "since", "1"),
    ),
    ("an ended instance that nobody visits", "I43", lambda s: s.redis.delete(s.key("instances"))),
    (
        "a walk that nobody goes on with",
        "I43",
        lambda s: s.redis.hset(s.key("instance", instance="order-7"), "walk", ""),
    ),
    ("a visit to no instance", "I43", lambda s: s.redis.zadd(s.key("instances"), {"new": 1})),
    ("a named lease without its end", "I3", lambda s: s.redis.delete(s.key("leases"))),
    ("two wake-ups", "I3", lambda s: s.redis.rpush(s.key("handover", name="stock"), 1, 2)),
    ("a schedule without a name", "I3", lambda s: s.redis.delete(s.key("schedules"))),
    ("a calendar without a name", "I3", lambda s: s.redis.delete(s.key("calendars"))),
    ("a calendar that is gone", "I3", lambda s: s.redis.delete(s.key("calendar", name="quiet"))),
    ("a trigger that its calendar forgot", "I3", lambda s: s.redis.delete(s.key("planned_by", name="quiet"))),
    (
        "a calendar that nobody goes on with",
        "I3",
        lambda s: s.redis.hset(s.key("calendar", name="quiet"), "revision", "2"),
    ),
    ("a visit for a calendar that is done", "I3", lambda s: s.redis.zadd(s.key("triggers"), {":quiet": 1})),
    ("a trigger that never comes", "I3", lambda s: s.redis.delete(s.key("triggers"))),
    ("a fire with another job", "I22", lambda s: fire(s, f"{FIRE - 60_000} fired - nobody 1 one - 1")),
    ("a fire without a job", "I23", lambda s: fire(s, f"{FIRE - 60_000} fired - - 1 one - 1")),
    ("fires that overlap", "I22", lambda s: fire(s, *[f"{n} skipped paused - 1 one 9 1" for n in (5, 7)])),
    ("an instant that fires again", "I25", lambda s: fire(s, f"{FIRE} skipped paused - 1 one - 1")),
]


def end_attempt(scene: Scene, job_id: str) -> None:
    packed = scene.redis.hget(scene.row(job_id), "a1").decode()
    scene.redis.hset(scene.row(job_id), "a1", packed.replace("running", "succeeded"))


def open_attempt(scene: Scene, job_id: str) -> None:
    packed = scene.redis.hget(scene.row(job_id), "a1").decode()
    scene.redis.hset(scene.row(job_id), "a1", packed.replace("failed", "running"))


def repeat_history(scene: Scene, job_id: str) -> None:
    key = scene.key("history", id=job_id)
    scene.redis.rpush(key, scene.redis.lindex(key, 0))


def join(scene: Scene, job_id: str, instance: str, flag: str) -> None:
    """Make a job a member of an instance, as if it had been one from the beginning."""
    created = scene.redis.hget(scene.row(job_id), "c")
    scene.redis.hset(scene.row(job_id), mapping={"in": instance, flag: "1"})
    scene.redis.zadd(scene.key("group", kind="instance", value=instance), {job_id: created})


def uncause(scene: Scene, job_id: str) -> None:
    packed = scene.redis.hget(scene.row(job_id), "a1").decode()
    scene.redis.hset(scene.row(job_id), "a1", packed.replace("raised", "-"))


def fire(scene: Scene, *records: str) -> None:
    scene.redis.rpush(scene.key("fires", month=month(FIRE), trigger="default", job_key="tick"), *records)


def test_a_sound_store_is_left_in_peace(scene: Scene, store: Store) -> None:
    assert Invariants().broken(store.dump()) == []


@pytest.mark.parametrize(("what", "number", "damage"), DAMAGES, ids=[what for what, _, _ in DAMAGES])
def test_a_damage_is_named(scene: Scene, store: Store, what: str, number: str, damage: Damage) -> None:
    damage(scene)

    broken = Invariants().broken(store.dump())

    assert [said for said in broken if said.startswith(number)], f"{what} went unnoticed; said was: {broken}"


# -- what only a second look can see ----------------------------------------------------------------------------------

CHANGES: list[tuple[str, str, Damage]] = [
    ("an ended attempt that changed", "I14", lambda s: end_otherwise(s, s.failed)),
    ("a revision that went back", "I5", lambda s: s.redis.hset(s.row(s.done), "v", "1")),
    ("a generation that went back", "I8", lambda s: s.redis.hset(s.row(s.done), "g", "0")),
    ("a fence that went back", "I8", lambda s: s.redis.hset(s.row(s.failed), "f", "1")),
    ("a job that left succeeded", "I4", lambda s: s.redis.hset(s.row(s.done), "s", "dead")),
    ("a job that left dead in its round", "I4", lambda s: s.redis.hset(s.row(s.dead), "s", "succeeded")),
    ("a tenant clock that went back", "I8", lambda s: s.redis.hset(s.key("meta"), "clock", "1")),
]


def end_otherwise(scene: Scene, job_id: str) -> None:
    packed = scene.redis.hget(scene.row(job_id), "a1").decode()
    scene.redis.hset(scene.row(job_id), "a1", packed.replace("raised", "timeout"))


@pytest.mark.parametrize(("what", "number", "change"), CHANGES, ids=[what for what, _, _ in CHANGES])
def test_a_step_back_is_named_at_the_second_look(
    scene: Scene, store: Store, what: str, number: str, change: Damage
) -> None:
    invariants = Invariants()
    invariants.check(store.dump())
    change(scene)

    broken = invariants.broken(store.dump())

    assert [said for said in broken if said.startswith(number)], f"{what} went unnoticed; said was: {broken}"


def test_fires_in_order_are_left_in_peace(scene: Scene, store: Store, ledger: Ledger) -> None:
    for minute in range(3):
        Scheduler(Ledgers(ledger.scripts.at(FIRE + minute * 60_000), ledger.keys.namespace), "one").round()

    assert Invariants().broken(store.dump()) == []
