"""Breaks into a running task from outside: the time limit's alarm, and the worker's word that it must stop."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from types import FrameType
from typing import Any, cast


class OutOfTime(BaseException):
    """Raised in a task whose time is up. Not an Exception, so that `except Exception` does not swallow it."""


class Stopped(BaseException):
    """Raised in a task that was told to stop and went on."""


class Interrupts:
    """Between `arm` and `disarm` the alarm and SIGTERM raise in the main thread; outside they do nothing.

    A coroutine is canceled instead, as an exception out of nowhere would leave its event loop in an unknown state.
    """

    def __init__(self) -> None:
        self.raised: BaseException | None = None
        """What broke into the task that was armed last."""
        self._armed = False
        self._stopped = False
        self._coroutine: asyncio.Task[Any] | None = None

    def install(self) -> None:
        signal.signal(signal.SIGALRM, self._alarm)
        signal.signal(signal.SIGTERM, self._terminate)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def arm(self, limit_at: float) -> None:
        self.raised, self._stopped, self._coroutine = None, False, None
        self._armed = True
        signal.setitimer(signal.ITIMER_REAL, max(limit_at - time.monotonic(), 0.001))

    def disarm(self) -> None:
        self._armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)

    def running(self, coroutine: asyncio.Task[Any]) -> None:
        """The armed task is this coroutine."""
        self._coroutine = coroutine

    def allow_stop(self) -> None:
        """The worker said that the armed task must stop; until then SIGTERM is somebody else's and means nothing."""
        self._stopped = True

    def press(self) -> None:
        """Raise in the armed task from another thread. To be called until it has ended: a signal that comes as the task
        begins to wait in the kernel is not seen before it has waited. Again after it was raised: nothing.
        """
        if self._armed and self.raised is None:
            signal.pthread_kill(cast(int, threading.main_thread().ident), signal.SIGALRM)

    def _alarm(self, number: int, frame: FrameType | None) -> None:
        self._break(OutOfTime("the time limit has passed"))

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        if self._stopped:
            self._break(Stopped("told to stop"))

    def _break(self, error: BaseException) -> None:
        if not self._armed:
            return
        self.raised = error
        if self._coroutine is None:
            raise error
        self._coroutine.get_loop().call_soon_threadsafe(self._coroutine.cancel)
