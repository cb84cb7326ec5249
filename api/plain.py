"""Values as JSON can hold them, and text that cannot steer a terminal, a log or a reader's eye."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from typing import cast

from ..lease.instants import rfc3339

Json = dict[str, object]

# Controls, separators that are no "\n", marks that turn the direction of text, halves of characters.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_STEERING_BUT_LINES = re.compile(_STEERING.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))


def escaped(text: str, *, lines: bool = False) -> str:
    """`text` with its control characters written out, as `\\x1b`; with `lines`, line ends and tabs may stay."""
    return (_STEERING_BUT_LINES if lines else _STEERING).sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape", "surrogatepass").decode()


def instant(ms: int | None) -> str | None:
    """Epoch milliseconds as RFC 3339 in UTC: `2026-09-21T14:13:20.000Z`."""
    if ms is None:
        return None
    return rfc3339(ms)


def jsonable(value: object) -> object:
    """What came out of the store, as JSON: bytes are `{"base64": …}`, keys are text, NaN and infinities are text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return {"base64": base64.b64encode(value).decode()}
        case dict():
            named = cast("Mapping[object, object]", value)
            return {str(name): jsonable(child) for name, child in named.items()}
        case list() | tuple():
            return [jsonable(child) for child in cast("list[object]", value)]
        case _:
            return str(value)
