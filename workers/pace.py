"""How long tasks run, as far as a worker has seen, and so how much may be claimed ahead of the slots."""

from __future__ import annotations

SLOWER, FASTER = 0.5, 0.05
"""How much one job counts: a slow one at once, quick ones only when there are many."""


class Pace:
    """Moving averages of run times, in seconds, of one pool's tasks."""

    def __init__(self) -> None:
        self.mean: float | None = None
        """Over all tasks; None before the first job has ended."""
        self._by_task: dict[str, float] = {}

    def saw(self, task: str, seconds: float) -> None:
        known = self._by_task.get(task)
        self._by_task[task] = seconds if known is None else _moved(known, seconds)
        self.mean = seconds if self.mean is None else _moved(self.mean, seconds)

    def of(self, task: str) -> float | None:
        """A task's mean; None when it was never seen to end."""
        return self._by_task.get(task)


def _moved(mean: float, seconds: float) -> float:
    return mean + (seconds - mean) * (SLOWER if seconds > mean else FASTER)
