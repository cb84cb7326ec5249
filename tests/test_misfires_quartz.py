"""What Quartz makes of a late trigger, as recorded: Tenure answers alike, but for rules that TRIGGERS.md names."""

from __future__ import annotations

import gzip
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tenure.scheduler.misfire import MOST, THRESHOLD_MS, read_misfire
from tenure.scheduler.plan import plan
from tenure.scheduler.times import Times
from tenure.scheduler.trigger import Trigger

VECTORS = Path(__file__).parent / "data" / "quartz-misfire.tsv.gz"
START = 1_735_689_600_000  # 2025-01-01, a Wednesday
SIMPLE = (
    "SMART_POLICY",
    "FIRE_NOW",
    "RESCHEDULE_NOW_WITH_EXISTING_REPEAT_COUNT",
    "RESCHEDULE_NOW_WITH_REMAINING_REPEAT_COUNT",
    "RESCHEDULE_NEXT_WITH_REMAINING_COUNT",
    "RESCHEDULE_NEXT_WITH_EXISTING_COUNT",
)
OTHERS = ("SMART_POLICY", "FIRE_ONCE_NOW", "DO_NOTHING")


class Row(NamedTuple):
    kind: str
    params: str
    instruction: str
    times_triggered: str
    late_ms: str
    next: str
    repeat_count: str
    times_triggered_after: str
    start: str

    @property
    def options(self) -> dict[str, str]:
        return dict(one.split("=", 1) for one in self.params.split(";"))

    @property
    def policy(self) -> str:
        """The instruction by the name that Quartz has for it."""
        number = int(self.instruction)
        names = SIMPLE if self.kind == "simple" else OTHERS
        return "IGNORE_MISFIRE_POLICY" if number < 0 else names[number]

    @property
    def answer(self) -> tuple[str, int | None]:
        """What fires next, and of a simple trigger that fires now how many fires there are from now on."""
        counts = self.kind == "simple" and self.next == "NOW" and int(self.repeat_count) >= 0
        return self.next, int(self.repeat_count) + 1 if counts else None


class Late(NamedTuple):
    """A row as Tenure has it: the trigger's times, its pending instant, and now."""

    times: Times
    planned: int
    now: int

    @property
    def newest(self) -> int:
        return self.times.prev_ms(self.now + 1) or 0

    @property
    def missed(self) -> int:
        return self.times.count_ms(self.planned, self.now + 1)


def rows() -> list[Row]:
    with gzip.open(VECTORS, "rt", encoding="utf-8") as lines:
        return [Row(*line.rstrip("\n").split("\t")) for line in lines][1:]


ROWS = rows()


def late(row: Row) -> Late:
    times = trigger(row).times(0)
    planned = times.next_ms(START - 1)
    for _ in range(int(row.times_triggered)):
        assert planned is not None
        planned = times.next_ms(planned)
    assert planned is not None
    return Late(times, planned, planned + int(row.late_ms))


def trigger(row: Row) -> Trigger:
    given, start = row.options, datetime.fromtimestamp(START / 1000, UTC)
    match row.kind:
        case "cron":
            return Trigger("t", cron=given["expr"], dst="quartz")
        case "simple":
            ms = int(given["interval"])
            if given["repeat"] == "-1":
                return Trigger("t", every=f"{ms}ms", start=start)
            return Trigger("t", repeat=f"R{int(given['repeat']) + 1}/PT{ms / 1000:.3f}S", start=start)
        case "daily":
            every = f"{given['n']}{given['unit'][0].lower()}"
            return Trigger(
                "t", daily_interval={"every": every, "from": "00:00", "to": "23:59:59"}, start=start
            )
    unit = given["unit"].lower()
    if unit in ("second", "minute", "hour"):
        return Trigger("t", every=f"{given['n']}{unit[0]}", start=start)
    return Trigger("t", calendar_interval=f"{given['n']} {unit}", start=start)


def answer(row: Row) -> tuple[str, int | None]:
    """What Tenure does, in the words of the file."""
    case = late(row)
    done = plan(case.times, case.planned, case.now, read_misfire(row.policy), batch=MOST)
    if done.fires and len(done.fires) == case.missed and row.policy == "IGNORE_MISFIRE_POLICY":
        return "SAME", None
    if done.fires:
        left = case.times.count_ms(case.now + 1, case.now + (1 << 40))
        counts = row.kind == "simple" and row.options["repeat"] != "-1"
        return "NOW", left + 1 if counts else None
    if done.following is None:
        return "NONE", None
    return (f"+{done.following - START}" if row.kind == "simple" else "NEXT"), None


def difference(row: Row) -> str | None:
    """The rule by which Tenure may answer otherwise."""
    case = late(row)
    policy = read_misfire(row.policy).policy
    if policy == "skip" and case.now - case.newest <= THRESHOLD_MS:
        return "what is a minute late at most has not misfired"
    if row.kind == "simple" and row.policy == "SMART_POLICY" and row.options["repeat"] == "-1":
        return "the default is one policy for all triggers"
    if row.kind == "simple" and policy == "fire_once" and row.options["repeat"] not in ("-1", "0"):
        return "what was missed is not added at the end"
    return None


def test_every_row_without_a_deliberate_difference_is_answered_as_quartz_answers_it() -> None:
    wrong = [(row, answer(row)) for row in ROWS if answer(row) != row.answer and not difference(row)]

    assert wrong == []


def test_the_deliberate_differences_are_these_and_few() -> None:
    found = Counter(difference(row) for row in ROWS if answer(row) != row.answer)

    assert found == {
        "what is a minute late at most has not misfired": 19,
        "what was missed is not added at the end": 21,
        "the default is one policy for all triggers": 1,
    }
    assert len(ROWS) == 150
