"""What comes next of a trigger, and where the clocks change on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from .cron_search import DAY
from .times import SECOND_MS, Odd, Times

LOOK_AHEAD_MS = 366 * DAY * SECOND_MS
"""How far ahead changes of the clocks are told."""
MOST_ODD = 20_000


@dataclass(frozen=True, slots=True)
class Upcoming:
    """A planned fire (epoch ms) of a trigger; `odd` says what a change of the clocks does to it, if one does."""

    trigger: str
    fire_time: int
    odd: Odd | None = None


@dataclass(frozen=True, slots=True)
class ClockChange:
    """Neighbouring planned instants of a trigger that a change of the clocks treats alike."""

    trigger: str
    first: Odd
    last: Odd
    count: int

    @property
    def text(self) -> str:
        """What becomes of them, in words."""
        first, many = self.first, ""
        if self.count > 1:
            many = f" to {clock_text(self.last.nominal)} ({self.count} times)"
        fires = "not at this time" if first.skipped else "fires at this time"
        if first.mark == "overlap":
            return f"{clock_text(first.nominal)}{many} comes twice: {fires}"
        if first.nominal == first.shown:
            return "right after the clocks go forward: fires"
        return f"the clocks leave out {clock_text(first.nominal)}: {fires}"


def upcoming(trigger: str, times: Times, after: int) -> Iterator[Upcoming]:
    """The fires after an instant (epoch ms), each with what the clocks do to it."""
    at = times.next_ms(after)
    while at is not None:
        odd = times.odd_ms(at, at + 1)
        yield Upcoming(trigger, at, next((one for one in odd if not one.skipped), None))
        at = times.next_ms(at)


def clock_changes(trigger: str, times: Times, now: int) -> Sequence[ClockChange]:
    """What changes of the clocks do in the year from `now` on; those of a day that share their fate as one."""
    odd = islice(times.odd_ms(now, now + LOOK_AHEAD_MS), MOST_ODD)
    groups = (list(members) for _, members in groupby(odd, key=_fate))
    return tuple(ClockChange(trigger, group[0], group[-1], len(group)) for group in groups)


def _fate(odd: Odd) -> tuple[object, ...]:
    return odd.shown // (DAY * SECOND_MS), odd.shown - odd.at, odd.mark, odd.skipped


def clock_text(reading: int) -> str:
    """The time of day of a clock reading (ms since the clock showed 1970-01-01 00:00)."""
    second = reading // SECOND_MS % DAY
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
