"""The estimate of a background task: a number only when it deserves one, and then a fair one."""

from __future__ import annotations

from random import Random

import pytest

from tenure.lease.eta import FEWEST, Eta, estimate
from tenure.lease.jobs import Progress

NOW = 1_790_000_000_000


def progress(
    samples: list[tuple[int, int]], total: int | None, done: int | None = None, waiting: bool = False
) -> Progress:
    """Progress as it stands right after the last of the samples (working ms, done)."""
    busy = samples[-1][0] if samples else 0
    return Progress(
        done=done if done is not None else samples[-1][1] if samples else None,
        total=total,
        doing=None,
        message="",
        busy_ms=busy,
        running_since=None if waiting else NOW,
        updated_at=NOW,
        samples=tuple(samples),
        lines=(),
    )


def steady(count: int, every_ms: int = 1_000, step: int = 10) -> list[tuple[int, int]]:
    return [(number * every_ms, number * step) for number in range(1, count + 1)]


def needed(found: Eta | None) -> Eta:
    assert found is not None, "an estimate was expected"
    return found


@pytest.mark.parametrize(
    "shown",
    [
        progress([], 100),
        progress(steady(1), 100),
        progress(steady(2), 100),
        progress(steady(20), None),
        progress(steady(10), 100),
        progress(steady(10), 50),
        progress([(ms, 10) for ms in range(0, 10_000, 1_000)], 100),
    ],
    ids=[
        "nothing yet",
        "one commit",
        "two commits",
        "no total",
        "all done",
        "more than all",
        "standing still",
    ],
)
def test_what_deserves_no_number_gets_none(shown: Progress) -> None:
    assert estimate(shown, NOW) is None


def test_it_takes_a_few_commits_before_there_is_a_number() -> None:
    known = [count for count in range(1, 20) if estimate(progress(steady(count), 200), NOW)]

    assert known == list(range(FEWEST + 1, 20))


@pytest.mark.parametrize(("every_ms", "first"), [(1_000, 10), (10_000, 6)])
def test_a_number_is_deserved_by_a_tenth_of_the_work_or_a_minute_of_it(every_ms: int, first: int) -> None:
    known = [count for count in range(1, 20) if estimate(progress(steady(count, every_ms), 1_000), NOW)]

    assert known == list(range(first, 20))


def test_steady_work_is_told_to_the_second() -> None:
    eta = needed(estimate(progress(steady(30), 1_000), NOW))

    assert eta.likely_ms == pytest.approx(70_000, rel=0.01)
    assert eta.low_ms <= eta.likely_ms <= eta.high_ms
    assert eta.high_ms < 90_000


def test_it_counts_down_between_commits() -> None:
    shown = progress(steady(30, every_ms=10_000), 1_000)

    likely = [needed(estimate(shown, NOW + after)).likely_ms for after in (0, 4_000, 10_000)]

    assert likely == pytest.approx([likely[0], likely[0] - 4_000, likely[0] - 10_000], abs=2)


def test_a_stall_brings_the_end_no_nearer_and_widens_the_range() -> None:
    shown = progress(steady(30, every_ms=1_000), 1_000)

    usual, stalled = (needed(estimate(shown, NOW + after)) for after in (1_000, 60_000))

    assert stalled.likely_ms == usual.likely_ms
    assert stalled.high_ms == usual.high_ms + 59_000


def test_waiting_in_a_queue_does_not_move_it() -> None:
    shown = progress(steady(30), 1_000, waiting=True)

    assert estimate(shown, NOW) == estimate(shown, NOW + 3_600_000)


def test_one_stall_does_not_pull_it_away() -> None:
    stalled = [(ms + (60_000 if ms > 15_000 else 0), done) for ms, done in steady(30)]

    eta = needed(estimate(progress(stalled, 1_000), NOW))

    assert eta.likely_ms == pytest.approx(70_000, rel=0.35)


def test_a_task_that_slows_down_is_judged_by_how_it_is_now() -> None:
    quick = steady(30, every_ms=100)
    slow = [(quick[-1][0] + ms, quick[-1][1] + done) for ms, done in steady(40, every_ms=2_000)]

    eta = needed(estimate(progress(quick + slow, 1_000), NOW))

    assert eta.likely_ms == pytest.approx(60_000, rel=0.15)


@pytest.mark.parametrize(("unevenness", "share"), [(0.2, 0.9), (0.5, 0.8), (1.0, 0.7)])
def test_the_truth_is_mostly_within_the_range_and_the_less_even_the_work_the_wider_it_is(
    unevenness: float, share: float
) -> None:
    random = Random(7)
    looks = hits = 0
    for _ in range(60):
        ms, samples = 0, list[tuple[int, int]]()
        for number in range(1, 101):
            ms += round(random.lognormvariate(7, unevenness))
            samples.append((ms, number * 10))
        for seen in range(20, 100, 5):
            eta = needed(estimate(progress(samples[max(0, seen - 64) : seen], 1_000), NOW))
            looks += 1
            hits += eta.low_ms <= ms - samples[seen - 1][0] <= eta.high_ms

    assert hits / looks >= share, f"the truth was within the range in {hits} of {looks} looks"
