"""What the commands that stay share: their log on stderr, and the wait for the signal that ends them."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import FrameType

from ..lease.loop import Loop
from ..processes import PARENT
from ..workers.orphans import die_with_parent
from .output import clean

LAST_ROUND_S = 5.0


class Stopped(Exception):
    """SIGINT or SIGTERM came."""


def begin(name: str) -> None:
    """Log to stderr as `name`, and end with the process that started this one, if it asked for that."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines(f"%(asctime)s {name}[%(process)d] %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    parent = os.environ.pop(PARENT, None)
    if parent:
        die_with_parent(int(parent), signal.SIGTERM)


@contextmanager
def until_stopped() -> Generator[None, None, None]:
    """A block that SIGINT and SIGTERM end by raising Stopped in it; a second Ctrl-C ends the process at once."""
    before = {sig: signal.signal(sig, _stop) for sig in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except Stopped:
        pass
    finally:
        for sig, handler in before.items():
            signal.signal(sig, handler)


@contextmanager
def turning(loops: Sequence[Loop]) -> Generator[None, None, None]:
    """The loops turn while the block runs; a round under way at its end may take five seconds more."""
    for loop in loops:
        loop.start()
    try:
        yield
    finally:
        for loop in loops:
            loop.stop()
        until = time.monotonic() + LAST_ROUND_S
        for loop in loops:
            loop.stop(timeout=max(0.01, until - time.monotonic()))


def wait() -> None:
    """Wait for a signal. The main thread only sleeps: a handler that runs there cannot meet a lock it holds."""
    while True:
        time.sleep(3600)


def _stop(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # asked twice is asked once
    signal.signal(signal.SIGINT, signal.default_int_handler)
    raise Stopped


class _Lines(logging.Formatter):
    """One record is one line, whatever a message holds; only a traceback takes more."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = clean(record.message).replace("\n", "\\n")
        return super().formatMessage(record)
