"""What many commands share: `--tenant`, `-o`, and the way to the store and to the application."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from ..api import views
from ..api.plain import Json
from ..app import Tenure
from ..lease.jobs import JobView
from ..lease.tasks import Registry
from ..scripts.errors import BadInput
from ..settings import Settings
from ..workers.finding import find_application
from .output import say

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


def find_app(name: str | None, *, give: str = "add it, as in `tenure worker shop.jobs:app`") -> Tenure:
    """The application `module:name`; None is TENURE_APP, or `app` in tenure.toml. Raises BadInput."""
    wanted = name or read_settings().app
    if not wanted:
        raise BadInput("no application was named", hint=f"{give}, or set TENURE_APP=shop.jobs:app")
    app = find_application(wanted)
    if not isinstance(app, Tenure):
        raise BadInput(f"{wanted} is a {type(app).__name__}, it must be a Tenure", hint="app = Tenure()")
    return app


def known_tasks() -> Registry | None:
    """The tasks of the application that the settings name, whose parameters say which positional argument is a secret.

    None if they name none, or one that cannot be imported, which is said: a job is shown all the same.
    """
    try:
        return find_app(None).registry if read_settings().app else None
    except BadInput as exc:
        say(f"warning: positional arguments are shown whatever their names: {exc}")
        return None


def job_view() -> Callable[[JobView], Json]:
    """How a job is shown as JSON here."""
    registry = known_tasks()
    return lambda job: views.job(job, registry)


def warn(app: Tenure) -> None:
    """Say what the store's operator should know. Opens the store."""
    for warning in app.store.facts.warnings:
        say(f"warning: {warning}")
