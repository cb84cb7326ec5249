"""How far a job is, in one line that fits the terminal; pure."""

from __future__ import annotations

from dataclasses import dataclass

from ..api.progress import percent
from ..lease.durations import span
from ..lease.eta import Eta, remaining
from ..lease.jobs import JobView, Progress
from ..scripts.states import State
from .output import clean_line

WIDTH = 12
RECENT = 8
STEP = 10.0


@dataclass(frozen=True, slots=True)
class Shown:
    """What the line shows of a job, wherever that was read."""

    status: str
    percent: float | None = None
    done: int | None = None
    total: int | None = None
    rate: float | None = None
    """Work a second."""
    eta: Eta | None = None
    ended: bool = False
    stage: str = ""
    unit: str = ""
    warnings: int = 0
    why: str = ""
    """What there is to say beyond the state."""
    attempt: int = 0


class Steps:
    """Which lines to print where none can be drawn over the one before: where the end comes, the attempt or the stage
    changes, and at each tenth of the work.
    """

    def __init__(self) -> None:
        self._last: tuple[object, float] | None = None

    def is_news(self, job: Shown) -> bool:
        """Asked once for each look; the first one is news."""
        state = job.status if job.ended else None, job.attempt, job.stage
        share = job.percent or 0.0
        if self._last and state == self._last[0] and share < self._last[1] + STEP:
            return False
        self._last = state, share
        return True


def describe(job: JobView, columns: int | None = None) -> str:
    """`running    42.0% [#####.......] 1,234/2,900 rows  123/s  3m12s left (2m50s-4m10s)  reading  2 warnings`, as far
    as it is known.
    """
    return draw(shown(job), columns)


def draw(job: Shown, columns: int | None = None) -> str:
    """The line, harmless to a terminal; in `columns` columns, without what is least needed: stage, range of the ETA,
    rate, bar, counts.
    """
    stage, warned = clean_line(job.stage), _warned(job)
    if job.done is None and job.total is None:
        known = (clean_line(f"{job.status} {job.why}"), stage, warned)
        return "  ".join(part for part in known if part)
    share, bar, done = _share(job), f" {_bar(job)}", f" {_done(job)}"
    left, bounds, rate = _left(job), _bounds(job), _rate(job)
    forms = (
        (share + bar + done, rate, left + bounds, stage, warned),
        (share + bar + done, rate, left + bounds, warned),
        (share + bar + done, rate, left, warned),
        (share + bar + done, left, warned),
        (share + done, left, warned),
        (share, left, warned),
        (share, left),
    )
    lines = ["  ".join(part for part in parts if part) for parts in forms]
    return next((line for line in lines if columns is None or len(line) <= columns), lines[-1])


def shown(job: JobView) -> Shown:
    progress, attempt = job.progress, len(job.attempts)
    if progress is None:
        return Shown(job.status, ended=job.ended, why=_why(job), attempt=attempt)
    stage = "" if job.ended else progress.stage or ""
    if progress.done is None and progress.total is None and progress.doing is None:
        return Shown(
            job.status,
            ended=job.ended,
            stage=stage,
            warnings=progress.warnings,
            why=_why(job),
            attempt=attempt,
        )
    return Shown(
        status=job.status,
        percent=percent(job),
        done=max(progress.done or 0, progress.doing or 0),
        total=progress.total,
        rate=_measured(progress),
        eta=remaining(job),
        ended=job.ended,
        stage=stage,
        unit=progress.unit or "",
        warnings=progress.warnings,
        why=_why(job) if job.ended and job.status is not State.SUCCEEDED else "",
        attempt=attempt,
    )


def _why(job: JobView) -> str:
    """What a plain job has to say beyond its state."""
    if job.status is State.RUNNING and job.worker:
        return f"on {job.worker}"
    return f"({job.why_dead or job.reason})" if job.why_dead or job.reason else ""


def _measured(progress: Progress) -> float | None:
    samples = progress.samples[-RECENT:]
    if len(samples) < 2 or samples[-1][0] <= samples[0][0]:
        return None
    return (samples[-1][1] - samples[0][1]) * 1000 / (samples[-1][0] - samples[0][0])


def _share(job: Shown) -> str:
    return f"{job.status:<9} {'   ?' if job.percent is None else f'{job.percent:4.1f}':>5}%"


def _bar(job: Shown) -> str:
    full = round(WIDTH * (job.percent or 0) / 100)
    return f"[{'#' * full}{'.' * (WIDTH - full)}]"


def _done(job: Shown) -> str:
    total = "" if job.total is None else f"/{job.total:,}"
    return f"{job.done or 0:,}{total} {job.unit}".rstrip()


def _warned(job: Shown) -> str:
    if not job.warnings:
        return ""
    return f"{job.warnings:,} warning{'s' if job.warnings > 1 else ''}"


def _rate(job: Shown) -> str:
    if job.rate is None:
        return ""
    return f"{job.rate:,.0f}/s" if job.rate >= 10 else f"{job.rate:.2g}/s"


def _left(job: Shown) -> str:
    if job.ended:
        return clean_line(job.why)
    if job.status == State.PAUSED:
        return ""  # nobody knows when it goes on, and nothing is being estimated
    return f"{span(job.eta.likely_ms)} left" if job.eta else "ETA: estimating"


def _bounds(job: Shown) -> str:
    return f" ({span(job.eta.low_ms)}-{span(job.eta.high_ms)})" if job.eta and not job.ended else ""
