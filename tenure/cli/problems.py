"""What went wrong, in words and as an exit code: the one table from errors to exits."""

from __future__ import annotations

import os
import sys

import click
from redis.exceptions import RedisError

from ..scripts.errors import (
    BadInput,
    Canceled,
    Conflict,
    LeaseLost,
    LeaseTaken,
    NotFound,
    StaleFence,
    StoreError,
    StoreUnreachable,
    TenureError,
)
from ..scripts.store_errors import store_error
from .output import clean

INTERRUPTED = 130

# The first row that fits decides, so a class stands before its bases.
_EXITS: tuple[tuple[type[TenureError], int], ...] = (
    (BadInput, 2),
    (NotFound, 3),
    (Conflict, 4),
    (StaleFence, 4),
    (LeaseLost, 4),
    (LeaseTaken, 4),
    (Canceled, 4),
    (StoreUnreachable, 5),
    (StoreError, 4),
    (TenureError, 1),
)


def exit_code(kind: type[TenureError]) -> int:
    return next(code for base, code in _EXITS if issubclass(kind, base))


def report(exc: BaseException) -> int:
    """Say what happened on stderr; answer the exit code. What is nobody's mistake but ours is raised again."""
    if isinstance(exc, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(exc, BrokenPipeError):
        _forget_stdout()
        return 0  # the reader, like `head`, has all it wanted
    if isinstance(exc, OSError):
        click.echo(f"error: {clean(str(exc))}", err=True)
        _forget_stdout()  # what could not be written must not be tried again
        return 1
    said = store_error(exc, "the store") if isinstance(exc, RedisError) else exc
    if not isinstance(said, TenureError):
        raise exc
    click.echo(f"error {said.code}: {clean(str(said))}", err=True)
    click.echo(f"  next: {clean(said.hint) or f'tenure explain {said.code}'}", err=True)
    return exit_code(type(said))


def _forget_stdout() -> None:
    """So that the flush at the end of the process does not fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
