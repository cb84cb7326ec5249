"""The fire records of a trigger, newest first: they are kept by month, and a reader wants the last ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..lease import cursors
from ..scheduler.fire_record import Fire
from ..scheduler.job_key import JobKey
from ..scheduler.plan import month
from ..scheduler.schedules import Schedules
from .fields import Fields
from .paging import read_cursor

SILENT_MONTHS = 14
"""After so many months without a record, the list ends: records of so long ago have gone."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins: a month (YYYYMM), and an instant in it to go down from (epoch ms; -1: its end)."""

    month: str
    before: int = -1


def recent_fires(
    schedules: Schedules, job_key: JobKey, trigger: str, limit: int, place: Place | None
) -> tuple[list[Fire], Place | None]:
    """At most `limit` records from `place` on (None: from now), and where the next page begins; also of a deleted
    schedule. Raises NotFound if it is not stored and has none.
    """
    begins = place is None
    place = place or Place(month(schedules.ledger.index.now_ms()))
    found: list[Fire] = []
    silent = 0
    while silent < SILENT_MONTHS:
        records, before = schedules.records(
            job_key, trigger, month=place.month, limit=limit - len(found), before=place.before
        )
        found += records
        silent = 0 if records else silent + 1
        place = Place(place.month, before) if before is not None else Place(_month_before(place.month))
        if len(found) == limit:
            return found, place
    if begins and not found:
        schedules.get(job_key)
    return found, None


def place_text(place: Place) -> str:
    return f"{place.month}:{place.before}"


def parse_place(text: str) -> Place | None:
    """A place that `place_text` has written; None if this is none."""
    found = re.fullmatch(r"(20[0-9]{2}(?:0[1-9]|1[0-2])):(-1|[0-9]{1,15})", text)
    return Place(found[1], int(found[2])) if found else None


def write_place(place: Place | None, of: Sequence[str]) -> str | None:
    return None if place is None else cursors.write(place_text(place), of)


def read_place(query: Fields, of: Sequence[str]) -> Place | None:
    cursor = read_cursor(query, of)
    if cursor is None:
        return None
    place = parse_place(cursor)
    if place is None:
        query.refuse("cursor", "is not one this list gave; start again without a cursor")
    return place


def _month_before(text: str) -> str:
    year, number = int(text[:4]), int(text[4:])
    return f"{year - 1}12" if number == 1 else f"{year}{number - 1:02}"
