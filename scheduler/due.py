"""What is due of a schedule and does not fire, worked out from what is stored of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ..scripts.errors import TenureError
from .calendars import Calendar
from .definition import Definition
from .plan import Passed, Plan, Skip, month, pass_over
from .skips import DISABLED, UNOBSERVED, ZONE_UNAVAILABLE
from .times import Times
from .zones import UNAVAILABLE


@dataclass(frozen=True, slots=True)
class Gate:
    """The tenant's switch: whether it is off, and from when on it runs again (epoch ms; 0: it always has). And up to
    when nothing is planned any more, though the server's clock may have stepped back since: what the tenant `clock`
    says of a schedule that is stored, the latest instant of those that were `deleted` of one that is not.
    """

    disabled: bool = False
    resumed: int = 0
    clock: int = 0
    deleted: int = 0


class Unread(NamedTuple):
    """A scheduler came by that could not read the zone of a due trigger: who that was, and from which of its planned
    instants on (`since`, epoch ms) nobody could plan it.
    """

    since: int
    scheduler: str

    @classmethod
    def read(cls, noted: bytes | None) -> Unread | None:
        if not noted:
            return None
        since, scheduler = noted.decode().split(" ", 1)
        return cls(int(since), scheduler)


@dataclass(frozen=True, slots=True)
class Stored:
    """The fields of a schedule, which may be damaged; none when it is not stored. `observed` says of triggers of a
    tenant that is or was disabled up to before which instant their planned instants have been recorded. `calendars` are
    those that its triggers stand in, by name.
    """

    fields: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    observed: Mapping[str, int] = field(default_factory=dict[str, int])
    gate: Gate = Gate()
    calendars: Mapping[str, Calendar] = field(default_factory=dict[str, Calendar])

    @property
    def revision(self) -> int:
        return int(self.fields.get("revision", 0))

    @property
    def passed(self) -> int:
        """Up to when nothing is planned anew."""
        return self.gate.clock if self.fields else self.gate.deleted

    @property
    def paused(self) -> bool:
        return "paused" in self.fields

    def instants(self, kind: str) -> Mapping[str, int]:
        """The instants by trigger: its `next` fires, its `last` ones, or the `anchor`s it counts from."""
        return instants(self.fields, kind)

    @property
    def decided(self) -> Mapping[str, int]:
        """Up to before when it is decided what becomes of planned instants, by trigger; a missing one owes none."""
        return {name: max(at, self.observed.get(name, at)) for name, at in self.instants("next").items()}

    def times(self, trigger: str) -> Times:
        """When a trigger fires. Raises BadInput or what unpacking raises for one that cannot be read here."""
        definition = Definition.unpacked(self.fields["definition"])
        return definition.trigger(trigger).times(self.instants("anchor").get(trigger, 0), self.calendars)

    def unread(self, trigger: str) -> Unread | None:
        """Whether schedulers come by that cannot read its zone."""
        return Unread.read(self.fields.get(f"unread:{trigger}"))

    def switch(self, trigger: str) -> str:
        """How the tenant's switch stands for a trigger, as the scripts' `switch_for` says it."""
        gate = "disabled" if self.gate.disabled else str(self.gate.resumed)
        return f"{gate} {self.observed.get(trigger, '')}"

    def calendar_revision(self, trigger: str) -> int | str:
        """Of the stored calendar that a trigger stands in; empty if it stands in none."""
        found = self.calendars.get(self.fields.get(f"calendar:{trigger}", b"").decode())
        return found.revision if found else ""


def instants(fields: Mapping[str, bytes], kind: str) -> Mapping[str, int]:
    return {
        name[len(kind) + 1 :]: int(value) for name, value in fields.items() if name.startswith(f"{kind}:")
    }


def passed_over(stored: Stored, now: int, reason: str) -> list[str | int]:
    """What is due of each trigger, as the scripts' `read_due` has it, none of which fires: for `reason`, unless the
    schedule is paused or its tenant disabled, or was.

    A trigger that is damaged, or of a zone that is unknown here, can be passed over all the same: its one planned
    instant is, and nothing comes after it. Only a pause goes on with the same plan: raises UnknownZone, NoZones where
    that needs a zone that is unknown here.
    """
    rest: list[str | int] = []
    for trigger, planned in stored.instants("next").items():
        if planned > now:
            continue
        try:
            found = _passed(stored, trigger, planned, now, reason)
        except (TenureError, ValueError, TypeError, KeyError) as exc:
            if reason == "paused" and isinstance(exc, UNAVAILABLE):
                raise
            why = ZONE_UNAVAILABLE if stored.unread(trigger) else reason
            found = Plan((Skip(why, (Passed(month(planned), planned, planned, 1),)),), None)
        flat = [part for step in found.steps if isinstance(step, Skip) for part in stretches(step)]
        following = "" if found.following is None else found.following
        calendar, switch = stored.calendar_revision(trigger), stored.switch(trigger)
        rest += [trigger, planned, following, calendar, switch, len(flat) // 5, *flat]
    return rest


def _passed(stored: Stored, trigger: str, planned: int, now: int, reason: str) -> Plan:
    times, gate = stored.times(trigger), stored.gate
    if stored.paused:
        reason = "paused"
    elif gate.disabled:
        reason = DISABLED
    start, noted = max(planned, stored.observed.get(trigger, 0)), stored.unread(trigger)
    runs = not (gate.disabled or stored.paused)
    unread = noted.since if noted else None
    if not runs or gate.resumed < planned:
        return pass_over(times, start, now, reason, unread if runs else None)
    unseen = pass_over(times, start, min(now, gate.resumed), UNOBSERVED)
    rest = pass_over(times, max(start, gate.resumed + 1), now, reason, unread)
    return Plan((*unseen.steps, *rest.steps), rest.following)


def stretches(skip: Skip) -> Iterator[str | int]:
    """A step that is passed over, as the scripts have it: reason, month, first, last, count of each stretch."""
    for stretch in skip.stretches:
        yield skip.reason
        yield from stretch
