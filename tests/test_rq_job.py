"""Rows of rq-scheduler that are damaged, forged or odd: each is read, or its problem is said; nothing of it runs."""

from __future__ import annotations

import json
import pickle
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from tenure.lease.tasks import Registry, Task
from tenure.scheduler.job_key import JobKey
from tenure.scheduler.rq_job import read_job, with_repeat
from tenure.scheduler.rq_moves import Reading, moves
from tenure.scheduler.times import LAST_MS

from .test_plain_pickle import Bomb

DUE = 1_790_000_000_000
READING = Reading("UTC")


def nothing(*args: Any, **kwargs: Any) -> None: ...


REGISTRY = Registry()
REGISTRY.add(Task("shop.send", nothing))

PLAIN = some.recursive(
    some.none()
    | some.booleans()
    | some.integers()
    | some.floats()
    | some.text(max_size=8)
    | some.binary(max_size=8),
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.tuples(inner, inner)
        | some.dictionaries(some.text(max_size=4) | some.integers(), inner, max_size=3)
        | some.sets(some.integers(), max_size=3)
    ),
    max_leaves=8,
)
calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
NAMES = ("data", "meta", "origin", "status", "timeout", "success_callback_name", "dependency_ids", "webhooks")


def row(call: object = ("shop.send", None, (), {}), meta: object = None, **more: bytes) -> dict[bytes, bytes]:
    fields = {"data": zlib.compress(pickle.dumps(call)), "origin": b"default", "status": b"scheduled", **more}
    if meta is not None:
        fields["meta"] = pickle.dumps(meta)
    return {name.encode(): value for name, value in fields.items()}


def problem(fields: dict[bytes, bytes], job_id: str = "a", due: int = DUE) -> str:
    (move,) = moves([read_job(job_id, fields, due)], READING, REGISTRY)
    assert move.problem or move.trigger
    return move.problem


@calm
@given(fields=some.dictionaries(some.sampled_from(NAMES).map(str.encode), some.binary(max_size=60)))
def test_whatever_bytes_a_row_has_it_is_read(fields: dict[bytes, bytes]) -> None:
    assert problem(fields)


@calm
@given(call=PLAIN, meta=PLAIN, due=some.integers(0, LAST_MS))
def test_whatever_plain_values_a_row_has_it_is_read(call: object, meta: object, due: int) -> None:
    problem(row(call, meta), due=due)


@calm
@given(
    args=some.lists(PLAIN, max_size=3),
    kwargs=some.dictionaries(some.text(max_size=4) | some.integers(), PLAIN, max_size=3),
    meta=some.fixed_dictionaries(
        {},
        optional={
            name: PLAIN | some.just("* * * * *") for name in ("cron_string", "interval", "repeat", "x")
        },
    ),
    due=some.integers(0, LAST_MS // 1000).map(lambda second: second * 1000),
)
def test_whatever_a_call_has_it_is_read(
    args: list[Any], kwargs: dict[Any, Any], meta: dict[str, Any], due: int
) -> None:
    problem(row(("shop.send", None, tuple(args), kwargs), meta), due=due)


@pytest.mark.parametrize("field", ["data", "meta"])
@pytest.mark.parametrize("compressed", [True, False])
def test_a_bomb_in_any_pickled_field_does_not_go_off(tmp_path: Path, field: str, compressed: bool) -> None:
    bomb = pickle.dumps(("shop.send", None, (Bomb(tmp_path / "ran"),), {}))

    said = problem({**row(), field.encode(): zlib.compress(bomb) if compressed else bomb})

    assert "cannot be taken over" in said
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (row(("shop.send", b"an object", (), {})), "a method of an object"),
        (row((7, None, (), {})), "names no function"),
        (row(("shop.send", None, ())), "not what RQ writes"),
        (row(meta=[1]), "its meta is no dict"),
        (row(meta={"interval": "often"}), "its interval 'often' is no number"),
        (row(meta={"interval": 60, "repeat": "x"}), "its repeat 'x' is no number"),
        (row(meta={"cron_string": 5}), "its cron_string 5 is no text"),
        (row(meta={"cron_string": "* * * * *", "repeat": 20_000}), "repeats 20,000 more times"),
        (row(meta={"interval": 10**12}), "is not a duration"),
        (row(dependency_ids=b'["other"]'), "jobs that it depends on"),
        (row(stopped_callback_name=b"shop.stopped"), "a callback when it is stopped"),
        (row(timeout=b"999999999999"), "timeout"),
    ],
)
def test_what_cannot_be_taken_over_says_why(fields: dict[bytes, bytes], says: str) -> None:
    assert says in problem(fields)


def test_rows_of_the_json_serializer_are_read_too() -> None:
    call = json.dumps(["shop.send", None, [1, {"a": 2}], {"b": None}]).encode()
    fields = {**row(data=call), b"meta": b'{"interval": 60}'}

    job = read_job("a", fields, DUE)

    assert (job.function, list(job.args), job.kwargs, job.interval_s) == (
        "shop.send",
        [1, {"a": 2}],
        {"b": None},
        60,
    )
    assert problem(fields) == ""


@pytest.mark.parametrize(
    ("job_id", "key"),
    [
        ("nightly", JobKey("nightly")),
        ("reports.nightly", JobKey("nightly", "reports")),
        ("3f2b8c1e-0000-4000-8000-000000000001", None),
    ],
)
def test_an_id_that_somebody_gave_is_the_job_key(job_id: str, key: JobKey | None) -> None:
    found = read_job(job_id, row(meta={"interval": 60}), DUE).key

    assert found == key or (key is None and found.group == "shop" and found.name.startswith("send-"))


def test_what_is_left_of_repeat_is_written_back_for_rq() -> None:
    meta = pickle.dumps({"interval": 60, "repeat": 5, "mine": ["x"]})

    assert json.loads(with_repeat(b'{"repeat": 5}', 2)) == {"repeat": 2}
    assert pickle.loads(with_repeat(meta, 2)) == {"interval": 60, "repeat": 2, "mine": ["x"]}
