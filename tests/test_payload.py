"""Values as the store holds them: exact, or refused with the reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.lease.payload import (
    DEPTH,
    LIMIT,
    digest,
    pack,
    pack_args,
    pack_result,
    unpack,
    unpack_args,
)
from tenure.scripts.errors import BadPayload, PayloadTooLarge, ResultTooLarge

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=20,
)


@given(VALUES)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    assert repr(unpack(pack(value, what="it"))) == repr(value)


def test_a_tuple_comes_back_as_a_list() -> None:
    assert unpack(pack((1, (2, 3)), what="it")) == [1, [2, 3]]


def test_keys_of_a_dict_may_be_numbers() -> None:
    assert unpack(pack({1: "one", 2.5: "more"}, what="it")) == {1: "one", 2.5: "more"}


def test_no_arguments_are_no_bytes() -> None:
    assert pack_args([], {}) == b""
    assert unpack_args(b"") == ([], {})
    assert unpack_args(pack_args([1], {"a": 2})) == ([1], {"a": 2})


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {1, 2},
        datetime(2026, 1, 1),
        Decimal("1.5"),
        1 << 64,
        -(1 << 63) - 1,
        "\ud800",
        print,
        {(1, 2): 3}.keys(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_come_back_exact_is_refused_before_it_is_stored(value: Any) -> None:
    with pytest.raises(BadPayload, match="the arguments cannot be stored") as refused:
        pack([value], what="the arguments")

    assert "turn others into these" in refused.value.hint


@pytest.mark.parametrize(
    ("args", "kwargs", "place"),
    [
        ([1, object()], {}, "at [1]: can not"),
        ([], {"day": {"rows": [1, {2, 3}]}}, "at ['day']['rows'][1]: can not"),
        ([{7: {"x": 1 << 64}}], {}, "at [0][7]['x']: Integer"),
        ([{object: 1}], {}, "at [0]: can not"),
    ],
)
def test_the_place_of_what_cannot_be_stored_is_named(
    args: list[Any], kwargs: dict[str, Any], place: str
) -> None:
    with pytest.raises(BadPayload) as refused:
        pack_args(args, kwargs)

    assert f"arguments cannot be stored: {place}" in str(refused.value)


def test_the_limit_is_exact_and_names_the_largest_part() -> None:
    fits = b"x" * (LIMIT - 5)
    assert len(pack(fits, what="it")) == LIMIT

    with pytest.raises(BadPayload, match=r"'report'.*has"):
        pack({"small": 1, "report": b"x" * LIMIT}, what="the arguments")


def test_the_largest_argument_is_named_as_its_parameter_is() -> None:
    for args, kwargs, name in (
        ([b"x" * LIMIT, 1], {"b": 2}, "'report'"),
        ([1, 2, 3, b"x" * LIMIT], {}, "3"),
        ([1], {"rows": [b"x" * LIMIT]}, "'rows'"),
    ):
        with pytest.raises(PayloadTooLarge) as refused:
            pack_args(args, kwargs, what="the arguments of shop.sync", names=("report", "day"))

        assert f"; the largest part, {name}, has 262," in str(refused.value)
        assert "the arguments of shop.sync is 262," in str(refused.value)
        assert "the limit is 262,144" in str(refused.value)
        assert refused.value.hint == "store the data elsewhere and pass its name"


def test_a_result_that_is_too_large_has_a_code_of_its_own() -> None:
    assert pack_result(None) == b""
    assert unpack(pack_result([1])) == [1]
    with pytest.raises(ResultTooLarge, match="result is 300,005 bytes, the limit is 262,144"):
        pack_result(b"x" * 300_000)


@pytest.mark.parametrize(
    ("args", "kwargs", "place"),
    [
        ([float("nan")], {}, "[0]"),
        ([], {"rows": [1, {"x": -float("nan")}]}, "['rows'][1]['x']"),
        ([[], (0.5, float("nan"))], {}, "[1][1]"),
    ],
)
def test_nan_is_no_argument(args: list[Any], kwargs: dict[str, Any], place: str) -> None:
    with pytest.raises(
        BadPayload, match=re.escape(f"arguments cannot be stored: at {place}: NaN is no number")
    ):
        pack_args(args, kwargs)


def test_what_only_looks_like_nan_is_an_argument() -> None:
    for value in (
        float("inf"),
        float("-inf"),
        b"\xcb\x7f\xf8\0\0\0\0\0\0",
        "\xcb\x7f\xf8",
        1.7976931348623157e308,
    ):
        assert unpack_args(pack_args([value], {})) == ([value], {})
    assert repr(unpack(pack_result(float("nan")))) == "nan", "what is done is done"


@pytest.mark.parametrize("deep", [33, 511, 1_000, 10_000, 100_000])
def test_any_depth_is_refused_in_words(deep: int) -> None:
    value: Any = 1
    for _ in range(deep):
        value = [value]

    with pytest.raises(BadPayload, match="nested deeper than 32 levels"):
        pack_args([value], {})


@pytest.mark.parametrize(
    "wrap", [lambda value: [value], lambda value: (0, value), lambda value: {"in": value}]
)
@pytest.mark.parametrize("value", [1, "word", [], {}, ()])
def test_depth_is_bounded(value: Any, wrap: Callable[[Any], Any]) -> None:
    for _ in range(DEPTH - 1):
        value = wrap(value)
    pack(value, what="it")

    with pytest.raises(BadPayload, match=f"deeper than {DEPTH}"):
        pack(wrap(value), what="it")


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)

    with pytest.raises(BadPayload, match="nested"):
        pack(loop, what="it")


def test_digests_tell_parts_apart() -> None:
    assert digest("ab", "c") != digest("a", "bc") != digest("abc")
    assert digest("a", b"b") == digest("a", "b")
    assert len(digest("a")) == 22
