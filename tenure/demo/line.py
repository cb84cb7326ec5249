"""The task as its JSON has it, as a line drawn over itself in a terminal and printed now and then elsewhere."""

from __future__ import annotations

import shutil
import threading
from datetime import UTC, datetime
from typing import Any, TextIO

from ..cli.progress import Shown, draw
from ..lease.eta import Eta
from .client import ENDED

INDENT = "    "
PRINT_EACH = 10.0


class ProgressLine:
    """Threads may share it."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live = out.isatty()
        self._lock = threading.Lock()
        self._text = ""
        self._printed: tuple[object, float] = ("", -PRINT_EACH)

    def draw(self, task: dict[str, Any]) -> None:
        with self._lock:
            if self._live:
                columns = shutil.get_terminal_size().columns - len(INDENT) - 1
                self._text = draw(shown(task, datetime.now(UTC)), columns)
                self._write(f"\r\x1b[2K{INDENT}{self._text}")
            elif self._worth_printing(task):
                self._write(f"{INDENT}{draw(shown(task, datetime.now(UTC)))}\n")

    def say(self, text: str) -> None:
        """A line of its own, above the one that moves."""
        with self._lock:
            below = f"{INDENT}{self._text}" if self._text else ""
            self._write(f"\r\x1b[2K{INDENT}{text}\n{below}" if self._live else f"{INDENT}{text}\n")

    def end(self) -> None:
        """Leave it as it stands; what is said from now on comes below."""
        with self._lock:
            if self._text:
                self._text = ""
                self._write("\n")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _worth_printing(self, task: dict[str, Any]) -> bool:
        """Without a terminal: when the attempt or the status changes, and at each tenth of the work."""
        state, percent = self._printed
        now = (task["status"] in ENDED, task["attempt"])
        if now == state and (task["percent"] or 0.0) < percent + PRINT_EACH:
            return False
        self._printed = now, float(task["percent"] or 0.0)
        return True


def shown(task: dict[str, Any], now: datetime) -> Shown:
    """What the line shows of a background task, as the API gives it."""
    done = [task[name] for name in ("done", "doing") if task[name] is not None]
    return Shown(
        status=task["status"],
        percent=task["percent"],
        done=max(done) if done else None,
        total=task["total"],
        eta=_eta(task, now),
        ended=task["status"] in ENDED,
        why=f"({task['deadReason']})" if task["deadReason"] else "",
    )


def _eta(task: dict[str, Any], now: datetime) -> Eta | None:
    eta = task["eta"]
    if eta is None or eta["state"] != "known":
        return None
    likely, low, high = (
        max(0, round((datetime.fromisoformat(eta[name]) - now).total_seconds() * 1000))
        for name in ("at", "low", "high")
    )
    return Eta(likely, low, high)
