"""What background tasks say and how they are stopped, by real workers on a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure.lease.why import why
from tenure.testing import wait_until

from .test_worker import Shop, Start, env, first_line, lines, note, shop, worker

__all__ = ["env", "note", "shop", "worker"]  # fixtures


def test_stages_warnings_and_errors_are_told_without_secrets(worker: Start, shop: Shop) -> None:
    job = shop.make("talks", "hunter2!", max_attempts=1, background="1")

    worker()

    view = shop.ended(job)
    progress = shop.ledger.get(job, lines=9).progress
    assert progress is not None
    assert (progress.stage, progress.warnings, progress.message) == ("stage 2 ***", 3, "*** ***")
    assert [text for _, _, text in progress.lines] == ["warning: *** or ***, password=***"] * 3
    (attempt,) = view.attempts
    assert attempt.error == "ValueError: *** ***: refused"
    assert "*** ***: refused" in str(attempt.stack)


@pytest.mark.parametrize("task", ["spills", "spills.beside"])
def test_an_argument_whose_name_is_secret_is_told_nowhere(worker: Start, shop: Shop, task: str) -> None:
    job = shop.make(task, "tiger99", max_attempts=1, background="1")

    worker()

    shop.ended(job)
    view = shop.ledger.get(job, lines=9)
    assert view.progress is not None
    assert view.progress.message == "as ***"
    assert [text for _, _, text in view.progress.lines] == ["as ***"]
    (attempt,) = view.attempts
    assert attempt.error == "ValueError: ***: refused by postgresql://u:***@db/x"
    assert "tiger99" not in str(attempt.stack)
    assert "tiger99" not in str(why(view))


def test_a_tracked_loop_goes_on_after_the_last_committed_item_when_its_process_dies(
    worker: Start, shop: Shop, note: Path
) -> None:
    job = shop.make("tracks", str(note), 40, background="1")

    worker()

    view = shop.ended(job)
    assert (view.status, view.value) == ("succeeded", 40)
    assert [(attempt.status, attempt.cause) for attempt in view.attempts] == [
        ("failed", "killed"),
        ("succeeded", None),
    ]
    assert [int(row) for chunk in lines(note) for row in chunk] == list(range(40))
    assert view.progress is not None
    assert (view.progress.done, view.progress.total) == (40, 40)


# Budgets that need a process.


@pytest.mark.parametrize(
    ("task", "args", "limit", "says"),
    [
        (
            "slow.chunk",
            ["told"],
            "TIMEOUT",
            "the chunk has worked for 0.3s, its budget. Make the chunks smaller",
        ),
        (
            "slow.chunk",
            ["deaf"],
            "TIMEOUT",
            "killed: the chunk has worked for 0.3s, its budget, and it did not stop",
        ),
        ("slow.beside", [], "TIMEOUT", "the chunk has worked for 0.3s, its budget"),
        ("greedy", ["moment"], "MEMORY", "MB in memory, its budget is 200 MB. Make the chunks smaller"),
        ("greedy", ["told"], "MEMORY", "MB in memory, its budget is 200 MB"),
        ("greedy", ["deaf"], "MEMORY", "killed: over its budget of memory it did not stop"),
    ],
)
def test_a_chunk_that_crosses_its_budget_is_told_then_killed(
    worker: Start, shop: Shop, task: str, args: list[str], limit: str, says: str
) -> None:
    pool = "io" if task == "slow.beside" else "advance"
    job = shop.make(task, *args, background="1", max_attempts=1, pool=pool)

    worker("io", "advance", slots=1, grace_ms=300 if "deaf" in args else 30_000)

    (attempt,) = shop.ended(job).attempts
    assert (attempt.status, attempt.cause, attempt.limit) == ("failed", "limit", limit)
    assert attempt.call_path == (task,)
    assert says in str(attempt.error)


def test_the_memory_of_another_task_is_not_charged(worker: Start, shop: Shop) -> None:
    before = shop.make("greedy", "moment", background="1", max_attempts=1)
    job = shop.make("frugal", background="1", max_attempts=1)

    worker(slots=1)

    assert shop.ended(before).attempts[0].limit == "MEMORY"
    assert shop.ended(job).status == "succeeded"


def test_the_memory_of_a_job_beside_it_in_a_lane_is_not_charged(
    worker: Start, shop: Shop, note: Path
) -> None:
    beside = shop.make("greedy.beside", str(note), pool="io")
    worker("io", slots=1)
    first_line(note)

    job = shop.make("frugal.beside", background="1", max_attempts=1, pool="io")

    assert shop.ended(job).status == "succeeded"
    Path(f"{note}.go").touch()
    assert shop.ended(beside).status == "succeeded"


def test_a_job_hears_what_others_in_its_call_tree_have_counted(worker: Start, shop: Shop, note: Path) -> None:
    top = shop.make("grows", str(note), background="1", max_attempts=1)

    worker(slots=2)

    shop.ended(top)
    below = wait_until(
        lambda: (
            found
            if len(found := shop.ledger.list(task="counts").items) == 2 and all(one.ended for one in found)
            else None
        ),
        "the end of both",
    )
    assert sorted(view.status for view in below) == ["dead", "succeeded"]
    (attempt,) = next(view.attempts for view in below if view.status == "dead")
    assert (attempt.limit, attempt.call_path) == ("CALL_TREE", ("grows", "counts"))


def test_a_step_is_charged_once_however_deep_its_job_stands(worker: Start, shop: Shop) -> None:
    for levels in (2, 3):
        shop.make("nests", levels, background="1", max_attempts=1)

    worker()

    jobs = wait_until(
        lambda: (
            found
            if len(found := shop.ledger.list(task="nests").items) == 7 and all(one.ended for one in found)
            else None
        ),
        "the end of all seven",
        60,
    )
    (dead,) = (one for one in jobs if one.status != "succeeded")
    (attempt,) = dead.attempts
    assert (attempt.limit, attempt.call_path) == ("CALL_TREE", ("nests",) * 4)
    assert "40 steps in its call tree, the budget is 30" in str(attempt.error)


@pytest.mark.parametrize(("task", "limit"), [("slow.chunk", "TIMEOUT"), ("greedy", "MEMORY")])
def test_what_is_killed_over_a_budget_names_what_led_to_it(
    worker: Start, shop: Shop, task: str, limit: str
) -> None:
    above = shop.make("makes", task, background="1", max_attempts=1)

    worker()

    (attempt,) = shop.ended(shop.ended(above).value).attempts
    assert (attempt.limit, attempt.call_path) == (limit, ("makes", task))
    assert str(attempt.error).startswith(f"{limit}: killed")
