"""What a worker has done since it began."""

from __future__ import annotations

from dataclasses import dataclass

from ..lease.outcome import Fail, GiveBack, Lose, Outcome, Stopped


@dataclass(slots=True)
class Tally:
    succeeded: int = 0
    failed: int = 0
    working_s: float = 0.0

    @property
    def jobs(self) -> int:
        return self.succeeded + self.failed

    def ended(self, outcome: Outcome) -> None:
        """An attempt, or a chunk of one. What is given back, or taken from us, has not ended here."""
        if isinstance(outcome, (Fail, Lose)):
            self.failed += 1
        elif not isinstance(outcome, (GiveBack, Stopped)):
            self.succeeded += 1
