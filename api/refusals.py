"""Errors only HTTP can have; all others are those of `scripts/errors.py`.

TenureError
├── BadInput
│   ├── BadJson         the body is not JSON as Tenure takes it
│   └── BadFields       fields of a body or a query string are wrong: all of them, each with its place
├── BodyTooLarge, BodyTooSlow, NotJson, Encoded
├── LoopbackOnly, WrongHost, CrossOrigin
├── PreconditionFailed  If-Match or If-None-Match asks for another revision than there is (a StalePlan)
├── NotStartable        the task is not offered over HTTP
├── NoSuchPath, MethodNotAllowed
└── Internal            our own mistake: the log has it under the problem's traceId
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..scripts.errors import BadInput, StalePlan, TenureError


@dataclass(frozen=True, slots=True)
class Wrong:
    """One wrong field: `pointer` is `/a/0` in a body, `?a` in a query string."""

    pointer: str
    message: str
    code: str = BadInput.code


class BadJson(BadInput):
    code = "BAD_JSON"

    def __init__(self, message: str, *, pointer: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.wrong = (Wrong(pointer, message, self.code),) if pointer else ()


class BadFields(BadInput):
    def __init__(self, wrong: Sequence[Wrong]) -> None:
        super().__init__(
            "; ".join(f"{one.pointer}: {one.message}" for one in wrong), hint="correct what `errors` names"
        )
        self.wrong = tuple(wrong)

    @property
    def shared_code(self) -> str:
        """The code of all that is wrong, if it is one."""
        codes = {one.code for one in self.wrong}
        return codes.pop() if len(codes) == 1 else self.code


class BodyTooLarge(TenureError):
    code = "BODY_TOO_LARGE"


class BodyTooSlow(TenureError):
    code = "BODY_TOO_SLOW"


class NotJson(TenureError):
    code = "NOT_JSON"


class Encoded(TenureError):
    code = "ENCODED"


class LoopbackOnly(TenureError):
    code = "LOOPBACK_ONLY"


class WrongHost(TenureError):
    code = "WRONG_HOST"


class CrossOrigin(TenureError):
    code = "CROSS_ORIGIN"


class PreconditionFailed(StalePlan):
    """Its code is that of every plan that has moved on."""


class NotStartable(TenureError):
    code = "NOT_STARTABLE"


class NoSuchPath(TenureError):
    code = "NO_SUCH_PATH"


class MethodNotAllowed(TenureError):
    code = "METHOD_NOT_ALLOWED"


class Internal(TenureError):
    code = "INTERNAL"
