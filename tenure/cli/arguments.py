"""Values on the command line: a call's arguments as JSON, instants."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NoReturn, cast

import click

from ..lease.instants import parse_instant
from ..scripts.errors import BadInput


def read_arguments(text: str | None) -> tuple[list[object], dict[str, Any]]:
    """A call's arguments: an object is named ones, an array positional ones, None is none. Raises BadInput."""
    if text is None:
        return [], {}
    try:
        value: object = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as exc:
        raise _no_json(text, exc, """quote them for the shell: '{"shop": "berlin"}'""") from None
    except ValueError as exc:
        raise _no_json(text, exc, "write null, or the number as text") from None
    except RecursionError as exc:
        raise _no_json(text, exc, "nest them less deeply") from None
    if isinstance(value, dict):
        return [], cast("dict[str, Any]", value)
    if isinstance(value, list):
        return list(cast("list[object]", value)), {}
    raise BadInput(
        f"arguments {text!r:.80} are JSON, but neither object nor array",
        hint=f"for one positional argument write '[{text:.40}]'",
    )


def read_instant(_ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """A callback of an option that is an instant."""
    return None if value is None else parse_instant(value, what=str(param.name))


def _no_json(text: str, exc: Exception, hint: str) -> BadInput:
    return BadInput(f"arguments {text!r:.80} are not JSON: {exc}", hint=hint)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")
