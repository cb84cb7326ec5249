"""Cron text of rq-scheduler and of `rq cron` fires here when it fires there: their own engines are the oracle."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from croniter import croniter

from tenure.scheduler.rq_cron_text import CronText, of_rq_cron, of_rq_scheduler
from tenure.scheduler.trigger import Trigger
from tenure.scripts.errors import BadInput

crontab = pytest.importorskip("crontab")

START = datetime(2026, 2, 25, 22, 58, 57)
FIRES = 40


def ours(found: CronText, start: datetime) -> list[datetime]:
    times = Trigger("default", cron=found.cron, calendar=found.calendar).times(0)
    at: int | None = round(start.replace(tzinfo=UTC).timestamp() * 1000)
    fires: list[datetime] = []
    while len(fires) < FIRES and at is not None and (at := times.next_ms(at)) is not None:
        fires.append(datetime.fromtimestamp(at / 1000, UTC).replace(tzinfo=None))
    return [one for one in fires if one.year < 2099]


def theirs(text: str, start: datetime) -> list[datetime]:
    """As rq-scheduler asks for them, one after the other."""
    tab, fires, at = crontab.CronTab(text), [], start
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        while len(fires) < FIRES and (at := tab.next(now=at, return_datetime=True)) is not None:
            fires.append(at)
    return [one for one in fires if one.year < 2099]


def of_croniter(text: str, start: datetime) -> list[datetime]:
    walk = croniter(text, start)
    return [walk.get_next(datetime) for _ in range(FIRES)]


PLAIN = [
    "* * * * *",
    "*/5 * * * *",
    "5/20 * * * *",
    "0 3 * * *",
    "0 3 * * mon-fri",
    "0 3 * * sat-sun",
    "0 3 * * 7",
    "0 3 * * 0,3",
    "0 3 * * */2",
    "0 3 * * 1-7/3",
    "0 3 * * 5/1",
    "0 0 1,15 * ?",
    "0 0 ? * tue",
    "0 0 L * *",
    "0 0 l,15 * *",
    "0 12 * * L5",
    "0 12 * * l0",
    "0 12 * * L7",
    "30 4 */9 jan,jul *",
    "0 0 13 * 5",
    "0 0 1-7 * mon",
    "0 0 */2 * 1-5",
    "0 0 5/10 * sat-sun",
    "*,5 * * * *",
    "0 0 1 1 * 2027",
    "15 10 * * 1-5 2026-2028",
    "15 10 ? * L3 2026-2028/2",
    "0 0 13 * fri 2026-2040",
    "*/7 * * * * * *",
    "30 */20 8-18/2 * * mon,wed *",
    "0 0 0 29 2 * *",
    "5 0 0 L * * 2026-2050",
    "@daily",
    "@weekly",
    "@monthly",
    "@hourly",
    "@yearly",
]


@pytest.mark.parametrize("text", PLAIN)
def test_it_fires_here_when_rq_scheduler_fires_it(text: str) -> None:
    expected = theirs(text, START)

    assert expected
    assert ours(of_rq_scheduler(text), START) == expected


def test_whatever_is_drawn_fires_alike() -> None:
    draw = random.Random(7)
    tried = 0
    while tried < 300:
        text = drawn(draw)
        try:
            expected = theirs(text, START)
        except ValueError:
            continue  # it is none there
        if not expected:
            continue
        tried += 1
        assert ours(of_rq_scheduler(text), START) == expected, text


def drawn(draw: random.Random) -> str:
    def item(low: int, high: int) -> str:
        first, last = sorted(draw.sample(range(low, high + 1), 2))
        step = draw.randint(1, max(1, (last - first) // 2))
        return draw.choice(
            [str(first), f"{first}-{last}", f"{first}-{last}/{step}", f"*/{step}", f"{first}/{step}"]
        )

    def part(low: int, high: int, *others: str) -> str:
        return draw.choice(["*", ",".join(item(low, high) for _ in range(draw.randint(1, 3))), *others])

    five = [
        part(0, 59),
        part(0, 23),
        part(1, 28, "L", "?", "*", "*"),
        part(1, 12, "jan", "mar-oct", "*"),
        part(0, 6, "mon-fri", "sat-sun", "L5", "?", "*", "*", "7", "wed,fri"),
    ]
    if five[4] == "L5":
        five[2] = "*"  # both together have no counterpart
    year = draw.choice([[], [], ["2026-2060"], ["*"]])
    return " ".join([*([part(0, 59)] if year and draw.random() < 0.5 else []), *five, *year])


@pytest.mark.parametrize(
    "text", ["*/5 * * * *", "0 3 1 * mon", "0 3 * * 7", "0 0 l * *", "0 12 * * 5#2", "@daily"]
)
def test_five_fields_of_rq_cron_are_read_as_they_are(text: str) -> None:
    assert ours(of_rq_cron(text), START) == of_croniter(text, START)


@pytest.mark.parametrize("text", ["* * * * * */20", "30 4 * * mon-fri 15", "0 0 1 * * 0,30", "0 0 * * 6 5"])
def test_seconds_stand_last_in_rq_cron(text: str) -> None:
    assert ours(of_rq_cron(text), START) == of_croniter(text, START)


@pytest.mark.parametrize(
    ("read", "text", "says"),
    [
        (of_rq_scheduler, "0 0 z3 * *", "'z3' in the field day-of-month has no counterpart"),
        (of_rq_scheduler, "0 0 * * L1-3", "'l1-3' in the field day-of-week has no counterpart"),
        (of_rq_scheduler, "0 0 1-7 * L5", "a last weekday on certain days"),
        (of_rq_scheduler, "0 0 * *", "4 fields, of 5 to 7"),
        (of_rq_scheduler, "61 * * * *", "minute: 61 is above 59"),
        (of_rq_cron, "0 0 1 * mon 30", "both day fields"),
        (of_rq_cron, "0 0 1 * * 0 2027", "has a year"),
        (of_rq_cron, "0 0 31 2 *", "cannot be read here"),
    ],
)
def test_what_has_no_counterpart_is_refused_in_words(
    read: Callable[[str], CronText], text: str, says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        read(text)
