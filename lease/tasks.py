"""Tasks: functions with a key. The registry is closed: what is not registered by code is never run."""

from __future__ import annotations

import difflib
import inspect
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from ..scripts.errors import BadInput, UnknownTask
from ..scripts.fields import DEFAULTS
from .budgets import NONE as NO_BUDGETS
from .budgets import Budgets
from .context import check_text
from .limits import check_concurrency_key, check_concurrency_limit, check_exclusive
from .rates import packed_rate
from .redaction import Redaction
from .reports import check_unit
from .retry import Retry

_KEY = re.compile(r"[a-z0-9_-][a-z0-9_.-]{0,99}")
_POOL = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
DEFAULT_POOL = "advance"
DEFAULT_TIMEOUT_MS = 600_000


def check_pool(pool: str) -> str:
    """Return `pool` if it may name one, else refuse it."""
    if not isinstance(pool, str) or not _POOL.fullmatch(pool):
        raise BadInput(
            f"pool {pool!r:.60} is not a pool name: lower-case letters, digits, '_' and '-', at most 32",
            hint="the built-in pools are 'advance' and 'outbound'",
        )
    return pool


def check_priority(priority: int) -> int:
    """Return `priority` if it is one, else refuse it."""
    if isinstance(priority, bool) or not isinstance(priority, int) or not 0 <= priority <= 9:
        raise BadInput(
            f"priority {priority!r:.60} is out of range: 0 (first) to 9 (last)", hint="the default is 5"
        )
    return priority


def check_key(key: object) -> None:
    """Return if `key` may name a task, else refuse it."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise BadInput(
            f"task key {key!r:.60} is not allowed: lower-case letters, digits, '_', '-' and '.', at most 100",
            hint="name it like 'reports.daily'",
        )


def check_function(key: str, function: object) -> None:
    """Return if a worker can call `function` and keep what it returns, else refuse it."""
    wrong = None
    call = function if inspect.isroutine(function) else getattr(function, "__call__", None)  # noqa: B004
    if not callable(function) or inspect.isclass(function):
        wrong = "is not a function"
    elif any(map(inspect.isgeneratorfunction, (function, call))) or any(
        map(inspect.isasyncgenfunction, (function, call))
    ):
        wrong = "is a generator: calling it runs nothing of it"
    if wrong:
        raise BadInput(
            f"task {key} cannot be {function!r:.80}: it {wrong}",
            hint="register a `def` or `async def` that returns its result; for work in chunks, return Continue(...)",
        )
    try:
        inspect.signature(cast("Callable[..., object]", function))
    except (TypeError, ValueError):
        raise BadInput(
            f"task {key} cannot be {function!r:.80}: its parameters cannot be read", hint="wrap it in a `def`"
        ) from None


@dataclass(frozen=True)
class Task:
    """A registered function and how its jobs run."""

    key: str
    function: Callable[..., Any]
    pool: str = DEFAULT_POOL
    priority: int = 5
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    retry: Retry = field(default_factory=Retry)
    background: bool = False
    startable: bool = False
    pausable: bool = False
    """Whether its jobs pause while their instance is suspended."""
    cleared_on_end: bool = False
    """Whether its unfinished jobs are canceled when their instance ends."""
    aliases: tuple[str, ...] = ()
    concurrency_key: str | None = None
    concurrency_limit: int = 1
    exclusive: bool = False
    rate: str | None = None
    """How many of its jobs start in a time; with a concurrency key of its own, how many of that key."""
    owner: str = ""
    """Whom to tell of jobs gone dead."""
    budgets: Budgets = NO_BUDGETS
    unit: str = ""
    """What its progress counts, as in "4 of 9 rows"."""

    def __post_init__(self) -> None:
        if not isinstance(self.aliases, tuple):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(
                f"aliases {self.aliases!r:.60} are not a list of task keys",
                hint="aliases=['reports.nightly']",
            )
        for name in (self.key, *self.aliases):
            check_key(name)
        check_function(self.key, self.function)
        check_pool(self.pool)
        check_priority(self.priority)
        given: dict[str, object] = {
            name: getattr(self, name) for name in ("startable", "background", "pausable", "cleared_on_end")
        }
        for name, value in given.items():
            if not isinstance(value, bool):
                raise BadInput(f"{name} {value!r:.60} of task {self.key} is not a bool", hint=f"{name}=True")
        if self.owner != "":
            check_text("owner")(self.owner)
        if self.unit != "":
            check_unit(self.unit)
        self._check_key()
        if not isinstance(self.budgets, Budgets):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(
                f"budgets {self.budgets!r:.60} of task {self.key} are not Budgets",
                hint="budgets=Budgets(time='5m', memory='500MB'), with `from tenure import Budgets`",
            )
        if not isinstance(self.retry, Retry):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(
                f"retry {self.retry!r:.60} of task {self.key} is not a Retry",
                hint="retry=Retry(5), with `from tenure import Retry`",
            )

    def _check_key(self) -> None:
        check_concurrency_limit(self.concurrency_limit)
        check_exclusive(self.exclusive)
        if self.rate is not None:
            packed_rate(self.rate)
        if self.concurrency_key is not None:
            check_concurrency_key(self.concurrency_key)
            if self.exclusive:
                raise BadInput(
                    f"task {self.key} is exclusive and has concurrency_key {self.concurrency_key!r:.60}: "
                    "a job has one of the two",
                    hint="leave one out",
                )

    @cached_property
    def row(self) -> dict[str, str]:
        """The fields that its jobs' rows have, where they differ from the defaults."""
        fields = {
            "priority": str(self.priority),
            "timeout": str(self.timeout_ms),
            "max_attempts": str(self.retry.max_attempts),
            "end_as": "" if self.retry.then == "dead" else self.retry.then,
            "background": "1" if self.background else "",
            "pausable": "1" if self.pausable else "",
            "cleared_on_end": "1" if self.cleared_on_end else "",
            "unit": self.unit,
            "task_rate": packed_rate(self.rate) if self.rate and self.concurrency_key is None else "",
        }
        return {name: value for name, value in fields.items() if value and value != DEFAULTS.get(name)}

    @cached_property
    def is_async(self) -> bool:
        """Whether it is an `async def`: a call of it runs nothing yet, and it can run beside others."""
        call = getattr(self.function, "__call__", None)  # noqa: B004
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)

    @cached_property
    def takes_ctx(self) -> bool:
        """Whether the first parameter is the context: named `ctx`, or annotated as Ctx."""
        first = next(iter(self._parameters), None)
        return first is not None and (first.name == "ctx" or "Ctx" in str(first.annotation))

    @cached_property
    def parameter_names(self) -> list[str]:
        """The parameters that take a positional argument each, in order; without the context."""
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return [name for name, one in self._signature.parameters.items() if one.kind in kinds]

    @cached_property
    def _parameters(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self.function).parameters.values())

    @cached_property
    def _signature(self) -> inspect.Signature:
        """As a caller sees it: without the context."""
        return inspect.Signature(self._parameters[1:] if self.takes_ctx else self._parameters)

    @cached_property
    def _positional(self) -> tuple[float, float]:
        """How many arguments a call may have that names none; from more to less when there is no such call."""
        parameters = self._signature.parameters.values()
        if any(one.kind is one.KEYWORD_ONLY and one.default is one.empty for one in parameters):
            return 1, 0
        by_place = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        any_more = any(one.kind is one.VAR_POSITIONAL for one in parameters)
        needed = sum(one.default is one.empty for one in by_place)
        return needed, math.inf if any_more else len(by_place)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments as the function would get them, so that equal calls are equal.

        Raises BadInput if they do not fit.
        """
        least, most = self._positional
        if not kwargs and least <= len(args) <= most:  # as most calls are, and a signature takes long
            return list(args), {}
        bound = self._bound(args, kwargs)
        return list(bound.args), dict(sorted(bound.kwargs.items()))

    def named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by the names of their parameters, defaults filled in."""
        bound = self._bound(args, kwargs)
        bound.apply_defaults()
        return bound.arguments

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
        try:
            return self._signature.bind(*args, **kwargs)
        except TypeError as exc:
            raise BadInput(
                f"task {self.key} does not take these arguments: {exc}",
                hint=f"its signature is {self.key}{self._signature}",
            ) from None


class Registry:
    """The tasks an application has registered, by key and alias."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        self.secrets = Redaction()
        """What no task may show of itself: the values that the application has named as secrets."""

    def add(self, task: Task) -> Task:
        for name in (task.key, *task.aliases):
            known = self._tasks.get(name)
            if known and known.function is not task.function:
                raise BadInput(
                    f"task key {name!r} is registered twice", hint="give one of the two another key"
                )
            self._tasks[name] = task
        return task

    def get(self, key: str) -> Task:
        """The task of that key or alias. Raises UnknownTask, naming the nearest."""
        task = self._tasks.get(key) if isinstance(key, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
        if task:
            return task
        near = difflib.get_close_matches(str(key)[:100], self._tasks, n=1)
        hint = (
            f"did you mean {near[0]!r}?"
            if near
            else f"registered are: {', '.join(sorted(self._tasks)) or 'none'}"
        )
        raise UnknownTask(f"no task {key!r:.100} is registered", hint=hint)

    def secrets_of(self, task: str, args: bytes) -> Redaction:
        """Knows the application's secrets, and those among the packed arguments of a job of the task."""
        return self.secrets.of_job(args, self.get(task).parameter_names if task in self else ())

    def __contains__(self, key: str) -> bool:
        return key in self._tasks

    def __iter__(self) -> Iterator[Task]:
        return iter(
            sorted({id(task): task for task in self._tasks.values()}.values(), key=lambda task: task.key)
        )
