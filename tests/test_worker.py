"""A real worker on a real server: what a task does, and what the ledger says of it afterwards."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.app import Tenure
from tenure.lease.instances import Instances
from tenure.lease.jobs import DUE, JobView
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.payload import pack_args, unpack
from tenure.lease.workers import Slots
from tenure.scripts.keys import wake_channel
from tenure.testing import Server, wait_until

from .given import PAUSABLE
from .worker_process import WorkerProcess, alive, end_all, start_worker

Start = Callable[..., WorkerProcess]
HINTED_S = 12.0
"""By then a worker has heard of what it is told by a hint; without one, it would when it renews, after 15 s."""


class Shop:
    """Makes jobs of the shop's tasks and looks at them."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def make(self, task: str, *args: Any, pool: str = "advance", **fields: Any) -> str:
        if task in ("chunks", "checkpoints", "reports"):
            fields["background"] = "1"
        return self.ledger.enqueue(NewJob(task, pack_args(args, {}), pool=pool, fields=fields)).id

    def view(self, job_id: str) -> JobView:
        return self.ledger.get(job_id, lines=10_000)

    def ended(self, job_id: str, seconds: float = 30.0) -> JobView:
        """The job, once it has ended."""
        return wait_until(
            lambda: view if (view := self.view(job_id)).ended else None, f"the end of job {job_id}", seconds
        )

    def running(self, job_id: str) -> JobView:
        return wait_until(
            lambda: view if (view := self.view(job_id)).status == "running" else None,
            f"the start of job {job_id}",
        )


@pytest.fixture
def env(tenure_server: Server, tenure_namespace: str) -> dict[str, str]:
    if tenure_server.url is None or tenure_server.kind == "cluster":
        pytest.skip("RQ's worker class needs a plain server")
    return {"TENURE_REDIS_URL": tenure_server.url, "TENURE_NAMESPACE": tenure_namespace}


@pytest.fixture
def worker(env: dict[str, str], tmp_path: Path) -> Iterator[Start]:
    """Starts workers; they and all they started are gone after the test."""
    started: list[WorkerProcess] = []

    def begin(*pools: str, lease_ms: int | None = None, **options: Any) -> WorkerProcess:
        times = (
            {}
            if lease_ms is None
            else {"TENURE_LEASE_MS": str(lease_ms), "TENURE_RENEW_MS": str(lease_ms // 4)}
        )
        options.setdefault("slots", 2)
        options.setdefault("grace_ms", 300)
        started.append(start_worker(tmp_path, {**env, **times}, *pools, **options))
        return started[-1]

    yield begin
    end_all(started)


@pytest.fixture
def shop(app: Tenure) -> Shop:
    return Shop(app.ledger())


@pytest.fixture
def note(tmp_path: Path) -> Path:
    """A file that tasks write to."""
    return tmp_path / "note"


def lines(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def first_line(path: Path) -> list[str]:
    return wait_until(lambda: lines(path), f"a line in {path.name}")[0]


# What a task returns or raises.


def test_what_a_task_returns_is_its_result(worker: Start, shop: Shop) -> None:
    value = {"a": [1, 2.5, None, True], "b": b"bytes", "c": "x" * 5_000}
    job, big, none = shop.make("echo", value), shop.make("echo", "y" * 200_000), shop.make("noop")

    worker()

    assert unpack(shop.ended(job).result) == value
    assert unpack(shop.ended(big).result) == "y" * 200_000
    view = shop.ended(none)
    assert (view.status, view.result) == ("succeeded", b"")
    assert [(attempt.number, attempt.status) for attempt in view.attempts] == [(1, "succeeded")]


def test_coroutines_run_one_after_the_other_and_leave_nothing_behind(worker: Start, shop: Shop) -> None:
    jobs = [shop.make("async", 0.01) for _ in range(4)]

    worker(slots=1)

    assert [unpack(shop.ended(job).result) for job in jobs] == [1, 1, 1, 1]


def test_what_a_job_enqueues_belongs_to_its_trace_and_its_notes_are_kept(worker: Start, shop: Shop) -> None:
    job = shop.make("calls")

    worker()

    (attempt,) = shop.ended(job).attempts
    assert (attempt.request, attempt.response) == ("POST /orders", '{"status": 201}')
    made = shop.ended(unpack(shop.view(job).result))
    assert (made.value, made.trace, made.parent) == (job, job, job)


def test_each_way_to_end_is_told_to_the_ledger(worker: Start, shop: Shop) -> None:
    skips, refused, large, odd = (shop.make(task) for task in ("skips", "refused", "large", "odd"))
    raises = shop.make("raises", "no such row")

    worker()

    assert shop.ended(skips).attempts[0].status == "skipped"
    view = shop.ended(large)
    assert (view.dead_reason, view.attempts[-1].cause) == ("permanent_error", "too_large")
    view = shop.ended(odd)
    assert (view.dead_reason, view.attempts[-1].cause) == ("permanent_error", "raised")
    view = shop.ended(raises)
    assert view.dead_reason == "attempts_exhausted"
    assert [attempt.error for attempt in view.attempts] == ["ValueError: no such row"] * 3
    assert "raise ValueError(text)" in str(view.attempts[0].stack)
    assert "attempt.py" not in str(view.attempts[0].stack), "our own frames are of no use to the reader"
    view = wait_until(lambda: v if (v := shop.view(refused)).attempts and v.status == "pending" else None)
    assert (view.attempts[0].cause, view.failures) == ("refused", 1)
    assert view.run_at - view.read_at > 3_500_000


def test_a_permanent_error_is_raised_once(worker: Start, shop: Shop) -> None:
    """One that the task lists, also by a base class, and one that says so itself."""
    listed, said = shop.make("picky", "listed"), shop.make("picky", "said")

    worker()

    for job, error in ((listed, "NoSuchCustomer: c7"), (said, "Permanent: closed for good")):
        view = shop.ended(job)
        assert (view.status, view.dead_reason) == ("dead", "permanent_error")
        assert [(one.status, one.cause, one.error) for one in view.attempts] == [("failed", "raised", error)]


def test_a_job_stored_under_an_old_name_runs_by_the_new_code(worker: Start, shop: Shop) -> None:
    job = shop.make("old.picky", "run by an alias")

    worker()

    view = shop.ended(job)
    assert (view.task, unpack(view.result)) == ("old.picky", "run by an alias")


def test_an_error_text_is_cut_and_its_stack_kept_apart(worker: Start, shop: Shop) -> None:
    job = shop.make("raises", "x" * 10_000, max_attempts=1)

    worker()

    attempt = shop.ended(job).attempts[0]
    assert len(str(attempt.error)) == 4_000
    assert len(str(attempt.stack)) > 4_000


def test_a_task_nobody_registered_waits_and_is_charged_nothing(worker: Start, shop: Shop) -> None:
    unknown, known = shop.make("no.such.task"), shop.make("noop")

    process = worker()

    shop.ended(known)
    wait_until(lambda: "'no.such.task' is not registered here" in process.said(), "word of it")
    view = wait_until(lambda: v if (v := shop.view(unknown)).status == "pending" else None, "its way back")
    assert (view.attempts, view.failures) == ((), 0)


# Chunks, checkpoints, progress.


def test_chunks_share_an_attempt_and_their_fences_rise(worker: Start, shop: Shop, note: Path) -> None:
    job = shop.make("chunks", str(note), 4)

    worker()

    view = shop.ended(job)
    assert unpack(view.result) == 4
    assert [line[0] for line in lines(note)] == ["0", "1", "2", "3"]
    assert {line[2] for line in lines(note)} == {"1"}
    fences = [int(line[1]) for line in lines(note)]
    assert fences == sorted(set(fences))
    assert [(attempt.number, attempt.chunks) for attempt in view.attempts] == [(1, 3)]
    assert view.progress is not None
    assert (view.progress.done, view.progress.total) in ((3, 4), (4, 4))


def test_a_killed_slot_goes_on_from_the_last_checkpoint(worker: Start, shop: Shop, note: Path) -> None:
    job = shop.make("checkpoints", str(note))

    worker()

    view = shop.ended(job)
    assert unpack(view.result) == 4
    assert lines(note) == [["from", "0"], ["from", "2"]]
    assert [(attempt.status, attempt.cause) for attempt in view.attempts] == [
        ("failed", "killed"),
        ("succeeded", None),
    ]


def test_the_last_report_is_written_and_no_line_is_lost(worker: Start, shop: Shop, note: Path) -> None:
    job = shop.make("reports", str(note), 300)

    worker()

    first_line(note)
    view = wait_until(
        lambda: v if (v := shop.view(job)).progress and v.progress.doing == 300 else None, "the last report"
    )
    assert view.progress is not None
    assert view.progress.message == "row 300"
    assert [text for _, _, text in view.progress.lines] == [f"line {at + 1}" for at in range(300)]
    assert view.revision < 20, "reports are gathered, at most four a second"
    Path(f"{note}.go").touch()
    shop.ended(job)


# Time limits.


@pytest.mark.parametrize("task", ["polite", "polite.async"])
def test_a_task_is_told_that_its_time_is_up(task: str, worker: Start, shop: Shop) -> None:
    job = shop.make(task, timeout=300, max_attempts=1)

    worker(grace_ms=25_000)

    view = shop.ended(job)
    assert [(a.status, a.cause, a.error) for a in view.attempts] == [
        ("failed", "timeout", "told that its time is up")
    ]


@pytest.mark.parametrize("task", ["swallows", "holds.gil"])
def test_a_task_that_does_not_stop_is_killed(task: str, worker: Start, shop: Shop, note: Path) -> None:
    job, after = shop.make(task, str(note), timeout=300, max_attempts=1), shop.make("echo", 1)

    worker(slots=1)

    view = shop.ended(job)
    assert (view.dead_reason, view.attempts[0].cause) == ("attempts_exhausted", "timeout")
    assert view.attempts[0].error is not None
    assert view.attempts[0].error.startswith("killed: 300 ms after its time was up")
    assert not alive(int(lines(note)[0][0]))
    assert shop.ended(after).status == "succeeded"


# Slots that die.


def test_only_the_job_that_ran_is_charged_when_a_slot_dies(worker: Start, shop: Shop) -> None:
    quick = [shop.make("noop") for _ in range(300)]
    bad = shop.make("segfault", max_lost=1)
    quick += [shop.make("noop") for _ in range(300)]

    worker()

    view = shop.ended(bad)
    assert (view.dead_reason, view.attempts[0].cause) == ("lost_too_often", "killed")
    assert "SIGSEGV" in str(view.attempts[0].error)
    for job in quick:
        view = shop.ended(job)
        assert [attempt.status for attempt in view.attempts] == ["succeeded"]


def test_poison_is_given_up_after_three_slots(worker: Start, shop: Shop) -> None:
    job = shop.make("exit", 7)

    worker()

    view = shop.ended(job)
    assert (view.status, view.dead_reason, view.failures) == ("dead", "lost_too_often", 0)
    assert [attempt.cause for attempt in view.attempts] == ["killed"] * 3
    assert "exit code 7" in str(view.error and view.error.error)


def test_a_grandchild_that_keeps_the_pipes_hides_no_death(worker: Start, shop: Shop, note: Path) -> None:
    job = shop.make("grandchild", str(note), max_lost=1)

    worker(slots=1)

    assert shop.ended(job).attempts[0].cause == "killed"
    pid = int(first_line(note)[0])
    wait_until(lambda: not alive(pid), "the end of the grandchild")


def test_a_task_that_forks_makes_no_second_slot(worker: Start, shop: Shop) -> None:
    jobs = [shop.make("forks") for _ in range(20)]

    worker(slots=1)

    assert [unpack(shop.ended(job).result) for job in jobs] == ["parent"] * 20
    assert [len(shop.view(job).attempts) for job in jobs] == [1] * 20


def test_a_slot_is_replaced_after_enough_jobs(worker: Start, shop: Shop, note: Path) -> None:
    jobs = [shop.make("mark", str(note)) for _ in range(100)]

    worker(slots=1, recycle_jobs=30)

    for job in jobs:
        assert [attempt.status for attempt in shop.ended(job).attempts] == ["succeeded"]
    assert len({line[3] for line in lines(note)}) >= 3


def test_a_worker_whose_fork_server_died_hands_in_what_it_has(worker: Start, shop: Shop, note: Path) -> None:
    job = shop.make("nap", str(note), 600)
    process = worker(slots=1)
    first_line(note)

    os.kill(process.family()[0], signal.SIGKILL)

    assert process.process.wait(60) == 1
    view = shop.view(job)
    assert (view.status, [attempt.cause for attempt in view.attempts]) == ("pending", ["killed"])


def test_a_job_whose_slot_died_runs_again(worker: Start, shop: Shop) -> None:
    job = shop.make("exit.once")

    worker()

    view = shop.ended(job)
    assert unpack(view.result) == "second try"
    assert (view.losses, view.failures) == (1, 0)


# Workers that die.


def test_a_killed_worker_takes_its_slots_along_and_its_job_runs_elsewhere(
    worker: Start, shop: Shop, note: Path, tmp_path: Path
) -> None:
    job = shop.make("nap", str(note), 600)
    first = worker(lease_ms=1_000)
    pid = int(first_line(note)[1])
    family = first.family()

    first.kill()

    wait_until(lambda: not any(alive(one) for one in [pid, *family]), "the end of the slots")
    shop.ledger.cancel(
        shop.make("noop")
    )  # nothing to do with it: the next worker must find the job by itself
    worker(lease_ms=1_000)
    view = wait_until(lambda: v if len((v := shop.view(job)).attempts) == 2 else None, "the second attempt")
    assert view.attempts[0].cause == "lease_lost"
    assert view.attempts[1].fence > view.attempts[0].fence
    shop.ledger.cancel(job)


def test_processes_that_a_task_started_die_with_the_worker(worker: Start, shop: Shop, note: Path) -> None:
    job = shop.make("starts.process", str(note))
    process = worker()
    pids = [int(word) for word in first_line(note)]

    process.kill()

    wait_until(lambda: not any(map(alive, pids)), "the end of what the task started")
    shop.ledger.cancel(job)


def test_a_stopped_worker_that_wakes_after_its_lease_changes_nothing(
    worker: Start, shop: Shop, note: Path
) -> None:
    job = shop.make("nap", str(note), 1)
    slow = worker(lease_ms=1_000, slots=1)
    pid = int(first_line(note)[1])
    asleep = [slow.pid, *slow.family()]
    send(asleep, signal.SIGSTOP)
    worker(lease_ms=1_000, slots=1)

    view = shop.ended(job)
    send(asleep, signal.SIGCONT)

    wait_until(lambda: "refused" in slow.said() or not alive(pid), "the late outcome to be dropped")
    assert shop.view(job).revision == view.revision
    assert [attempt.cause for attempt in view.attempts] == ["lease_lost", None]


def send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        if alive(pid):
            os.kill(pid, number)


# Cancel.


def test_a_canceled_job_is_told_when_it_asks(worker: Start, shop: Shop, note: Path) -> None:
    job = shop.make("checks", str(note))
    worker(grace_ms=5_000)
    first_line(note)

    shop.ledger.cancel(job, "no longer wanted")

    wait_until(lambda: ["Canceled"] in lines(note), "the task to hear of it", seconds=HINTED_S)
    assert shop.view(job).status == "canceled"


def test_a_late_word_of_a_cancel_does_not_stop_the_round_after_it(
    worker: Start, shop: Shop, note: Path
) -> None:
    job = shop.make("nap", str(note), 0.7)
    worker()
    first_line(note)
    fence = shop.view(job).fence
    shop.ledger.cancel(job)
    shop.ledger.retry(job)
    again = shop.running(job)
    wait_until(lambda: str(again.fence) in str(lines(note)), "the start of the second round")

    heard = shop.ledger.scripts.redis.publish(
        wake_channel(shop.ledger.keys.namespace), f"stop advance default {job} {fence}"
    )

    view = shop.ended(job)
    assert heard == 1
    assert (view.status, unpack(view.result)) == ("succeeded", "rested")
    assert [(one.status, one.cause) for one in view.attempts] == [
        ("canceled", "canceled"),
        ("succeeded", None),
    ]


def test_a_canceled_job_that_does_not_ask_is_interrupted(worker: Start, shop: Shop, note: Path) -> None:
    job = shop.make("deaf", str(note))
    process = worker(grace_ms=800, slots=1)
    pid = int(first_line(note)[1])

    shop.ledger.cancel(job)

    wait_until(lambda: ["Stopped"] in lines(note), "the interruption", seconds=HINTED_S)
    after = shop.make("mark", str(note))
    shop.ended(after)
    assert int(lines(note)[-1][3]) == pid, "the slot lives on"
    assert shop.view(job).status == "canceled"
    assert process.stop() == 0


def test_a_canceled_job_that_does_not_stop_is_killed(worker: Start, shop: Shop, note: Path) -> None:
    job = shop.make("holds.gil", str(note), timeout=600_000)
    worker(slots=1)
    pid = int(first_line(note)[0])

    shop.ledger.cancel(job)

    wait_until(lambda: not alive(pid), "the end of the slot", seconds=HINTED_S)
    shop.ended(shop.make("noop"))
    assert shop.view(job).status == "canceled"


def cancel_all(ledger: Ledger, jobs: list[str]) -> None:
    for job in jobs:
        ledger.cancel(job)


def pause_all(ledger: Ledger, jobs: list[str]) -> None:
    Instances(ledger).pause("order-7")


@pytest.mark.parametrize("withdraw", [cancel_all, pause_all])
def test_a_withdrawn_row_that_was_claimed_ahead_never_starts(
    worker: Start, shop: Shop, note: Path, withdraw: Callable[[Ledger, list[str]], None]
) -> None:
    for _ in range(200):
        shop.make("noop")
    worker(slots=1, ahead_ms=1_000)
    shop.ended(shop.make("noop"))
    hog = shop.make("checks", str(note))
    first_line(note)
    behind = [shop.make("mark", str(note), **PAUSABLE) for _ in range(5)]
    wait_until(lambda: any(shop.view(job).status == "running" for job in behind), "one to be claimed ahead")

    withdraw(shop.ledger, behind)

    shop.ledger.cancel(hog)
    wait_until(lambda: ["Canceled"] in lines(note), "the worker to hear of this one, and so of those before")
    shop.ended(shop.make("noop"))
    assert [line for line in lines(note) if len(line) == 4] == [], "mark writes four words"


# Pause.


def test_a_paused_task_goes_on_at_its_checkpoint_when_it_is_resumed(
    worker: Start, shop: Shop, note: Path
) -> None:
    job = shop.make("steps", str(note), 3, background="1", **PAUSABLE)
    worker()
    for step in (0, 1):
        Path(f"{note}.{step}").touch()
    wait_until(lambda: ["step", "2", "1"] in lines(note), "the third step")

    Instances(shop.ledger).pause("order-7", "stock count", "ada")
    wait_until(lambda: ["LeaseLost"] in lines(note), "the task to hear of it", seconds=HINTED_S)
    paused = shop.view(job)
    for step in (2, 3):
        Path(f"{note}.{step}").touch()
    Instances(shop.ledger).resume("order-7")
    ended = shop.ended(job)

    assert (paused.status, paused.remaining_ms, paused.progress.done) == ("paused", 0, 2)  # type: ignore[union-attr]
    assert (ended.status, unpack(ended.result)) == ("succeeded", 3)
    assert [(one.status, one.cause, one.chunks) for one in ended.attempts] == [
        ("canceled", "paused", 2),
        ("succeeded", None, 1),
    ]
    assert lines(note)[-2:] == [["step", "2", "2"], ["step", "3", "2"]]
    assert (ended.failures, ended.losses, ended.generation) == (0, 0, 3)
    assert [line[2] for line in ended.progress.lines] == ["attempt 2 goes on from 2 of 3"]  # type: ignore[union-attr]


def test_a_paused_job_that_does_not_ask_is_interrupted(worker: Start, shop: Shop, note: Path) -> None:
    job = shop.make("deaf", str(note), **PAUSABLE)
    worker(grace_ms=800, slots=1)
    first_line(note)

    Instances(shop.ledger).pause("order-7")

    wait_until(lambda: ["Stopped"] in lines(note), "the interruption", seconds=HINTED_S)
    shop.ended(shop.make("noop"))
    assert [(one.status, one.cause) for one in shop.view(job).attempts] == [("canceled", "paused")]


def test_a_worker_finishes_the_walk_of_a_caller_that_died(worker: Start, shop: Shop) -> None:
    jobs = [shop.make("noop", **PAUSABLE) for _ in range(3)]
    Instances(shop.ledger).pause("order-7")
    Instances(shop.ledger, step=1).begin("order-7", "")
    assert [shop.view(job).status for job in jobs] == ["pending", "paused", "paused"]

    worker()

    assert {shop.ended(job).status for job in jobs} == {"succeeded"}


# Rows that are claimed ahead.


def test_a_row_claimed_ahead_of_a_busy_slot_goes_to_a_free_one(worker: Start, shop: Shop, note: Path) -> None:
    busy = worker(slots=1, ahead_ms=2_000)
    shop.ended(shop.make("noop"))
    hog = shop.make("nap", str(note), 600)
    first_line(note)
    behind = shop.make("mark", str(note))
    shop.running(behind)

    worker(slots=1)

    view = shop.ended(behind)
    assert view.attempts[0].number == 1, "not begun is no attempt"
    assert shop.view(hog).status == "running"
    assert len(view.attempts) == 1
    shop.ledger.cancel(hog)
    busy.stop()


def test_leases_are_renewed_while_tasks_hold_every_cpu(worker: Start, shop: Shop) -> None:
    jobs = [shop.make("burns", 2.0) for _ in range(os.cpu_count() or 2)]

    worker(lease_ms=800, slots=len(jobs))

    for job in jobs:
        assert [attempt.status for attempt in shop.ended(job).attempts] == ["succeeded"]


# Bursts.


def test_a_burst_runs_all_chunks(worker: Start, shop: Shop, note: Path) -> None:
    job = shop.make("chunks", str(note), 40)

    assert worker(slots=1, burst=True).process.wait(60) == 0

    assert (shop.view(job).status, len(lines(note))) == ("succeeded", 40)


def test_a_burst_tells_the_index_of_what_it_leaves_for_later(worker: Start, shop: Shop) -> None:
    job = shop.make("refused")

    assert worker(burst=True).process.wait(60) == 0

    assert shop.ledger.index.take(DUE + "advance", 1).next_due_ms == shop.view(job).run_at


# Stopping.


def test_sigterm_lets_running_jobs_end_and_gives_the_rest_back(worker: Start, shop: Shop, note: Path) -> None:
    running = shop.make("nap", str(note), 0.5)
    process = worker(slots=1)
    first_line(note)
    waiting = [shop.make("noop") for _ in range(20)]

    assert process.stop() == 0

    assert shop.view(running).status == "succeeded"
    for job in waiting:
        view = shop.view(job)
        assert (view.status, view.attempts) == ("pending", ())


def test_a_worker_that_stops_says_what_is_left(worker: Start, shop: Shop, note: Path) -> None:
    chunk, stays = (
        shop.make("steps", str(note), 2, background="1"),
        shop.make("holds.gil", str(note), timeout=600_000),
    )
    process = worker(slots=2, stop_grace_ms=5_000)
    wait_until(lambda: len(lines(note)) == 2, "the start of both")
    later = shop.make("noop")

    process.signal(signal.SIGTERM)
    wait_until(lambda: "stopping: 2 jobs run on (" in process.said(), "the signal to be heard")
    Path(f"{note}.0").touch()

    assert process.process.wait(60) == 0
    assert (
        f"stopped; left to other workers: handed back, to go on after the last checkpoint: holds.gil {stays}; "
        f"between two chunks: steps {chunk}\n"
    ) in process.said()
    view = shop.view(chunk)
    assert (view.status, unpack(view.cursor), view.chunk) == ("pending", {"seen": 1}, 1)
    assert shop.view(later).attempts == ()


def test_a_job_that_outlasts_the_stop_is_handed_back(worker: Start, shop: Shop, note: Path) -> None:
    job = shop.make("nap", str(note), 600)
    process = worker(slots=1, stop_grace_ms=100)
    first_line(note)

    assert process.stop() == 0

    view = shop.view(job)
    assert [(a.status, a.cause) for a in view.attempts] == [("canceled", "released")]
    assert (view.status, view.failures, view.losses) == ("pending", 0, 0)


def test_a_second_signal_hands_everything_back_at_once(worker: Start, shop: Shop, note: Path) -> None:
    jobs = [shop.make("nap", str(note), 600) for _ in range(2)]
    process = worker(slots=2)
    wait_until(lambda: len(lines(note)) == 2, "both to run")
    process.signal(signal.SIGINT)
    wait_until(lambda: "stopping" in process.said(), "the first signal to be heard")

    echo_over = time.monotonic() + 1.05  # sooner, the second is taken for the first one's echo
    wait_until(lambda: time.monotonic() > echo_over)
    process.signal(signal.SIGINT)

    assert process.process.wait(60) == 0
    for job in jobs:
        view = shop.view(job)
        assert (view.status, [a.cause for a in view.attempts]) == ("pending", ["released"])


# Pools.


def test_a_worker_claims_from_its_pools_only(worker: Start, shop: Shop) -> None:
    mine, other = shop.make("other.pool", pool="outbound"), shop.make("noop")

    worker("outbound")

    assert shop.ended(mine).status == "succeeded"
    assert shop.view(other).status == "pending"


def test_every_tenant_has_its_turn(worker: Start, app: Tenure) -> None:
    many = Shop(app.ledger("many"))
    few = [Shop(app.ledger(f"few-{at}")) for at in range(5)]
    for _ in range(500):
        many.make("nap", "/dev/null", 0.005)
    jobs = [(one, one.make("noop")) for one in few]

    worker()

    for one, job in jobs:
        one.ended(job)
    counts = many.ledger.counts()
    assert counts.get(("nap", "pending"), 0) > 100, "the others did not wait for the one with much to do"
    wait_until(lambda: not many.ledger.counts().get(("nap", "pending")), "the rest")


def test_a_worker_that_cannot_find_its_application_says_so(env: dict[str, str], tmp_path: Path) -> None:
    for name, sentence in (
        ("nowhere:app", "there is no module 'nowhere'"),
        ("worker_shop:nothing", "module 'worker_shop' has no 'nothing'"),
        ("worker_shop:quick", "worker_shop:quick is a Retry, not an application"),
        ("worker_shop", "is not of the form module:name"),
    ):
        process = start_worker(tmp_path, {**env, "TENURE_APP": name})
        assert process.process.wait(60) != 0
        assert sentence in process.said()


# The register.


def test_a_worker_tells_the_register_what_it_does_until_it_has_ended(
    worker: Start, shop: Shop, app: Tenure, note: Path
) -> None:
    process = worker("advance", "outbound", slots=2, name="w-beat")
    (idle,) = wait_until(lambda: app.ledgers().index.workers(), "the first heartbeat")
    job = shop.make("nap", str(note), 2)
    first_line(note)

    process.signal(signal.SIGTERM)  # it says at once that it stops
    (stopping,) = wait_until(
        lambda: [one for one in app.ledgers().index.workers() if one.state == "stopping"], "word of it"
    )
    assert process.process.wait(60) == 0
    (ended,) = app.ledgers().index.workers()

    assert (idle.name, idle.pid, idle.state, idle.live) == ("w-beat", process.pid, "active", True)
    assert idle.pools == {"advance": Slots(0, 2), "outbound": Slots(0, 2)}
    assert idle.last_claim_at is None
    assert stopping.pools == {"advance": Slots(1, 1), "outbound": Slots()}
    assert (ended.state, ended.live, ended.slots, ended.succeeded) == ("ended", False, Slots(), 1)
    assert ended.last_claim_at is not None
    assert ended.tasks > 20
    assert shop.ended(job).status == "succeeded"
