"""The answers of a real Quartz 2.3.2, recorded row by row in data/quartz-cron.tsv.gz."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from tenure.scheduler.cron import BadCron, CronExpression

VECTORS = Path(__file__).parent / "data" / "quartz-cron.tsv.gz"


class Row(NamedTuple):
    text: str
    tz: str
    start: str
    expected: str
    tags: frozenset[str]
    plain: str


def rows() -> list[Row]:
    with gzip.open(VECTORS, "rt", encoding="utf-8") as lines:
        cells = [line.rstrip("\n").split("\t") for line in lines][1:]
    return [Row(*row[:4], frozenset(row[4].split(",")), row[5]) for row in cells]


ROWS = rows()
VALID = [row for row in ROWS if row.expected != "ERR" and not row.tags & {"quirk", "lenient"}]
QUIRK = [row for row in ROWS if "quirk" in row.tags]
# Five fields and @names are no Quartz; here they are crontab.
REFUSED = [r for r in ROWS if r.expected == "ERR" and len(r.text.split()) != 5 and not r.text.startswith("@")]


def fires(row: Row) -> str:
    """The next five fires, written as the file writes them."""
    try:
        cron = CronExpression(row.text, row.tz, "quartz")
    except BadCron as refusal:
        return "NONE" if "never fires" in refusal.rule else str(refusal)
    at, found = datetime.fromisoformat(row.start), list[str]()
    while len(found) < 5 and (later := cron.next(at)):
        at = later
        found.append(at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    return ",".join(found) or "NONE"


def test_every_valid_row_gives_the_five_fires_of_quartz() -> None:
    wrong = [(row, fires(row)) for row in VALID if fires(row) != row.expected]

    assert wrong == []
    assert len(VALID) == 2908


def test_where_quartz_breaks_its_own_rules_the_plain_rules_answer() -> None:
    wrong = [(row, fires(row)) for row in QUIRK if fires(row) != row.plain]

    assert wrong == []
    assert len(QUIRK) == 39


def test_what_quartz_takes_without_a_meaning_is_refused_or_answered_alike() -> None:
    found = [(fires(row), row) for row in ROWS if "lenient" in row.tags]

    refused = [said for said, row in found if said != row.expected]
    assert all(": " in said and "Z" not in said.partition(":")[0] for said in refused), "it names a field"
    assert (len(refused), len(found)) == (44, 53)


def test_what_quartz_refuses_is_refused() -> None:
    accepted = []
    for row in REFUSED:
        try:
            CronExpression(row.text, row.tz, "quartz")
        except BadCron:
            continue
        accepted.append(row.text)

    assert accepted == []
    assert len(REFUSED) == 433


@pytest.mark.parametrize(
    "text",
    [
        "0 0 0 0W * ?",
        "L 0 0 * * ?",
        "0 L 0 * * ?",
        "0 0 L-1 * * ?",
        "0 0 0 * L ?",
        "0 0 0 * * ? L",
        ", 0 0 * * ?",
        "0 0 0 * * ? ,",
        "0 0 0 ? * 0#1",
        "0 0 0 ? * 8#1",
    ],
)
def test_what_hangs_or_crashes_quartz_is_refused(text: str) -> None:
    with pytest.raises(BadCron):
        CronExpression(text, dst="quartz")


@pytest.mark.parametrize("text", ["0 0 0 L-28W * ?", "0 0 0 L-30W * ?"])
def test_what_makes_quartz_search_for_ever_is_answered(text: str) -> None:
    cron = CronExpression(text, dst="quartz")

    assert cron.next(datetime(2027, 1, 31, tzinfo=UTC)) is not None


def test_the_last_weekday_of_samoas_shortened_month_is_answered() -> None:
    cron = CronExpression("0 0 9 LW * ?", "Pacific/Apia", "quartz")

    found = cron.next(datetime(2011, 12, 15, tzinfo=UTC))

    assert found is not None
    assert found.isoformat() == "2012-01-31T09:00:00+14:00"  # Friday the 30th did not exist


def test_a_start_within_a_second_is_cut_off_after_adding_one() -> None:
    noon = CronExpression("0 0 12 * * ?", dst="quartz")

    found = noon.next(datetime(2026, 5, 1, 11, 59, 59, 500_000, tzinfo=UTC))

    assert found == datetime(2026, 5, 1, 12, tzinfo=UTC)
