"""A parsed cron expression in words, made from what was understood and not from the text.

Who reads "Friday" sees which day the 6 meant.
"""

from __future__ import annotations

from typing import Literal, get_args

from ..scripts.errors import BadInput
from . import cron_words_en, cron_words_zh
from .cron_fields import Schedule

Language = Literal["en", "zh"]

_MOST_CLOCK_TIMES = 6


def describe(schedule: Schedule, language: Language) -> str:
    """The whole schedule as one phrase."""
    match language:
        case "en":
            return cron_words_en.phrase(schedule, clock_times(schedule))
        case "zh":
            return cron_words_zh.phrase(schedule, clock_times(schedule))
        case _:
            raise BadInput(
                f"language {language!r:.40} is not one of {', '.join(get_args(Language))}",
                hint="the default is 'en'",
            )


def clock_times(schedule: Schedule) -> list[str]:
    """The times of day, when they are written as a few single values; else nothing."""
    hours, minutes, seconds = schedule.hour, schedule.minute, schedule.second
    if not (hours.listed and minutes.listed and seconds.listed):
        return []
    times = [
        f"{hour:02}:{minute:02}" + (f":{second:02}" if seconds.values != (0,) else "")
        for hour in hours.values
        for minute in minutes.values
        for second in seconds.values
    ]
    return times if len(times) <= _MOST_CLOCK_TIMES else []
