"""ETag, If-Match and If-None-Match: a change that was decided on what was seen is refused when that has moved on."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager

from starlette.requests import Request

from ..scripts.errors import BadInput, NotFound, StalePlan
from .refusals import PreconditionFailed

NEW = 0
"""The revision of what does not exist."""


def etag(revision: int) -> str:
    return f'"{revision}"'


def any_wanted(request: Request) -> bool:
    """`If-Match: *`: whatever is there, but something."""
    return request.headers.get("if-match") == "*"


def expected_revision(request: Request) -> int | None:
    """The revision the client has seen; NEW if it wants to make something new, None if it does not care."""
    if "if-none-match" in request.headers:
        if request.headers["if-none-match"] != "*":
            raise BadInput(
                "If-None-Match must be * in a change", hint="use If-Match with the ETag you have seen"
            )
        return NEW
    header = request.headers.get("if-match")
    if header is None or header == "*":
        return None
    found = re.fullmatch(r'"([0-9]{1,15})"', header)
    if not found:
        raise BadInput(
            f"If-Match {header!r:.60} is not one ETag as given here", hint='send it like If-Match: "3"'
        )
    return int(found[1])


def seen_revision(request: Request, stands: Callable[[], int]) -> int | None:
    """As `expected_revision`; where anything will do, but something, what `stands` answers.

    Raises StalePlan where that raises NotFound.
    """
    if not any_wanted(request):
        return expected_revision(request)
    try:
        return stands()
    except NotFound as exc:
        raise StalePlan(f"{exc}, and If-Match asks for one", hint="leave If-Match out to make it") from None


@contextmanager
def asked_for(request: Request) -> Generator[None]:
    """What the block refuses because the revision is another is a failed precondition, if the request has one."""
    try:
        yield
    except StalePlan as exc:
        if not {"if-match", "if-none-match"} & set(request.headers):
            raise
        raise PreconditionFailed(str(exc), hint=exc.hint) from None
