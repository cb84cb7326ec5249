"""What the contract says becomes of each planned instant, written a second time: plain lists, one call after the other.

`Rules` hears of every call that the store has taken, reads the records which that call has added, and works out from
what it heard before what they have to be. So each record is judged against the state that its script found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tenure.lease.ids import fire_id
from tenure.scheduler.definition import Definition
from tenure.scheduler.due import DISABLED
from tenure.scheduler.job_key import JobKey
from tenure.scheduler.misfire import Misfire
from tenure.scheduler.trigger import Trigger
from tenure.scripts import Call, Keys
from tenure.scripts.fields import FIELDS
from tenure.scripts.keys import parse
from tenure.scripts.states import ENDED

from .planned import MINUTE, Instants, TakenOut, kind_of

Said = tuple[int, str, str]
"""An instant, its outcome and its reason."""
TAKEN_AT_ONCE = 20
NEW_PARTS = 5
"""What `schedule_put` is told of each trigger; its name and its first instant come first."""


@dataclass
class Told:
    """A trigger under one definition: its plan, and up to which instant (included) all has its record."""

    trigger: Trigger
    plan: Instants
    taken_out: TakenOut
    moved: Instants
    told: int

    def all(self, after: int, until: int) -> list[int]:
        """All planned instants, those that clock changes take out too."""
        return sorted([*self.plan(after, until), *(at for at, _ in self.taken_out(after, until))])

    def with_moved(self, said: Sequence[Said]) -> list[Said]:
        """What is expected, each fire in time that a gap moved marked."""
        return [
            (at, outcome, "dst_gap" if outcome == "fired" and self.moved(at - 1, at) else reason)
            for at, outcome, reason in said
        ]

    def with_taken_out(self, said: Sequence[Said], until: int) -> list[Said]:
        """What is expected, and what clock changes take out up to an instant."""
        return sorted([*said, *((at, "skipped", why) for at, why in self.taken_out(self.told, until))])


@dataclass
class Schedule:
    misfire: Misfire
    overlap: str
    paused: bool
    triggers: dict[str, Told]
    last_job: str = ""


@dataclass
class Tenant:
    """One tenant as it was told to be; `latest` is up to when each trigger has records, deleted ones too."""

    state: str = "enabled"
    until: int | None = None
    resumed_at: int = 0
    groups: set[str] = field(default_factory=set[str])
    schedules: dict[str, Schedule] = field(default_factory=dict[str, Schedule])
    latest: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    records: dict[tuple[str, str], list[str]] = field(default_factory=dict[tuple[str, str], list[str]])

    def disabled(self, now: int) -> bool:
        return self.state == "disabled" and (self.until is None or now < self.until)

    def resumed(self, now: int) -> int:
        if self.state == "disabled":
            return self.until if self.until is not None and self.until <= now else 0
        return self.resumed_at


class Rules:
    def __init__(self, redis: Any, namespace: str) -> None:
        self.redis = redis
        self.namespace = namespace
        self.tenants: dict[str, Tenant] = {}
        self.latest = 0
        """The latest time there was; the clock may have stepped back since, then nothing is planned up to it."""
        self._lengths: dict[str, int] = {}
        self._before: list[Any] = []
        self._job_before: dict[str, str] = {}

    # -- around each call ---------------------------------------------------------------------------------------------

    def before(self, call: Call[Any], now: int) -> None:
        """Keep what is asked for after the call: the last job of a schedule, the plan of a disabled tenant."""
        tenant = self._tenant(call)
        self.latest = max(self.latest, now)
        self._before = self._plan(tenant) if self._must_stand_still(tenant, call, now) else []
        if call.script == "fire":
            schedule = self.of(tenant).schedules.get(str(call.args["job_key"]))
            self._job_before = self._job(tenant, schedule.last_job) if schedule else {}

    def after(self, call: Call[Any], answer: Any, now: int) -> None:
        """Judge a call: `answer` is what its caller gets; one that was refused may have done nothing."""
        tenant = self._tenant(call)
        if self._must_stand_still(tenant, call, now):
            assert self._plan(tenant) == self._before, (
                f"{call.script} moved a plan of the disabled tenant {tenant}"
            )
        hear = getattr(self, f"_{call.script}", None)
        if hear is not None and not isinstance(answer, Exception):
            hear(tenant, call, answer, now)

    def untold(self, now: int) -> list[str]:
        """Triggers that have due instants without a record; those of paused schedules are told of when they resume."""
        return [
            f"{tenant} {key} {name}: {due[:3]}"
            for tenant, of in self.tenants.items()
            for key, schedule in of.schedules.items()
            if not schedule.paused
            for name, one in schedule.triggers.items()
            if (due := one.all(one.told, now))
        ]

    def of(self, tenant: str) -> Tenant:
        return self.tenants.setdefault(tenant, Tenant())

    # -- what each script does ----------------------------------------------------------------------------------------

    def _schedule_put(self, tenant: str, call: Call[Any], answer: Any, now: int) -> None:
        if answer[1] == "":
            return
        of, key = self.of(tenant), str(call.args["job_key"])
        definition = Definition.unpacked(bytes(call.args["definition"]))  # type: ignore[arg-type]
        old = of.schedules.get(key)
        if old:
            self._all_passed(tenant, key, old, now, "superseded")
        new = call.rest[: NEW_PARTS * int(call.args["triggers"])]
        firsts = dict(zip(new[0::NEW_PARTS], new[1::NEW_PARTS], strict=True))
        triggers: dict[str, Told] = {}
        for trigger in definition.triggers:
            since = max(now, of.latest.get((key, trigger.name), 0))
            kind = kind_of(trigger)
            one = triggers[trigger.name] = Told(trigger, kind.instants, kind.taken_out, kind.moved, since)
            first = int(firsts[trigger.name])
            *early, begins = one.all(since, first)
            assert begins == first, f"{key} {trigger.name} would begin with {first}, which is not planned"
            assert all(at <= self.latest for at in early), f"{key} {trigger.name} leaves out {early}"
            one.told = early[-1] if early else since
        paused = old.paused if old else JobKey.parse(key).group in of.groups
        of.schedules[key] = Schedule(definition.misfire, definition.overlap, paused, triggers)
        of.schedules[key].last_job = old.last_job if old else ""

    def _schedule_delete(self, tenant: str, call: Call[Any], answer: Any, now: int) -> None:
        old = self.of(tenant).schedules.pop(str(call.args["job_key"]), None)
        assert (answer[0] == "1") == (old is not None)
        if old:
            self._all_passed(tenant, str(call.args["job_key"]), old, now, "deleted")

    def _schedule_pause(self, tenant: str, call: Call[Any], answer: Any, now: int) -> None:
        schedule, pause = self.of(tenant).schedules[str(call.args["job_key"])], call.args["pause"] == "1"
        assert (answer[1] == "1") == (schedule.paused != pause)
        if schedule.paused != pause:
            self._all_passed(tenant, str(call.args["job_key"]), schedule, now, "paused")
            schedule.paused = pause

    def _group_pause(self, tenant: str, call: Call[Any], _answer: Any, _now: int) -> None:
        change = self.of(tenant).groups.add if call.args["pause"] == "1" else self.of(tenant).groups.discard
        change(str(call.args["group"]))

    def _switch_set(self, tenant: str, call: Call[Any], answer: Any, now: int) -> None:
        if answer[0] != b"1":
            return
        of, ends = self.of(tenant), str(call.args["ends"])
        of.state = "enabled" if call.args["enabled"] == "1" else "disabled"
        of.until = int(ends) if ends else None
        if of.state == "enabled":
            of.resumed_at = now

    def _fire(self, tenant: str, call: Call[Any], _answer: Any, now: int) -> None:
        of, key, name = self.of(tenant), str(call.args["job_key"]), str(call.args["trigger"])
        schedule = of.schedules.get(key)
        found = self._new_records(tenant, key, name)
        if not found:
            return  # it had been fired, or the instant is none any more
        assert schedule is not None, f"{key} fired, and is not stored"
        assert not of.disabled(now), f"{key} fired, and its tenant is disabled"
        assert not schedule.paused, f"{key} fired, and is paused"
        made, one = int(call.args["made"]), schedule.triggers[name]
        resumed = of.resumed(made)
        unobserved = one.plan(one.told, min(resumed, made)) if resumed > one.told else []
        due = list(one.plan(max(one.told, resumed), made))
        passed = [(at, "skipped", "unobserved") for at in unobserved]
        fires = one.with_moved(_misfired(due, made, schedule.misfire))
        said = self._read(one, found)
        until = made
        if schedule.misfire.policy == "fire_all":
            several = [it for it in fires if it[1] != "skipped"][:TAKEN_AT_ONCE]
            later = [it for it in fires if several and it[0] > several[-1][0]]
            fires = [it for it in fires if it not in later]
            until = later[0][0] - 1 if later else made
        expected = [*passed, *self._after_overlap(tenant, key, name, schedule, fires)]
        expected = one.with_taken_out(expected, until)
        self._compare(tenant, key, one, said, expected, call.script)

    def _observe(self, tenant: str, call: Call[Any], _answer: Any, now: int) -> None:
        of, key, name = self.of(tenant), str(call.args["job_key"]), str(call.args["trigger"])
        schedule = of.schedules.get(key)
        grown = self._grown(tenant, key, name, schedule.triggers[name]) if schedule else []
        found = self._new_records(tenant, key, name)
        if not grown and not found:
            return
        assert of.disabled(now), f"{key} was observed, and its tenant is not disabled"
        one = of.schedules[key].triggers[name]
        said = [*grown, *self._read(one, found)]
        last = said[-1][0]
        assert last <= now
        expected = one.with_taken_out([(at, "skipped", DISABLED) for at in one.plan(one.told, last)], last)
        self._compare(tenant, key, one, said, expected, call.script)

    # -- what is to be expected ---------------------------------------------------------------------------------------

    def _all_passed(self, tenant: str, key: str, schedule: Schedule, now: int, verb: str) -> None:
        """Whoever changes a schedule tells what becomes of all that is due, and none of it fires."""
        of = self.of(tenant)
        for name, one in schedule.triggers.items():
            expected = [
                (at, "skipped", _why_passed(of, schedule, at, now, verb)) for at in one.plan(one.told, now)
            ]
            said = self._read(one, self._new_records(tenant, key, name))
            self._compare(tenant, key, one, said, one.with_taken_out(expected, now), verb)
            one.told = max(one.told, now)

    def _after_overlap(
        self, tenant: str, key: str, name: str, schedule: Schedule, fires: Sequence[Said]
    ) -> Sequence[Said]:
        """The same, those that find the job of the last fire in their way passed over."""
        decided: list[Said] = []
        job = self._job_before
        for at, outcome, reason in fires:
            way = "" if outcome == "skipped" else _in_the_way(schedule.overlap, job)
            if way:
                decided.append((at, "skipped", way))
                continue
            decided.append((at, outcome, reason))
            if outcome != "skipped":
                schedule.last_job = fire_id(tenant, key, name, at)
                job = {"state": "pending", "attempts": "0"}
        return decided

    def _compare(
        self, tenant: str, key: str, one: Told, said: Sequence[Said], expected: Sequence[Said], by: str
    ) -> None:
        place = next(
            (at for at, pair in enumerate(zip(said, expected, strict=False)) if pair[0] != pair[1]), None
        )
        if place is None and len(said) != len(expected):
            place = min(len(said), len(expected))
        assert place is None, (
            f"{tenant} {key} {one.trigger.name} told up to {one.told}: record {place} is {said[place : place + 1]}, "
            f"and should be {expected[place : place + 1]} ({len(said)} for {len(expected)}), by {by}"
        )
        if said:
            one.told = said[-1][0]
            latest = self.of(tenant).latest
            latest[key, one.trigger.name] = max(latest.get((key, one.trigger.name), 0), one.told)

    # -- what is stored -----------------------------------------------------------------------------------------------

    def _read(self, one: Told, records: Sequence[str]) -> list[Said]:
        """What records say of each planned instant they stand for."""
        said: list[Said] = []
        for record in records:
            first, outcome, reason, _job, _at, _scheduler, until, count = record.split(" ")
            low, high = int(first) - 1, int(first if until == "-" else until)
            taken_out = [at for at, why in one.taken_out(low, high) if why == reason]
            instants = (
                taken_out if outcome == "skipped" and reason.startswith("dst_") else one.plan(low, high)
            )
            assert len(instants) == int(count), f"{record!r} stands for {len(instants)} planned instants"
            assert instants[0] == int(first), f"{record!r} begins before the first planned instant"
            assert until in ("-", str(instants[-1])), f"{record!r} ends after the last planned instant"
            assert _month(instants[0]) == _month(instants[-1]), f"{record!r} is of two months"
            said += [(at, outcome, "" if reason == "-" else reason) for at in instants]
        return said

    def _grown(self, tenant: str, key: str, name: str, one: Told) -> list[Said]:
        """What the last record tells more than when it was read: it counts the seconds of its minute that are seen."""
        records = self.of(tenant).records.get((key, name))
        if not records:
            return []
        before = records[-1].split(" ")
        list_key = Keys(self.namespace, tenant)(
            "fires", month=_month(int(before[0])), trigger=name, job_key=key
        )
        record: str = self.redis.lindex(list_key, self._lengths[list_key] - 1).decode()
        if record == records[-1]:
            return []
        now = record.split(" ")
        assert now[:6] == before[:6], f"{records[-1]!r} has become {record!r}"
        assert now[2] == DISABLED
        assert int(now[6]) // MINUTE == int(now[0]) // MINUTE, f"{record!r} grew past its minute"
        instants = one.plan(int(before[0] if before[6] == "-" else before[6]), int(now[6]))
        assert len(instants) == int(now[7]) - int(before[7]), f"{records[-1]!r} has become {record!r}"
        records[-1] = record
        return [(at, "skipped", DISABLED) for at in instants]

    def _new_records(self, tenant: str, key: str, name: str) -> list[str]:
        keys, found = Keys(self.namespace, tenant), list[str]()
        for month in _MONTHS:
            list_key = keys("fires", month=month, trigger=name, job_key=key)
            seen = self._lengths.get(list_key, 0)
            new = [record.decode() for record in self.redis.lrange(list_key, seen, -1)]
            self._lengths[list_key] = seen + len(new)
            assert all(_month(int(record.split(" ")[0])) == month for record in new)
            found += new
        self.of(tenant).records.setdefault((key, name), []).extend(found)
        return found

    def stored(self) -> dict[tuple[str, str, str], list[str]]:
        """All records that there are, whoever wrote them, in the order of their instants."""
        found: dict[tuple[str, str, str], list[str]] = {}
        for list_key in sorted(self.redis.scan_iter(f"{self.namespace}:*:f:*", count=1000)):
            _, tenant, family, parts = parse(list_key.decode())
            assert family == "fires"
            records = [record.decode() for record in self.redis.lrange(list_key, 0, -1)]
            found.setdefault((tenant, parts["job_key"], parts["trigger"]), []).extend(records)
        return found

    def _tenant(self, call: Call[Any]) -> str:
        return call.home.split("{")[1].split("}")[0]

    def _job(self, tenant: str, job_id: str) -> dict[str, str]:
        """A job's state and how many attempts it had; empty if there is none."""
        if not job_id:
            return {}
        row = self.redis.hgetall(Keys(self.namespace, tenant)("row", id=job_id))
        attempts = sum(re.fullmatch(rb"a\d+", name) is not None for name in row)
        state = row.get(FIELDS["state"].encode(), b"pending").decode()
        return {"state": state, "attempts": str(attempts)} if row else {}

    def _must_stand_still(self, tenant: str, call: Call[Any], now: int) -> bool:
        return call.script in ("fire", "observe", "triggers_due") and self.of(tenant).disabled(now)

    def _plan(self, tenant: str) -> list[Any]:
        keys = Keys(self.namespace, tenant)
        names = [keys("schedule", job_key=key) for key in self.of(tenant).schedules]
        return [self.redis.zrange(keys("triggers"), 0, -1, withscores=True), *map(self.redis.hgetall, names)]


def _misfired(due: Sequence[int], made: int, misfire: Misfire) -> list[Said]:
    """What becomes of due instants at `made`, but for overlap."""
    if not due:
        return []
    older, newest = due[:-1], due[-1]
    late = made - newest > MINUTE
    if misfire.policy == "fire_once":
        last = (newest, "misfired", "fire_once") if late else (newest, "fired", "")
        return [*((at, "skipped", "coalesced") for at in older), last]
    if misfire.policy == "skip":
        last = (newest, "skipped", "misfire") if late else (newest, "fired", "")
        return [*((at, "skipped", "misfire") for at in older), last]
    young = [at for at in due if misfire.within_ms is None or made - at <= misfire.within_ms][-misfire.most :]
    decided = [(at, "misfired", "fire_all") if at in set(young) else (at, "skipped", "misfire") for at in due]
    if newest in young and not late:
        decided[-1] = (newest, "fired", "")
    return decided


def _why_passed(of: Tenant, schedule: Schedule, at: int, now: int, verb: str) -> str:
    if schedule.paused:
        return "paused"
    if of.disabled(now):
        return DISABLED
    return "unobserved" if at <= of.resumed(now) else verb


def _in_the_way(overlap: str, job: dict[str, str]) -> str:
    """Why the last fire's job stands in the way of the next; empty if it does not."""
    if not job or job["state"] in ENDED or overlap in ("allow", "cancel_running"):
        return ""
    if overlap == "skip":
        return "overlap"
    return "queue_full" if job["state"] == "pending" and job["attempts"] == "0" else ""


def _month(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y%m}"


_MONTHS = [f"{2026 + (8 + nth) // 12}{(8 + nth) % 12 + 1:02d}" for nth in range(15)]
