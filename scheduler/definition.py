"""What a schedule is: a task, its arguments, its triggers, its policies.

Stored packed; equal definitions have equal digests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..lease.payload import digest, pack, unpack
from ..scripts.errors import BadInput
from .misfire import Misfire, read_misfire
from .trigger import Trigger

OVERLAPS = ("allow", "skip", "queue", "cancel_running")


@dataclass(frozen=True, slots=True)
class Definition:
    """A schedule as stored. `fields` are further fields of each job's row; `args` are packed. `overlap` says what
    happens when an instant is due and the job of the last one has not ended.
    """

    task: str
    args: bytes
    pool: str
    fields: Mapping[str, str]
    triggers: tuple[Trigger, ...]
    misfire: Misfire = field(default_factory=Misfire)
    overlap: str = "allow"

    def __post_init__(self) -> None:
        check_overlap(self.overlap)

    def packed(self) -> bytes:
        value = [
            self.task,
            self.args,
            self.pool,
            dict(sorted(self.fields.items())),
            [trigger.stored() for trigger in self.triggers],
            self.misfire.stored(),
            self.overlap,
        ]
        return pack(value, what="the schedule")

    @classmethod
    def unpacked(cls, data: bytes) -> Definition:
        """A definition as it was stored. What its triggers say is looked at when they are planned: one that cannot be
        read here (a zone that this machine does not know) hides nothing else.
        """
        task, args, pool, fields, triggers, misfire, overlap = unpack(data)
        return cls(task, args, pool, fields, tuple(map(_restored, triggers)), read_misfire(misfire), overlap)

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


def _restored(stored: Any) -> Trigger:
    """A trigger as it is stored, or as it was in the days when all were cron: name, cron, tz, dst."""
    if isinstance(stored, list):
        return Trigger.restored(dict(zip(("name", "cron", "tz", "dst"), stored, strict=True)))
    return Trigger.restored(stored)


def check_overlap(overlap: object) -> None:
    """Return if it is a policy, else refuse it."""
    if not isinstance(overlap, str) or overlap not in OVERLAPS:
        raise BadInput(f"overlap {overlap!r:.40} is not a policy", hint=f"one of: {', '.join(OVERLAPS)}")
