"""Fire records, newest first: they are kept by trigger and month, and a reader wants the last ones of a schedule."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .fire_record import Fire
from .fire_records import Mark
from .job_key import JobKey
from .plan import month
from .schedules import Schedules

SILENT_MONTHS = 14
"""After so many months without a record, the list ends: records of so long ago have gone."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins: a month (YYYYMM), and the record in it that came before (None: none did)."""

    month: str
    after: Mark | None = None

    def __str__(self) -> str:
        instant, trigger = self.after or ("", "")
        return f"{self.month}:{instant}:{trigger}"

    @classmethod
    def parse(cls, text: str) -> Place | None:
        """A place as it was written; None if this is none."""
        found = re.fullmatch(r"(20[0-9]{2}(?:0[1-9]|1[0-2])):([0-9]{1,15})?:([a-z0-9_-]{0,63})", text)
        return found and cls(found[1], (int(found[2]), found[3]) if found[2] else None)


def recent_fires(
    schedules: Schedules, job_key: JobKey, trigger: str | None, limit: int, place: Place | None
) -> tuple[list[Fire], Place | None]:
    """At most `limit` records of a trigger (None: of all, those among them that the schedule has no more) from `place`
    on (None: from now), and where the next page begins; also of a deleted schedule. Raises NotFound if it is not stored
    and has none.
    """
    begins = place is None
    place = place or Place(month(schedules.ledger.index.now_ms()))
    names = [trigger] if trigger else schedules.records.triggers(job_key)
    found: list[Fire] = []
    silent = 0
    while silent < SILENT_MONTHS:
        records, after = schedules.records.page(
            job_key, names, month=place.month, limit=limit - len(found), after=place.after
        )
        found += records
        silent = 0 if records else silent + 1
        place = Place(place.month, after) if after is not None else Place(_month_before(place.month))
        if len(found) == limit:
            return found, place
    if begins and not found:
        schedules.get(job_key)
    return found, None


def _month_before(text: str) -> str:
    year, number = int(text[:4]), int(text[4:])
    return f"{year - 1}12" if number == 1 else f"{year}{number - 1:02}"
