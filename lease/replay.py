"""Replay: dead or failed jobs, chosen by conditions, are retried at a pace. First a preview, then the word to do it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

from ..scripts.errors import BadInput
from .batches import MOST_JOBS, RATE, Batch, Batches
from .durations import Duration, duration_ms
from .failed import FailedJob
from .filters import FAILED, Filters
from .instants import rfc3339, to_ms
from .ledger import Ledger
from .listing import LONGEST, list_failed

LOOK = 20_000
"""So many jobs a preview looks at; it says so when there may be more."""


class ReplayConditions(TypedDict, total=False):
    """What chooses the jobs of a replay, for type checkers; all that are given must hold, and None is one not given.

    `status` is dead (if it is not given) or failed; `error` words of the newest error, in any case of letters;
    `fingerprint` a kind of failure, as `app.jobs.failures()` shows it; `min_age` and `max_age` how long ago it was
    made, `ended_from` and `ended_to` when it ended, the second not included.
    """

    status: str | None
    task: str | None
    instance: str | None
    trace: str | None
    error: str | None
    fingerprint: str | None
    min_age: Duration | None
    max_age: Duration | None
    ended_from: datetime | None
    ended_to: datetime | None


@dataclass(frozen=True, slots=True)
class ReplayPreview:
    """What a replay would do: `jobs` would be retried, the first to have ended first; `skipped` would not, each for the
    reason that its `refused` says. Its `token` does just that: what has moved since is skipped then.
    """

    tenant: str
    token: str
    conditions: Mapping[str, Any]
    jobs: tuple[FailedJob, ...]
    skipped: tuple[FailedJob, ...]
    scanned: int
    more: bool
    """Whether there may be more jobs than these."""


class Replays:
    """Verbs of replays. A replay is a batch: `Batches` tells how it stands."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def preview(
        self, conditions: ReplayConditions, limit: int = MOST_JOBS, token: str | None = None
    ) -> ReplayPreview:
        """Choose the newest jobs that meet the conditions, at most `limit` to be retried, and write them down.

        Raises BadInput.
        """
        check_limit(limit)
        filters = filters_of(conditions, self._now)
        jobs: list[FailedJob] = []
        skipped: list[FailedJob] = []
        scanned, cursor, more = 0, None, True
        while more and scanned < LOOK and len(jobs) < limit and len(skipped) < MOST_JOBS:
            room = min(LONGEST, limit - len(jobs))
            found = list_failed(self._ledger, filters, judged=True, limit=room, cursor=cursor)
            for job in found.items:
                (skipped if job.refused else jobs).append(job)
            scanned, cursor = scanned + found.scanned, found.next_cursor
            more = cursor is not None
        jobs.sort(key=lambda job: (job.at, job.id))
        said = in_words(conditions)
        plan = [(job.id, job.generation, job.refused or "") for job in (*jobs, *skipped)]
        token = Batches(self._ledger).plan("retry", "replay", plan, conditions=said, batch_id=token)
        return ReplayPreview(self._ledger.tenant, token, said, tuple(jobs), tuple(skipped), scanned, more)

    def apply(self, token: str, *, rate: int = RATE, reason: str = "", by: str = "") -> Batch:
        """Do what a preview has shown, at most `rate` jobs due in a second. Sent again it is the same replay.

        Raises NotFound for a preview that is not on record any more.
        """
        return Batches(self._ledger).run(token, rate=rate, reason=reason, by=by)

    def _now(self) -> int:
        return self._ledger.now()


def check_limit(limit: int) -> None:
    """Refuse what is no number of jobs to replay."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_JOBS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(
            f"limit {limit!r:.60} is out of range: 1 to {MOST_JOBS} jobs at a time",
            hint="replay again for more",
        )


def filters_of(conditions: ReplayConditions, now: Callable[[], int]) -> Filters:
    """The filters that find the jobs; the server's time is asked for only if an age needs it. Raises BadInput."""
    odd = sorted(conditions.keys() - ReplayConditions.__annotations__.keys())
    if odd:
        known = ", ".join(ReplayConditions.__annotations__)
        raise BadInput(f"{odd[0]!r:.60} is no condition of a replay", hint=f"the conditions are: {known}")
    status = conditions.get("status") or FAILED[0]
    if status not in FAILED:
        raise BadInput(f"status {status!r:.40} cannot be replayed", hint=f"one of: {', '.join(FAILED)}")
    task, ages = conditions.get("task"), {name: _age(conditions, name) for name in ("min_age", "max_age")}
    if ages["min_age"] is not None and ages["max_age"] is not None and ages["min_age"] > ages["max_age"]:
        raise BadInput(
            f"min_age {conditions.get('min_age')!s:.40} is more than max_age {conditions.get('max_age')!s:.40}: no job "
            "can be that old",
            hint="exchange the two, or leave one out",
        )
    read_at = now() if any(age is not None for age in ages.values()) else 0
    oldest, youngest = ages["max_age"], ages["min_age"]
    return Filters(
        status=status,
        tasks=None if task is None else (task,),
        instance=conditions.get("instance"),
        trace=conditions.get("trace"),
        error=conditions.get("error"),
        fingerprint=conditions.get("fingerprint"),
        created_from=None if oldest is None else max(0, read_at - oldest),
        created_to=None if youngest is None else read_at - youngest + 1,
        ended_from=_instant(conditions, "ended_from"),
        ended_to=_instant(conditions, "ended_to"),
    )


def in_words(conditions: ReplayConditions) -> dict[str, Any]:
    """The conditions that were given, as they are kept: times as RFC 3339."""
    said: dict[str, Any] = {"status": str(conditions.get("status") or FAILED[0])}
    for name, value in conditions.items():
        if value is not None:
            said[name] = rfc3339(to_ms(value, what=name)) if isinstance(value, datetime) else str(value)
    return said


def _age(conditions: ReplayConditions, name: str) -> int | None:
    value: Any = conditions.get(name)
    return None if value is None else duration_ms(value, what=name)


def _instant(conditions: ReplayConditions, name: str) -> int | None:
    value: Any = conditions.get(name)
    return None if value is None else to_ms(value, what=name)
