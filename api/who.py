"""Who asks for a change, as the history of a job names them."""

from __future__ import annotations

from starlette.requests import Request


def who(_request: Request) -> str:
    """The API itself, while there are no credentials. Never what a body says: anybody could say it."""
    return "api"
