"""Who does something to a job by hand, and why: both are kept in the job's history."""

from __future__ import annotations

import getpass
import os
import socket
from functools import cache

from ..scripts.errors import BadInput

REASON_LIMIT = 4_000
BY_LIMIT = 100
TOKEN_LIMIT = 100


@cache
def whoami() -> str:
    """The user and the host of this process, as `ada@shop-1`: who changes something where nobody else is named."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may run under a number without a name
        user = f"uid-{os.getuid()}"
    return "".join(char for char in f"{user}@{socket.gethostname()}" if char.isprintable())[:BY_LIMIT]


def who(by: str | None) -> str:
    """`by`, if somebody was named, else who runs this process."""
    return whoami() if by is None else by


def check_word(by: str, reason: str) -> None:
    """Refuse a name or a reason that the history of a job cannot keep."""
    if not isinstance(by, str) or len(by) > BY_LIMIT or not by.isprintable():  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(
            f"by {by!r:.60} is not a name: at most {BY_LIMIT} printable characters", hint="by='ada@shop-1'"
        )
    if not isinstance(reason, str) or len(reason) > REASON_LIMIT:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(
            f"reason {reason!r:.60} is not allowed: text of at most {REASON_LIMIT} characters",
            hint="say it shorter, and where more of it can be read",
        )
    try:
        f"{by}{reason}".encode()
    except UnicodeEncodeError:
        raise BadInput(f"{by + reason!r:.60} has half a character", hint="write it in UTF-8") from None


def check_token(token: str) -> str:
    """Return the name that a caller has given a call, so that it can be sent again; else refuse it."""
    if not isinstance(token, str) or not token.isprintable() or not 1 <= len(token) <= TOKEN_LIMIT:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(
            f"token {token!r:.60} is not allowed: 1 to {TOKEN_LIMIT} printable characters",
            hint="give each call a new one, such as uuid4().hex, and send that again if its answer is lost",
        )
    return token
