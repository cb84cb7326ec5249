"""Instants as text: epoch milliseconds and RFC 3339."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ..scripts.errors import BadInput

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(ms: int) -> str:
    """Epoch milliseconds in UTC: `2026-09-21T14:13:20.000Z`."""
    return from_ms(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_ms(ms: int) -> datetime:
    """The instant of epoch milliseconds, in UTC."""
    return _EPOCH + timedelta(milliseconds=ms)


def to_ms(moment: datetime, *, what: str) -> int:
    """Epoch milliseconds of any instant; one before 1970 is 0. Raises BadInput for one without a time zone."""
    if not isinstance(moment, datetime) or moment.tzinfo is None:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(
            f"{what} {moment!r:.60} is no datetime with a time zone",
            hint=f"{what}=datetime(2027, 1, 31, 9, tzinfo=UTC)",
        )
    return max(0, (moment - _EPOCH) // timedelta(milliseconds=1))


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
