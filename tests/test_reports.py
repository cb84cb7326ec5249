"""What a task may say of its progress: wrong values are refused where they are said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tenure import Continue, Tenure
from tenure.lease.redaction import Redaction
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

    checkpoint = note = report


@pytest.fixture
def link() -> Link:
    return Link()


@pytest.fixture
def ctx(link: Link) -> Ctx:
    ticket = Ticket(1, "J1", "acme", "report", 7, 2, 0, 3, 0, True, "", None, 0.0, 0.0, 0.0, b"", b"")
    return Ctx(ticket, link, Redaction())


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
    assert report[0].message == "x" * 999 + "…"
    assert report[0].lines == ["row \\udc80"]
    assert checkpoint[3] == "y" * 999 + "…"


def test_a_cursor_that_is_no_mapping_is_refused_at_the_call(ctx: Ctx, link: Link) -> None:
    with pytest.raises(BadInput, match="cursor 7 is no mapping"):
        ctx.checkpoint(7)  # type: ignore[arg-type]

    assert link.sent == []


def test_warnings_are_counted_and_logged_and_a_stage_is_named(ctx: Ctx, link: Link) -> None:
    ctx.warn("row 7 has no price")
    ctx.stage("prices")

    (warned,), (staged,) = link.sent
    assert (warned.warnings, warned.lines) == (1, ["warning: row 7 has no price"])
    assert (staged.stage, staged.warnings, staged.lines) == ("prices", 0, [])


@pytest.mark.parametrize(("name", "says"), [("", "a stage needs a name"), (7, "stage 7 is a int")])
def test_what_is_no_stage_is_refused_at_the_call(ctx: Ctx, link: Link, name: Any, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        ctx.stage(name)

    assert link.sent == []


def test_secrets_stand_in_nothing_that_a_task_says(ctx: Ctx, link: Link) -> None:
    ctx.mask("hunter2!")

    ctx.report(message="as hunter2!", log="password=tiger99 for hunter2!")
    ctx.warn("hunter2! was refused")
    ctx.stage("login hunter2!")
    ctx.checkpoint({}, message="after hunter2!")
    ctx.note(request={"password": "tiger99", "as": "hunter2!"}, response="hello hunter2!")

    said = repr(link.sent)
    assert said.count("***") == 9
    assert '{"password": "***", "as": "***"}' in said
    assert "hunter2" not in said
    assert "tiger99" not in said


def test_what_one_attempt_masks_is_no_other_ones_secret(ctx: Ctx) -> None:
    of_all = Redaction()
    one, other = (Ctx(ctx._ticket, Link(), of_all) for _ in range(2))

    one.mask("hunter2!")

    assert (one.without_secrets("hunter2!"), other.without_secrets("hunter2!")) == ("***", "hunter2!")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("pass1", "a text of 5 characters"),
        (["long enough", "tiny"], "of 4"),
        (7.0625, "a float"),
        (12345678, "a int"),
    ],
)
def test_what_is_no_secret_is_refused_and_not_shown(ctx: Ctx, value: Any, says: str) -> None:
    for mask in (ctx.mask, Tenure().mask):
        with pytest.raises(BadInput, match=says) as refused:
            mask(value)
        assert str(value) not in str(refused.value)
    assert ctx.without_secrets("long enough") == "long enough"
