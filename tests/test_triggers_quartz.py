"""The answers of a real Quartz 2.3.2 for triggers of every kind, recorded row by row in data/quartz-triggers.tsv.gz.

Where Tenure differs on purpose, the row says by which rule; every other row is answered as Quartz answers it.
"""

from __future__ import annotations

import gzip
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest

from tenure.scheduler.trigger import Trigger
from tenure.scheduler.wall import WEEKDAYS

VECTORS = Path(__file__).parent / "data" / "quartz-triggers.tsv.gz"
SECONDS = {"second": 1, "minute": 60, "hour": 3600}


class Row(NamedTuple):
    kind: str
    tz: str
    start: str
    end: str
    params: str
    expected: str

    @property
    def options(self) -> dict[str, str]:
        return dict(one.split("=", 1) for one in self.params.split(";"))


def rows() -> list[Row]:
    with gzip.open(VECTORS, "rt", encoding="utf-8") as lines:
        return [Row(*line.rstrip("\n").split("\t")) for line in lines][1:]


ROWS = rows()


def calendar(text: str) -> dict[str, Any]:
    """A calendar of Quartz as one of ours."""
    kind, _, rest = text.partition("@")
    match kind:
        case "daily":
            first, last, *inverted = rest.split("@")
            return {"window": {"from": first, "to": last, "outside": bool(inverted)}}
        case "weekly":
            return {"weekdays": [WEEKDAYS[int(day) - 1] for day in rest.split(".")]}
        case "monthly":
            return {"cron": f"* * * {rest.replace('.', ',')} * ?"}
        case "annual":
            dates = (date.split("-") for date in rest.split("."))
            return {"cron": [f"* * * {day} {month} ?" for month, day in dates]}
        case "holiday":
            dates = (map(int, date.split("-")) for date in rest.split("."))
            return {"dates": [f"{year:04}-{month:02}-{day:02}" for year, month, day in dates]}
    return {"cron": rest}


def trigger(row: Row) -> Trigger:
    given = row.options
    common: dict[str, Any] = {"tz": row.tz, "start": row.start, "end": None if row.end == "-" else row.end}
    if "cal" in given:
        common["calendar"] = calendar(given["cal"])
    match row.kind:
        case "cron":
            return Trigger("t", cron=given["expr"], dst="quartz", **common)
        case "simple":
            ms = int(given["interval"]) or 1000
            if given["repeat"] == "-1":
                return Trigger("t", every=f"{ms}ms", **common)
            return Trigger("t", repeat=f"R{int(given['repeat']) + 1}/PT{ms / 1000:.3f}S", **common)
    unit, n = given["unit"].lower(), int(given["n"])
    if row.kind == "daily":
        days = [WEEKDAYS[int(day) - 1] for day in given["days"].split(".")]
        every = f"{n * SECONDS[unit]}s"
        window = {"every": every, "from": given["from"], "to": given["to"], "days": days}
        return Trigger("t", daily_interval=window, **common)
    if unit in SECONDS:
        return Trigger("t", every=f"{n * SECONDS[unit]}s", **common)
    dst: Any = "skip" if given["skip"] == "true" else "standard"
    return Trigger("t", calendar_interval=f"{n} {unit}", dst=dst, **common)


@cache
def fires(row: Row) -> str:
    """The first eight fires, written as the file writes them."""
    times = trigger(row).times(0)
    repeat = int(row.options["repeat"]) if row.kind == "daily" else -1
    found: list[str] = []
    at: int | None = 0
    while len(found) < (8 if repeat < 0 else min(8, repeat + 1)) and (at := times.next_ms(at)) is not None:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)
        found.append(
            moment.isoformat(timespec="milliseconds").replace(".000+00:00", "Z").replace("+00:00", "Z")
        )
    return ",".join(found) or "NONE"


def difference(row: Row) -> str | None:
    """The rule by which Tenure may answer otherwise."""
    zone = ZoneInfo(row.tz)
    start = datetime.fromisoformat(row.start)
    if row.kind == "calint":
        if row.options["unit"] == "MONTH" and start.astimezone(zone).day > 28:
            return "the day of the month comes back after a short month"
        if changes(zone, row):
            return "a doubled reading is its first pass"
    if row.kind == "daily":
        if row.end != "-":
            return "nothing fires after the end"
        if start.microsecond:
            return "nothing fires before the start"
        if changes(zone, row):
            return "a clock change moves no later day, and a doubled reading is its first pass"
    return None


def changes(zone: ZoneInfo, row: Row) -> bool:
    """Whether the clocks change from a day before the start to a day after the last fire."""
    last = row.start if row.expected == "NONE" else row.expected.split(",")[-1]
    at, end = (
        datetime.fromisoformat(row.start) - timedelta(days=1),
        datetime.fromisoformat(last) + timedelta(days=1),
    )
    offsets = set[timedelta | None]()
    while at <= end:
        offsets.add(at.astimezone(zone).utcoffset())
        at += timedelta(hours=6)
    return len(offsets) > 1


@pytest.mark.parametrize("kind", ["simple", "calint", "daily", "cron"])
def test_every_row_without_a_deliberate_difference_is_answered_as_quartz_answers_it(kind: str) -> None:
    wrong = [row for row in ROWS if row.kind == kind and fires(row) != row.expected and not difference(row)]

    assert wrong == []


def test_the_deliberate_differences_are_these_and_few() -> None:
    found = Counter(difference(row) for row in ROWS if fires(row) != row.expected)

    assert found == {
        "the day of the month comes back after a short month": 2,
        "a doubled reading is its first pass": 1,
        "nothing fires after the end": 9,
        "nothing fires before the start": 6,
        "a clock change moves no later day, and a doubled reading is its first pass": 6,
    }
