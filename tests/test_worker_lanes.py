"""Lanes: coroutines side by side in one process of a real worker, and what the end of one means for the others."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tenure.lease.jobs import JobView
from tenure.lease.payload import unpack
from tenure.testing import wait_until

from .test_worker import HINTED_S, Shop, Start, env, lines, note, shop, worker
from .worker_process import alive

__all__ = ["env", "note", "shop", "worker"]  # fixtures


class Lane:
    """Makes jobs of the lane's pool, and reads what they wrote."""

    def __init__(self, shop: Shop, note: Path) -> None:
        self.shop = shop
        self.note = note

    def make(self, task: str, *args: Any, **fields: Any) -> str:
        return self.shop.make(task, *(args or [str(self.note)]), pool="io", **fields)

    def said(self, job: str) -> list[list[str]]:
        """What a job wrote: lines without its id."""
        return [words[1:] for words in lines(self.note) if words[0] == job]

    def pid(self, job: str) -> int:
        """The process that a job runs in, once it has begun."""
        return int(wait_until(lambda: self.said(job), f"the start of job {job}")[-1][-1])

    def go(self) -> None:
        """Let those that wait come to their end."""
        Path(f"{self.note}.go").touch()

    def ended(self, *jobs: str) -> list[JobView]:
        return [self.shop.ended(job) for job in jobs]


@pytest.fixture
def lane(shop: Shop, note: Path) -> Lane:
    return Lane(shop, note)


def ends(view: JobView) -> list[tuple[str, str | None]]:
    return [(attempt.status, attempt.cause) for attempt in view.attempts]


# Side by side.


def test_coroutines_run_at_the_same_time_in_one_process(worker: Start, lane: Lane) -> None:
    jobs = [lane.make("meets", str(lane.note), 20) for _ in range(20)]

    worker("io", slots=1)

    views = lane.ended(*jobs)
    assert len({unpack(view.result) for view in views}) == 1
    assert [ends(view) for view in views] == [[("succeeded", None)]] * 20


def test_no_more_run_than_the_lane_is_wide(worker: Start, lane: Lane) -> None:
    jobs = [lane.make("waits") for _ in range(7)]

    worker("io", slots=2, lanes={"io": "async(3)"})

    wait_until(lambda: len(lines(lane.note)) == 6, "two processes to be full")
    counts = lane.shop.ledger.counts()
    assert (counts["waits", "running"], counts["waits", "pending"]) == (6, 1), (
        "nobody waits behind what is long"
    )
    pids = [words[2] for words in lines(lane.note)]
    assert sorted(pids.count(pid) for pid in set(pids)) == [3, 3]
    lane.go()
    lane.ended(*jobs)


def test_a_job_leaves_no_task_behind_and_no_context_variable(worker: Start, lane: Lane) -> None:
    other = lane.make("waits")
    worker("io", slots=1)
    lane.pid(other)
    jobs = [lane.make("starts.others") for _ in range(3)]

    views = lane.ended(*jobs)

    assert [unpack(view.result) for view in views] == [""] * 3
    assert [lane.said(job) for job in jobs] == [[["left", "True"]]] * 3
    assert lane.shop.view(other).status == "running"
    lane.go()
    lane.ended(other)


@pytest.mark.parametrize("inner", [False, True])
def test_a_job_that_exits_ends_alone(inner: bool, worker: Start, lane: Lane) -> None:
    other = lane.make("waits")
    worker("io", slots=1)
    pid = lane.pid(other)
    job = lane.make("exits", inner, max_attempts=1)

    (view,) = lane.ended(job)

    assert ends(view) == [("failed", "raised")]
    assert str(view.attempts[0].error).startswith("SystemExit: 3")
    lane.go()
    assert unpack(lane.ended(other)[0].result) == pid


def test_a_coroutine_that_forks_makes_no_second_slot(worker: Start, lane: Lane) -> None:
    other = lane.make("waits")
    process = worker("io", slots=1)
    lane.pid(other)
    jobs = [lane.make("forks.beside") for _ in range(5)]

    assert [unpack(view.result) for view in lane.ended(*jobs)] == ["parent"] * 5

    wait_until(lambda: len([pid for pid in process.family() if alive(pid)]) == 2, "the forked ones to end")
    lane.go()
    lane.ended(other)
    assert [words[1] for words in lines(lane.note)] == ["began", "ended"]


def test_long_arguments_and_checkpoints_find_their_own_job(worker: Start, lane: Lane) -> None:
    sizes = [lane.make("size.beside", "x" * (10_000 + at)) for at in range(10)]
    counts = [lane.make("counts.beside", 3 + at, at % 2 == 0, background="1") for at in range(6)]

    worker("io", slots=1)

    assert [unpack(view.result) for view in lane.ended(*sizes)] == [10_000 + at for at in range(10)]
    for at, view in enumerate(lane.ended(*counts)):
        assert view.progress is not None
        assert (unpack(view.result), view.progress.done, view.progress.total) == (3 + at, 3 + at, 3 + at)


# One of many is to stop.


def test_one_of_many_is_canceled_and_the_others_go_on(worker: Start, lane: Lane) -> None:
    first, *others = (lane.make("waits") for _ in range(5))
    worker("io", slots=1, grace_ms=5_000)
    pid = {lane.pid(job) for job in (first, *others)}

    lane.shop.ledger.cancel(first)

    wait_until(
        lambda: ["CancelledError", "True"] in lane.said(first), "the task to be told", seconds=HINTED_S
    )
    after = lane.make("waits")
    assert {lane.pid(after)} == pid, "the process lives on"
    lane.go()
    assert [ends(view) for view in lane.ended(*others, after)] == [[("succeeded", None)]] * 5
    assert ends(lane.shop.view(first)) == [("canceled", "canceled")]


def test_one_of_many_is_out_of_time_and_the_others_go_on(worker: Start, lane: Lane) -> None:
    late = lane.make("waits", timeout=300, max_attempts=1)
    others = [lane.make("waits") for _ in range(4)]
    worker("io", slots=1, grace_ms=5_000)

    (view,) = lane.ended(late)

    assert ends(view) == [("failed", "timeout")]
    assert str(view.attempts[0].error).startswith("told that its time is up")
    lane.go()
    assert [ends(view) for view in lane.ended(*others)] == [[("succeeded", None)]] * 4


def test_the_lease_of_one_of_many_is_lost_and_the_others_go_on(worker: Start, lane: Lane) -> None:
    lost, *others = (lane.make("waits") for _ in range(4))
    worker("io", slots=1, lease_ms=2_000, grace_ms=5_000)
    for job in (lost, *others):
        lane.pid(job)
    ledger = lane.shop.ledger

    ledger.cancel(lost)
    ledger.retry(lost)  # heard or not: the right of the first round is gone

    wait_until(lambda: ["CancelledError", "True"] in lane.said(lost), "the task to be told")
    lane.go()
    assert [ends(view) for view in lane.ended(*others)] == [[("succeeded", None)]] * 3
    assert ends(lane.ended(lost)[0]) == [("canceled", "canceled"), ("succeeded", None)]


@pytest.mark.parametrize("way", ["timeout", "canceled"])
def test_who_cannot_be_stopped_is_killed_and_the_innocent_are_handed_back_uncharged(
    way: str, worker: Start, lane: Lane
) -> None:
    """The contract's row "graceful stop": we gave them back ourselves, in time, so it is no loss of theirs."""
    stays = lane.make("stays", timeout=500 if way == "timeout" else 60_000, max_attempts=1)
    others = [lane.make("waits") for _ in range(4)]
    worker("io", slots=1)
    pid = {lane.pid(job) for job in (stays, *others)}.pop()

    if way == "canceled":
        lane.shop.ledger.cancel(stays)

    wait_until(lambda: not alive(pid), "the end of the process")
    lane.go()
    for view in lane.ended(*others):
        assert ends(view) == [("canceled", "released"), ("succeeded", None)]
        assert (view.losses, view.failures) == (0, 0)
    (view,) = lane.ended(stays)
    assert ends(view) == [("failed", "timeout") if way == "timeout" else ("canceled", "canceled")]
    assert ["told"] in lane.said(stays)


# The loop is blocked.


def test_leases_hold_while_a_job_blocks_the_loop(worker: Start, lane: Lane) -> None:
    """Who renews is the worker, not the process that is busy."""
    others = [lane.make("waits") for _ in range(3)]
    worker("io", slots=1, lease_ms=1_000)
    for job in others:
        lane.pid(job)
    blocks = lane.make("blocks", str(lane.note), 2.5)
    lane.pid(blocks)
    lane.go()

    for view in lane.ended(blocks, *others):
        assert ends(view) == [("succeeded", None)]


def test_what_a_blocked_loop_does_not_take_goes_elsewhere(worker: Start, lane: Lane) -> None:
    blocks = lane.make("blocks", str(lane.note), 600)
    worker("io", slots=1)
    lane.pid(blocks)
    behind = [lane.make("meets", str(lane.note) + ".others", 5) for _ in range(5)]
    wait_until(lambda: lane.shop.ledger.counts().get(("meets", "running")), "the first worker to claim")

    worker("io", slots=1)

    for view in lane.ended(*behind):
        assert [attempt.number for attempt in view.attempts] == [1], "not begun is no attempt"
    lane.shop.ledger.cancel(blocks)


def test_a_job_that_blocks_the_loop_for_too_long_is_killed_and_the_innocent_are_handed_back(
    worker: Start, lane: Lane
) -> None:
    others = [lane.make("waits") for _ in range(3)]
    worker("io", slots=1)
    for job in others:
        lane.pid(job)
    blocks = lane.make("blocks", str(lane.note), 600, timeout=300, max_attempts=1)
    lane.pid(blocks)
    lane.go()

    (view,) = lane.ended(blocks)
    assert ends(view) == [("failed", "timeout")]
    for view in lane.ended(*others):
        assert ends(view) == [("canceled", "released"), ("succeeded", None)]


def test_who_blocks_the_loop_is_charged_when_another_runs_out_of_time(worker: Start, lane: Lane) -> None:
    """By the job that holds the loop, not by the one whose alarm cannot go off."""
    victim = lane.make("waits", timeout=2_000, max_attempts=1)
    worker("io", slots=1, grace_ms=1_000)
    lane.pid(victim)
    blocks = lane.make("blocks", str(lane.note), 600, max_attempts=1)
    lane.pid(blocks)
    lane.go()

    (view,) = lane.ended(blocks)
    assert ends(view) == [("failed", "timeout")]
    assert "it held the event loop" in str(view.attempts[0].error)
    assert ends(lane.ended(victim)[0]) == [("canceled", "released"), ("succeeded", None)]


def test_nobody_else_is_charged_for_what_a_job_leaves_behind(worker: Start, lane: Lane) -> None:
    busy = lane.make("spins")
    worker("io", slots=1, grace_ms=1_000)
    lane.pid(busy)
    job = lane.make("leaves.stubborn", timeout=500, max_attempts=1)
    lane.pid(job)

    (view,) = lane.ended(job)

    assert ends(view) == [("failed", "timeout")]
    lane.go()
    assert ends(lane.ended(busy)[0]) == [("canceled", "released"), ("succeeded", None)]


# The process dies by itself.


def test_who_was_in_a_process_that_was_killed_runs_alone_the_next_time(worker: Start, lane: Lane) -> None:
    jobs = [lane.make("waits") for _ in range(4)]
    worker("io", slots=1)
    pid = {lane.pid(job) for job in jobs}.pop()

    os.kill(pid, signal.SIGKILL)

    wait_until(lambda: len(lines(lane.note)) == 5, "the first of them to begin again")
    pids = {line[2] for line in lines(lane.note)[4:]}
    lane.go()
    views = lane.ended(*jobs)
    assert [ends(view) for view in views] == [[("failed", "killed"), ("succeeded", None)]] * 4
    assert {view.losses for view in views} == {1}
    assert "with 3 other jobs in it: SIGKILL" in str(views[0].attempts[0].error)
    spans = [line[1] for line in lines(lane.note)[4:]]
    assert spans == ["began", "ended"] * 4, "one at a time"
    assert len(pids) == 1


def test_poison_takes_no_innocent_into_dead(worker: Start, lane: Lane) -> None:
    others = [lane.make("waits") for _ in range(5)]
    worker("io", slots=1)
    for job in others:
        lane.pid(job)
    poison = lane.make("ends.process")
    pid = lane.pid(poison)

    Path(f"{lane.note}.die").touch()

    wait_until(lambda: not alive(pid), "the end of them all")
    lane.go()
    (view,) = lane.ended(poison)
    assert (view.dead_reason, view.losses) == ("lost_too_often", 3)
    for view in lane.ended(*others):
        assert (view.status, view.losses) == ("succeeded", 1)


# A plain function.


def test_a_plain_function_runs_alone_and_the_coroutines_go_on(worker: Start, lane: Lane) -> None:
    plain = [lane.make("waits.blocking") for _ in range(2)]
    process = worker("io", slots=1)
    ((first, _, alone),) = wait_until(lambda: lines(lane.note), "one of them to begin")
    meets = [lane.make("meets", str(lane.note) + ".others", 5) for _ in range(5)]

    views = lane.ended(*meets)

    assert int(alone) not in {unpack(view.result) for view in views}
    assert lane.shop.view(first).status == "running"
    assert lines(lane.note) == [[first, "began", alone]], "one at a time"
    lane.go()
    assert {unpack(view.result) for view in lane.ended(*plain)} == {int(alone)}
    assert len(process.family()) == 3, "the fork server, a lane, and what runs alone"


# Stopping, replacing.


def test_sigterm_lets_coroutines_end_and_hands_back_what_does_not(worker: Start, lane: Lane) -> None:
    jobs = [lane.make("waits") for _ in range(3)]
    process = worker("io", slots=1)
    for job in jobs:
        lane.pid(job)
    process.signal(signal.SIGTERM)
    wait_until(lambda: "stopping: 3 jobs run on (waits " in process.said(), "the signal to be heard")
    later = lane.make("waits")

    lane.go()

    assert process.process.wait(60) == 0
    assert [ends(lane.shop.view(job)) for job in jobs] == [[("succeeded", None)]] * 3
    assert lane.shop.view(later).attempts == ()


def test_what_outlasts_the_stop_is_handed_back_the_stubborn_one_too(worker: Start, lane: Lane) -> None:
    jobs = [lane.make(task) for task in ("waits", "stays", "waits")]
    process = worker("io", slots=1, stop_grace_ms=100, grace_ms=1_000)
    for job in jobs:
        lane.pid(job)

    assert process.stop() == 0

    for job in jobs:
        view = lane.shop.view(job)
        assert ends(view) == [("canceled", "released")]
        assert (view.status, view.failures, view.losses) == ("pending", 0, 0)
    assert ["CancelledError", "True"] in lane.said(jobs[0])


def test_a_lane_is_replaced_after_enough_jobs_though_one_in_it_goes_on(worker: Start, lane: Lane) -> None:
    long = lane.make("waits")
    worker("io", slots=1, recycle_jobs=10, grace_ms=5_000)
    old = lane.pid(long)
    lane.ended(*(lane.make("meets", str(lane.note) + ".first", 1) for _ in range(10)))

    (view,) = lane.ended(lane.make("meets", str(lane.note) + ".later", 1))

    assert unpack(view.result) != old
    assert lane.shop.view(long).status == "running"
    lane.shop.ledger.cancel(long)
    wait_until(lambda: not alive(old), "the end of the old process", seconds=HINTED_S)
    assert ["CancelledError", "True"] in lane.said(long), "it was found where it is"
