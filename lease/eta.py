"""When a background task will end, from committed work only.

Estimator: the samples (working ms, done) of the last half of the work done so far are fitted by Theil and Sen
(the median of the slopes between all pairs; Sen 1968), which a burst or a stall does not pull away. The range
comes from the outer tenths of the same slopes, widened while there are few. Working time does not run in a queue
or a pause, and it does run through work that was lost and done again, so retries count and waiting does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median, quantiles

from ..scripts.states import State
from .jobs import JobView, Progress

FEWEST = 4
LONGEST_MS = 366 * 86_400_000


@dataclass(frozen=True, slots=True)
class Eta:
    """Remaining time in ms: likely, and between `low` and `high`."""

    likely_ms: int
    low_ms: int
    high_ms: int


def remaining(view: JobView) -> Eta | None:
    """How long from when it was read until a job has ended: what waits for its next attempt or chunk works on from when
    that is due. None while it does not deserve a number, and once it has ended.
    """
    if view.progress is None or view.status not in (State.RUNNING, State.PENDING):
        return None
    left = estimate(view.progress, view.read_at)
    if left is None:
        return None
    wait = max(0, view.run_at - view.read_at) if view.status is State.PENDING else 0
    return Eta(left.likely_ms + wait, left.low_ms + wait, left.high_ms + wait)


def estimate(progress: Progress, now: int) -> Eta | None:
    """The remaining working time at `now` (epoch ms), or None while it does not deserve a number."""
    if progress.total is None or progress.done is None or progress.done >= progress.total:
        return None
    rates = _rates(progress.samples)
    if len(rates) < FEWEST:
        return None
    slow, _, _, _, middle, _, _, _, quick = quantiles(rates, n=10, method="inclusive")
    left = progress.total - progress.done
    if slow <= 0 or left / slow > LONGEST_MS:
        return None
    silent = max(0, _working_ms(progress, now) - progress.samples[-1][0])
    spent = min(silent, _usual_gap(progress.samples))
    wider = 1 + 2 / len(progress.samples)
    return Eta(
        likely_ms=_rest(left / middle, spent),
        low_ms=_rest(left / quick / wider, spent),
        high_ms=max(_rest(left / slow * wider, spent), _rest(left / middle, 0)) + silent - spent,
    )


def _rest(needed_ms: float, spent_ms: int) -> int:
    """What is left of `needed_ms` since the last commit; it does not go below what is still uncommitted:
    never 0 before the end.
    """
    return max(round(needed_ms) - spent_ms, round(needed_ms / 20))


def _usual_gap(samples: tuple[tuple[int, int], ...]) -> int:
    """The usual working time between two commits. A silence longer than that is a stall: it brings the end no
    nearer, and nobody knows how long it lasts, so it goes on top of the range.
    """
    return round(median(after[0] - before[0] for before, after in pairwise(samples)))


def _rates(samples: tuple[tuple[int, int], ...]) -> list[float]:
    """Work per ms between all pairs of the recent samples, those that moved."""
    recent = _recent(samples)
    return [
        (done - done_before) / (ms - ms_before)
        for at, (ms, done) in enumerate(recent)
        for ms_before, done_before in recent[:at]
        if ms > ms_before and done > done_before
    ]


def _recent(samples: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """The samples of the last half of the work, at least the last eight: a task that slows down is judged by
    how it is now.
    """
    if not samples:
        return ()
    half = samples[-1][1] / 2
    start = next(at for at, (_, done) in enumerate(samples) if done >= half or done == samples[-1][1])
    return samples[min(start, max(0, len(samples) - 8)) :]


def _working_ms(progress: Progress, now: int) -> int:
    since = progress.running_since
    return progress.busy_ms + (max(0, now - since) if since is not None else 0)
