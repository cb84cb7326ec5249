"""Children of this process, two at a time, each with a part of the tests and a server of its own.

A child is a fork of the process that has already imported and collected everything. It says on a pipe which test it
begins and in the end what came of it; when it stays at one test for too long it is ended, and its server with it.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Say = Callable[[Any], None]

AT_ONCE = 2


@dataclass
class Job(Generic[T]):
    """What a child is to do: `work` says something before each piece, and `last` things at the end, all of it JSON."""

    about: T
    work: Callable[[Say], object]
    patience_s: Callable[[Any], float]
    """How long it may be silent after it said this."""


@dataclass(eq=False)
class _Child(Generic[T]):
    job: Job[T]
    pid: int
    pipe: int
    deadline: float
    said: list[Any] = field(default_factory=list[Any])
    unread: bytes = b""

    def read(self) -> bool:
        """Take what it has said; False when it has ended."""
        data = os.read(self.pipe, 1 << 16)
        *lines, self.unread = (self.unread + data).split(b"\n")
        for line in lines:
            self.said.append(json.loads(line))
            self.deadline = time.monotonic() + self.job.patience_s(self.said[-1])
        return bool(data)

    def end(self) -> None:
        os.close(self.pipe)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def run(jobs: Iterable[Job[T]]) -> Iterator[tuple[T, list[Any], bool]]:
    """Do all jobs; for each, as it ends: what it is about, what it said, and whether its time ran out."""
    waiting, selector = iter(jobs), selectors.DefaultSelector()
    alive: list[_Child[T]] = []
    try:
        while True:
            while len(alive) < AT_ONCE and (job := next(waiting, None)):
                alive.append(_fork(job))
                selector.register(alive[-1].pipe, selectors.EVENT_READ, alive[-1])
            if not alive:
                return
            soonest = min(child.deadline for child in alive)
            ready = [key.data for key, _ in selector.select(max(0, soonest - time.monotonic()))]
            for child in list(alive):
                ended = child in ready and not child.read()
                late = time.monotonic() > child.deadline
                if ended or late:
                    selector.unregister(child.pipe)
                    alive.remove(child)
                    child.end()
                    yield child.job.about, child.said, late and not ended
    finally:
        for child in alive:
            child.end()
        selector.close()


def _fork(job: Job[T]) -> _Child[T]:
    ours, theirs = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        os.close(theirs)
        return _Child(job, pid, ours, time.monotonic() + job.patience_s(None))
    try:
        os.setpgid(0, 0)
        os.close(ours)
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)

        def say(words: Any) -> None:
            os.write(theirs, json.dumps(words).encode() + b"\n")

        try:
            job.work(say)
        except BaseException:
            say({"error": traceback.format_exc()})
    finally:
        os._exit(0)
