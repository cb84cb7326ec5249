"""Whatever a caller passes where something else belongs, he is told so in our words: no raw TypeError, AttributeError,
UnicodeError or the like comes out of the public API. Every public method, every parameter, every kind of wrong value.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict, get_type_hints

import pytest

from tenure import Continue, Ctx, JobKey, Keep, Retry, RetryAfter, Tenure
from tenure.handles import Registers, TaskOptions
from tenure.lease.outcome import Fail
from tenure.lease.replay import ReplayConditions
from tenure.lease.requests import JobOptions
from tenure.schedule_book import FireOptions
from tenure.scheduler import CronExpression
from tenure.scheduler.trigger import Trigger
from tenure.scripts.errors import BadInput, TenureError
from tenure.testing import InlineWorker

from .given import claim, unknown_outcome

WRONG: tuple[Any, ...] = (
    *(
        None,
        5,
        -1,
        1 << 70,
        True,
        "x",
        "",
        "\ud800",
        "a\n",
        b"x",
        [],
        {},
        (),
        set(),
        [None],
        {5: 5},
        object(),
    ),
    *(float("nan"), 1.5, datetime(2026, 1, 1), timedelta(days=-1), str, lambda: None),
)
YESTERDAY = datetime.now(UTC) - timedelta(days=1)

GOOD: dict[str, Any] = {
    "job_key": "reports.daily",
    "instance": "order-7",
    "ids": ["01J00000000000000000000000"],
    "trace": "t1",
    "name": "sku-17",
    "happened": True,
    "month": "202601",
    "start": YESTERDAY,
    "end": YESTERDAY,
    "text": "0 0 2 ? * MON-FRI",
    "tenant": "default",
    "after": YESTERDAY,
    "before": YESTERDAY,
    "moment": YESTERDAY,
    "cursor": {},
    "delay": "1s",
    "key": "reports.weekly",
    "expression": "0 0 2 ? * MON-FRI",
    "calls": (),
}
"""What a parameter without a default is given while another one is wrong."""

BESIDE: dict[str, dict[str, Any]] = {
    "jobs.reschedule": {"priority": 1},
    "schedules.put": {"task": "reports.daily", "cron": "0 0 2 ? * MON-FRI"},
    "schedules.pause": {"job_key": "reports.daily"},
    "schedules.resume": {"job_key": "reports.daily"},
    "app.hold": {"pool": "outbound"},
    "app.release": {"pool": "outbound"},
    "Trigger": {"cron": "0 0 2 ? * MON-FRI"},
}
"""What a method needs besides to come so far."""

OPTIONS: dict[str, type] = {
    "app.background": TaskOptions,
    "app.cron": TaskOptions,
    "jobs.replay": ReplayConditions,
    "jobs.replay_preview": ReplayConditions,
    "schedules.put": FireOptions,
    "task.using": JobOptions,
    "tenants.keep": TypedDict("States", {"dead": Any, "succeeded": Any}),
}
"""What a method takes by name, where its signature does not say so."""

ANYTHING = ["Continue: cursor", "RetryAfter: reason", "Trigger: name"]
"""Parameters that take all there is: what becomes of them is told when they are stored."""

INTERNAL = {
    *(
        "app.store",
        "app.redis",
        "app.blocking_redis",
        "app.rq_redis",
        "app.ledgers",
        "app.ledger",
        "app.upkeep",
    ),
    *("app.close", "app.api", "app.about", "app.settings", "app.enqueue", "app.aenqueue_many"),
    *("schedules.of", "schedules.declare", "schedules.undeclared", "schedules.declare_later"),
}
"""Not for users, without parameters, or the asynchronous twin of another."""


class Bench:
    """An application with a job in each state, and every public thing that takes arguments, by name."""

    def __init__(self, app: Tenure) -> None:
        @app.task("reports.daily")
        def daily(*args: Any, **kwargs: Any) -> None: ...

        @app.task("report")
        def report(*args: Any, **kwargs: Any) -> None: ...

        self.app, self.task = app, daily
        ledger = app.ledger()
        self.unknown = unknown_outcome(ledger).id
        report.enqueue()
        ledger.settle(claim(ledger), Fail("broken", permanent=True))
        self.ended = daily.using(instance="order-7", trace="t1").enqueue()
        self.ended.cancel()
        self.waiting = daily.using(instance="order-7", trace="t1", after="1h").enqueue()
        app.schedules.put("reports.daily", task="reports.daily", cron="0 0 2 ? * MON-FRI")

    def things(self) -> dict[str, Callable[..., object]]:
        app = self.app
        books = {
            "app": app,
            "jobs": app.jobs,
            "schedules": app.schedules,
            "calendars": app.calendars,
            "tenants": app.tenants,
            "instances": app.instances,
        }
        found: dict[str, Callable[..., object]] = {}
        for book, one in books.items():
            for name, _ in inspect.getmembers(type(one)):
                if (
                    not name.startswith("_")
                    and f"{book}.{name}" not in INTERNAL
                    and callable(getattr(one, name))
                ):
                    found[f"{book}.{name}"] = getattr(one, name)
        cron = CronExpression("0 0 2 ? * MON-FRI")
        made: dict[str, Callable[..., object]] = {
            "task.using": lambda **options: self.task.using(**options).enqueue(),
            "task.args": self._enqueue,
            "app.notifier": lambda pool="outbound": app.notifier(pool=pool)(lambda notice: None),
            "job.wait": self.ended.wait,
            "job.cancel": self.waiting.cancel,
            "Continue": Continue,
            "JobKey": JobKey,
            "JobKey.parse": JobKey.parse,
            "Keep": Keep,
            "Retry": Retry,
            "RetryAfter": RetryAfter,
            "Tenure": Tenure,
            "Trigger": Trigger,
            "Trigger.put": self._put,
            "CronExpression": CronExpression,
            "cron.next": cron.next,
            "cron.prev": cron.prev,
            "cron.between": cron.between,
            "cron.describe": cron.describe,
        }
        return found | made

    def _enqueue(self, value: object) -> object:
        return self.task.enqueue(value)

    def _put(self, name: Any) -> object:
        trigger = Trigger(name, "0 0 2 ? * MON-FRI")
        return self.app.schedules.put("reports.daily", task="reports.daily", triggers=[trigger])

    def cases(self) -> Iterator[tuple[str, str, Callable[..., object], dict[str, Any]]]:
        """Each parameter: of what, its name, what to call, and what goes beside it."""
        for name, call in self.things().items():
            parameters = inspect.signature(call).parameters.values()
            options = OPTIONS.get(name)
            given = {"job_id": self.unknown, **GOOD}
            beside = {
                one.name: given.get(one.name)
                for one in parameters
                if one.default is one.empty and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
            } | BESIDE.get(name, {})
            named = [one.name for one in parameters if one.kind is not one.VAR_KEYWORD]
            for parameter in [*named, *(get_type_hints(options) if options else ())]:
                yield name, parameter, call, beside


def used(result: object) -> None:
    """What is lazy has to be begun before it can fail."""
    if isinstance(result, AbstractContextManager):
        with result:  # pyright: ignore[reportUnknownVariableType]
            pass
    elif isinstance(result, Iterator):
        next(result, None)
    elif isinstance(result, Registers):
        result.make(lambda: None)


def told(call: Callable[..., object], beside: Mapping[str, Any], parameter: str) -> tuple[int, list[str]]:
    """How many of the wrong values are refused in our words, and which are not."""
    refused, raw = 0, list[str]()
    for value in WRONG:
        said = f"{parameter}={value!r:.30}"
        try:
            used(call(**{**beside, parameter: value}))
        except BadInput as exc:
            refused += 1
            raw += [] if exc.hint else [f"{said}: no next step: {exc}"]
        except TenureError:
            refused += 1
        except Exception as exc:
            raw.append(f"{said}: {type(exc).__name__}: {exc!s:.80}")
    return refused, raw


def test_a_value_of_the_wrong_kind_is_told_in_our_words(app: Tenure) -> None:
    raw: dict[str, list[str]] = {}
    never: list[str] = []

    for name, parameter, call, beside in Bench(app).cases():
        refused, found = told(call, beside, parameter)
        if found:
            raw[f"{name}: {parameter}"] = found
        if not refused:
            never.append(f"{name}: {parameter}")

    assert raw == {}
    assert never == ANYTHING


def test_what_a_task_tells_of_itself_is_checked_too(app: Tenure, worker: InlineWorker) -> None:
    raw: dict[str, list[str]] = {}

    @app.background("probe")
    def probe(ctx: Ctx) -> None:
        for name, beside in (("report", {}), ("checkpoint", {"cursor": {}}), ("note", {})):
            call: Callable[..., object] = getattr(ctx, name)
            for parameter in inspect.signature(call).parameters:
                _, found = told(call, dict[str, Any](beside), parameter)
                if found:
                    raw[f"ctx.{name}: {parameter}"] = found

    job = probe.enqueue()
    worker.run()

    assert (raw, job.get().status) == ({}, "succeeded")


@pytest.mark.parametrize(
    ("verb", "options", "said"),
    [
        ("get", {"job_id": 5}, r"job_id 5 is not text"),
        ("list", {"limit": "5"}, r"limit '5' is not a whole number"),
        ("list", {"limit": True}, r"limit True is not a whole number"),
        ("confirm", {"job_id": "ID", "happened": "yes"}, r"happened 'yes' is not True or False"),
        ("reschedule", {"job_id": "ID", "now": "no"}, r"now 'no' is not True or False"),
        ("retry", {"job_id": "ID", "force": "no"}, r"force 'no' is not True or False"),
        (
            "retry",
            {"job_id": "ID", "kwargs": "x"},
            r"kwargs 'x' is not a dict with names that are text or None",
        ),
        ("retry", {"job_id": "ID", "args": "x"}, r"args 'x' is not a list or None"),
        ("retry", {"job_id": "ID", "after": []}, r"after \[\] is not text, a number, a timedelta or None"),
        ("skip_many", {"ids": [7]}, r"ids \[7\] is not a list, each of it text"),
        ("replay_preview", {"task": 7}, r"task 7 is not text or None"),
    ],
)
def test_the_value_the_rule_and_the_next_step_are_named(
    app: Tenure, verb: str, options: dict[str, Any], said: str
) -> None:
    named = next(name for name in options if name != "job_id" or len(options) == 1)

    with pytest.raises(BadInput, match=said) as refused:
        getattr(app.jobs, verb)(**options)

    assert refused.value.hint.startswith(f"{verb}({named}: ")


def test_the_next_step_is_the_parameter_as_it_is_written(app: Tenure) -> None:
    with pytest.raises(BadInput) as refused:
        app.jobs.reschedule("ID", priority=[])  # type: ignore[arg-type]

    assert refused.value.hint == "reschedule(priority: int | None = None)"
