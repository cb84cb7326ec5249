"""What a job belongs to: the user's workflow, a record, labels, a trace; who made it; what its attempts note."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tenure import Ctx, Settings, Tenure
from tenure.lease.context import MOST_LABELS, SOURCES, TEXT_LIMIT, WORKFLOW
from tenure.lease.jobs import JobView
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail, Succeed
from tenure.lease.reports import NOTE_LIMIT
from tenure.lease.requests import JobOptions, Options
from tenure.scripts.errors import BadInput, StaleFence
from tenure.testing import InlineWorker

from .given import At, Store, claim, running

LONG = "x" * TEXT_LIMIT
WHOLE: JobOptions = {
    "source": "timer",
    "trace": "order-7:retry",
    "instance": "i-1",
    "node": "approve",
    "node_name": "Approve it",
    "definition": "orders",
    "definition_version": "12",
    "execution": "e-9",
    "work_item": "w-3",
    "repeat_rule": "R3/PT5M",
    "record": ("order", "4711:a"),
    "labels": {"team": "billing", "tier": "a=b"},
}


def test_a_job_carries_its_context_and_a_job_without_one_pays_nothing(app: Tenure, store: Store) -> None:
    @app.task("charge")
    def charge() -> None: ...

    plain, whole = charge.enqueue(), charge.using(**WHOLE).enqueue()

    view = whole.get()
    assert {name: getattr(view, name) for name in WHOLE} == WHOLE
    plain_row = store.dump()[app.ledger().keys("row", id=plain.id)][1]
    assert set(plain_row) == {b"t", b"c"}, "the task and when it was made; all else is the default"
    assert (plain.get().source, plain.get().trace, plain.get().labels) == ("api", plain.id, {})


def test_long_values_of_the_context_leave_the_row(app: Tenure, store: Store) -> None:
    @app.task("charge")
    def charge() -> None: ...

    texts = dict.fromkeys(WORKFLOW, LONG)
    labels = {f"label-{at}": LONG for at in range(MOST_LABELS)}
    long = Options(trace=LONG, record=("order", LONG), labels=labels, **texts)
    job = app.enqueue(charge.task, (), {}, long)

    view = job.get()
    assert {name: getattr(view, name) for name in WORKFLOW} == texts
    assert (view.trace, view.record, view.labels) == (LONG, ("order", LONG), labels)
    row = store.dump()[app.ledger().keys("row", id=job.id)][1]
    assert max(map(len, row.values())) <= 64


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_of_the_list_is_kept(app: Tenure, source: str) -> None:
    @app.task("charge")
    def charge() -> None: ...

    assert charge.using(source=source).enqueue().get().source == source


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"source": "cronjob"}, "source 'cronjob' is not one of: api, cron"),
    ({"source": 7}, "source 7 is not one of"),
    ({"trace": "a/b"}, "trace 'a/b' is not allowed"),
    ({"trace": ".."}, "trace '..' is not allowed"),
    ({"trace": "a b"}, "trace 'a b' is not allowed"),
    ({"trace": "x" * 201}, "trace 'xxx"),
    *(({name: LONG + "x"}, f"{name} 'xxx") for name in WORKFLOW),
    *(({name: "a\nb"}, f"{name} 'a") for name in WORKFLOW),
    ({"instance": "\0"}, "instance '\\x00' is not allowed"),
    ({"instance": 7}, "instance 7 is not allowed"),
    ({"instance": "\ud800"}, "instance"),
    ({"record": "order:7"}, "record 'order:7' is no (type, id)"),
    ({"record": ("order", 7)}, "record ('order', 7) is no (type, id)"),
    ({"record": ("or:der", "7")}, "is no (type, id)"),
    ({"record": ("order", "")}, "is no (type, id)"),
    ({"record": ("order", "7", "8")}, "is no (type, id)"),
    ({"labels": "team=billing"}, "labels 'team=billing' are not allowed"),
    ({"labels": {str(at): "x" for at in range(MOST_LABELS + 1)}}, "at most 16"),
    ({"labels": {"a=b": "c"}}, "label 'a=b' = 'c' is not allowed"),
    ({"labels": {"team": "a\nb"}}, "label 'team' = 'a"),
    ({"labels": {"team": 7}}, "label 'team' = 7"),
    ({"labels": {7: "x"}}, "label 7 = 'x'"),
]


@pytest.mark.parametrize(("options", "said"), REFUSED, ids=[str(options)[:40] for options, _ in REFUSED])
def test_what_a_context_may_not_be_is_refused_before_the_store_is_asked(
    options: dict[str, Any], said: str
) -> None:
    app = Tenure(Settings(redis_url="redis://localhost:1"))

    with pytest.raises(BadInput) as refused:
        app.task("charge")(lambda: None).using(**options)

    assert said in str(refused.value)
    assert refused.value.hint


# -- the trace --------------------------------------------------------------------------------------------------------


def inside(app: Tenure, worker: InlineWorker, make: Callable[..., Any]) -> tuple[JobView, list[JobView]]:
    """A job that makes others by `make(ctx)`, and what it has made."""
    app.task("outer")(make)
    root = app.enqueue(app.registry.get("outer"), (), {}, Options())
    worker.run()
    return root.get(), [job for job in app.ledger().list().items if job.id != root.id]


def test_what_a_job_enqueues_belongs_to_its_trace_and_names_it(app: Tenure, worker: InlineWorker) -> None:
    @app.task("leaf")
    def leaf() -> None: ...

    @app.task("inner")
    def inner(ctx: Ctx) -> str:
        leaf.enqueue()
        return ctx.trace

    root, made = inside(app, worker, lambda ctx: inner.enqueue())

    below = {job.task: job for job in made}
    assert (root.trace, root.parent, root.source) == (root.id, None, "api")
    assert (below["inner"].trace, below["inner"].parent) == (root.id, root.id)
    assert (below["leaf"].trace, below["leaf"].parent) == (root.id, below["inner"].id)
    assert {job.source for job in made} == {"continuation"}
    assert below["inner"].value == root.id


def test_a_given_trace_is_inherited_too(app: Tenure, worker: InlineWorker) -> None:
    @app.task("leaf")
    def leaf() -> None: ...

    @app.task("middle")
    def middle() -> None:
        leaf.enqueue()
        leaf.using(trace="another", source="message").enqueue()

    middle.using(trace="order-7").enqueue()
    worker.run()

    leaves = [job for job in app.ledger().list().items if job.task == "leaf"]
    assert {(job.trace, job.source) for job in leaves} == {
        ("order-7", "continuation"),
        ("another", "message"),
    }


def by_coroutine(leaf: Any) -> Callable[..., Any]:
    async def make(ctx: Ctx) -> None:
        await leaf.aenqueue()

    return make


def by_task_group(leaf: Any) -> Callable[..., Any]:
    async def make(ctx: Ctx) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(leaf.enqueue))

    return make


WAYS: dict[str, Callable[[Tenure, Any], Callable[..., Any]]] = {
    "enqueue": lambda app, leaf: lambda ctx: leaf.enqueue(),
    "aenqueue": lambda app, leaf: by_coroutine(leaf),
    "a thread of a task group": lambda app, leaf: by_task_group(leaf),
    "enqueue_many": lambda app, leaf: lambda ctx: app.enqueue_many([leaf.call()]) and None,
    "another tenant": lambda app, leaf: lambda ctx: leaf.using(tenant="acme").enqueue() and None,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_trace_follows_every_way_to_enqueue(app: Tenure, worker: InlineWorker, way: str) -> None:
    @app.task("leaf")
    def leaf() -> None: ...

    root, made = inside(app, worker, WAYS[way](app, leaf))
    made += app.ledger("acme").list().items

    assert [(job.trace, job.parent, job.source) for job in made] == [(root.id, root.id, "continuation")]


def test_a_trace_ends_with_its_job(app: Tenure, worker: InlineWorker) -> None:
    @app.task("outer")
    def outer() -> None: ...

    outer.enqueue()
    worker.run()

    assert outer.enqueue().get().parent is None


def test_a_schedule_stored_by_a_job_makes_jobs_of_traces_of_their_own(
    app: Tenure, worker: InlineWorker
) -> None:
    def make(ctx: Ctx) -> None:
        app.schedules.put("nightly", task="outer", cron="* * * * *")

    root, _ = inside(app, worker, make)

    assert root.status == "succeeded"
    fields = app.schedules.get("nightly").definition.fields
    assert not {"trace", "parent"} & set(fields)


def test_a_root_stands_with_its_children_and_alone_in_no_list(ledger: Ledger, store: Store) -> None:
    alone, root = ledger.enqueue(NewJob("a")).id, ledger.enqueue(NewJob("b")).id
    child = ledger.enqueue(NewJob("c", fields={"trace": root, "parent": root})).id

    groups = {name: set(value[1]) for name, value in store.dump().items() if ":g:" in name}

    assert groups == {ledger.keys("group", kind="trace", value=root): {root.encode(), child.encode()}}
    assert alone not in str(groups)


# -- what attempts note -----------------------------------------------------------------------------------------------


def test_each_attempt_keeps_its_own_notes(app: Tenure, worker: InlineWorker) -> None:
    @app.task("call")
    def call(ctx: Ctx) -> None:
        ctx.note(request="first")
        ctx.note(request={"attempt": ctx.attempt, "name": "Zoë"})
        if ctx.attempt == 1:
            raise ValueError("no answer")
        ctx.note(response="200 OK")

    job = call.enqueue()
    worker.run()
    worker.run("1m")

    first, second = job.get().attempts
    assert (first.request, first.response) == ('{"attempt": 1, "name": "Zoë"}', None)
    assert (second.request, second.response) == ('{"attempt": 2, "name": "Zoë"}', "200 OK")


def test_a_note_is_cut_and_what_is_no_note_is_refused(app: Tenure, worker: InlineWorker) -> None:
    circle: list[Any] = []
    circle.append(circle)

    @app.task("call")
    def call(ctx: Ctx) -> str:
        ctx.note(request="x" * 5_000, response=object)
        with pytest.raises(BadInput, match=r"request .* cannot be noted"):
            ctx.note(request=circle)
        return "done"

    job = call.enqueue()
    worker.run()

    (attempt,) = job.get().attempts
    assert job.get().value == "done"
    assert attempt.request == "x" * (NOTE_LIMIT - 1) + "…"
    assert attempt.response == f'"{object}"'


def test_an_ended_attempt_takes_no_note(ledger: Ledger, store: Store) -> None:
    lease = running(ledger)
    ledger.report(lease, request="GET /")
    ledger.settle(lease, Fail("no"))

    with store.unchanged(), pytest.raises(StaleFence):
        ledger.report(lease, request="changed", response="late")

    (attempt,) = ledger.get(lease.id).attempts
    assert (attempt.request, attempt.response) == ("GET /", None)


def test_a_note_needs_the_very_fence(ledger: Ledger, store: Store) -> None:
    lease = running(ledger)

    with store.unchanged(), pytest.raises(StaleFence):
        ledger.report(replace(lease, fence=lease.fence + 1), request="not mine")


def test_notes_go_with_their_job(ledger: Ledger, at: At, store: Store) -> None:
    lease = running(ledger, fields={"labels": "team=billing", "record": "order:7", "node": "n", "trace": "t"})
    ledger.report(lease, request="GET /", response="200")
    ledger.settle(lease, Succeed())
    tomorrow = at(ledger.get(lease.id).read_at + 86_400_000)
    other = running(tomorrow, task="other")
    tomorrow.settle(other, Succeed())

    assert not [key for key in store.dump() if lease.id in key or ":g:" in key]


def test_a_note_of_a_run_that_was_no_attempt_is_gone(ledger: Ledger) -> None:
    from tenure.lease.outcome import GiveBack

    lease = running(ledger)
    ledger.report(lease, request="GET /")
    ledger.settle(lease, GiveBack(started=False))

    assert claim(ledger).attempt == 1
    assert ledger.get(lease.id).attempts[0].request is None
