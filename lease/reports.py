"""What a task says of its progress, checked where it says it: a wrong value fails its first run, not a later page."""

from __future__ import annotations

import json

from ..scripts.errors import BadInput

MESSAGE_LIMIT = 1_000
NOTE_LIMIT = 4_000
UNIT_LIMIT = 32
STAGE_LIMIT = 100
MOST = (1 << 53) - 1
"""What every reader of a number holds exactly: JSON, Lua."""


def check_count(value: int | None, what: str) -> None:
    """Refuse what is no count of done, doing or total work."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(
            f"{what} {value!r:.60} is a {type(value).__name__}, it must be a whole number",
            hint=f"count rows or pages: {what}=40; without a number leave it out",
        )
    if not 0 <= value <= MOST:
        raise BadInput(
            f"{what} {value!s:.60} is out of range: 0 to 2**53 - 1",
            hint=f"without a number leave {what} out",
        )


def message_text(text: str, what: str = "message") -> str:
    """`text` as watchers get it: as characters that can be stored, and no longer than they read."""
    return cut(checked_text(text, what), MESSAGE_LIMIT)


def checked_text(text: str, what: str = "message") -> str:
    """All of `text`, as characters that can be stored. Raises BadInput for what is no text."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(
            f"{what} {text!r:.60} is a {type(text).__name__}, it must be text", hint=f"{what}=str(...)"
        )
    return storable(text)


def stage_text(name: str) -> str:
    """The name of a stage as watchers get it. Raises BadInput for what is no text, and for none."""
    text = cut(message_text(name, "stage"), STAGE_LIMIT)
    if not text:
        raise BadInput("a stage needs a name", hint='ctx.stage("reading the file")')
    return text


def warning_text(text: str) -> str:
    """A warning as watchers get it. Raises BadInput for what is no text, and for none."""
    said = message_text(text, "warning")
    if not said:
        raise BadInput("a warning needs words", hint='ctx.warn("row 7 has no price")')
    return said


def check_unit(unit: object) -> None:
    """Return if progress may be counted in `unit`, else refuse it."""
    if not isinstance(unit, str) or not 1 <= len(unit) <= UNIT_LIMIT or not unit.isprintable():
        raise BadInput(
            f"unit {unit!r:.60} is not allowed: text of 1 to {UNIT_LIMIT} characters on one line",
            hint='unit="rows"',
        )


def note_text(value: object, what: str) -> str:
    """A note as it is kept: text as it is, anything else as JSON; empty for None, and no longer than people read."""
    if value is None:
        return ""
    if isinstance(value, str):
        return cut(storable(value), NOTE_LIMIT)
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError) as exc:
        raise BadInput(f"{what} {value!r:.60} cannot be noted: {exc}", hint=f"{what}=str(...)") from exc
    return cut(storable(text), NOTE_LIMIT)


def storable(text: str) -> str:
    """`text` with halves of characters, which UTF-8 cannot hold, written out as `\\udc80`."""
    return text.encode("utf-8", "backslashreplace").decode()


def cut(text: str, limit: int) -> str:
    """`text` in at most `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
