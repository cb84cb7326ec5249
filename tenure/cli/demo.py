"""`tenure demo`: the main job, seen in under a minute."""

from __future__ import annotations

from pathlib import Path

import click

from ..demo import run


@click.command()
@click.option(
    "--csv",
    "source",
    type=click.Path(path_type=Path),
    help="Import this file instead of the time zone table.",
)
@click.option("--stay", is_flag=True, help="Stay up until Ctrl-C when it is done.")
def demo(source: Path | None, stay: bool) -> None:
    """Import real rows in chunks with progress, kill the worker on the way, and count that every row came once.

    It brings its own server and leaves nothing running.
    """
    click.get_current_context().exit(run(source, stay))
