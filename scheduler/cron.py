"""Cron expressions, pure: no clock, no store, the same answer on every machine.

>>> cron = CronExpression("0 0 2 ? * MON-FRI", tz="Asia/Shanghai")
>>> cron.next(datetime(2026, 5, 1, tzinfo=UTC)).isoformat()
'2026-05-04T02:00:00+08:00'
>>> cron.describe()
'at 02:00, Monday to Friday'
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Literal, cast, get_args

from ..scripts.errors import BadInput
from .cron_clock import Clock, Mark, Only, Plan, Policy, Skipped, clock
from .cron_parse import BadCron, normalized, parse, refusal
from .cron_search import AFTER_ALL, Readings
from .cron_words import Language, describe
from .times import Odd, as_odd
from .zones import EPOCH

__all__ = ["BadCron", "CronExpression", "Dst", "Planned"]

Dst = Literal["standard", "skip", "quartz"]

_SECOND_MS = 1000


@dataclass(frozen=True, slots=True)
class Planned:
    """One planned instant.

    `nominal` is the clock reading the expression names, without a zone; it differs from the reading of `at`
    where a gap left it out. `mark` says that the clocks change here, `skipped` that nothing fires, and why.
    """

    at: datetime
    nominal: datetime
    mark: Mark | None = None
    skipped: Skipped | None = None


class CronExpression:
    """When something is due: `text` read on the clock of `tz`.

    Six or seven fields are Quartz, five are crontab. `dst` decides the days on which the clocks change:

    - `standard`: a fixed wall time in a gap fires once, at the first instant after it; in an overlap, at the
      first pass only. With `*` first in the minute or hour field it is a rhythm, which follows real time.
    - `skip`: the same, but what falls in a gap does not fire.
    - `quartz`: as Quartz 2.3.2: what falls in a gap does not fire, what happens twice fires the second time
      only, and `next` from within the first pass goes on after the same reading of the second.

    Years run from 1970 to 2125. Raises BadCron for a text that breaks a rule or that no date can ever
    satisfy, BadInput for an unknown zone or policy, MissingExtra without a tz database.

    Datetimes given must have a zone; those returned have the expression's. Mind that Python compares two
    datetimes of one zone by their readings: compare in UTC when a clock change may lie between.
    """

    __slots__ = ("_clock", "_readings", "_tz", "dst", "text", "tz")

    def __init__(self, text: str, tz: str = "UTC", dst: Dst = "standard") -> None:
        check_dst(dst)
        if not isinstance(tz, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(
                f"time zone {tz!r:.60} is not text", hint="use an IANA name such as 'Europe/Berlin'"
            )
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # it may come from JSON
            raise refusal("expression", f"it is text, not {type(text).__name__}")
        self.text, self._readings = _understood(text)
        self.tz = tz
        self.dst: Dst = dst
        rhythm = dst != "quartz" and not self._readings.schedule.fixed_time
        policy: Policy = "rhythm" if rhythm else dst
        self._clock = clock(tz, policy)
        self._tz = self._clock.zone.tz

    def next(self, after: datetime) -> datetime | None:
        """The first fire strictly later than `after`, or None when there is none.

        With `dst="quartz"` it is what Quartz answers: asked in an hour that comes twice, it goes on from the second.
        """
        found = self._clock.first(self._readings, self._clock.goes_on_from(_floor(after) + 1))
        return None if found is None else datetime.fromtimestamp(found, self._tz)

    def prev(self, before: datetime) -> datetime | None:
        """The last fire strictly earlier than `before`, or None when there is none."""
        found = self._clock.last(self._readings, _ceiling(before) - 1)
        return None if found is None else datetime.fromtimestamp(found, self._tz)

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Every fire from `start` up to, not including, `end`."""
        tz, seen = self._tz, datetime.fromtimestamp
        for run in self._clock.between(self._readings, _ceiling(start), _ceiling(end)):
            for instant in run:
                yield seen(instant, tz)

    def planned(self, start: datetime, end: datetime, *, only_odd: bool = False) -> Iterator[Planned]:
        """Every planned instant from `start` up to `end`, skipped ones too; or only the odd ones."""
        plans = self._clock.planned(self._readings, _ceiling(start), _ceiling(end), only_odd=only_odd)
        return map(self._planned, plans)

    def next_ms(self, after_ms: int) -> int | None:
        """The first fire strictly later than `after_ms`, in epoch milliseconds."""
        found = self._clock.first(self._readings, after_ms // _SECOND_MS + 1)
        return None if found is None else found * _SECOND_MS

    def prev_ms(self, before_ms: int) -> int | None:
        """`prev`, in epoch milliseconds."""
        found = self._clock.last(self._readings, -(-before_ms // _SECOND_MS) - 1)
        return None if found is None else found * _SECOND_MS

    def between_ms(self, start_ms: int, end_ms: int) -> Iterator[int]:
        """`between`, in epoch milliseconds."""
        start, end = -(-start_ms // _SECOND_MS), -(-end_ms // _SECOND_MS)
        for run in self._clock.between(self._readings, start, end):
            for instant in run:
                yield instant * _SECOND_MS

    def count_ms(self, start_ms: int, end_ms: int) -> int:
        """How many fires there are from `start_ms` up to before `end_ms`, in epoch milliseconds."""
        start, end = -(-start_ms // _SECOND_MS), -(-end_ms // _SECOND_MS)
        return self._clock.count(self._readings, start, end)

    def odd_ms(self, start_ms: int, end_ms: int, *, only: Only | None = None) -> Iterator[Odd]:
        """What the clocks' changes move, double or take out from `start_ms` up to before `end_ms`; or `only` a part."""
        start, end = -(-start_ms // _SECOND_MS), -(-end_ms // _SECOND_MS)
        return map(as_odd, self._clock.odd(self._readings, start, end, only=only))

    def seconds(self) -> tuple[Clock, Readings]:
        """The readings it names and the plain clock of its zone: every second that shows one of them."""
        return clock(self.tz, "rhythm"), self._readings

    def describe(self, language: Language = "en") -> str:
        """The expression in words, English or Chinese, made from what was understood."""
        return describe(self._readings.schedule, language)

    def _planned(self, plan: Plan) -> Planned:
        at = datetime.fromtimestamp(plan.instant, self._tz)
        nominal = (EPOCH + timedelta(seconds=plan.reading)).replace(tzinfo=None)
        return Planned(at, nominal, plan.mark, plan.skipped)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CronExpression):
            return NotImplemented
        return (self.text, self.tz, self.dst) == (other.text, other.tz, other.dst)

    def __hash__(self) -> int:
        return hash((self.text, self.tz, self.dst))

    def __repr__(self) -> str:
        return f"CronExpression({self.text!r}, tz={self.tz!r}, dst={self.dst!r})"

    def __reduce__(self) -> tuple[type[CronExpression], tuple[str, str, Dst]]:
        return CronExpression, (self.text, self.tz, self.dst)


def check_dst(dst: object) -> Dst:
    """Return `dst` if it is a policy for the days on which clocks change, else refuse it."""
    if dst not in get_args(Dst):
        raise BadInput(
            f"dst {dst!r:.40} is not one of {', '.join(get_args(Dst))}", hint="the default is 'standard'"
        )
    return cast(Dst, dst)


@lru_cache(maxsize=2048)
def _understood(text: str) -> tuple[str, Readings]:
    """The text in one spelling and its readings, which never change and are costly to build."""
    found = Readings(parse(text))
    if found.first(0) == AFTER_ALL:
        raise refusal("expression", "no date from 1970 to 2125 satisfies all fields; it never fires")
    return normalized(text), found


def _floor(moment: datetime) -> int:
    """Whole epoch seconds of an aware datetime, exact where `timestamp()` would round."""
    if not isinstance(moment, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"{moment!r:.60} is not a datetime", hint="give an aware datetime, such as one in UTC")
    if moment.tzinfo is None:
        raise BadInput(
            f"{moment.isoformat()} has no time zone", hint="give an aware datetime, such as one in UTC"
        )
    since = moment - EPOCH
    return since.days * 86_400 + since.seconds


def _ceiling(moment: datetime) -> int:
    return _floor(moment) + (moment.microsecond > 0)
