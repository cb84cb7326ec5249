"""Cursors of lists in the order of names: the last name given, wrapped so that nobody builds one."""

from __future__ import annotations

import base64
import binascii

from .fields import Fields

LONGEST = 4000


def write_cursor(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def read_cursor(query: Fields) -> str | None:
    """The name after which the page begins; None for the first page."""
    cursor = query.text("cursor", LONGEST)
    if cursor is None:
        return None
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        query.refuse("cursor", "is not one this list gave; start again without a cursor")
        return None
