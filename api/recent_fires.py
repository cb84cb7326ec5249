"""The fire records of a trigger, newest first: they are kept by month, and a reader wants the last ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..lease import cursors
from ..lease.jobs import FIRE
from ..scheduler.fire_record import Fire
from ..scheduler.job_key import JobKey
from ..scheduler.plan import month
from ..scheduler.schedules import Schedules
from .fields import Fields
from .paging import read_cursor

SILENT_MONTHS = 12
"""After so many months without a record, the list ends."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins: a month (YYYYMM), and an instant in it to go down from (epoch ms; -1: its end)."""

    month: str
    before: int = -1


def recent_fires(
    schedules: Schedules, job_key: JobKey, trigger: str, limit: int, place: Place | None
) -> tuple[list[Fire], Place | None]:
    """At most `limit` records from `place` on (None: from now), and where the next page begins."""
    place = place or Place(month(schedules.ledger.index.take(FIRE, 0).now_ms))
    found: list[Fire] = []
    silent = 0
    while silent < SILENT_MONTHS:
        records, before = schedules.fires(
            job_key, trigger=trigger, month=place.month, limit=limit - len(found), before=place.before
        )
        found += records
        silent = 0 if records else silent + 1
        place = Place(place.month, before) if before is not None else Place(_month_before(place.month))
        if len(found) == limit:
            return found, place
    return found, None


def write_place(place: Place | None, of: Sequence[str]) -> str | None:
    return None if place is None else cursors.write(f"{place.month}:{place.before}", of)


def read_place(query: Fields, of: Sequence[str]) -> Place | None:
    cursor = read_cursor(query, of)
    if cursor is None:
        return None
    found = re.fullmatch(r"(20[0-9]{2}(?:0[1-9]|1[0-2])):(-1|[0-9]{1,15})", cursor)
    if not found:
        query.refuse("cursor", "is not one this list gave; start again without a cursor")
        return None
    return Place(found[1], int(found[2]))


def _month_before(text: str) -> str:
    year, number = int(text[:4]), int(text[4:])
    return f"{year - 1}12" if number == 1 else f"{year}{number - 1:02}"
