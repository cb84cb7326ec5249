"""Cursors: where a page of a list ended, wrapped so that nobody builds one, and bound to the list that gave it."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from ..scripts.errors import BadInput
from .payload import digest

T = TypeVar("T")
_MARKED = re.compile(r"([0-9a-f]{8}) (.*)", re.DOTALL)


def cut(found: Sequence[T], limit: int, place: Callable[[T], str]) -> tuple[Sequence[T], str | None]:
    """The page of a list that was read one further than `limit`; and the place of its last one, if more comes after."""
    return found[:limit], place(found[limit - 1]) if len(found) > limit else None


def write(place: str, of: Sequence[str]) -> str:
    """The cursor of a place in a list; `of` is what the list is of: its kind, its tenant, its filters."""
    return base64.urlsafe_b64encode(f"{_mark(of)} {place}".encode()).decode().rstrip("=")


def read(cursor: str, of: Sequence[str]) -> str:
    """The place. Raises BadInput for what is no cursor, and for one of another list."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise not_ours(cursor) from None
    found = _MARKED.fullmatch(text)
    if found is None:
        raise not_ours(cursor)
    if found[1] != _mark(of):
        raise BadInput(
            f"cursor {cursor!r:.40} is of another list: a cursor goes on only with the tenant and the filters of the "
            "page that gave it",
            hint="ask with those again, or start without a cursor",
        )
    return found[2]


def not_ours(cursor: str) -> BadInput:
    return BadInput(f"cursor {cursor!r:.40} is not one this list gave", hint="start again without a cursor")


def _mark(of: Sequence[str]) -> str:
    return digest(*of)[:8]
