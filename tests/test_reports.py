"""What a task may say of its progress: wrong values are refused where they are said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tenure import Continue, Tenure
from tenure.lease import redaction
from tenure.lease.outcome import Fail
from tenure.lease.payload import pack_args
from tenure.lease.redaction import MARGIN, Redaction
from tenure.scripts.errors import BadInput
from tenure.workers import Ctx
from tenure.workers.attempt import STACK_LIMIT, SUMMARY_LIMIT, after_error
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


@pytest.mark.parametrize(("text", "says"), [("", "a warning needs words"), (7, "warning 7 is a int")])
def test_what_is_no_warning_is_refused_at_the_call(ctx: Ctx, link: Link, text: Any, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        ctx.warn(text)

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

    assert (one.without_secrets("hunter2!", 99), other.without_secrets("hunter2!", 99)) == ("***", "hunter2!")


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
    assert ctx.without_secrets("long enough", 99) == "long enough"


def test_the_text_of_an_argument_whose_name_is_secret_is_a_secret_of_the_attempt(
    ctx: Ctx, link: Link
) -> None:
    said = "tiger99, 1234567, short, at-home, k-123456, berlin"
    args = pack_args(
        ["tiger99", 1234567], {"cookies": ["short", {"at": "at-home"}], "b": {"apiKey": b"k-123456"}}
    )
    ticket = ctx._ticket._replace(args=args)
    ctx = Ctx(ticket, link, Redaction(), parameters=["password", "max_tokens"])

    ctx.report(message=said, log=said)
    ctx.note(request=said, response=[said])
    raised = after_error(ValueError(said), Tenure().task("t")(lambda: None).task, 0, ctx)

    masked = "***, 1234567, short, ***, ***, berlin"
    (report,), note = link.sent
    assert (report.message, report.lines) == (masked, [masked])
    assert note == (masked, f'["{masked}"]')
    assert isinstance(raised, Fail)
    assert raised.summary == f"ValueError: {masked}"
    assert "tiger99" not in raised.stack + raised.failure


def test_arguments_that_cannot_be_read_take_no_word_away(ctx: Ctx, link: Link) -> None:
    ctx = Ctx(ctx._ticket._replace(args=b"\xc1"), link, Redaction())

    ctx.report(message="on it")

    assert link.sent[0][0].message == "on it"


def test_an_error_hides_what_looks_like_a_secret_and_is_named_as_it_was(ctx: Ctx) -> None:
    class TokenError(Exception): ...

    said = "no postgresql://u:pw@db/x for password=abc12345, TokenError: late"
    raised = after_error(TokenError(said), Tenure().task("t")(lambda: None).task, 0, ctx)

    assert isinstance(raised, Fail)
    masked = "TokenError: no postgresql://u:***@db/x for password=***, TokenError: late"
    assert raised.summary == masked
    assert raised.stack.endswith(f"{masked}\n")
    assert "abc12345" not in raised.failure


@pytest.mark.parametrize("at", range(-19, 2))
def test_a_secret_that_the_cut_of_a_long_text_goes_through_is_not_shown(at: int) -> None:
    wide = 2 * 1_000 + MARGIN
    shrinks, secret = f"token='{'x' * 3_000}' " * 3, "password='tiger 99'"

    begun = Redaction().beginning(shrinks.ljust(wide + at, "y") + secret + "z" * wide, 1_000)
    ended = Redaction().end("z" * wide + secret + shrinks.rjust(wide + at, "y"), 1_000)

    assert "tiger" not in begun
    assert "99" not in ended
    assert begun.endswith("…")


def test_a_known_secret_is_masked_however_long_it_is() -> None:
    known = Redaction(["k" * 7_000])

    assert known.beginning("k" * 7_000 * 100, 1_000) == "*" * 300
    assert known.end("k" * 7_000 * 100, 1_000) == "*" * 300


def test_of_a_long_line_a_bounded_part_is_looked_at(
    ctx: Ctx, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    monkeypatch.setattr(redaction, "_without_looks", lambda text: looked.append(len(text)) or text)

    ctx.report(log="x" * 2_000_000)
    raised = after_error(ValueError("x" * 2_000_000), Tenure().task("t")(lambda: None).task, 0, ctx)

    assert isinstance(raised, Fail)
    assert len(link.sent[0][0].lines[0]) == 1_000
    assert (len(raised.summary), len(raised.stack)) == (SUMMARY_LIMIT, STACK_LIMIT)
    assert max(looked) <= 2 * STACK_LIMIT + MARGIN
