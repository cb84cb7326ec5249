"""Carries batches of calls to the store in a thread of its own, so that the worker's loop never waits for the store."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..lease.loop import retry_after
from ..scripts import Call, Scripts
from ..scripts.errors import StoreError, StoreFull, StoreReadOnly, StoreUnreachable, TenureError

log = logging.getLogger("tenure.worker")

PASSING = (StoreUnreachable, StoreReadOnly, StoreFull)
"""A call that was answered with one of these may be taken a little later."""
RETRY_S = 0.5


@dataclass(frozen=True, slots=True)
class Post:
    """A call, and who reads its answer (or the error it was refused with) in the worker's loop."""

    call: Call[Any]
    read: Callable[[Any, float], None]
    """Gets the answer and when the call was first sent: a grant may be as old as that."""


class Courier:
    """One batch at a time, sent again until it is answered: each of its calls is idempotent or fenced."""

    def __init__(self, scripts: Scripts, name: str, poke: Callable[[], None]) -> None:
        self.busy = False
        self._scripts = scripts
        self._poke = poke
        self._refused = ""
        self._over = threading.Event()
        self._orders: queue.SimpleQueue[list[Post] | None] = queue.SimpleQueue()
        self._answers: deque[tuple[list[Post], list[Any], float]] = deque()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def send(self, posts: list[Post]) -> None:
        """Send a batch; only when not busy. The worker is poked when the answers are there."""
        if posts:
            self.busy = True
            self._orders.put(posts)

    def read(self) -> bool:
        """Read the answers that have come, in the caller's thread. Answers whether there were any."""
        if not self._answers:
            return False
        posts, answers, sent_at = self._answers.popleft()
        self.busy = False
        for post, answer in zip(posts, answers, strict=True):
            post.read(answer, sent_at)
        return True

    def close(self, timeout: float) -> None:
        """Send nothing more; wait for the batch on its way so long."""
        self._over.set()
        self._orders.put(None)
        self._thread.join(timeout)

    def _run(self) -> None:
        while (posts := self._orders.get()) is not None:
            answered = self._deliver([post.call for post in posts])
            if answered is None:
                return
            self._answers.append((posts, *answered))
            self._poke()

    def _deliver(self, calls: Sequence[Call[Any]]) -> tuple[list[Any], float] | None:
        """The answers and when the calls were first sent; None when we were closed before there were any."""
        failures = 0
        sent_at = time.monotonic()
        while not self._over.is_set():
            try:
                answers = self._scripts.run_all(calls)
            except StoreError as exc:
                failures += 1
                if failures == 1:
                    log.warning("%s; jobs run on, their outcomes are kept until the store is back", exc)
                self._over.wait(retry_after(failures) / 4)
                continue
            except Exception as exc:
                # a fault of ours: each reader must hear of it, or the loop would wait for ever
                log.exception("a batch of calls failed")
                error = TenureError(f"the call failed: {exc!r}")
                return [error for _ in calls], sent_at
            if failures:
                log.warning("the store is back")
            self._report(answers)
            return answers, sent_at
        return None

    def _report(self, answers: list[Any]) -> None:
        """Say once what the store refuses; not again with every batch."""
        text = next((str(answer) for answer in answers if isinstance(answer, StoreError)), "")
        if text and text != self._refused:
            log.warning("%s", text)
        self._refused = text
