"""The file that the demo imports, read once before anything is started: what cannot be imported is refused here."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from ..scripts.errors import BadInput, MissingExtra, install

LONGEST_LINE = 4 << 20
UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def zone_table(folder: Path) -> Path:
    """A copy, without its comments, of the time zone table that the tzdata package ships. Raises MissingExtra."""
    try:
        table = files("tzdata").joinpath("zoneinfo", "zone.tab").read_text(encoding="utf-8")
    except ModuleNotFoundError:
        raise MissingExtra(
            "the demo imports the zone table of the package tzdata, which is not installed",
            hint=f"{install('demo')}; or import a file of yours: tenure demo --csv rows.csv",
        ) from None
    copy = folder / "zone.tab"
    rows = [line for line in table.splitlines(keepends=True) if not line.startswith("#")]
    copy.write_text("".join(rows), encoding="utf-8")
    return copy


def named(path: Path) -> Path:
    """Where the user's file is. Raises BadInput if there is none."""
    where = path.absolute()
    if not where.is_file():
        raise BadInput(
            f"{where} {'is not a file' if where.exists() else 'does not exist'}",
            hint=f"name a CSV file: tenure demo --csv rows.csv (a relative path begins in {Path.cwd()})",
        )
    return where


def delimiter(path: Path) -> str:
    return "\t" if path.suffix in (".tab", ".tsv") else ","


def check(path: Path) -> int:
    """Read the whole file and answer how many rows it has; blank lines are none.

    Raises BadInput naming the line and the rule it breaks.
    """
    lines = csv.reader(_lines(path), delimiter=delimiter(path), strict=True)
    rows, line = 0, 1
    try:
        for row in lines:
            rows += bool(row)
            line = lines.line_num + 1
    except csv.Error as exc:
        rule, hint = _rule(str(exc))
        raise BadInput(f"{path}, the row that begins in line {line:,}: {rule}", hint=hint) from None
    except OSError as exc:
        raise BadInput(f"{path} cannot be read: {exc.strerror}", hint="name a file you may read") from None
    return rows


def _lines(path: Path) -> Iterator[str]:
    """The lines as text, whatever the length of the file. Raises BadInput."""
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), start=1):
            place = f"{path}, line {number:,}"
            if number == 1 and line.startswith(UTF_16):
                raise BadInput(f"{place}: it is UTF-16; expected UTF-8", hint=_convert("UTF-16", path))
            if b"\0" in line:
                raise BadInput(
                    f"{place}: it has a NUL byte, as other encodings and binary files do; expected text in UTF-8",
                    hint="save it as a CSV in UTF-8",
                )
            if len(line) > LONGEST_LINE:
                raise BadInput(
                    f"{place}: it is longer than {LONGEST_LINE:,} bytes", hint="end each row with LF"
                )
            try:
                text = line.decode()
            except UnicodeDecodeError as exc:
                raise BadInput(
                    f"{place}: byte 0x{line[exc.start]:02x} at position {exc.start + 1} is not UTF-8",
                    hint=_convert("LATIN1", path) + ", if it is Latin-1",
                ) from None
            yield text.removeprefix("\ufeff") if number == 1 else text


def _convert(encoding: str, path: Path) -> str:
    return f"iconv -f {encoding} -t UTF-8 {path.name} > utf8-{path.name}"


def _rule(said: str) -> tuple[str, str]:
    """What the csv module said, as the rule that was broken and what to do."""
    if "field limit" in said:
        limit = f"{csv.field_size_limit():,}"
        return (
            f"it has a field of more than {limit} characters",
            "shorten it, or close its quote if it should have ended",
        )
    if "end of data" in said:
        return "it has a quote that is never closed", "close it, or write a quote inside quotes as two"
    if "new-line" in said:
        return (
            "it has a CR without LF; expected lines that end with LF or CRLF",
            "tr '\\r' '\\n' < old.csv > new.csv",
        )
    return f"{said}", "write a quote inside quotes as two"
