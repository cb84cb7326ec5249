"""Waiting for other processes: on a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T], what: str = "", seconds: float = 30.0) -> T:
    """Return the first true value of `condition`; fail the test when there is none within `seconds`."""
    until = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            raise AssertionError(
                f"waited {seconds:g} s in vain for {what or getattr(condition, '__name__', condition)}"
            )
        time.sleep(0.01)
