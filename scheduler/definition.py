"""What a schedule is: a task, its arguments, its triggers, its policies.

Stored packed; equal definitions have equal digests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from ..lease.payload import digest, pack, unpack
from ..scripts.errors import BadInput
from .cron import CronExpression, Dst

MISFIRES = {"fire_once": "fire_once"}
OVERLAPS = ("allow",)


@dataclass(frozen=True, slots=True)
class Trigger:
    """A cron trigger: when a schedule fires."""

    name: str
    cron: str
    tz: str = "UTC"
    dst: Dst = "standard"

    @property
    def rule(self) -> str:
        """What makes it fire again, in a line, as each job it makes keeps it."""
        return self.cron if self.tz == "UTC" else f"{self.cron} {self.tz}"

    def expression(self) -> CronExpression:
        return CronExpression(self.cron, tz=self.tz, dst=self.dst)


@dataclass(frozen=True, slots=True)
class Definition:
    """A schedule as stored. `fields` are further fields of each job's row; `args` are packed."""

    task: str
    args: bytes
    pool: str
    fields: Mapping[str, str]
    triggers: tuple[Trigger, ...]
    misfire: str = "fire_once"
    overlap: str = "allow"

    def __post_init__(self) -> None:
        check_policies(self.misfire, self.overlap)

    def packed(self) -> bytes:
        triggers = [[trigger.name, trigger.cron, trigger.tz, trigger.dst] for trigger in self.triggers]
        value = [
            self.task,
            self.args,
            self.pool,
            dict(sorted(self.fields.items())),
            triggers,
            self.misfire,
            self.overlap,
        ]
        return pack(value, what="the schedule")

    @classmethod
    def unpacked(cls, data: bytes) -> Definition:
        task, args, pool, fields, triggers, misfire, overlap = unpack(data)
        return cls(task, args, pool, fields, tuple(Trigger(*parts) for parts in triggers), misfire, overlap)

    @property
    def digest(self) -> str:
        return digest(self.packed())

    def trigger(self, name: str) -> Trigger:
        for trigger in self.triggers:
            if trigger.name == name:
                return trigger
        raise BadInput(
            f"trigger {name!r} is not one of the schedule's: {[known.name for known in self.triggers]}"
        )


def check_policies(misfire: object, overlap: object) -> None:
    """Return if they are policies, else refuse them."""
    for what, policy, known in (("misfire", misfire, tuple(MISFIRES)), ("overlap", overlap, OVERLAPS)):
        if not isinstance(policy, str) or policy not in known:
            raise BadInput(
                f"{what} {policy!r:.40} is not a policy of this version", hint=f"one of: {', '.join(known)}"
            )


def month(instant_ms: int) -> str:
    """YYYYMM of an instant in UTC: fire records are kept by month."""
    return f"{datetime.fromtimestamp(instant_ms / 1000, UTC):%Y%m}"
