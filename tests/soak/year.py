"""A year on a virtual clock, drawn from one seed: three schedulers, two people who change things, a worker, a sweep.

They come in between each other at any call, die at any call, and lose replies. `Rules` judges each call that the store
took. Time mostly goes to an instant that is planned, or a millisecond beside it, and now and then several days on; if
the year is one whose clock steps back, then by up to a minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import Fail, Succeed
from tenure.lease.sweep import Sweep
from tenure.lease.tasks import Task
from tenure.scheduler import pausing
from tenure.scheduler.scheduler import Scheduler
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.switch import Scheduling
from tenure.scripts import Begun, Call, Scripts
from tenure.scripts.errors import (
    BadInput,
    Conflict,
    NotFound,
    SchedulingDisabled,
    StaleFence,
    StoreUnreachable,
    TenureError,
)
from tenure.testing import START, Invariants, dump

from .planned import DAY, KINDS, MINUTE, YEAR
from .rules import Rules
from .strands import Strand, stand_still

TENANTS = ("acme", "other")
KEYS = ("reports.daily", "reports.weekly", "invoices.nightly")
GROUPS = ("reports", "invoices")
MISFIRES: list[Any] = [
    "fire_once",
    "fire_once",
    "skip",
    {"policy": "fire_all", "max": 30},
    {"policy": "fire_all", "within": "2h"},
]
OVERLAPS = ("allow", "allow", "skip", "queue", "cancel_running")
TASK = Task("work", lambda: None)
REFUSALS = (BadInput, Conflict, NotFound, SchedulingDisabled, StoreUnreachable)
"""What a person may be told: it has passed, or changed meanwhile, or is not there; and what leaves one in the dark."""
STEPS_A_DAY = 6
"""How often time passes, on average."""


@dataclass(frozen=True)
class Heard(Scripts):
    """Calls that are sent one by one, each at the time that it is then, between which others may come in."""

    year: Any = None

    def send(self, calls: Any) -> list[Any]:
        return [self.year.sent(call) for call in calls]

    def begin(self, calls: Any) -> Begun:
        answers = self.send(calls)
        return Begun(lambda: answers, lambda: None)


class Year:
    def __init__(
        self, scripts: Scripts, namespace: str, seed: int, *, back: bool = False, days: int = 366
    ) -> None:
        self.random = Random(seed)
        self.scripts = scripts
        self.namespace = namespace
        self.back = back
        self.days = days
        self.now = START
        self.rules = Rules(scripts.redis, namespace)
        self.ledgers = Ledgers(Heard(scripts.redis, library=scripts.library, year=self), namespace)
        self.seen: Counter[str] = Counter()
        self.events: list[str] = []
        self.schedulers = [Scheduler(self.ledgers, name, following=2) for name in ("one", "two", "three")]
        self.last_call = ""
        self._calm = False
        self._lost = False
        self._broken: Exception | None = None
        self._actors: dict[str, Callable[[], object]] = {
            **{f"scheduler {one.name}": one.round for one in self.schedulers},
            "person": self._person,
            "another": self._person,
            "worker": self._worker,
            "sweep": Sweep(self.ledgers).round,
        }
        self._strands: dict[str, Strand] = {}

    # -- the loop -----------------------------------------------------------------------------------------------------

    def live(self) -> None:
        end = START + self.days * DAY
        try:
            for tenant in TENANTS:
                for key in KEYS:
                    self._put(tenant, key)
            while self.now < end:
                self._pass_time(end)
                for _ in range(self.random.choice([3, 10, 30])):
                    self._step(self.random.choice(list(self._actors)))
                if self.random.random() < 0.05:
                    self.settle()
            self.settle()
            self.check_what_is_stored()
        finally:
            for strand in self._strands.values():
                strand.kill()

    def _step(self, name: str) -> None:
        strand = self._strands.get(name) or Strand(self._actors[name])
        self._strands[name] = strand
        if not self._calm and self.random.random() < 0.01:
            strand.kill()
            self._note("death", name)
        else:
            self._lost = not self._calm and self.random.random() < 0.01
            try:
                strand.step()
            except StoreUnreachable:
                self._note("reply lost", name)
        if self._broken:
            raise self._broken
        if strand.ended:
            del self._strands[name]

    def sent(self, call: Call[Any]) -> Any:
        stand_still()
        self.last_call = call.script
        self.rules.before(call, self.now)
        answer = self.scripts.at(self.now).send([call])[0]
        refused = f" refused: {answer}" if isinstance(answer, TenureError) else ""
        told = ("job_key", "trigger", "enabled", "pause", "planned", "made", "observed", "following")
        what = " ".join(f"{name}={call.args[name]}" for name in told if name in call.args)
        if call.script not in ("index_take", "index_put", "index_sweep", "standing", "claim", "settle"):
            tenant = call.home.split("{")[1].split("}")[0]
            self.events.append(f"{self.now} {tenant} {call.script} {what}{refused}")
        try:
            self.rules.after(call, answer, self.now)
        except Exception as exc:  # who sent it may handle errors of one tenant
            self._broken = exc
            raise
        self.seen[f"{call.script}{' refused' if refused else ''}"] += 1
        if self._lost:
            self._lost = False
            raise StoreUnreachable("the reply was lost")
        return answer

    def _pass_time(self, end: int) -> None:
        chance = self.random.random()
        if self.back and chance < 0.1:
            self.now -= self.random.choice([1, 1_000, 30_000, MINUTE])
            self._note("the clock steps back")
        elif chance < 0.6:
            self.now = max(self.now, self._soon() + self.random.choice([-1, 0, 1]))
        elif chance < 0.85:
            self.now += self.random.choice([0, 1, 999, 1_000, 1_001, 10_001, 59_000, MINUTE, 61_000])
        else:
            self.now += self.random.randrange(2 * DAY * 100 // (STEPS_A_DAY * 15))
        self.now = min(self.now, end)

    def _soon(self) -> int:
        """The next planned instant of some trigger, or the end of some hour."""
        soon = [
            next(iter(one.plan(self.now, self.now + 3 * DAY)), self.now)
            for of in self.rules.tenants.values()
            for schedule in of.schedules.values()
            for one in schedule.triggers.values()
        ]
        return self.random.choice([*soon, self.now])

    def settle(self) -> None:
        """Nobody dies, nobody changes anything: soon all that is due has its record, and what is next is planned."""
        self._calm = True
        for name in self._actors:
            while name in self._strands:
                self._step(name)
        began = self.now
        while untold := self.rules.untold(self.now):
            assert self.now - began < 30_000, f"long after its time there is no record of {untold}"
            self.now += 1_001
            for name in ("sweep", "scheduler one", "scheduler two", "scheduler three"):
                self._step(name)
                while name in self._strands:
                    self._step(name)
        self._calm = False
        for tenant in TENANTS:
            self._looks_as_told(tenant)

    def _looks_as_told(self, tenant: str) -> None:
        of = self.rules.of(tenant)
        views = {str(view.job_key): view for view in Schedules(self.ledgers.of(tenant)).list()}
        assert views.keys() == of.schedules.keys()
        for key, schedule in of.schedules.items():
            assert (views[key].paused is not None) == schedule.paused
            if of.disabled(self.now) or of.resumed(self.now):
                continue  # its triggers stay where they were, or move when they are next due
            following = {
                name: first[0]
                for name, one in schedule.triggers.items()
                if (first := one.plan(one.told, max(one.told, self.now) + YEAR)[:1])
            }
            assert views[key].next_fires == following

    def check_what_is_stored(self) -> None:
        """What was recorded, call by call, is what is stored; and what nobody knows of is not there."""
        heard = {
            (tenant, *which): records
            for tenant, of in self.rules.tenants.items()
            for which, records in of.records.items()
            if records
        }
        assert self.rules.stored() == heard
        Invariants().check(dump(self.scripts.redis, self.namespace))

    def _note(self, what: str, more: str = "") -> None:
        self.seen[what] += 1
        self.events.append(f"{self.now} -- {what} {more}")

    # -- the actors ---------------------------------------------------------------------------------------------------

    def _person(self) -> None:
        tenant, key, group = (self.random.choice(some) for some in (TENANTS, KEYS, GROUPS))
        schedules = Schedules(self.ledgers.of(tenant))
        switch = Scheduling(self.ledgers.of(tenant))
        until = self.random.choice([None, None, self.now + 3 * MINUTE, self.now + DAY])
        acts: list[tuple[int, Callable[[], object]]] = [
            (6, lambda: self._put(tenant, key)),
            (2, lambda: schedules.delete(key)),
            (3, lambda: pausing.pause(schedules, key)),
            (5, lambda: pausing.resume(schedules, key)),
            (1, lambda: pausing.pause_group(schedules, group)),
            (2, lambda: pausing.resume_group(schedules, group)),
            (2, lambda: switch.set(enabled=False, until=until)),
            (3, lambda: switch.set(enabled=True)),
            (1, lambda: pausing.run(schedules, key)),
            (30, stand_still),
        ]
        act = self.random.choices([act for _, act in acts], [weight for weight, _ in acts])[0]
        with suppress(*REFUSALS):
            act()

    def _put(self, tenant: str, key: str) -> None:
        names = self.random.choice([("a",), ("a", "b")])
        triggers = [self.random.choice(KINDS).trigger(name) for name in names]
        misfire, overlap = self.random.choice(MISFIRES), self.random.choice(OVERLAPS)
        schedules = Schedules(self.ledgers.of(tenant))
        with suppress(*REFUSALS):
            schedules.put(key, TASK, triggers, misfire=misfire, overlap=overlap)

    def _worker(self) -> None:
        ledger = self.ledgers.of(self.random.choice(TENANTS))
        for lease in ledger.claim("advance", "worker", self.random.choice([1, 5, 20])).leases:
            with suppress(StaleFence):
                ledger.settle(
                    lease, self.random.choice([Succeed(), Succeed(), Fail("no luck", permanent=True)])
                )
