"""Random expressions against a walk over every minute, in zones and windows where clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from tenure.scheduler.cron import BadCron, CronExpression

from .cron_brute import Walk, changes, random_meaning
from .soak.size import samples

CASES = samples(20_000, 1_000_000)
SEED = 20260501
PER_WINDOW = 80
PARTS = 8

ZONES = {
    "Europe/Berlin": range(2019, 2031),
    "America/New_York": range(2019, 2031),
    "America/Sao_Paulo": range(2014, 2019),  # gaps at midnight
    "Asia/Beirut": range(2019, 2031),
    "America/Havana": range(2019, 2031),
    "Australia/Lord_Howe": range(2019, 2031),  # half an hour
    "Africa/Casablanca": range(2019, 2031),  # back and forth around Ramadan
    "Antarctica/Troll": range(2019, 2031),  # two hours
    "America/St_Johns": range(1990, 2008),  # one minute past midnight
    "Pacific/Apia": range(2009, 2013),  # a day left out
    "Asia/Pyongyang": range(2014, 2019),
    "Pacific/Chatham": range(2019, 2031),
    "Asia/Kolkata": range(2019, 2020),
    "UTC": range(2019, 2020),
}


@pytest.mark.parametrize("part", range(PARTS))
def test_random_expressions_equal_a_walk_over_every_minute(part: int) -> None:
    random = Random(SEED + part)
    for _ in range(-(-CASES // PARTS // PER_WINDOW)):
        tz = random.choice(list(ZONES))
        margin = timedelta(hours=26 if tz == "Pacific/Apia" else 3)  # more than any change of the zone
        walk = Walk(tz, *window(random, changes(tz, ZONES[tz])), unit=60, margin=margin)
        for _ in range(PER_WINDOW):
            check(random, walk, tz)


@pytest.mark.parametrize("part", range(4))
def test_random_seconds_equal_a_walk_over_every_second(part: int) -> None:
    random = Random(SEED - 1 - part)
    for tz in ("Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe"):
        at = random.choice(changes(tz, ZONES[tz]))
        hours = timedelta(hours=2)
        walk = Walk(tz, at - hours, at + hours, unit=1, margin=hours)
        for _ in range(12):
            check(random, walk, tz, seconds=True)


def window(random: Random, moments: list[datetime]) -> tuple[datetime, datetime]:
    """A day: four times of five around a clock change."""
    if moments and random.random() < 0.8:
        start = random.choice(moments) - timedelta(minutes=random.randint(0, 1500))
    else:
        start = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(minutes=random.randint(0, 5_000_000))
    return start, start + timedelta(hours=25)


def check(random: Random, walk: Walk, tz: str, *, seconds: bool = False) -> None:
    meaning = random_meaning(random, quartz=seconds or random.random() < 0.5, seconds=seconds)
    dst = random.choice(("standard", "standard", "skip", "quartz"))
    case = f"{meaning.text!r} in {tz}, {dst}, {walk.start}"
    try:
        cron = CronExpression(meaning.text, tz, dst)
    except BadCron:  # such as 31 February
        assert walk.plan(meaning, dst) == ([], []), case
        return

    fires, skipped = walk.plan(meaning, dst)
    plan = list(cron.planned(walk.start, walk.end))

    assert [at.astimezone(UTC) for at in cron.between(walk.start, walk.end)] == fires, case
    assert [it.at.astimezone(UTC) for it in plan if not it.skipped] == fires, case
    assert [it.at.astimezone(UTC) for it in plan if it.skipped] == skipped, case
    assert [it for it in plan if it.mark] == list(cron.planned(walk.start, walk.end, only_odd=True)), case
    at = walk.start + random.random() * (walk.end - walk.start)
    at_ms = int(at.timestamp() * 1000)
    due_ms = cron.next_ms(at_ms)
    due = (round(fire.timestamp() * 1000) for fire in fires)
    assert next((fire for fire in due if fire > at_ms), due_ms) == due_ms, case
    if dst == "quartz":
        return  # from within the first pass its `next` is not the next of the plan; the vectors check it
    later, earlier = in_utc(cron.next(at)), in_utc(cron.prev(at))
    assert next((fire for fire in fires if fire > at), later) == later, case
    assert next((fire for fire in reversed(fires) if fire < at), earlier) == earlier, case
    if later:
        back = in_utc(cron.prev(later))
        assert back is None or back <= at < later, case


def in_utc(moment: datetime | None) -> datetime | None:
    return moment and moment.astimezone(UTC)
