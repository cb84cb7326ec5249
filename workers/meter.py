"""The meter of an attempt: what its chunk has used of its budgets, and which one it has crossed."""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..lease.budgets import Budgets, Limit, LimitCrossed, Lineage
from ..lease.durations import span
from .interrupts import OutOfTime

LOOK_S = 0.05
"""How often the memory of a task that has a budget of it is looked at."""

TELL_S = 0.25
"""How often the steps of a job in a call tree are charged."""

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Meter:
    """One for each attempt. What is crossed first ends it, whatever the task makes of the error."""

    def __init__(self, budgets: Budgets, lineage: Lineage, spent: int = 0) -> None:
        self.budgets = budgets
        self.lineage = lineage
        """With its own task at the end of the path."""
        self.crossed: LimitCrossed | None = None
        self.steps = 0
        self._spent = spent
        """What the call tree had counted before this chunk."""
        self._untold = 0
        self._tell_at = 0.0
        self._own_time = False
        self._peak: Callable[[], int] = _nothing
        self._ended: threading.Event | None = None

    def begin(self, over: Callable[[], None], stop: Callable[[], None]) -> None:
        """The task is about to run. Once it has taken too much memory, `over` is called in a thread beside it, and
        `stop`, again and again until it has ended.
        """
        if self.budgets.memory_kb:
            self._peak = peak_from_now()
            self._ended = threading.Event()
            watch = threading.Thread(
                target=self._watch, args=(self._ended, over, stop), name="tenure-meter", daemon=True
            )
            watch.start()

    def _watch(self, ended: threading.Event, over: Callable[[], None], stop: Callable[[], None]) -> None:
        while not (ended.wait(LOOK_S) or self.over_memory()):
            pass
        if not ended.is_set():
            over()
        while not ended.wait(LOOK_S):
            stop()

    def limit_at(self, limit_at: float, now: float) -> float:
        """When a job that begins now must end, `limit_at` at the latest."""
        own = now + self.budgets.time_s
        self._own_time = own < limit_at
        return min(limit_at, own)

    def step(self, steps: int, spent: int = 0) -> None:
        """Count; `spent` is what the call tree has counted, as was last heard. Raises LimitCrossed."""
        self.steps += steps
        self._untold += steps if self.lineage.root else 0
        if self.budgets.steps and self.steps > self.budgets.steps:
            raise self.cross(
                Limit.STEPS, f"{self.steps:,} steps in one chunk, its budget is {self.budgets.steps:,}"
            )

        used = max(self._spent + self.steps, spent)
        if self.lineage.root and used > self.lineage.tree:
            raise self.cross(
                Limit.CALL_TREE, f"{used:,} steps in its call tree, the budget is {self.lineage.tree:,}"
            )

    @property
    def is_due(self) -> bool:
        """Whether there are steps to charge to the call tree, and it is time to."""
        return bool(self._untold) and time.monotonic() >= self._tell_at

    def take_untold(self) -> int:
        """The steps to charge, and begin to gather anew."""
        steps, self._untold = self._untold, 0
        self._tell_at = time.monotonic() + TELL_S
        return steps

    def below(self) -> str:
        """The lineage of a job that the task enqueues, as its row has it. Raises LimitCrossed."""
        try:
            return self.lineage.below().pack()
        except LimitCrossed as exc:
            self.crossed = self.crossed or exc
            raise

    def over_memory(self) -> bool:
        """Whether the process has had more than the budget at any time since the task began."""
        most, found = self.budgets.memory_kb, self._peak()
        if not most or found <= most:
            return False
        self.cross(
            Limit.MEMORY,
            f"its process had {found * 1024 / 1e6:,.0f} MB in memory, its budget is {most * 1024 / 1e6:,.0f} MB",
        )
        return True

    def cross(self, limit: Limit, found: str) -> LimitCrossed:
        self.crossed = self.crossed or LimitCrossed(limit, found, self.lineage.path)
        return self.crossed

    def ended_by(self, exc: BaseException | None) -> LimitCrossed | None:
        """The budget that ends the attempt, in whose task `exc` was raised or nothing."""
        if self._ended is not None:
            self._ended.set()
        self.over_memory()
        if isinstance(exc, OutOfTime) and self._own_time:
            self.cross(Limit.TIMEOUT, over_time(self.budgets))
        if isinstance(exc, RecursionError) and self.budgets.recursion:
            self.cross(
                Limit.RECURSION, f"its functions called each other more than {self.budgets.recursion} deep"
            )
        return self.crossed

    @contextmanager
    def recursion(self) -> Iterator[None]:
        """Let what runs in here call no deeper than the budget allows, from here on."""
        if not self.budgets.recursion:
            yield
            return
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(min(before, _depth() + self.budgets.recursion))
        try:
            yield
        finally:
            sys.setrecursionlimit(before)


def over_time(budgets: Budgets) -> str:
    """In words."""
    seconds = budgets.time_s
    return f"the chunk has worked for {span(round(seconds * 1000)) if seconds >= 1 else f'{seconds:g}s'}, its budget"


def peak_from_now() -> Callable[[], int]:
    """A function that tells the most memory this process had since now, in KB.

    Where the kernel does not let its mark be set back, that is known only once there is more than ever before: until
    then it says 0.
    """
    with suppress(OSError):
        _CLEAR.write_text("5")
        return _high_water
    before = most_kb()
    return lambda: found if (found := most_kb()) > before else 0


def _high_water() -> int:
    with suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return 0


def most_kb() -> int:
    """The most memory this process ever had, in KB (macOS counts bytes)."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most // 1024 if os.uname().sysname == "Darwin" else most


def _nothing() -> int:
    return 0


def _depth() -> int:
    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return depth
