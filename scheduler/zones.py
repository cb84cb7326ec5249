"""Time zones as stretches of constant offset, and zone names with helpful refusals.

`zoneinfo` answers "what is the offset at this instant"; a search for the next fire asks "until when".
A zone is therefore probed once per stretch of about a year, every two days (no zone has changed its clock
twice within six days since 1970), and each change is then found to the second by halving.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from ..scripts.errors import BadInput, MissingExtra, install

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

SPAN_BITS = 25  # 2**25 seconds are 388 days
_PROBE = 2 * 86_400
_LONGEST_NAME = 64
# These are files of the tz database that mean another zone on every machine.
_HOST_NAMES = frozenset({"localtime", "posixrules"})


class UnknownZone(BadInput):
    """No zone of that name is in this machine's tz database."""


class NoZones(MissingExtra):
    """This machine has no tz database at all."""


UNAVAILABLE = (UnknownZone, NoZones)


class Stretch(NamedTuple):
    """A time with one offset: instants from `start` up to, not including, `end`, in epoch seconds.

    `before` and `after` are the offsets of the neighbours. Where nothing changes they equal `offset`:
    a long stretch is cut at fixed instants so that it can be found without looking far ahead.
    """

    start: int
    end: int
    offset: int
    before: int
    after: int


class Zone:
    """One IANA zone: its `tz` for datetimes, its stretches for searches."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tz: tzinfo = _load(name)
        self._spans: dict[int, tuple[Stretch, ...]] = {}

    def span(self, number: int) -> tuple[Stretch, ...]:
        """All stretches of one span of 2**25 seconds, in order."""
        stretches = self._spans.get(number)
        if stretches is None:
            # Two threads may both compute this; they store the same value.
            stretches = self._spans[number] = self._survey(number << SPAN_BITS, (number + 1) << SPAN_BITS)
        return stretches

    def _survey(self, start: int, end: int) -> tuple[Stretch, ...]:
        changes = [start, *self._changes(start, end), end]
        offsets = [self._offset(start - 1), *(self._offset(at) for at in changes)]
        return tuple(
            Stretch(changes[i], changes[i + 1], offsets[i + 1], offsets[i], offsets[i + 2])
            for i in range(len(changes) - 1)
        )

    def _changes(self, start: int, end: int) -> list[int]:
        found: list[int] = []
        low, offset = start, self._offset(start)
        while low < end - 1:
            high = min(low + _PROBE, end - 1)
            if (there := self._offset(high)) != offset:
                found.append(self._change_between(low, high))
                offset = there
            low = high
        return found

    def _change_between(self, low: int, high: int) -> int:
        old = self._offset(low)
        while high - low > 1:
            middle = (low + high) // 2
            if self._offset(middle) == old:
                low = middle
            else:
                high = middle
        return high

    def _offset(self, instant: int) -> int:
        offset = (EPOCH + timedelta(seconds=instant)).astimezone(self.tz).utcoffset()
        assert offset is not None
        return offset.days * 86_400 + offset.seconds


@cache
def zone(name: str) -> Zone:
    """The zone of that IANA name.

    Raises UnknownZone, with the nearest known name, and NoZones.
    """
    return Zone(name)


def _load(name: str) -> tzinfo:
    if name == "UTC":
        return UTC  # needs no database
    if name not in _HOST_NAMES and 0 < len(name) <= _LONGEST_NAME:
        try:
            return ZoneInfo(name)
        except (ValueError, OSError, LookupError):
            pass  # ZoneInfo raises each of these, for `../x`, for `America` and for `Mars/Base`
    raise _unknown(name)


def _unknown(name: str) -> Exception:
    known = _known_names()
    if not known:
        return NoZones(
            f"time zone {_shown(name)} cannot be read: this machine has no tz database",
            hint=f"{install('tzdata')}; or install the operating system's tzdata package",
        )
    nearest = _nearest(name)
    return UnknownZone(
        f"time zone {_shown(name)} is unknown" + (f"; did you mean {nearest!r}?" if nearest else ""),
        hint="use an IANA name such as 'Europe/Berlin' or 'UTC'",
    )


@lru_cache(maxsize=1)
def _known_names() -> dict[str, str]:
    """All names by their lower-case form; those of today's database, asked once."""
    return {name.lower(): name for name in sorted(available_timezones())}


@lru_cache(maxsize=256)
def _nearest(name: str) -> str | None:
    if len(name) > _LONGEST_NAME:
        return None  # comparing takes time in proportion to the length
    wanted, known = name.lower().replace(" ", "_"), _known_names()
    if wanted in known:
        return known[wanted]
    close = get_close_matches(wanted, known, n=1, cutoff=0.6)
    if close:
        return known[close[0]]
    cities = {lower.rpartition("/")[2]: lower for lower in known}
    city = get_close_matches(wanted.rpartition("/")[2], cities, n=1, cutoff=0.75)
    return known[cities[city[0]]] if city else None


def _shown(name: str) -> str:
    return repr(name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + "…")
