"""When a background task will end, from committed work only.

Estimator: the curve of (working ms, done) at each commit is cut into blocks of equal work, and the time that a block
takes is fitted over the work done by least squares: once as even, and once for each way in which a pace changes (it
grows with the work; or with its root or logarithm; it grew until some eighth of what is done; it became another there).
What is ahead is the mean of what they foretell, each weighted by the evidence for it (Bayesian model averaging by the
BIC: Schwarz 1978, Raftery 1995). The slowest stretch between two commits counts as no slower than the second slowest
(winsorized: Dixon 1960), so one outage changes little, and troubles that come again count as often as they have come.
The range is twice the standard deviation of what is ahead: of the blocks still to come, of each fit, and of the fits
among each other; more where neighbours are alike, since then there is less evidence than blocks.

Working time does not run in a queue or a pause. It does run through work that was lost and done again, and through the
delays that a task asks for between its chunks or before it tries again: those are its own pace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, log, sqrt
from statistics import fmean, median, variance

from ..scripts.states import State
from .jobs import JobView, Progress

FEWEST = 4
"""Blocks that it takes for a number."""
SHARE, WHILE_MS = 0.1, 60_000
"""A number is deserved by this share of the work, or by so much working time: troubles show only as work goes on."""
BLOCKS = 24
FEWEST_TO_BEND = 6
"""Blocks that it takes to see a pace change."""
WIDTH = 2.0
LEAST_SHARE, LEAST_MS = 0.04, 250
"""What nobody knows better than: of what is left, and in any case."""
LONGEST_MS = 366 * 86_400_000


@dataclass(frozen=True, slots=True)
class Eta:
    """Remaining time in ms: likely, and between `low` and `high`."""

    likely_ms: int
    low_ms: int
    high_ms: int


def remaining(view: JobView) -> Eta | None:
    """How long from when it was read until a job has ended. What waits longer than its commits usually take goes on
    then. None while it does not deserve a number, and once it has ended.
    """
    if view.progress is None or view.status not in (State.RUNNING, State.PENDING):
        return None
    ahead = max(0, view.run_at - view.read_at) if view.status is State.PENDING else 0
    left = estimate(replace(view.progress, busy_ms=view.progress.busy_ms - ahead), view.read_at)
    if left is None:
        return None
    wait = max(0, ahead - _usual_gap(view.progress.samples))
    return Eta(left.likely_ms + wait, left.low_ms + wait, left.high_ms + wait)


def estimate(progress: Progress, now: int) -> Eta | None:
    """The remaining working time at `now` (epoch ms), or None while it does not deserve a number."""
    if progress.total is None or progress.done is None or progress.done >= progress.total:
        return None
    curve = _moved(progress.samples)
    if len(curve) <= FEWEST or not _deserved(curve, progress.total):
        return None
    blocks = _cut(_without_the_longest(curve))
    capped = max(0.0, variance(_cut(curve).ms) - variance(blocks.ms))
    needed, spread = _ahead(blocks, (progress.total - progress.done) / blocks.work, capped)
    if needed > LONGEST_MS:
        return None
    spread = WIDTH * (1 + 2 / len(blocks.ms)) * (spread + LEAST_SHARE * needed + LEAST_MS)
    silent = max(0, _working_ms(progress, now) - progress.samples[-1][0])
    spent = min(silent, _usual_gap(progress.samples))
    return Eta(
        likely_ms=_rest(needed, spent),
        low_ms=_rest(needed / (1 + spread / needed), spent),
        high_ms=_rest(needed + spread, spent) + silent - spent,
    )


def _rest(needed_ms: float, spent_ms: int) -> int:
    """What is left of `needed_ms` since the last commit; it does not go below what is still uncommitted:
    never 0 before the end.
    """
    return max(round(needed_ms) - spent_ms, round(needed_ms / 20), 1)


def _usual_gap(samples: tuple[tuple[int, int], ...]) -> int:
    """The usual working time between two commits. A silence longer than that is a stall: it brings the end no
    nearer, and nobody knows how long it lasts, so it goes on top of the range.
    """
    recent = samples[-8:]
    return round(median(after[0] - before[0] for before, after in pairwise(recent)))


def _moved(samples: tuple[tuple[int, int], ...]) -> list[tuple[int, int]]:
    """The samples with which work had come further, each later than the one before."""
    curve: list[tuple[int, int]] = [*samples[:1]]
    for ms, done in samples[1:]:
        if done > curve[-1][1] and ms > curve[-1][0]:
            curve.append((ms, done))
    return curve


def _without_the_longest(curve: list[tuple[int, int]]) -> list[tuple[float, int]]:
    """The curve with its slowest stretch no slower than the second slowest."""
    paces = [(ms - before) / (done - done_before) for (before, done_before), (ms, done) in pairwise(curve)]
    second = sorted(paces)[-2]
    ms: float = curve[0][0]
    kept: list[tuple[float, int]] = [(ms, curve[0][1])]
    for pace, ((_, before), (_, done)) in zip(paces, pairwise(curve), strict=True):
        ms += min(pace, second) * (done - before)
        kept.append((ms, done))
    return kept


def _deserved(curve: list[tuple[int, int]], total: int) -> bool:
    ms, done = curve[-1]
    return done >= total * SHARE or ms >= WHILE_MS


@dataclass(frozen=True, slots=True)
class _Blocks:
    """A curve in blocks of equal work: the ms that each took, the work in a block, and what was done before the first
    of them, in blocks.
    """

    ms: list[float]
    work: float
    before: float


def _cut(curve: Sequence[tuple[float, int]]) -> _Blocks:
    many = min(BLOCKS, len(curve) - 1)
    start = curve[0][1]
    work = (curve[-1][1] - start) / many
    steps = iter(pairwise(curve))
    (ms, done), (next_ms, next_done) = next(steps)
    ends = [float(ms)]
    for nth in range(1, many):
        border = start + nth * work
        while next_done < border:
            (ms, done), (next_ms, next_done) = next(steps)
        ends.append(ms + (next_ms - ms) * (border - done) / (next_done - done))
    ends.append(curve[-1][0])
    return _Blocks([after - before for before, after in pairwise(ends)], work, start / work)


@dataclass(frozen=True, slots=True)
class _Shape:
    """A way in which pace changes: a function of the work, of which 1 is done.

    `kin` shapes are of its kind and share what is expected of that; `parameters` are those beyond the mean: how much,
    and where. One that is `only_slower` says nothing of a task that quickens: that does not go on quickening.
    """

    at: Callable[[float], float]
    kin: int = 1
    parameters: int = 1
    only_slower: bool = False


def _until(place: float) -> Callable[[float], float]:
    return lambda work: min(work, place)


def _since(place: float) -> Callable[[float], float]:
    return lambda work: float(work > place)


EVEN = 4
"""So many times as likely as each kind of change is an even pace, before anything is seen."""
PLACES = [eighth / 8 for eighth in range(1, 8)]
SHAPES = (
    _Shape(lambda work: work, only_slower=True),
    _Shape(sqrt, kin=2, only_slower=True),
    _Shape(log, kin=2),
    *(_Shape(kind(place), len(PLACES), parameters=2) for kind in (_until, _since) for place in PLACES),
)


@dataclass(frozen=True, slots=True)
class _Fit:
    """What one shape says: the ms of a block ahead, and how far the blocks so far lie from it.

    `doubt` is the variance of `ms`, as a multiple of that of a block. An even pace has no shape.
    """

    ms: float
    misses: list[float]
    doubt: float
    shape: _Shape | None

    @property
    def parameters(self) -> int:
        return self.shape.parameters if self.shape else 0

    @property
    def squares(self) -> float:
        return sum(miss * miss for miss in self.misses)


def _ahead(blocks: _Blocks, left: float, capped: float) -> tuple[float, float]:
    """The ms that the `left` blocks will take, and the standard deviation of that; `capped` is what of the variance of
    a block lies in the longest stretch.
    """
    many = len(blocks.ms)
    fits = _fits(blocks.ms, blocks.before, left)
    alike = _alike(min(fits, key=lambda fit: fit.squares).misses)
    weights = _weights(fits, many, alike)
    mean = sum(weight * fit.ms for weight, fit in zip(weights, fits, strict=True))
    spread = sum(
        weight
        * (_block_variance(fit, capped) * alike * (min(1.0, fit.doubt) + 1 / left) + (fit.ms - mean) ** 2)
        for weight, fit in zip(weights, fits, strict=True)
    )
    return mean * left, sqrt(spread) * left


def _fits(ms: list[float], before: float, left: float) -> list[_Fit]:
    """Even pace, and the shapes that can be seen in so many blocks."""
    many, mean = len(ms), fmean(ms)
    fits = [_Fit(mean, [block - mean for block in ms], 1 / many, None)]
    if many < FEWEST_TO_BEND:
        return fits
    done = before + many
    work = [(before + nth + 0.5) / done for nth in range(many)]
    end = 1 + left / done
    least = fmean(ms[-(many // 4) :]) / 2
    bent = (_fit(ms, shape, work, end, least) for shape in SHAPES)
    return fits + [fit for fit in bent if fit]


def _fit(ms: list[float], shape: _Shape, work: list[float], end: float, least: float) -> _Fit | None:
    """Least squares over the shape, and the mean of that from now to the `end` (by Simpson), not below `least`."""
    mean, height = fmean(ms), [shape.at(at) for at in work]
    middle = fmean(height)
    wide = sum((at - middle) ** 2 for at in height)
    if not wide:
        return None
    slope = sum((at - middle) * block for at, block in zip(height, ms, strict=True)) / wide
    if slope <= 0 and shape.only_slower:
        return None
    step = (shape.at(1) + 4 * shape.at((1 + end) / 2) + shape.at(end)) / 6 - middle
    misses = [block - mean - slope * (at - middle) for at, block in zip(height, ms, strict=True)]
    return _Fit(max(mean + slope * step, least), misses, 1 / len(ms) + step * step / wide, shape)


def _alike(misses: list[float]) -> float:
    """How many blocks tell as much as one would if neighbours had nothing to do with each other (at least 1)."""
    squares = sum(miss * miss for miss in misses)
    if not squares:
        return 1.0
    near = min(0.8, max(0.0, sum(one * other for one, other in pairwise(misses)) / squares))
    return (1 + near) / (1 - near)


def _weights(fits: Sequence[_Fit], many: int, alike: float) -> list[float]:
    """How much each fit counts, together 1: exp(-BIC / 2) by what was likely before."""
    evidence = max(3.0, many / alike)
    least = (1e-3 * fmean(fit.ms for fit in fits)) ** 2
    costs = [
        evidence * log(fit.squares / many + least)
        + fit.parameters * log(many)
        + (2 * log(EVEN * fit.shape.kin) if fit.shape else 0)
        for fit in fits
    ]
    weights = [exp((min(costs) - cost) / 2) for cost in costs]
    return [weight / sum(weights) for weight in weights]


def _block_variance(fit: _Fit, capped: float) -> float:
    return fit.squares / max(1, len(fit.misses) - 1 - fit.parameters) + capped


def _working_ms(progress: Progress, now: int) -> int:
    since = progress.running_since
    return progress.busy_ms + (max(0, now - since) if since is not None else 0)
