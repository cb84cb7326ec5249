"""`tenure demo`: the main job, seen in under a minute."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType

import click

from ..demo import run

_ENDINGS = (signal.SIGTERM, signal.SIGHUP)


@click.command()
@click.option(
    "--csv",
    "source",
    type=click.Path(path_type=Path),
    help="Import this file instead of the time zone table: UTF-8, columns separated by commas (tabs in a .tsv or "
    ".tab file). A header counts as a row.",
)
@click.option("--stay", is_flag=True, help="Stay up until Ctrl-C when it is done.")
def demo(source: Path | None, stay: bool) -> None:
    """Import real rows in chunks with progress, kill the worker on the way, and count that every row came once.

    It brings its own server and leaves nothing running, also when Ctrl-C or SIGTERM ends it.
    """
    for ending in _ENDINGS:
        if signal.getsignal(ending) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(ending, _end)
    click.get_current_context().exit(run(source, stay))


def _end(number: int, _frame: FrameType | None) -> None:
    """Leave by all `finally` blocks, with the exit code that the shell gives to who was ended by this signal."""
    for ending in _ENDINGS:
        signal.signal(ending, signal.SIG_IGN)  # asked twice is asked once
    sys.exit(128 + number)
