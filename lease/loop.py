"""The one loop for background duties: it does the looping, waiting, stopping and reporting for all of them."""

from __future__ import annotations

import logging
import random
import threading
from typing import Protocol

from ..scripts.errors import StoreError

log = logging.getLogger("tenure.loop")

FIRST_RETRY_S = 0.5
LAST_RETRY_S = 10.0


class Duty(Protocol):
    """What a loop turns: do one round and say in how many seconds to come again."""

    def round(self) -> float: ...


class Loop:
    """Turns one duty until it is stopped, in a thread of its own (`start`) or in the caller's (`run`).

    A round that fails is reported once, tried again ever more slowly, and reported once more when it works again: a
    store that is away, or a fault in one round, never ends the duty.
    """

    def __init__(self, duty: Duty, name: str) -> None:
        self.name = name
        self.error: Exception | None = None
        """Why the last round failed; None when it did not."""
        self.rounds = 0
        self._duty = duty
        self._failures = 0
        self._stopping = False
        self._awake = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Turn in a thread that does not keep the process alive."""
        self._thread = threading.Thread(target=self.run, name=self.name, daemon=True)
        self._thread.start()

    def run(self) -> None:
        """Turn until `stop`."""
        while not self._stopping:
            delay = self._turn()
            self._awake.wait(delay)
            self._awake.clear()

    def wake(self) -> None:
        """Begin the next round now. Safe from any thread and from a signal handler."""
        self._awake.set()

    def stop(self, timeout: float | None = None) -> bool:
        """End after the round that runs; with a time-out, wait for that so long. Answers whether it has ended."""
        self._stopping = True
        self._awake.set()
        if self._thread is None or self._thread is threading.current_thread():
            return True
        if timeout:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _turn(self) -> float:
        try:
            delay = self._duty.round()
        except Exception as exc:
            return self._failed(exc)
        if self.error is not None:
            log.info("%s works again", self.name)
        self.error, self._failures = None, 0
        self.rounds += 1
        return max(0.0, delay)

    def _failed(self, exc: Exception) -> float:
        if self.error is None or type(self.error) is not type(exc):
            log.warning("%s: %s", self.name, exc, exc_info=not isinstance(exc, StoreError))
        self.error = exc
        self._failures += 1
        return retry_after(self._failures)


def retry_after(failures: int) -> float:
    """Seconds to wait after the `failures`-th failure in a row, spread so that many processes do not return at once."""
    longest = min(LAST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(failures - 1, 10))
    return longest * random.uniform(0.5, 1.0)
