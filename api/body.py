"""A request's body: read with a limit, and parsed with every rule on what JSON we take."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, cast

from starlette.requests import Request

from ..scripts.errors import BadInput
from .refusals import BadJson, BodyTooLarge, BodyTooSlow, Encoded, NotJson

LIMIT = 256 * 1024
DEPTH = 32
SLOWEST_S = 20.0
MERGE_PATCH = "application/merge-patch+json"


async def read_body(request: Request) -> bytes:
    """The bytes of the body. Refuses another type, an encoding, more than `LIMIT` bytes, and a body that trickles."""
    for encoding in request.headers.getlist("content-encoding"):
        if encoding.strip().lower() != "identity":
            raise Encoded(f"the body is encoded with {encoding!r:.40}", hint="send it as it is")
    length = request.headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and len(length) < 20 and int(length) > LIMIT:
        raise _too_large(f"{int(length):,} bytes")
    try:
        async with asyncio.timeout(SLOWEST_S):
            body = await _read(request)
    except TimeoutError:
        raise BodyTooSlow(f"the body did not arrive within {SLOWEST_S:.0f} s", hint="send it again") from None
    if body:
        kinds = ("application/json", MERGE_PATCH) if request.method == "PATCH" else ("application/json",)
        _check_type(request.headers.get("content-type", ""), kinds)
    return body


def refuse_body(request: Request) -> None:
    """What reads or deletes is asked by its query string: a body would be passed over, and what it says with it."""
    if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
        raise BadInput(
            f"a {request.method} takes no body, and this one has one",
            hint=f"say it in the query string: {request.method} {request.url.path}?tenant=acme",
        )


async def _read(request: Request) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LIMIT:
            raise _too_large("longer")
    return bytes(body)


def _too_large(found: str) -> BodyTooLarge:
    return BodyTooLarge(
        f"the body is {found}, the limit is {LIMIT:,} bytes",
        hint="store the data elsewhere and pass its name",
    )


def _check_type(content_type: str, kinds: Sequence[str]) -> None:
    kind, *options = [part.strip().lower() for part in content_type.split(";")]
    charset = [option for option in options if option.startswith("charset=")]
    if kind not in kinds or charset not in ([], ["charset=utf-8"], ['charset="utf-8"']):
        raise NotJson(
            f"the body's type is {content_type!r:.80}, it must be {' or '.join(kinds)} in UTF-8",
            hint="set the header Content-Type: application/json",
        )


def parse(body: bytes) -> dict[str, object]:
    """The object that `body` holds; no body at all is an empty one. Raises BadJson."""
    if not body:
        return {}
    try:
        value: object = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_no_constant,
            parse_int=_integer,
            parse_float=_number,
        )
    except BadJson:
        raise
    except UnicodeDecodeError as exc:
        raise BadJson(f"the body is not UTF-8: byte {exc.start} is {exc.object[exc.start]:#04x}") from None
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as exc:
        raise BadJson(f"the body is not JSON: {exc.msg} at line {exc.lineno}, column {exc.colno}") from None
    if not isinstance(value, dict):
        raise BadJson("the body is JSON, but not an object", hint='send {"name": value, ...}')
    fault = _fault(cast("dict[str, object]", value), 1)
    if fault:
        raise BadJson(fault[1], pointer=fault[0] or "/")
    return cast("dict[str, object]", value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise BadJson(f"the key {twice!r:.60} stands twice in one object", hint="leave one out")
    return found


def _no_constant(text: str) -> None:
    raise BadJson(f"{text} is no number in JSON", hint="use null or text")


def _integer(text: str) -> int:
    number = int(text) if len(text) <= 20 else 1 << 64
    if not -(1 << 63) <= number < 1 << 63:
        raise BadJson(f"the number {text:.40} has more than 64 bits", hint="send it as text")
    return number


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise BadJson(f"the number {text:.40} is too large", hint="send it as text")
    return number


def _fault(value: object, level: int) -> tuple[str, str] | None:
    """Where and how text or depth breaks a rule: (pointer, message), or None."""
    if isinstance(value, str):
        why = _odd(value)
        return ("", f"the text {why}") if why else None
    if not isinstance(value, (dict, list)):
        return None
    if level > DEPTH:
        return "", str(_too_deep())
    if isinstance(value, dict):
        children: Iterable[tuple[object, object]] = cast("dict[object, object]", value).items()
    else:
        children = enumerate(cast("list[object]", value))
    for name, child in children:
        why = _odd(name) if isinstance(name, str) else None
        if why:
            return "", f"a key {why}"
        found = _fault(child, level + 1)
        if found:
            return f"/{pointed(name)}{found[0]}", found[1]
    return None


def pointed(name: object) -> str:
    """A step of a JSON pointer (RFC 6901)."""
    return str(name).replace("~", "~0").replace("/", "~1")


def _odd(text: str) -> str | None:
    if "\0" in text:
        return "has a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "is not valid Unicode: half of a surrogate pair stands alone"
    return None


def _too_deep() -> BadJson:
    return BadJson(f"the body is nested deeper than {DEPTH} levels", hint="flatten it")
