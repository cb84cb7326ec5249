"""Cursors in query strings."""

from __future__ import annotations

from collections.abc import Sequence

from ..lease import cursors
from .fields import Fields

LONGEST = 4000


def read_cursor(query: Fields, of: Sequence[str]) -> str | None:
    """The place after which the page of this list begins, such as a name; None for the first page."""
    cursor = query.text("cursor", LONGEST)
    if cursor is None:
        return None
    with query.checking("cursor"):
        return cursors.read(cursor, of)
    return None
