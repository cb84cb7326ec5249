"""How far a job is, in one line; pure."""

from __future__ import annotations

from ..api.progress import percent
from ..lease.eta import estimate
from ..lease.jobs import JobView, Progress
from ..scripts.states import State
from .output import span

WIDTH = 12
RECENT = 8


def describe(job: JobView) -> str:
    """`running    42.0% [#####.......] 1,234/2,900  123/s  3m12s left (2m50s-4m10s)`, as far as it is known."""
    progress = job.progress
    if progress is None or (progress.done is None and progress.total is None and progress.doing is None):
        return f"{job.status}{_why(job)}"
    parts = [
        f"{job.status:<9} {_share(job, progress)} {_done(progress)}",
        _rate(progress),
        _left(job, progress),
    ]
    return "  ".join(part for part in parts if part)


def _why(job: JobView) -> str:
    """What a plain job has to say beyond its state."""
    if job.status is State.RUNNING and job.worker:
        return f" on {job.worker}"
    return f" ({job.dead_reason or job.reason})" if job.dead_reason or job.reason else ""


def _share(job: JobView, progress: Progress) -> str:
    share = percent(job)
    full = round(WIDTH * (share or 0) / 100)
    return f"{'   ?' if share is None else f'{share:4.1f}':>5}% [{'#' * full}{'.' * (WIDTH - full)}]"


def _done(progress: Progress) -> str:
    done = max(progress.done or 0, progress.doing or 0)
    return f"{done:,}/{progress.total:,}" if progress.total is not None else f"{done:,}"


def _rate(progress: Progress) -> str:
    samples = progress.samples[-RECENT:]
    if len(samples) < 2 or samples[-1][0] <= samples[0][0]:
        return ""
    a_second = (samples[-1][1] - samples[0][1]) * 1000 / (samples[-1][0] - samples[0][0])
    return f"{a_second:,.0f}/s" if a_second >= 10 else f"{a_second:.2g}/s"


def _left(job: JobView, progress: Progress) -> str:
    if job.ended:
        return "" if job.status is State.SUCCEEDED else _why(job).strip()
    eta = estimate(progress, job.read_at)
    if eta is None:
        return "ETA: estimating"
    return f"{span(eta.likely_ms)} left ({span(eta.low_ms)}-{span(eta.high_ms)})"
