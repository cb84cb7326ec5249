"""A job's context: what of the user's own world it works for, checked as options, packed for its row, and unpacked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from ..scripts.errors import BadInput

SOURCES = ("api", "cron", "timer", "continuation", "message", "flow", "retry")
"""Who made a job: code or a request of yours, a schedule, a timer, another job, a message, a flow, a person again."""
WORKFLOW = (
    "instance",
    "node",
    "node_name",
    "definition",
    "definition_version",
    "execution",
    "work_item",
    "repeat_rule",
)
"""Texts of a row that say where in the user's workflow a job stands, and what made it come again."""
TEXT_LIMIT = 200
MOST_LABELS = 16
Record = tuple[str, str]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_TRACE = re.compile(r"[A-Za-z0-9][!-.0-~]{0,199}")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def pack_record(record: Record) -> str:
    """As it is stored: a type has no colon."""
    return f"{record[0]}:{record[1]}"


def unpack_record(packed: str | None) -> Record | None:
    kind, _, name = (packed or "").partition(":")
    return (kind, name) if packed else None


def pack_labels(labels: Mapping[str, str]) -> str:
    """As they are stored, a line each, sorted: no name has a "=", no value a line end."""
    return "\n".join(f"{name}={value}" for name, value in sorted(labels.items()))


def unpack_labels(packed: str | None) -> dict[str, str]:
    lines = packed.split("\n") if packed else []
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def is_text(value: object, least: int, most: int) -> bool:
    """Whether it is text of so many bytes; half a character, as JSON may bring, is none."""
    try:
        return isinstance(value, str) and least <= len(value.encode()) <= most
    except UnicodeEncodeError:
        return False


def check_text(what: str) -> Callable[[object], None]:
    def check(text: object) -> None:
        if not _is_word(text):
            raise BadInput(
                f"{what} {text!r:.60} is not allowed: text of 1 to {TEXT_LIMIT} bytes without control characters",
                hint=f"{what}='checkout'",
            )

    return check


def check_source(source: object) -> None:
    if source not in SOURCES:
        raise BadInput(
            f"source {source!r:.60} is not one of: {', '.join(SOURCES)}",
            hint="leave it out: a call of yours is 'api', a job that is made in a job 'continuation'",
        )


def check_trace(trace: object) -> None:
    if not isinstance(trace, str) or not _TRACE.fullmatch(trace):
        raise BadInput(
            f"trace {trace!r:.60} is not allowed: visible ASCII without '/', at most 200, a letter or digit first",
            hint="leave it out, and a job's own id is the trace of all that it makes; or trace=uuid4().hex",
        )


def check_record(record: object) -> None:
    parts = cast("tuple[object, ...]", record) if isinstance(record, tuple) else ()
    if len(parts) != 2 or not _is_name(parts[0]) or not _is_word(parts[1]):
        raise BadInput(
            f"record {record!r:.80} is no (type, id): a type of letters, digits, '_', '.' and '-', at most 64, and "
            f"an id, text of 1 to {TEXT_LIMIT} bytes without control characters",
            hint="record=('order', '4711')",
        )


def check_labels(labels: object) -> None:
    named = cast("dict[object, object]", labels) if isinstance(labels, dict) else None
    if named is None or len(named) > MOST_LABELS:
        raise BadInput(
            f"labels {labels!r:.60} are not allowed: a dict of at most {MOST_LABELS}",
            hint="labels={'team': 'billing'}",
        )
    for name, value in named.items():
        if not _is_name(name) or not _is_word(value):
            raise BadInput(
                f"label {name!r:.70} = {value!r:.60} is not allowed: a name of letters, digits, '_', '.' and '-', at "
                f"most 64, and text of 1 to {TEXT_LIMIT} bytes without control characters",
                hint="labels={'team': 'billing'}",
            )


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(_NAME.fullmatch(value))


def _is_word(value: Any) -> bool:
    return is_text(value, 1, TEXT_LIMIT) and not _CONTROL.search(value)
