"""`tenure config show`: the settings in force, and where each came from."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import click

from .options import output_option, read_settings
from .output import print_json, print_table


@click.group()
def config() -> None:
    """Show the settings."""


@config.command()
@output_option
def show(as_json: bool) -> None:
    """Show each setting and where it came from; passwords are hidden."""
    rows = [(name, value, _source(name)) for name, value in read_settings().shown().items()]
    if as_json:
        print_json([{"name": name, "value": value, "source": source} for name, value, source in rows])
    else:
        table = [(name, "-" if value is None else str(value), source) for name, value, source in rows]
        print_table(("SETTING", "VALUE", "FROM"), table, stretch=1)


def _source(name: str) -> str:
    variable = f"TENURE_{name.upper()}"
    if os.environ.get(variable):
        return variable
    file = Path("tenure.toml")
    return "tenure.toml" if file.exists() and name in tomllib.loads(file.read_text("utf-8")) else "default"
