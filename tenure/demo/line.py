"""The task as its JSON has it, as a line drawn over itself in a terminal and printed now and then elsewhere."""

from __future__ import annotations

import shutil
import threading
from datetime import UTC, datetime
from typing import Any, TextIO

from ..cli.output import cut
from ..cli.progress import Shown, Steps, draw
from ..lease.eta import Eta
from .client import ENDED

INDENT = "    "


class ProgressLine:
    """Threads may share it."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live = out.isatty()
        self._lock = threading.Lock()
        self._text = ""
        self._steps = Steps()

    def draw(self, task: dict[str, Any]) -> None:
        job = shown(task, datetime.now(UTC))
        with self._lock:
            if self._live:
                columns = shutil.get_terminal_size().columns - len(INDENT) - 1
                self._text = cut(draw(job, columns), columns)
                self._write(f"\r\x1b[2K{INDENT}{self._text}")
            elif self._steps.is_news(job):
                self._write(f"{INDENT}{draw(job)}\n")

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


def shown(task: dict[str, Any], now: datetime) -> Shown:
    """What the line shows of a background task, as the API gives it."""
    done = [task[name] for name in ("done", "doing") if task[name] is not None]
    ended = task["status"] in ENDED
    return Shown(
        status=task["status"],
        percent=task["percent"],
        done=max(done) if done else None,
        total=task["total"],
        eta=_eta(task, now),
        ended=ended,
        stage="" if ended else task["stage"] or "",
        unit=task["unit"] or "",
        warnings=task["warnings"],
        why=f"({task['deadReason']})" if task["deadReason"] else "",
        attempt=task["attempt"],
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
