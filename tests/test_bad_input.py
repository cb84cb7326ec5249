"""What is no request is refused before the store is asked: nothing is sent, and no key changes (I6, T4, T16)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from starlette.testclient import TestClient

from tenure import Settings, Tenure
from tenure.lease.payload import unpack_args
from tenure.scripts.errors import BadInput

from .given import Store
from .test_api.conftest import local

NAN = float("nan")
SLUGS = (
    *("{", "a{b}", "a:b", "*", "a*", "a\n", "\na", "a\0", "", "A", "-a", "a b", "a/b", "é", "a" * 64, "@"),
    *(7, None, b"a"),
)
BAD_OPTIONS: list[dict[str, Any]] = [
    *({"tenant": slug} for slug in SLUGS),
    *({"pool": pool} for pool in ("", "A", "a b", "a:b", "{a}", "*", "a\n", "a\0", "x" * 33, 7)),
    *({"priority": priority} for priority in (-1, 10, 1.5, NAN, True, "5", 1 << 70)),
    *({"after": after} for after in ("-5s", -1, NAN, float("inf"), "soon", "11000d", True, "")),
    *({"at": at} for at in (datetime(2027, 1, 1), "tomorrow", 0)),
    *({"timeout": timeout} for timeout in (0, -1, NAN, "0s")),
    *({"start_by": start_by} for start_by in (0, -1, NAN, "0s")),
    *({"idempotency_key": key} for key in ("", "x" * 1001, "\ud800", 7)),
    {"after": "1s", "at": datetime.fromisoformat("2027-01-01T00:00:00+00:00")},
    {"idempotency_key": "a", "idempotency_fields": ["value"]},
    {"unique": "never"},
    {"colour": "red"},
]


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


BAD_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "a megabyte": (b"x" * (1 << 20),),
    "ten thousand levels": (nested(10_000),),
    "NaN": ([0.5, {"x": NAN}],),
    "an object": (object(),),
    "over 64 bits": (1 << 64,),
    "half a character": ("\ud800",),
    "too many": (1, 2),
    "none": (),
}


@pytest.fixture
def unreachable() -> Tenure:
    """An application whose store is not there: who asks it gets a StoreUnreachable."""
    return Tenure(Settings(redis_url="redis://localhost:1"))


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=lambda options: repr(options)[:50])
def test_a_bad_option_is_refused_before_the_store_is_asked(
    unreachable: Tenure, options: dict[str, Any]
) -> None:
    @unreachable.task("echo")
    def echo(value: Any) -> Any: ...

    with pytest.raises(BadInput) as refused:
        echo.using(**options).enqueue(1)

    assert refused.value.hint


@pytest.mark.parametrize("args", BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
@pytest.mark.parametrize("way", ["enqueue", "call"])
def test_bad_arguments_are_refused_before_the_store_is_asked(
    unreachable: Tenure, way: str, args: tuple[Any, ...]
) -> None:
    @unreachable.task("echo")
    def echo(value: Any) -> Any: ...

    ways: dict[str, Callable[..., object]] = {"enqueue": echo.enqueue, "call": echo.call}

    with pytest.raises(BadInput) as refused:
        ways[way](*args)

    assert refused.value.hint


REQUESTS: dict[str, Any] = {
    "unknown task": {"task": "os.system", "args": ["true"]},
    "no task": {},
    **{
        f"tenant {slug!r}": {"task": "echo", "args": [1], "tenant": slug}
        for slug in SLUGS
        if isinstance(slug, str) and slug
    },
    "deep": '{"task": "echo", "args": ' + "[" * 10_000 + "]" * 10_000 + "}",
    "NaN": '{"task": "echo", "args": [NaN]}',
    "a megabyte": {"task": "echo", "args": ["x" * (1 << 20)]},
    "too many arguments": {"task": "echo", "args": [1, 2, 3]},
    "no JSON": "{",
    "NUL": {"task": "echo", "args": ["\0"]},
    "over 64 bits": {"task": "echo", "args": [1 << 64]},
}


@pytest.mark.parametrize("body", REQUESTS.values(), ids=[name[:40] for name in REQUESTS])
def test_a_bad_request_changes_no_key(app: Tenure, store: Store, body: Any) -> None:
    @app.background("echo", startable=True)
    def echo(value: Any) -> Any: ...

    echo.enqueue(0)
    client: TestClient = local(app.api())
    content = body if isinstance(body, str) else json.dumps(body)

    with store.unchanged():
        answer = client.post(
            "/background-tasks", content=content, headers={"content-type": "application/json"}
        )

    assert answer.status_code in (400, 413)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["hint"]


def test_numbers_come_back_to_the_last_digit(app: Tenure) -> None:
    """Large integers through enqueue, delay and retry: the same bytes (trial 126)."""
    large = [130775545883395173, 9007199254740993, -1, 1e-7, 9223372036854775807, -(2**63), 2**64 - 1]
    values = [*large, [], {}, b"\0\xff", None, 0.1]

    @app.task("echo")
    def echo(*given: Any) -> Any: ...

    job = echo.using(after="1d").enqueue(*values)
    stored = job.get().args
    app.jobs.cancel(job.id)
    app.jobs.retry(job.id)

    assert job.get().args == stored
    assert repr(unpack_args(stored)) == repr((values, {}))


@pytest.mark.parametrize(
    "name", ["123", "a:b", "{x}", "a b", "🦊", "x" * 200, "*", "g:instance:y", "tn:{other}:meta"]
)
def test_ids_of_your_own_are_data_and_never_part_of_another_key(app: Tenure, store: Store, name: str) -> None:
    """They are found again, in the tenant's own keys (trial 128)."""

    @app.task("echo")
    def echo() -> None: ...

    job = echo.using(
        instance=name, record=("order", name), labels={"of": name}, idempotency_key=name
    ).enqueue()

    for found in (
        app.jobs.list(instance=name),
        app.jobs.list(record=("order", name)),
        app.jobs.list(labels={"of": name}),
        app.jobs.list(q=name),
    ):
        assert [one.id for one in found.items] == [job.id]
    base = app.ledger().keys.base
    assert all(key.startswith(base) or "{@}" in key for key in store.dump())
