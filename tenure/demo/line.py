"""One line that shows how far a task is, drawn over itself in a terminal and printed now and then elsewhere."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TextIO

WIDTH = 24
PRINT_EACH = 10.0


class ProgressLine:
    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live = out.isatty()
        self._printed: tuple[object, float] = ("", -PRINT_EACH)

    def draw(self, task: dict[str, Any]) -> None:
        if self._live:
            self._out.write(f"\r\x1b[2K    {describe(task)}")
        elif self._worth_printing(task):
            self._out.write(f"    {describe(task)}\n")
        self._out.flush()

    def say(self, text: str) -> None:
        """A line of its own, above the one that moves."""
        self._out.write(f"\r\x1b[2K    {text}\n" if self._live else f"    {text}\n")
        self._out.flush()

    def end(self) -> None:
        if self._live:
            self._out.write("\n")

    def _worth_printing(self, task: dict[str, Any]) -> bool:
        """Without a terminal: when the attempt or the status changes, and at each tenth of the work."""
        state, percent = self._printed
        now = (task["status"] in ("succeeded", "dead", "canceled"), task["attempt"])
        if now == state and (task["percent"] or 0.0) < percent + PRINT_EACH:
            return False
        self._printed = now, float(task["percent"] or 0.0)
        return True


def describe(task: dict[str, Any]) -> str:
    percent = task["percent"]
    full = round(WIDTH * (percent or 0) / 100)
    share = "  ?  %" if percent is None else f"{percent:5.1f} %"
    done = f"{task['done'] or 0}/{task['total'] or '?'} rows"
    return f"[{'#' * full}{'.' * (WIDTH - full)}] {share}  {done:<13}  {task['status']:<9}  {_eta(task)}"


def _eta(task: dict[str, Any]) -> str:
    eta = task["eta"]
    if task["finishedAt"]:
        return "ended"
    if eta["state"] != "known":
        return "ETA: estimating"
    now = datetime.now().astimezone()
    left, low, high = (
        max(0, round((_time(eta[name]) - now).total_seconds())) for name in ("at", "low", "high")
    )
    return f"ETA {_time(eta['at']):%H:%M:%S}, in {left} s ({low}-{high} s)"


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone()
