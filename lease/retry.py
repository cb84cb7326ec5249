"""How long to wait before the next attempt."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ..scripts.errors import BadInput
from .durations import Duration, duration_ms

THEN = ("dead",)


@dataclass(frozen=True, slots=True)
class Retry:
    """A retry policy: at most `max_attempts` attempts a round; before attempt n+1 it waits delay * 2**(n-1),
    at most `cap`.

    Up to a tenth of the wait is random, so that jobs that failed together do not come back together; the cap
    includes it.
    """

    max_attempts: int = 3
    delay: Duration = "30s"
    cap: Duration = "15m"

    def __post_init__(self) -> None:
        if not isinstance(self.max_attempts, int) or not 1 <= self.max_attempts <= 1000:
            raise BadInput(f"max_attempts {self.max_attempts!r} is out of range: 1 to 1000", hint="Retry(3)")
        duration_ms(self.delay, what="retry delay")
        duration_ms(self.cap, what="retry cap")

    def backoff_ms(self, failures: int, jitter: random.Random | None = None) -> int:
        """Milliseconds to wait after the `failures`-th failure (1, 2, ...).

        Without `jitter` the plain value.
        """
        plain = duration_ms(self.delay) * 2.0 ** min(failures - 1, 60)
        share = 1 + (jitter.random() / 10 if jitter else 0)
        return round(min(plain * share, duration_ms(self.cap)))
