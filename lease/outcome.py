"""How an attempt ends: what the worker tells the ledger, and what a task may return or raise to say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..scripts.states import Cause
from .durations import Duration, duration_ms
from .reports import check_count, message_text

T = TypeVar("T")


# What a task says. These are public and exported by `tenure`.


@dataclass(frozen=True, slots=True)
class Continue:
    """Return this to end a chunk: `cursor` is where the next one starts, `done` and `total` are committed progress.

    A source may grow while it is read: `done` beyond `total` is no error, and shows less than 100 % without an ETA.
    """

    cursor: Mapping[str, Any]
    done: int | None = None
    total: int | None = None
    delay: Duration = 0
    message: str = ""

    def __post_init__(self) -> None:
        duration_ms(self.delay, what="delay")
        check_count(self.done, "done")
        check_count(self.total, "total")
        message_text(self.message)


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """Return this to end a task with a result."""

    result: T = None  # type: ignore[assignment]


class Skip(Exception):
    """Raise or return this when there is nothing to do: the job succeeds, its attempt says `skipped` and why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RetryAfter(Exception):
    """Raise this when the other side asks to come back later: one attempt is spent, the next comes after `delay`."""

    def __init__(self, delay: Duration, reason: str = "") -> None:
        super().__init__(reason or f"asked to come back after {delay}")
        self.delay_ms = duration_ms(delay, what="delay")


class Permanent(Exception):
    """Raise this when trying again cannot help; its cause, if it has one (`raise ... from exc`), is on record too."""


# What the ledger is told. Each names the script's `kind` and its fields; the rest is left empty.


@dataclass(frozen=True, slots=True)
class Succeed:
    result: bytes = b""


@dataclass(frozen=True, slots=True)
class SkipRest:
    reason: str


@dataclass(frozen=True, slots=True)
class NextChunk:
    cursor: bytes
    done: int | None = None
    total: int | None = None
    delay_ms: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class Fail:
    """The attempt counts; the job is tried again after `delay_ms` while attempts are left, or never if `permanent`.

    `failure` is the kind of its error, as `workers/fingerprint.py` makes it; without one its cause stands for it.
    """

    summary: str
    cause: Cause = Cause.RAISED
    delay_ms: int = 0
    permanent: bool = False
    stack: str = ""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Lose:
    """The process that ran it died."""

    summary: str
    cause: Cause = Cause.KILLED


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Handed back at a graceful stop; with `started` False it was claimed ahead and never ran, so it was no attempt.

    Nor did it if it is of a task `unknown` to its worker: it goes to those who know it. With `delay_ms` it is not
    claimed before.
    """

    started: bool = True
    delay_ms: int = 0
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class Stopped:
    """The job was taken from its holder, by a cancel or a pause, and the holder has stopped: its key is free."""


Outcome = Succeed | SkipRest | NextChunk | Fail | Lose | GiveBack | Stopped
