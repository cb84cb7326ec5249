"""When triggers would fire, before anything is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from .calendar_store import Calendars
from .dry_run import DryRun, check_outage, of_outage
from .misfire import Misfire
from .schedules import Schedules, check_triggers
from .trigger import Trigger, names_of
from .upcoming import ClockChange, Upcoming, clock_changes, upcoming


@dataclass(frozen=True, slots=True)
class Preview:
    """The next fires of a trigger, what changes of the clocks do to it in the year from now on, and what would become
    of an outage, if one is given.
    """

    trigger: str
    fires: Sequence[Upcoming]
    clock_changes: Sequence[ClockChange]
    outage: DryRun | None


def preview(
    schedules: Schedules,
    triggers: Sequence[Trigger],
    count: int = 5,
    *,
    outage: tuple[int, int] | None = None,
    misfire: Misfire | None = None,
) -> Sequence[Preview]:
    """The next `count` fires of each trigger, and what a misfire policy would make of an outage (epoch ms). Those that
    count from when they are stored count from now, or from the beginning of the outage. Nothing is stored.

    Raises BadInput for a named calendar that is not there, an outage without a length.
    """
    calendars = Calendars(schedules.ledger).named(names_of(check_triggers(triggers)))
    now = schedules.ledger.index.now_ms()
    if outage is not None:
        check_outage(*outage)
    anchor = min(now, outage[0]) if outage else now
    found: list[Preview] = []
    for one in triggers:
        times = one.times(anchor, calendars)
        fires = tuple(islice(upcoming(one.name, times, now), count))
        run = of_outage(one, times, *outage, misfire or Misfire()) if outage else None
        found.append(Preview(one.name, fires, clock_changes(one.name, times, now), run))
    return found
