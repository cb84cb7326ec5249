"""Instants as text: epoch milliseconds and RFC 3339."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ..scripts.errors import BadInput

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(ms: int) -> str:
    """Epoch milliseconds in UTC: `2026-09-21T14:13:20.000Z`."""
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_instant(text: str, *, what: str) -> datetime:
    """An instant with its offset from UTC. Raises BadInput."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise BadInput(
            f"{what} {text!r:.60} is not an instant",
            hint="write it like 2026-09-21T14:13:20Z, with its offset",
        )
    return moment
