"""Whether and when to try again, and what becomes of a job that is not tried again."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ..scripts.errors import BadInput
from .durations import Duration, duration_ms

THEN = ("dead", "failed")


@dataclass(frozen=True, slots=True)
class Retry:
    """A retry policy: at most `max_attempts` attempts a round; before attempt n+1 it waits delay * 2**(n-1),
    at most `cap`.

    Up to a tenth of the wait is random, so that jobs that failed together do not come back together; the cap
    includes it. An error of a type in `permanent` is not tried again. A job that has used up its attempts, or met
    such an error, is dead and waits for a person; with then="failed" it is failed: somebody of yours handles that.
    """

    max_attempts: int = 3
    delay: Duration = "30s"
    cap: Duration = "15m"
    permanent: tuple[type[BaseException], ...] = ()
    then: str = "dead"

    def __post_init__(self) -> None:
        if type(self.max_attempts) is not int or not 1 <= self.max_attempts <= 1000:
            raise BadInput(
                f"max_attempts {self.max_attempts!r} is not a number from 1 to 1000", hint="Retry(3)"
            )
        duration_ms(self.delay, what="retry delay")
        duration_ms(self.cap, what="retry cap")
        kinds: object = self.permanent
        if not isinstance(kinds, tuple) or not all(map(_is_exception_type, self.permanent)):
            raise BadInput(
                f"permanent {kinds!r:.80} is not a tuple of exception types",
                hint="Retry(permanent=(ValueError, LookupError))",
            )
        if not isinstance(self.then, str) or self.then not in THEN:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(f"then {self.then!r:.40} is not a way to end", hint=f"one of: {', '.join(THEN)}")

    def backoff_ms(self, failures: int, jitter: random.Random | None = None) -> int:
        """Milliseconds to wait after the `failures`-th failure (1, 2, ...).

        Without `jitter` the plain value.
        """
        plain = duration_ms(self.delay) * 2.0 ** min(failures - 1, 60)
        share = 1 + (jitter.random() / 10 if jitter else 0)
        return round(min(plain * share, duration_ms(self.cap)))

    def is_permanent(self, exc: BaseException) -> bool:
        """Whether an error is one that trying again does not cure."""
        return isinstance(exc, self.permanent)


def _is_exception_type(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)
