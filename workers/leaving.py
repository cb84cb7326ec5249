"""What a worker that stops leaves to others, in words for its log."""

from __future__ import annotations

from collections.abc import Sequence

from ..lease.jobs import Lease
from ..lease.outcome import GiveBack, NextChunk, Outcome

NAMED = 5


class Leaving:
    def __init__(self) -> None:
        self._handed_back: list[Lease] = []
        self._chunks: list[Lease] = []
        self._not_begun = 0

    def saw(self, lease: Lease, outcome: Outcome) -> None:
        """A job has left our hands while we stop."""
        match outcome:
            case GiveBack(started=False):
                self._not_begun += 1
            case GiveBack():
                self._handed_back.append(lease)
            case NextChunk():
                self._chunks.append(lease)
            case _:
                pass

    def __str__(self) -> str:
        left = [
            f"{what}: {named(leases)}"
            for what, leases in (
                ("handed back, to go on after the last checkpoint", self._handed_back),
                ("between two chunks", self._chunks),
            )
            if leases
        ]
        if self._not_begun:
            left.append(f"had not begun: {self._not_begun}")
        return "; ".join(left) or "nothing"


def named(leases: Sequence[Lease]) -> str:
    """`orders.import 01J9..., orders.sync 01J9... and 3 more`."""
    first = ", ".join(f"{lease.task} {lease.id}" for lease in leases[:NAMED])
    return f"{first} and {len(leases) - NAMED:,} more" if len(leases) > NAMED else first
