"""What a task may say of its progress: wrong values are refused where they are said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tenure import Continue
from tenure.scripts.errors import BadInput
from tenure.workers import Ctx
from tenure.workers.wire import Ticket, Why, encode

Say = Callable[..., Any]


class Link:
    """Takes what a context sends, as its slot would."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []

    def stopped(self, ticket: Ticket) -> Why | None:
        return None

    def report(self, *said: Any) -> None:
        encode(said[1:])
        self.sent.append(said[1:])

    checkpoint = report


@pytest.fixture
def link() -> Link:
    return Link()


@pytest.fixture
def ctx(link: Link) -> Ctx:
    ticket = Ticket(1, "J1", "acme", "report", 7, 2, 0, 3, 0, True, "", None, 0.0, 0.0, 0.0, b"", b"")
    return Ctx(ticket, link)


@pytest.fixture(params=["return", "report", "checkpoint"])
def say(request: pytest.FixtureRequest, ctx: Ctx) -> Say:
    """Each way to say something of progress; what is `done` is `doing` in a report."""

    def report(done: Any = None, **said: Any) -> None:
        ctx.report(doing=done, **said)

    ways: dict[str, Say] = {
        "return": lambda **said: Continue({}, **said),
        "report": report,
        "checkpoint": lambda **said: ctx.checkpoint({}, **said),
    }
    return ways[str(request.param)]


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"done": "x"}, "'x' is a str, it must be a whole number"),
        ({"done": True}, "True is a bool"),
        ({"done": 1.5}, "1.5 is a float"),
        ({"done": -1}, "-1 is out of range"),
        ({"done": 1 << 53}, "is out of range"),
        ({"total": 1.5}, "total 1.5 is a float"),
        ({"total": -1}, "total -1 is out of range"),
        ({"message": 7}, "message 7 is a int, it must be text"),
        ({"message": None}, "message None is a NoneType"),
    ],
)
def test_what_is_no_count_or_no_text_is_refused_at_the_call(
    say: Say, link: Link, said: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadInput) as refused:
        say(**said)

    assert says in str(refused.value)
    assert refused.value.hint
    assert link.sent == []


def test_a_source_that_grew_while_it_was_read_is_no_error(say: Say) -> None:
    say(done=101, total=100)


def test_a_long_message_is_cut_and_half_a_character_written_out(ctx: Ctx, link: Link) -> None:
    ctx.report(message="x" * 100_000, log="row \udc80")
    ctx.checkpoint({}, message="y" * 100_000)

    report, checkpoint = link.sent
    assert report[2] == "x" * 999 + "…"
    assert report[3] == ["row \\udc80"]
    assert checkpoint[3] == "y" * 999 + "…"


def test_a_cursor_that_is_no_mapping_is_refused_at_the_call(ctx: Ctx, link: Link) -> None:
    with pytest.raises(BadInput, match="cursor 7 is no mapping"):
        ctx.checkpoint(7)  # type: ignore[arg-type]

    assert link.sent == []
