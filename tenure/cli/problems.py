"""What went wrong, in words on stderr and as an exit code."""

from __future__ import annotations

import os
import sys

import click
from redis.exceptions import RedisError

from ..scripts.errors import TenureError
from ..scripts.store_errors import store_error
from ..scripts.wording import exit_code, in_words
from .output import clean

INTERRUPTED = 130


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
    click.echo(clean(in_words(said)), err=True)
    return exit_code(type(said))


def _forget_stdout() -> None:
    """So that the flush at the end of the process does not fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
