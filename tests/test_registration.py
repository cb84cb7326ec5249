"""What is wrong with a task, a declared schedule or an option is said where it is written, and not when it runs."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from tenure import Ctx, Retry, Settings, Tenure
from tenure.handles import TaskOptions
from tenure.lease.requests import _CHECKS, JobOptions, Options
from tenure.lease.tasks import Task
from tenure.scripts.errors import BadInput


@pytest.fixture
def app() -> Tenure:
    """One that is never opened."""
    return Tenure(Settings(redis_url="redis://localhost:1"))


def report(day: str = "today") -> None: ...


def rows() -> Iterator[int]:
    yield 1


async def async_rows() -> AsyncIterator[int]:
    yield 1


class Rows:
    def __call__(self) -> Iterator[int]:
        yield 1


def needs_a_day(day: str) -> None: ...


Register = Callable[[Any], object]

REFUSED: dict[str, tuple[Register, str, str]] = {
    "a number for retry": (
        lambda app: app.task("r", retry=5)(report),
        "retry 5 of task r is not a Retry",
        "Retry(5)",
    ),
    "no time": (lambda app: app.task("r", timeout="0s")(report), "timeout '0s' is too short", "'30s'"),
    "less than no time": (
        lambda app: app.task("r", timeout=-1)(report),
        "timeout -1 is out of range",
        "'30s'",
    ),
    "an odd timeout": (
        lambda app: app.task("r", timeout=None)(report),
        "timeout None is not a duration",
        "'30s'",
    ),
    "startable as text": (
        lambda app: app.background("r", startable="yes")(report),
        "startable 'yes'",
        "startable=True",
    ),
    "pausable as text": (
        lambda app: app.background("r", pausable="yes")(report),
        "pausable 'yes'",
        "pausable=True",
    ),
    "cleared_on_end as a number": (
        lambda app: app.cron("r.r", "@daily", cleared_on_end=1)(report),
        "cleared_on_end 1",
        "cleared_on_end=True",
    ),
    "startable as a number": (
        lambda app: app.task("r", startable=1)(report),
        "startable 1",
        "startable=True",
    ),
    "one alias as text": (lambda app: app.task("r", aliases="old")(report), "aliases 'old'", "aliases=["),
    "an alias of another kind": (
        lambda app: app.task("r", aliases=[5])(report),
        "task key 5",
        "reports.daily",
    ),
    "a pool of another kind": (lambda app: app.task("r", pool=5)(report), "pool 5", "advance"),
    "a priority as text": (
        lambda app: app.task("r", priority="5")(report),
        "priority '5'",
        "the default is 5",
    ),
    "no function": (lambda app: app.task("r")(5), "cannot be 5: it is not a function", "a `def`"),
    "a class": (lambda app: app.task("r")(Rows), "it is not a function", "a `def`"),
    "a generator": (lambda app: app.task("r")(rows), "is a generator", "Continue"),
    "an async generator": (lambda app: app.task("r")(async_rows), "is a generator", "Continue"),
    "a generator in an object": (lambda app: app.task("r")(Rows()), "is a generator", "Continue"),
    "a generator in a partial": (
        lambda app: app.task("r")(functools.partial(rows)),
        "is a generator",
        "Continue",
    ),
    "a function of no known parameters": (
        lambda app: app.task("r")(min),
        "parameters cannot be read",
        "wrap it",
    ),
    "a task": (lambda app: app.task("r")(app.task("s")(report)), "s is a task already", "schedules.put"),
    "task without a key": (
        lambda app: app.task(report),
        "stands on <function report",
        '@app.task("reports.daily"',
    ),
    "cron without a key": (
        lambda app: app.cron(report, "@daily"),
        "without a key",
        '@app.cron("reports.daily"',
    ),
    "background without a key": (
        lambda app: app.background(report),
        "without a key",
        '@app.background("orders.sync"',
    ),
    "a key of another kind": (lambda app: app.task(5), "task key 5 is not allowed", "reports.daily"),
    "a misfire policy that is none": (
        lambda app: app.cron("r", "@daily", misfire="never")(report),
        "misfire 'never' is not a policy",
        "fire_once",
    ),
    "an overlap policy that is none": (
        lambda app: app.cron("r", "@daily", overlap="never")(report),
        "overlap 'never' is not a policy",
        "allow",
    ),
    "a policy of another kind": (
        lambda app: app.cron("r", "@daily", overlap=[])(report),
        "overlap [] is",
        "allow",
    ),
    "an unknown zone": (
        lambda app: app.cron("r", "@daily", tz="Mars/Base")(report),
        "'Mars/Base' is unknown",
        "IANA",
    ),
    "a zone of another kind": (lambda app: app.cron("r", "@daily", tz=8)(report), "time zone 8", "IANA"),
    "a tenant that is none": (
        lambda app: app.cron("r", "@daily", tenant="A b")(report),
        "'A b' is not a slug",
        "acme",
    ),
    "an expression of another kind": (lambda app: app.cron("r", 5)(report), "it is text, not int", ""),
    "a cron that gives too little": (
        lambda app: app.cron("r", "@daily")(needs_a_day),
        "does not take these arguments",
        "defaults",
    ),
    "another cron of the same name": (
        lambda app: (app.cron("r", "@daily")(report), app.cron("r", "@hourly")(report)),
        "declared twice: '@daily' and '@hourly'",
        "another key",
    ),
    "a URL in place of settings": (
        lambda _: Tenure("redis://ann:s3cret@host:6379/0"),  # type: ignore[arg-type]
        "Tenure was given 'redis://***@host:6379/0', it takes a Settings",
        "Settings(redis_url=",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_worker_could_not_use_is_refused_where_it_is_written(app: Tenure, case: str) -> None:
    register, says, next_step = REFUSED[case]

    with pytest.raises(BadInput) as refused:
        register(app)

    assert says in str(refused.value)
    assert next_step in refused.value.hint
    assert "s3cret" not in str(refused.value)


def test_a_refused_cron_declares_nothing(app: Tenure) -> None:
    with pytest.raises(BadInput):
        app.cron("reports.daily", "@daily")(5)  # type: ignore[call-overload]

    assert app.schedules.declare() == []


@pytest.mark.parametrize(
    "function",
    [
        report,
        functools.partial(report, "monday"),
        lambda: None,
    ],
)
def test_whatever_can_be_called_may_be_a_task(app: Tenure, function: Any) -> None:
    app.task("reports.daily", retry=Retry(2), aliases=["reports.nightly"])(function)

    assert "reports.nightly" in app.registry


WRONG_OPTIONS: list[tuple[str, Any, str]] = [
    ("tenant", 5, "tenant 5 is not a slug"),
    ("tenant", None, "tenant None is not a slug"),
    ("idempotency_key", 7, "idempotency key 7"),
    ("idempotency_key", "", "text of 1 to 1000 bytes"),
    ("idempotency_key", "k" * 1001, "text of 1 to 1000 bytes"),
    ("idempotency_key", "\ud800", "text of 1 to 1000 bytes"),
    ("idempotency_fields", "day", "idempotency_fields 'day' is not a list"),
    ("idempotency_fields", [5], "is not a list of argument names"),
    ("unique", "always", "unique 'always' is not a mode"),
    ("unique", [], "unique [] is not a mode"),
    ("priority", "1", "priority '1'"),
    ("priority", True, "priority True"),
    ("pool", 5, "pool 5"),
    ("pool", "", "pool ''"),
    ("after", "soon", "after 'soon' is not a duration"),
    ("after", [], "after [] is not a duration"),
    ("at", "2027-01-31T09:00:00Z", "at '2027-01-31T09:00:00Z' is not a datetime"),
    ("at", "tomorrow", "at 'tomorrow' is not a datetime"),
    ("at", 1_790_000_000, "is not a datetime"),
    ("at", datetime(2027, 1, 31), "has no time zone"),
    ("start_by", "never", "start_by 'never' is not a duration"),
    ("timeout", "0s", "timeout '0s' is too short"),
    ("timeout", [], "timeout [] is not a duration"),
    ("source", 5, "source 5 is not one of"),
    ("source", "checkout", "source 'checkout' is not one of"),
    ("trace", 5, "trace 5 is not allowed"),
    ("trace", "t" * 201, "at most 200"),
    *[
        (name, value, f"{name} {value!r:.60} is not allowed")
        for name in (
            "instance",
            "node",
            "node_name",
            "definition",
            "definition_version",
            "execution",
            "work_item",
            "binding",
            "by",
        )
        for value in (5, "", "n" * 201, "a\nb")
    ],
    ("repeat_rule", 5, "repeat_rule 5 is not allowed"),
    ("record", "order", "record 'order' is no (type, id)"),
    ("record", ("order", ""), "is no (type, id)"),
    ("labels", ["a"], "labels"),
    ("labels", {"a": 5}, "label 'a' = 5 is not allowed"),
    ("concurrency_key", "", "concurrency_key '' is not allowed"),
    ("concurrency_limit", 0, "concurrency_limit 0 is not allowed"),
    ("rate", 5, "rate 5 is not"),
    ("exclusive", "yes", "exclusive 'yes' is not a bool"),
    ("tennant", "acme", "'tennant' is not an option of a job"),
]


@pytest.mark.parametrize(("name", "value", "says"), WRONG_OPTIONS, ids=lambda part: str(part)[:20])
def test_an_option_that_breaks_a_rule_is_refused_where_it_is_given(
    app: Tenure, name: str, value: Any, says: str
) -> None:
    task = app.task("reports.daily")(report)

    with pytest.raises(BadInput) as refused:
        task.using(**{name: value})

    assert says in str(refused.value)
    assert refused.value.hint


def test_every_option_has_a_rule_and_a_type() -> None:
    names = set(Options.__dataclass_fields__)

    assert set(_CHECKS) == set(JobOptions.__annotations__) == names
    assert {name for name, _, _ in WRONG_OPTIONS} > names


def test_the_options_of_a_task_are_those_of_its_decorator() -> None:
    import inspect

    given = set(inspect.signature(Tenure.task).parameters) - {"self", "key", "background"}

    assert set(TaskOptions.__annotations__) == given


@pytest.mark.parametrize("option", ["after", "idempotency_key", "tennant"])
def test_an_option_that_a_schedule_would_ignore_is_refused(app: Tenure, option: str) -> None:
    app.task("reports.daily")(report)
    options: dict[str, Any] = {option: "5m"}

    with pytest.raises(BadInput, match=f"'{option}' is not an option of a schedule"):
        app.schedules.put("nightly", task="reports.daily", cron="@daily", **options)


# -- calls ------------------------------------------------------------------------------------------------------------


def none() -> None: ...
def two(first: int, second: int) -> None: ...
def some(first: int, second: int = 2, /, third: int = 3) -> None: ...
def many(first: int, *more: int, last: int = 0) -> None: ...
def named(first: int, *, must: int) -> None: ...
def aware(ctx: Ctx, first: int, second: int = 2) -> None: ...


@pytest.mark.parametrize("function", [none, two, some, many, named, aware])
@pytest.mark.parametrize("count", range(5))
def test_a_call_fits_as_its_signature_says(function: Callable[..., Any], count: int) -> None:
    import inspect

    task = Task("reports.daily", function)
    seen = inspect.signature(functools.partial(function, None) if function is aware else function)
    args = tuple(range(count))
    try:
        fits = list(seen.bind(*args).args)
    except TypeError:
        with pytest.raises(BadInput, match="does not take these arguments"):
            task.bind(args, {})
    else:
        assert task.bind(args, {}) == (fits, {})
