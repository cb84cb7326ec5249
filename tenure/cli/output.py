"""What commands print: tables for people, JSON for programs. Text that came from elsewhere is made harmless first."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime

import click

from ..api.plain import escaped
from ..lease.durations import span

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_].*?(?:\x07|\x1b\\|$)|[@-Z\\-_])", re.DOTALL)
_FEWEST = 6


def clean(text: str) -> str:
    """`text` without what could steer a terminal: ANSI sequences go, other controls are written out, newlines stay."""
    return escaped(_ANSI.sub("", text), lines=True).replace("\t", " ")


def clean_line(text: str) -> str:
    """`text` as one harmless line."""
    return " ".join(clean(text).split())


def say(text: str) -> None:
    """Talk: goes to stderr, so that stdout holds only data."""
    click.echo(clean(text), err=True)


def print_json(value: object) -> None:
    """In ASCII, so that no text in it can steer a terminal and no terminal's encoding can refuse it."""
    click.echo(json.dumps(value, indent=2))


def print_table(heads: Sequence[str], rows: Iterable[Sequence[str]], stretch: int = -1) -> None:
    """Print columns. On a terminal too narrow for all of it, the column `stretch` is cut, and then the others."""
    cells = [[clean_line(cell) for cell in row] for row in rows]
    table = [list(heads), *cells]
    widths = [max(map(_width, column)) for column in zip(*table, strict=True)]
    if sys.stdout.isatty():
        widths = _fit(widths, shutil.get_terminal_size().columns, stretch % len(heads))
    for at, row in enumerate(table):
        line = "  ".join(_padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        click.echo(click.style(line, bold=True) if at == 0 and colors() else line)


def print_fields(fields: Iterable[tuple[str, str | int | None]]) -> None:
    """Print names and values, one a line; what is None is left out."""
    shown = [(name, clean_line(str(value))) for name, value in fields if value is not None]
    width = max(len(name) for name, _ in shown)
    for name, value in shown:
        click.echo(f"{name:<{width}}  {value}".rstrip())


def local_time(ms: int | None) -> str:
    """An instant on this machine's clock, with its offset: `2026-05-01 02:00:00+08`."""
    return clock_time(datetime.fromtimestamp(ms / 1000).astimezone()) if ms is not None else "-"


def clock_time(moment: datetime) -> str:
    text = f"{moment:%Y-%m-%d %H:%M:%S%z}"
    return text.removesuffix("00") if text[-5] in "+-" else text


def ago(ms: int, now: int) -> str:
    """How long before `now` an instant was."""
    return f"{span(max(0, now - ms))} ago"


def lasted(ms: int) -> str:
    """How long something took: `35ms`, or as `span` from a second on."""
    return f"{ms}ms" if ms < 1000 else span(ms)


def colors() -> bool:
    """Whether stdout is a terminal that may be given colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def cut(text: str, width: int) -> str:
    """`text` in at most `width` columns of a terminal."""
    if _width(text) <= width:
        return text
    kept, used = "", 0
    for char in text:
        used += _width(char)
        if used > width - 1:
            break
        kept += char
    return kept + "…"


def _fit(widths: list[int], columns: int, stretch: int) -> list[int]:
    order = [stretch, *(at for at in reversed(range(len(widths))) if at != stretch)]
    fitted = list(widths)
    for at in order:
        over = sum(fitted) + 2 * (len(fitted) - 1) - columns
        if over > 0:
            fitted[at] = min(fitted[at], max(_FEWEST, fitted[at] - over))
    return fitted


def _padded(text: str, width: int) -> str:
    shown = cut(text, width)
    return shown + " " * (width - _width(shown))


def _width(text: str) -> int:
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )
