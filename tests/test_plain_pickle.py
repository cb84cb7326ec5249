"""The reader of rq-scheduler's pickles: plain values come out, no class does, and nothing runs."""

from __future__ import annotations

import os
import pickle
import re
import zlib
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.scheduler.plain_pickle import inflated, read_pickle
from tenure.scripts.errors import BadPayload
from tenure.scripts.states import State


class Bomb:
    """What runs when it is read."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


PLAIN = [None, True, 7, -(1 << 70), 0.5, "é", b"\0", [1, [2]], (1, (2,)), {"a": {"b": [None]}}, {1, 2}]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("value", [value for value in PLAIN if not isinstance(value, (set, bytes))], ids=repr)
def test_plain_values_are_read_in_every_protocol(value: object, protocol: int) -> None:
    assert read_pickle(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_all_plain_values_are_read_as_rq_writes_them(value: object) -> None:
    assert read_pickle(pickle.dumps(value, pickle.HIGHEST_PROTOCOL)) == value


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_runs(tmp_path: Path, protocol: int) -> None:
    data = pickle.dumps({"args": [Bomb(tmp_path / "ran")]}, protocol)

    with pytest.raises(BadPayload, match=r"it holds a (posix|nt|os)\.mkdir"):
        read_pickle(data)

    assert not (tmp_path / "ran").exists()
    pickle.loads(data)
    assert (tmp_path / "ran").exists()  # so the bomb is one


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (date(2026, 1, 1), "datetime.date"),
        (Decimal(1), "decimal.Decimal"),
        (len, "builtins.len"),
        (int, "builtins.int"),
        (State.DEAD, "tenure.scripts.states.State"),
    ],
)
def test_no_class_and_no_function_comes_out_and_the_refusal_names_it(value: object, name: str) -> None:
    with pytest.raises(BadPayload, match=f"it holds a {name}"):
        read_pickle(pickle.dumps([value]))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "EOFError|ValueError"),
        (b"\x80\x05N", "it cannot be read"),
        (b"no pickle", "it cannot be read"),
        (b"cos\nsystem\n(S'true'\ntR.", r"it holds a os\.system"),
        (b"\x80\x02X\x01\x00\x00\x00aQ.", "something outside"),
        (b"\x80\x04\x82\x01.", "it cannot be read"),
        (b"\x80\x02K\x01r\xff\xff\xff\xff.", "more memory than it can need"),
        (b"\x80\x02" + b"(" * 100, "it cannot be read"),
        (pickle.dumps("x" * (5 << 20)), "at most 4,194,304 are read"),
    ],
)
def test_what_is_no_plain_pickle_is_refused_in_words(data: bytes, says: str) -> None:
    with pytest.raises(BadPayload, match=says):
        read_pickle(data)


def test_a_value_that_grows_when_it_is_written_out_is_refused() -> None:
    value: list[Any] = ["x"]
    for _ in range(25):
        value = [value, value]

    with pytest.raises(BadPayload, match="more than 100,000 parts"):
        read_pickle(pickle.dumps(value))


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)

    with pytest.raises(BadPayload, match="nested deeper"):
        read_pickle(pickle.dumps(value))


def test_what_is_compressed_is_inflated_up_to_a_limit() -> None:
    assert inflated(zlib.compress(b"plain")) == b"plain"
    assert inflated(b"plain") == b"plain"
    with pytest.raises(BadPayload, match="over 4,194,304 bytes"):
        inflated(zlib.compress(b"\0" * (64 << 20)))


def test_pickles_are_read_in_one_place() -> None:
    root = Path(tenure.__file__).parent
    folders = [root, *(root / layer for layer in ("scripts", "lease", "scheduler", "workers", "api"))]
    lines = {
        f"{path.parent.name}/{path.name}"
        for folder in folders
        for path in folder.resolve().rglob("*.py")
        if re.search(
            r"^\s*(import|from) (pickle|cPickle|_pickle|marshal|shelve|dill|cloudpickle)\b",
            path.read_text(),
            re.M,
        )
    }

    assert lines == {"scheduler/plain_pickle.py"}
