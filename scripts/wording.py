"""An error as a command ends with it: two lines on stderr and an exit code, the same from every command."""

from __future__ import annotations

from .errors import (
    BadInput,
    Canceled,
    Conflict,
    LeaseLost,
    LeaseTaken,
    NotAllowed,
    NotFound,
    StaleFence,
    StoreError,
    StoreUnreachable,
    TenureError,
)

# The first row that fits decides, so a class stands before its bases.
_EXITS: tuple[tuple[type[TenureError], int], ...] = (
    (BadInput, 2),
    (NotFound, 3),
    (NotAllowed, 4),
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


def in_words(exc: TenureError) -> str:
    """What happened, and the next step."""
    return f"error {exc.code}: {exc}\n  next: {exc.hint or f'tenure explain {exc.code}'}"
