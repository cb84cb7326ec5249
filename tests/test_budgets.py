"""Budgets: what a chunk may use, and what is said of one that used more."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from tenure import Budgets, Continue, Ctx, LimitCrossed, Retry, Tenure
from tenure.lease.budgets import ADVICE, Limit, Lineage
from tenure.lease.jobs import JobView
from tenure.lease.ledger import Ledger
from tenure.lease.outcome import Fail
from tenure.scripts.errors import BadInput, StoreUnreachable
from tenure.scripts.states import Cause
from tenure.testing import Faults, InlineWorker
from tenure.workers.meter import most_kb

from .given import running

Run = Callable[[Callable[..., Any], Budgets], JobView]


@pytest.fixture
def run(app: Tenure, worker: InlineWorker) -> Run:
    """Run a function as a task with budgets, once; how it ended."""

    def run(function: Callable[..., Any], budgets: Budgets) -> JobView:
        job = app.background("shop.sync", retry=Retry(1), budgets=budgets)(function).enqueue()
        worker.run()
        return app.jobs.get(job.id)

    return run


def deeper(levels: int) -> int:
    return 0 if levels == 0 else 1 + deeper(levels - 1)


def counts(ctx: Ctx) -> None:
    for _ in range(11):
        ctx.step()


def swallows(ctx: Ctx) -> str:
    try:
        ctx.step(11)
    except LimitCrossed:
        return "all is well"
    return "never"


async def deep_in_a_coroutine() -> int:
    return deeper(200)


@pytest.mark.parametrize(
    ("work", "budgets", "limit", "says"),
    [
        (counts, Budgets(steps=10), Limit.STEPS, "11 steps in one chunk, its budget is 10"),
        (swallows, Budgets(steps=10), Limit.STEPS, "11 steps in one chunk"),
        (lambda: deeper(200), Budgets(recursion=100), Limit.RECURSION, "more than 100 deep"),
        (deep_in_a_coroutine, Budgets(recursion=100), Limit.RECURSION, "more than 100 deep"),
    ],
)
def test_a_crossed_budget_ends_the_attempt_with_its_code_and_advice(
    run: Run, work: Callable[..., Any], budgets: Budgets, limit: Limit, says: str
) -> None:
    view = run(work, budgets)

    (attempt,) = view.attempts
    assert (view.status, attempt.status, attempt.cause) == ("dead", "failed", "limit")
    assert (attempt.limit, attempt.call_path) == (limit, ("shop.sync",))
    assert str(attempt.error).startswith(f"{limit}: ")
    assert says in str(attempt.error)
    assert ADVICE[limit] in str(attempt.error)


@pytest.mark.parametrize(
    ("work", "budgets"),
    [
        (lambda ctx: ctx.step(10), Budgets(steps=10)),
        (lambda: deeper(50), Budgets(recursion=100)),
        (lambda: deeper(200), Budgets()),
        (counts, Budgets()),
    ],
)
def test_what_stays_in_its_budget_succeeds(run: Run, work: Callable[..., Any], budgets: Budgets) -> None:
    assert run(work, budgets).status == "succeeded"


def test_each_chunk_has_fresh_budgets(run: Run) -> None:
    def work(ctx: Ctx) -> Continue | None:
        ctx.step(10)
        return Continue({"at": 1}) if ctx.chunk < 3 else None

    assert run(work, Budgets(steps=10)).chunk == 3


def test_the_memory_of_a_chunk_is_its_peak_though_it_was_given_back(run: Run) -> None:
    def work() -> None:
        assert len(b"x" * 200_000_000)

    view = run(work, Budgets(memory=(most_kb() + 100_000) * 1024))

    assert view.attempts[0].limit == Limit.MEMORY


def test_a_cycle_of_tasks_ends_at_the_depth_with_its_path(app: Tenure, worker: InlineWorker) -> None:
    @app.task("ping", retry=Retry(1), budgets=Budgets(depth=3))
    def ping() -> None:
        pong.enqueue()

    @app.task("pong", retry=Retry(1))
    def pong() -> None:
        ping.enqueue()

    ping.enqueue()
    views = sorted(worker.run(), key=lambda view: view.created_at)

    assert [view.status for view in views] == ["succeeded", "succeeded", "succeeded", "dead"]
    (attempt,) = views[-1].attempts
    assert attempt.limit == Limit.DEPTH
    assert attempt.call_path == ("ping", "pong", "ping", "pong")
    assert "pong may enqueue no job: it stands on the last level" in str(attempt.error)
    assert "Look for a cycle" in str(attempt.error)


def nests(app: Tenure, levels: int) -> list[str]:
    """Register tasks that enqueue each the next, the last with a budget that it crosses; their keys."""
    keys = [f"level-{level}" for level in range(levels)]
    below: Callable[[], Any] = lambda: None  # noqa: E731
    for key in reversed(keys):
        below = nested(app, key, below, last=key == keys[-1])
    below()
    return keys


def nested(app: Tenure, key: str, below: Callable[[], Any], *, last: bool) -> Callable[[], Any]:
    budgets = Budgets(steps=1) if last else Budgets()

    @app.task(key, retry=Retry(1), budgets=budgets)
    def work(ctx: Ctx) -> None:
        if last:
            ctx.step(2)
        below()

    return work.enqueue


@pytest.mark.parametrize("levels", [1, 3, 21])
def test_the_call_path_is_whole_though_no_budget_counts_levels(
    app: Tenure, worker: InlineWorker, levels: int
) -> None:
    keys = nests(app, levels)

    last = max(worker.run(), key=lambda view: view.created_at)

    assert (last.attempts[0].limit, last.attempts[0].call_path) == (Limit.STEPS, tuple(keys))


def test_a_very_long_call_path_says_that_it_begins_further_up(app: Tenure, worker: InlineWorker) -> None:
    keys = nests(app, 22)

    last = max(worker.run(), key=lambda view: view.created_at)

    assert last.attempts[0].call_path == ("...", *keys[1:])


def test_a_call_path_says_when_what_began_it_has_gone(ledger: Ledger) -> None:
    crossed = LimitCrossed(Limit.STEPS, "2 steps", ("below",))
    lease = running(ledger, "below", fields={"parent": "01J00000000000000000000000"})

    ledger.settle(lease, Fail(crossed.summary, Cause.LIMIT, permanent=True))

    (attempt,) = ledger.get(lease.id).attempts
    assert attempt.call_path == ("...", "below")
    assert str(attempt.error).startswith(crossed.summary.partition("\n")[0])


def test_a_call_tree_is_charged_each_step_once(app: Tenure, worker: InlineWorker) -> None:
    """Four steps in each of three: eight are allowed, and so would twelve be in any one of them."""

    @app.background("top", retry=Retry(1), budgets=Budgets(tree=8))
    def top(ctx: Ctx) -> None:
        ctx.step(4)
        middle.enqueue()

    @app.task("middle", retry=Retry(1), budgets=Budgets(tree=1))
    def middle(ctx: Ctx) -> None:
        ctx.step(4)
        bottom.enqueue()

    @app.task("bottom", retry=Retry(1))
    def bottom(ctx: Ctx) -> None:
        ctx.step(1)

    job = top.enqueue()
    *above, last = sorted(worker.run(), key=lambda view: view.created_at)

    assert [view.status for view in above] == ["succeeded", "succeeded"]
    assert last.attempts[0].limit == Limit.CALL_TREE
    assert last.attempts[0].call_path == ("top", "middle", "bottom")
    assert "9 steps in its call tree, the budget is 8. Look for a cycle" in str(last.attempts[0].error)
    assert app.jobs.get(job.id).attempts[0].limit is None


def test_steps_are_charged_to_the_job_at_the_top_once_however_often_they_are_sent(
    ledger: Ledger, faults: Faults
) -> None:
    top, below = (running(ledger) for _ in range(2))
    for lease, word in ((top, 1), (below, 2), (below, 3)):
        call = ledger.report_call(lease.id, lease.fence, steps=10, root=top.id, word=word)
        faults.lose_reply("report")
        with suppress(StoreUnreachable):
            ledger.scripts.run(call)
        spent = ledger.scripts.run(call).spent

    assert spent == 30
    gone = ledger.report_call(below.id, below.fence, steps=5, root="01J00000000000000000000000", word=4)
    assert ledger.scripts.run(gone).spent == 0


def test_the_top_of_a_tree_hears_of_its_own_steps_at_once(ledger: Ledger) -> None:
    top = running(ledger)

    spent = [
        ledger.scripts.run(ledger.report_call(top.id, top.fence, steps=1, root=top.id, word=word)).spent
        for word in (1, 2)
    ]

    assert spent == [1, 2]


def test_who_retries_the_top_of_a_tree_by_hand_gives_it_its_steps_again(
    app: Tenure, worker: InlineWorker
) -> None:
    tree = Budgets(tree=5)

    @app.background("once", retry=Retry(1), budgets=tree)
    def once(ctx: Ctx) -> None:
        ctx.step(4)
        if ctx.attempt == 1:
            raise ValueError

    job = once.enqueue()
    worker.run()
    app.jobs.retry(job.id)
    worker.run()

    assert app.jobs.get(job.id).status == "succeeded"


def test_no_lineage_is_kept_where_no_budget_is_in_force() -> None:
    assert Lineage.of("").of_job("J1", "ping", Budgets()).below().pack() == ""
    packed = Lineage.of("").of_job("J1", "ping", Budgets(depth=2)).below().pack()
    assert Lineage.of(packed) == Lineage(("ping",), 1)
    assert Lineage.of(packed).of_job("J2", "pong", Budgets(depth=9)).levels == 1


def test_crossing_a_budget_follows_the_retry_policy(app: Tenure, worker: InlineWorker) -> None:
    @app.task("tries", retry=Retry(2, delay="1ms"), budgets=Budgets(steps=1))
    def tries(ctx: Ctx) -> None:
        ctx.step(2)

    @app.task("gives.up", retry=Retry(9, permanent=(LimitCrossed,)), budgets=Budgets(steps=1))
    def gives_up(ctx: Ctx) -> None:
        ctx.step(2)

    jobs = [tries.enqueue(), gives_up.enqueue()]
    worker.run()
    worker.run("1s")

    views = [app.jobs.get(job.id) for job in jobs]
    assert [(view.dead_reason, len(view.attempts)) for view in views] == [
        ("attempts_exhausted", 2),
        ("permanent_error", 1),
    ]


@pytest.mark.parametrize("limit", Limit)
def test_no_advice_is_a_larger_limit(limit: Limit) -> None:
    words = ADVICE[limit].lower()

    assert not any(word in words for word in ("raise", "larger", "increase", "higher", "budget"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"time": -1},
        {"memory": "much"},
        {"memory": -1},
        {"depth": -1},
        {"tree": -1},
        {"recursion": 1.5},
        {"steps": None},
    ],
)
def test_what_is_no_budget_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as refused:
        Budgets(**wrong)

    assert next(iter(wrong)) in str(refused.value)
