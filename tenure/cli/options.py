"""What many commands share: `--tenant`, `-o`, and the way to the store and to the application."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from ..app import Tenure
from ..scripts.errors import BadInput
from ..settings import Settings
from ..workers.application import load_application
from .output import clean_line, say

F = TypeVar("F", bound=Callable[..., Any])

tenant_option = click.option(
    "--tenant", envvar="TENURE_TENANT", default="default", show_default=True, help="Whose; or TENURE_TENANT."
)

app_argument = click.argument("app_name", metavar="[MODULE:APP]", required=False)


def output_option(command: F) -> F:
    """`-o table|json`; the function gets `as_json`."""

    def is_json(_ctx: click.Context, _param: click.Parameter, value: str) -> bool:
        return value == "json"

    option = click.option(
        "-o",
        "--output",
        "as_json",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        callback=is_json,
        help="A table for people, JSON for programs.",
    )
    return option(command)


@contextmanager
def opened() -> Generator[Tenure, None, None]:
    """The store that the settings name, as an application without tasks."""
    app = Tenure(read_settings())
    try:
        yield app
    finally:
        app.close()


def read_settings() -> Settings:
    return Settings.load(os.environ, Path.cwd())


def find_app(name: str | None) -> Tenure:
    """The application `module:name`; None is TENURE_APP, or `app` in tenure.toml. Raises BadInput."""
    wanted = name or read_settings().app
    if not wanted:
        raise BadInput(
            "no application was named",
            hint="add it, as in `tenure worker shop.jobs:app`, or set TENURE_APP=shop.jobs:app",
        )
    try:
        app = load_application(wanted)
    except (BadInput, KeyboardInterrupt):
        raise
    except (Exception, SystemExit) as exc:
        raise BadInput(
            f"{wanted} cannot be imported: {_fault(exc)}", hint="repair that, then try again"
        ) from exc
    if not isinstance(app, Tenure):
        raise BadInput(f"{wanted} is a {type(app).__name__}, it must be a Tenure", hint="app = Tenure()")
    return app


def warn(app: Tenure) -> None:
    """Say what the store's operator should know. Opens the store."""
    for warning in app.store.facts.warnings:
        say(f"warning: {warning}")


def _fault(exc: BaseException) -> str:
    """What the user's own module raised, and the last line of his code it came through."""
    if isinstance(exc, SyntaxError):
        return f"{exc.msg} ({exc.filename}, line {exc.lineno})"
    where, trace = "", exc.__traceback__
    while trace:
        module = str(trace.tb_frame.f_globals.get("__name__"))
        if module.partition(".")[0] not in ("tenure", "importlib"):
            where = f" ({trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return clean_line(f"{type(exc).__name__}: {exc}{where}")
