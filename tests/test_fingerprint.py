"""What makes two errors one kind: the type, the function they came from, and the message without what varies."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.lease.outcome import Fail, Permanent, RetryAfter
from tenure.lease.tasks import Task
from tenure.scripts.states import Cause
from tenure.workers.attempt import failed, returned
from tenure.workers.fingerprint import NAME_LIMIT, failure, own_frame
from tenure.workers.interrupts import OutOfTime
from tenure.workers.masking import _LIST, _ODD, _VARYING, LIMIT, template

MASKED: list[tuple[str, str]] = [
    ("order 7 not found", "order # not found"),
    ("10 s", "# s"),
    ("-10.5 s, 3e-7", "# s, #"),
    ("5-3", "#-#"),
    ("2026-09-21T14:13:20.123Z is past", "#-#-#T#Z is past"),
    ("10.0.0.1:6379 refused", "# refused"),
    ("sku17 of shelf-b2", "sku# of shelf-b#"),
    ("[1, 2, 3] of ['a', \"b\"]", "[#] of ['…']"),
    ("'sku-17'", "'…'"),
    ("can't find user's file 'a b' in \"x\"", "can't find user's file '…' in '…'"),
    ("no shop “Nord” and no «Süd»", "no shop '…' and no '…'"),
    ("cut off: 'a very long", "cut off: '…'"),
    ("job 01J9ZZZZZZZZZZZZZZZZZZZZZZ is gone", "job <id> is gone"),
    ("user 123e4567-e89b-12d3-a456-426614174000", "user <id>"),
    ("commit deadbee1, commit 12345678", "commit <id>, commit #"),
    ("<Pool object at 0x7f3a2b>", "<Pool object at <id>>"),
    ("token QmFzZTY0IHRleHQ1", "token <id>"),
    ("defaced facade", "defaced facade"),
    ("ANSI \x1b[31mred\x1b[0m\r\n\tand\u202e odd\0", "ANSI [#mred [#m and odd"),
    ("", ""),
]


@pytest.mark.parametrize(("message", "expected"), MASKED, ids=[message[:20] for message, _ in MASKED])
def test_what_varies_is_masked(message: str, expected: str) -> None:
    assert template(message) == expected


@pytest.mark.parametrize("message", ["x" * 10_000_000, "7 " * 5_000_000, "'" * 1_000_000, "ä" * 300])
def test_a_template_is_short_however_long_the_message_is(message: str) -> None:
    assert len(template(message)) <= LIMIT


def repeats(pattern: re.Pattern[str]) -> Iterator[tuple[str, int]]:
    """Every repetition of a pattern: its kind and how often it may repeat at most."""

    def walk(node: Any) -> Iterator[tuple[str, int]]:
        if isinstance(node, (list, tuple)) or hasattr(node, "data"):
            parts = list(node)
            if len(parts) == 2 and str(parts[0]).endswith("_REPEAT"):
                yield str(parts[0]), int(parts[1][1])
            for part in parts:
                yield from walk(part)

    yield from walk(re._parser.parse(pattern.pattern, pattern.flags))  # type: ignore[attr-defined]


@pytest.mark.parametrize("pattern", [_VARYING, _LIST, _ODD], ids=["varying", "list", "odd"])
def test_no_message_can_make_masking_slow(pattern: re.Pattern[str]) -> None:
    """What repeats without bound gives nothing back, so no text is gone through again and again."""
    found = list(repeats(pattern))

    assert found
    assert all(kind == "POSSESSIVE_REPEAT" for kind, most in found if most > 25)


@given(st.text(max_size=300))
def test_a_template_is_one_line_and_masking_it_again_is_no_other_kind_of_text(message: str) -> None:
    found = template(message)

    assert found == " ".join(found.split())
    assert "\x1b" not in found
    assert not any(char.isascii() and char.isdigit() for char in found)


# -- the frame --------------------------------------------------------------------------------------------------------


def parse() -> None:
    json.loads("{")


def caught(function: Callable[[], object]) -> BaseException:
    try:
        function()
    except BaseException as exc:
        return exc
    raise AssertionError("nothing was raised")


def frame(function: Callable[[], object], home: str = "") -> str:
    return own_frame(caught(function).__traceback__, home)


def written(source: str, module: str, filename: str = "/srv/shop/orders.py") -> Callable[[], object]:
    """A function `sync` as its module has it."""
    scope: dict[str, Any] = {"__name__": module}
    exec(compile(source, filename, "exec"), scope)
    function: Callable[[], object] = scope["sync"]
    return function


def test_the_frame_is_the_innermost_of_ones_own_code() -> None:
    assert frame(parse) == f"{__name__}.parse"


def test_a_package_of_ones_own_may_be_installed_anywhere() -> None:
    assert frame(parse, home="json").startswith("json.decoder.JSONDecoder.")


def test_the_line_the_folder_and_the_release_make_no_difference() -> None:
    source = "def sync():\n    return 1 / 0\n"
    old = frame(written(source, "shop.orders"))
    new = frame(written("\n\n# edited\n" + source, "shop.orders", "/srv/release-7/shop/orders.py"))

    assert old == new == "shop.orders.sync"


def test_code_without_a_file_counts_only_where_there_is_no_other() -> None:
    assert frame(written("def sync():\n    return 1 / 0\n", "made", "<string>")) == f"{__name__}.caught"
    exc = caught(written("def sync():\n    return 1 / 0\n", "made", "<string>"))
    assert exc.__traceback__ is not None
    assert own_frame(exc.__traceback__.tb_next, "") == "made.sync"


@pytest.mark.parametrize("name", [None, 7, "x" * 100_000, "two\nlines\x1b"])
def test_an_odd_module_is_no_obstacle(name: Any) -> None:
    exc = caught(written("def sync():\n    return 1 / 0\n", name))

    fingerprint, _kind, where, _template = failure("Odd", own_frame(exc.__traceback__, ""), "x").split("\n")

    assert len(fingerprint) == 22
    assert where.isprintable()
    assert len(where) <= NAME_LIMIT


def test_an_endless_recursion_has_a_frame() -> None:
    def again() -> None:
        again()

    assert frame(again).endswith("again")


# -- what an attempt tells ---------------------------------------------------------------------------------------------

TASK = Task("t", lambda: None)


def told(raised: BaseException) -> str:
    outcome = failed(raised, TASK, 0)
    assert isinstance(outcome, Fail)
    return outcome.failure


def raised(message: str, kind: type[BaseException] = ValueError) -> BaseException:
    def raise_it() -> None:
        raise kind(message)

    return caught(raise_it)


def test_errors_that_differ_in_what_varies_are_one_kind() -> None:
    assert told(raised("order 7 is gone")) == told(raised("order 81 is gone"))


def test_errors_of_another_type_place_or_text_are_another_kind() -> None:
    kinds = {
        told(raised("order 7 is gone")).partition("\n")[0],
        told(raised("order 7 is lost")).partition("\n")[0],
        told(raised("order 7 is gone", KeyError)).partition("\n")[0],
        told(caught(lambda: int("order 7 is gone"))).partition("\n")[0],
    }

    assert len(kinds) == 4


def test_a_failure_says_what_it_is_made_of() -> None:
    fingerprint, kind, where, words = told(caught(parse)).split("\n")

    assert (kind, where) == ("JSONDecodeError", f"{__name__}.parse")
    assert words == "Expecting property name enclosed in double quotes: line # column # (char #)"
    assert fingerprint == told(caught(parse)).partition("\n")[0]


@pytest.mark.parametrize("kind", [Permanent, SystemExit, KeyboardInterrupt])
def test_whatever_is_raised_has_a_kind(kind: type[BaseException]) -> None:
    assert told(raised("7 is odd", kind)).split("\n")[1:] == [kind.__name__, *_where(), "# is odd"]


def _where() -> list[str]:
    return [f"{__name__}.raised.<locals>.raise_it"]


def test_who_asks_to_come_back_has_a_kind_for_the_day_the_attempts_are_used_up() -> None:
    assert told(RetryAfter("2s", "busy until 14:00")).split("\n")[1:] == ["RetryAfter", "", "busy until #"]


def test_where_the_cause_says_all_it_is_the_kind() -> None:
    assert told(OutOfTime()) == ""
    large = returned(bytes(300_000))
    assert isinstance(large, Fail)
    assert (large.cause, large.failure) == (Cause.TOO_LARGE, "")


def test_a_result_that_cannot_be_stored_has_a_kind() -> None:
    odd = returned({"a": object()})

    assert isinstance(odd, Fail)
    assert odd.failure.split("\n")[1] == "BadPayload"


def test_an_error_that_hides_its_traceback_and_its_text_has_a_kind() -> None:
    class Sly(Exception):
        @property
        def __traceback__(self) -> Any:  # type: ignore[override]
            raise RuntimeError

        def __str__(self) -> str:
            raise RuntimeError

    outcome = failed(Sly(), TASK, 0)

    assert isinstance(outcome, Fail)
    assert outcome.failure.split("\n")[1:] == ["Sly", "", "(its text raised RuntimeError)"]


def test_the_kind_is_told_beside_all_else() -> None:
    outcome = failed(RetryAfter("2s", "busy"), TASK, 0)

    assert isinstance(outcome, Fail)
    assert replace(outcome, failure="") == Fail("RetryAfter: busy", Cause.REFUSED, 2_000)
