"""A trigger: when a schedule fires, as plain values that are stored, and as times that are planned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, cast

from ..lease.durations import Duration, duration_ms
from ..lease.instants import rfc3339
from ..lease.tasks import check_priority
from ..scripts.errors import BadInput
from .calendar_interval import CalendarInterval
from .calendars import Calendar, check_name, read_calendar
from .cron import CronExpression, Dst, check_dst
from .cron_clock import clock
from .exclusion import Excluding, Rule
from .iso8601 import Repeat, Step, read_repeat
from .times import SECOND_MS, AtMost, Every, From, Read, Times, Within
from .trigger_values import at_least, instant_ms, read_daily, read_interval
from .wall import WEEKDAYS, wall
from .zones import zone

KINDS = ("cron", "every", "repeat", "at", "calendar_interval", "daily_interval")


class BadTrigger(BadInput):
    """A trigger that breaks rules; `errors` are all of them, as (field, what is wrong)."""

    def __init__(self, name: str, errors: list[tuple[str, BadInput]]) -> None:
        said = "; ".join(f"{field}: {error}" for field, error in errors)
        super().__init__(f"trigger {name!r:.60}: {said}", hint=errors[0][1].hint)
        self.errors = errors


@dataclass(frozen=True, slots=True)
class Trigger:
    """One of these says when: `cron`, an expression; `every`, elapsed time without drift; `repeat`, ISO 8601;
    `at`, once; `calendar_interval` such as "1 month": the same time of day, the same day of the month where there is
    one; `daily_interval` {"every": "45m", "from": "08:00", "to": "17:00", "days": ["MON"]}.

    Readings of a clock are those of `tz`; `dst` says what becomes of them when the clocks change. Nothing fires before
    `start` or after `end`; what falls exactly on `end` fires only if it is cron, as in Quartz. Without a start, `every`
    and `calendar_interval` count from when the trigger was first stored, which is no fire itself; from a start on, the
    start is the first. `calendar` excludes times: a calendar as data, or the name of a stored one. `jitter` delays each
    job by up to so much, the same for each fire of a schedule. `priority` is that of its jobs.

    Values are kept in one spelling, so equal triggers are equal. Raises BadTrigger naming all that is wrong.
    """

    name: str
    cron: str | None = None
    tz: str = "UTC"
    dst: Dst = "standard"
    every: Duration | None = None
    repeat: str | None = None
    at: datetime | str | None = None
    calendar_interval: str | None = None
    daily_interval: Mapping[str, Any] | None = None
    start: datetime | str | None = None
    end: datetime | str | None = None
    calendar: Mapping[str, Any] | str | None = None
    jitter: Duration | None = None
    priority: int | None = None

    def __post_init__(self) -> None:
        errors = list(self._errors())
        if errors:
            raise BadTrigger(str(self.name), errors)

    @classmethod
    def restored(cls, stored: Mapping[str, Any]) -> Trigger:
        """A trigger from what `stored` gave, taken as it is: what cannot be read here is found when it is planned."""
        trigger = object.__new__(cls)
        for name, default in _DEFAULTS:
            object.__setattr__(trigger, name, stored.get(name, default))
        return trigger

    def stored(self) -> dict[str, Any]:
        """The values that are given, in their one spelling; `Trigger(**stored)` is an equal trigger."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def kind(self) -> str:
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @property
    def rule(self) -> str:
        """What makes it fire again, in a line, as each job it makes keeps it."""
        value = getattr(self, self.kind)
        text = value if self.kind == "cron" else f"{self.kind} {value}"
        return text if self.tz == "UTC" else f"{text} {self.tz}"

    @property
    def anchored(self) -> bool:
        """Whether its times depend on when it was first stored."""
        repeat = self._repeat()
        counts = self.every is not None or self.calendar_interval is not None or repeat is not None
        return counts and self._start_ms() is None

    @property
    def jitter_ms(self) -> int:
        return 0 if self.jitter is None else duration_ms(self.jitter)

    def expression(self) -> CronExpression:
        """The expression of a cron trigger."""
        assert self.cron is not None
        return CronExpression(self.cron, tz=self.tz, dst=self.dst)

    @property
    def named_calendar(self) -> str | None:
        """The name of the stored calendar that it stands in, if it does."""
        return self.calendar if isinstance(self.calendar, str) else None

    def times(self, anchor_ms: int, calendars: Mapping[str, Calendar] | None = None) -> Times:
        """When it fires. `anchor_ms` is when it was first stored; `calendars` are the tenant's stored ones by name.

        Raises BadInput for a calendar that is not there.
        """
        times = _MAKE[self.kind](self, anchor_ms)
        start, end = self._start_ms(), self._ms("end")
        if start is not None or end is not None:
            last = {} if end is None else {"end_ms": end + (self.cron is not None)}
            times = Within(times, -(1 << 53) if start is None else start, **last)
        rules = self._rules(calendars or {})
        return Excluding(times, rules) if rules else times

    def _rules(self, calendars: Mapping[str, Calendar]) -> tuple[Rule, ...]:
        if self.calendar is None:
            return ()
        if not isinstance(self.calendar, str):
            return read_calendar(self.calendar, self.tz)
        if self.calendar not in calendars:
            raise BadInput(
                f"trigger {self.name!r} names the calendar {self.calendar!r}, which is not stored",
                hint=f"store it first: tenure calendars put {self.calendar} --weekdays SAT,SUN",
            )
        return calendars[self.calendar].rules(self.tz)

    # -- the kinds --------------------------------------------------------------------------------------------------

    def _cron_times(self, _anchor_ms: int) -> Times:
        return self.expression()

    def _every_times(self, anchor_ms: int) -> Times:
        return self._counted(None, Step(ms=duration_ms(cast(Duration, self.every))), anchor_ms)

    def _calendar_interval_times(self, anchor_ms: int) -> Times:
        unit, n = read_interval(self.calendar_interval)
        return self._counted(None, Step(unit=unit, n=n), anchor_ms)

    def _repeat_times(self, anchor_ms: int) -> Times:
        found = self._repeat()
        if found is None:
            return Every(instant_ms(self.repeat, self.tz), 1, 1)
        return self._counted(found.times, found.step, anchor_ms)

    def _at_times(self, _anchor_ms: int) -> Times:
        return Every(instant_ms(self.at, self.tz), 1, 1)

    def _daily_interval_times(self, _anchor_ms: int) -> Times:
        return read_daily(self.daily_interval, self.tz)

    def _counted(self, many: int | None, step: Step, anchor_ms: int) -> Times:
        """Times counted from the start, which is the first of them, or from the anchor, which is none."""
        start = self._start_ms()
        if step.ms:
            return Every(anchor_ms + step.ms if start is None else start, step.ms, many)
        first_ms = anchor_ms if start is None else start
        reading = wall(self.tz).reading(first_ms // SECOND_MS)
        interval = CalendarInterval(reading, step.unit, step.n)
        read = Read(clock(self.tz, self.dst), interval, first_ms % SECOND_MS)
        times = Within(read, first_ms + 1) if start is None else From(first_ms, read)
        return times if many is None else AtMost(times, first_ms + (start is None), many)

    def _repeat(self) -> Repeat | None:
        return None if self.repeat is None else read_repeat(self.repeat)

    def _start_ms(self) -> int | None:
        repeat = self._repeat()
        if repeat is not None and repeat.start is not None:
            return instant_ms(repeat.start, self.tz)
        return self._ms("start")

    def _ms(self, field: str) -> int | None:
        value = getattr(self, field)
        return None if value is None else instant_ms(value, self.tz)

    # -- rules ------------------------------------------------------------------------------------------------------

    def _errors(self) -> Iterator[tuple[str, BadInput]]:
        """All that is wrong; what is right is brought into its one spelling on the way."""
        for field, check in _CHECKS.items():
            value = getattr(self, field)
            if value is None:
                continue
            try:
                object.__setattr__(self, field, check(self, value))
            except BadInput as exc:
                yield field, exc
                if field == "tz":
                    object.__setattr__(self, field, "UTC")  # it is refused; the others are to be read as well
        kinds = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            yield (
                kinds[1] if kinds else "cron",
                BadInput(
                    f"a trigger has one of {', '.join(KINDS)}; given are {', '.join(kinds) or 'none'}",
                    hint="leave the others out" if kinds else "cron='0 0 2 * * ?'",
                ),
            )

    def _check_start(self, value: object) -> str:
        ms = instant_ms(value, self.tz)
        if self.repeat is not None and isinstance(self.repeat, str) and self.repeat.count("/") > 1:
            raise BadInput("start is given and repeat names one too", hint="leave one out")
        return rfc3339(ms)

    def _check_end(self, value: object) -> str:
        ms = instant_ms(value, self.tz)
        if isinstance(self.start, str) and ms < instant_ms(self.start, self.tz):
            raise BadInput(
                f"end {value!s:.40} is before start {self.start}", hint="swap them, or leave one out"
            )
        return rfc3339(ms)

    def _check_calendar(self, value: object) -> object:
        if isinstance(value, str):
            return check_name(value)
        read_calendar(value, self.tz)
        return value

    def _check_cron(self, value: object) -> str:
        CronExpression(cast(str, value), tz=self.tz)
        return " ".join(cast(str, value).split())

    def _check_repeat(self, value: object) -> str:
        if not isinstance(value, str):
            raise BadInput(f"repeat {value!r:.60} is not text", hint="repeat='R3/PT5M'")
        found = read_repeat(value)
        if found is None:
            return rfc3339(instant_ms(value, self.tz))
        if found.step.ms:
            at_least(found.step.ms, value)
        if found.start is not None:
            instant_ms(found.start, self.tz)
        return value


_DEFAULTS = tuple((one.name, one.default) for one in fields(Trigger))


def names_of(triggers: Iterable[Trigger]) -> list[str]:
    """The names of the stored calendars that triggers stand in."""
    return [one.named_calendar for one in triggers if one.named_calendar is not None]


def _check_name(_: Trigger, value: object) -> object:
    return value  # the schedule checks it, with the names of its other triggers


def _check_tz(_: Trigger, value: object) -> object:
    if not isinstance(value, str):
        raise BadInput(
            f"time zone {value!r:.60} is not text", hint="use an IANA name such as 'Europe/Berlin'"
        )
    zone(value)
    return value


def _check_every(_: Trigger, value: Any) -> str:
    return f"{at_least(duration_ms(value, what='every'), value)}ms"


def _check_interval(_: Trigger, value: object) -> str:
    unit, n = read_interval(value)
    return f"{n} {unit}"


def _check_daily(trigger: Trigger, value: object) -> dict[str, Any]:
    found = read_daily(value, trigger.tz)
    given = cast("Mapping[str, Any]", value)
    days = [WEEKDAYS[day] for day in sorted(found.days)]
    return {"every": f"{found.interval_ms}ms", "from": given["from"], "to": given["to"], "days": days}


def _check_jitter(_: Trigger, value: Any) -> str | None:
    ms = duration_ms(value, what="jitter")
    return f"{ms}ms" if ms else None


_CHECKS: dict[str, Callable[[Trigger, Any], object]] = {
    "tz": _check_tz,
    "dst": lambda _, value: check_dst(value),
    "cron": Trigger._check_cron,  # pyright: ignore[reportPrivateUsage]
    "every": _check_every,
    "repeat": Trigger._check_repeat,  # pyright: ignore[reportPrivateUsage]
    "at": lambda trigger, value: rfc3339(instant_ms(value, trigger.tz)),
    "calendar_interval": _check_interval,
    "daily_interval": _check_daily,
    "start": Trigger._check_start,  # pyright: ignore[reportPrivateUsage]
    "end": Trigger._check_end,  # pyright: ignore[reportPrivateUsage]
    "calendar": Trigger._check_calendar,  # pyright: ignore[reportPrivateUsage]
    "jitter": _check_jitter,
    "priority": lambda _, value: check_priority(value),
}

_MAKE: dict[str, Callable[[Trigger, int], Times]] = {
    "cron": Trigger._cron_times,  # pyright: ignore[reportPrivateUsage]
    "every": Trigger._every_times,  # pyright: ignore[reportPrivateUsage]
    "repeat": Trigger._repeat_times,  # pyright: ignore[reportPrivateUsage]
    "at": Trigger._at_times,  # pyright: ignore[reportPrivateUsage]
    "calendar_interval": Trigger._calendar_interval_times,  # pyright: ignore[reportPrivateUsage]
    "daily_interval": Trigger._daily_interval_times,  # pyright: ignore[reportPrivateUsage]
}
