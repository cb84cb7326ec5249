"""How a command finds its application: whatever is wrong with it is one refusal in words, not a traceback."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from ..lease.reports import storable
from ..scripts.errors import BadInput, TenureError
from ..scripts.wording import exit_code, in_words
from .application import Application, load_application

_OURS = ("tenure", "importlib")


def find_application(name: str | None = None) -> Application:
    """`load_application`; a module that fails while it is imported is a BadInput too, with the place of its fault."""
    try:
        return load_application(name)
    except (BadInput, KeyboardInterrupt):
        raise
    except (Exception, SystemExit) as exc:
        raise BadInput(
            f"{name or 'the application'} cannot be imported: {_fault(exc)}",
            hint="repair that, then try again",
        ) from exc


@contextmanager
def mistakes_told() -> Generator[None, None, None]:
    """A block whose refusals end the process, told as `tenure` tells them: for a command that is not ours."""
    try:
        yield
    except TenureError as exc:
        print("\n".join(map(_harmless, in_words(exc).split("\n"))), file=sys.stderr)
        raise SystemExit(exit_code(type(exc))) from None


def _fault(exc: BaseException) -> str:
    """What the user's own module raised, and the last line of his code it came through."""
    if isinstance(exc, SyntaxError):
        return f"{exc.msg} ({exc.filename}, line {exc.lineno})"
    where, trace = "", exc.__traceback__
    while trace:
        module = str(trace.tb_frame.f_globals.get("__name__"))
        if module.partition(".")[0] not in _OURS:
            where = f" ({trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return " ".join(f"{type(exc).__name__}: {exc}{where}".split())


def _harmless(line: str) -> str:
    return "".join(char if char.isprintable() else storable(repr(char)[1:-1]) for char in line)
