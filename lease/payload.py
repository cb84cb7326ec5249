"""Values on their way through the store: msgpack bytes that the scripts never look into."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, cast

import msgpack

from ..scripts.errors import BadPayload, PayloadTooLarge, ResultTooLarge

LIMIT = 256 * 1024
DEPTH = 32
_EMPTY = b"\x92\x90\x80"  # [[], {}]
_CONTAINERS = (dict, list, tuple)
_MAY_BE_NAN = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")
"""How a float that is no number begins in msgpack; other bytes may look so too."""


def pack(
    value: object, *, what: str, limit: int = LIMIT, named_from: int = 0, names: Sequence[str] = ()
) -> bytes:
    """`value` as bytes, exact on the way back (a tuple comes back as a list).

    Raises BadPayload for what msgpack cannot hold, naming its place from the level `named_from` on; PayloadTooLarge
    over `limit` bytes, naming the largest part, by `names` if it is one of a list.
    """
    try:
        data = cast(bytes, msgpack.packb(value))
    except (TypeError, ValueError, OverflowError) as exc:
        _check_depth(value, what)
        place = "".join(_place(value)[named_from:])
        raise BadPayload(
            f"{what} cannot be stored: {f'at {place}: ' if place else ''}{exc}",
            hint="use None, bool, int (64 bit), float, str, bytes, list and dict; turn others into these first",
        ) from exc
    if len(data) > DEPTH:  # each level has a byte of its own
        _check_depth(value, what)
    if len(data) > limit:
        raise PayloadTooLarge(
            f"{what} is {len(data):,} bytes, the limit is {limit:,}{_largest(value, named_from, names)}",
            hint="store the data elsewhere and pass its name",
        )
    return data


def pack_result(result: object) -> bytes:
    """What a task returned; None is no bytes. Raises BadPayload, ResultTooLarge."""
    try:
        return b"" if result is None else pack(result, what="result")
    except PayloadTooLarge as exc:
        raise ResultTooLarge(str(exc), hint="store it elsewhere and return its name") from None


def unpack(data: bytes) -> Any:
    return msgpack.unpackb(data, strict_map_key=False)


def pack_args(
    args: Sequence[object],
    kwargs: Mapping[str, object],
    *,
    what: str = "arguments",
    names: Sequence[str] = (),
) -> bytes:
    """The arguments of a call; no arguments at all are no bytes. `names` are the parameters of the positional ones.

    Raises as `pack`; also for NaN, which is not equal to itself: nobody could tell whether a call is the same again.
    """
    value = [list(args), dict(kwargs)]
    data = pack(value, what=what, named_from=1, names=names)
    if _MAY_BE_NAN.search(data):
        place = _nan_in(value)
        if place:
            raise BadPayload(
                f"{what} cannot be stored: at {''.join(place[1:])}: NaN is no number",
                hint="pass None, or leave it out",
            )
    return b"" if data == _EMPTY else data


def pack_cursor(cursor: object) -> bytes:
    """A cursor as bytes. Raises BadPayload for one that is no mapping, or cannot be stored."""
    try:
        plain = dict(cast("Mapping[object, object]", cursor))
    except (TypeError, ValueError) as exc:
        raise BadPayload(
            f"cursor {cursor!r:.60} is no mapping: {exc}", hint='write it like {"after": last_id}'
        ) from exc
    return pack(plain, what="cursor")


def unpack_args(data: bytes) -> tuple[list[Any], dict[str, Any]]:
    if not data:
        return [], {}
    args, kwargs = unpack(data)
    return args, kwargs


def digest(*parts: str | bytes) -> str:
    """A short name for bytes, equal for equal parts: 22 characters."""
    hashed = blake2b(digest_size=11)
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        hashed.update(len(raw).to_bytes(8, "big") + raw)
    return hashed.hexdigest()


def _check_depth(value: object, what: str) -> None:
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(DEPTH - 1):
        level = [child for node in level for child in _children(node) if isinstance(child, _CONTAINERS)]
        if not level:
            return
    if any(level):  # the deepest that may be are empty
        raise BadPayload(f"{what} is nested deeper than {DEPTH} levels", hint="flatten it")


def _place(value: object) -> list[str]:
    """The way to the first part of `value` that cannot be stored, as `["rows"]`, `[3]`."""
    for name, part in _parts(value):
        try:
            msgpack.packb(part)
        except (TypeError, ValueError, OverflowError):
            return [f"[{name!r:.60}]", *_place(part)]
    return []


def _parts(node: object) -> list[tuple[object, object]]:
    if isinstance(node, dict):
        return list(cast("dict[object, object]", node).items())
    if isinstance(node, (list, tuple)):
        return list(enumerate(cast("Sequence[object]", node)))
    return []


def _children(node: object) -> Iterable[object]:
    return (
        cast("dict[object, object]", node).values() if isinstance(node, dict) else cast("list[object]", node)
    )


def _nan_in(value: object) -> list[str]:
    """The way to the first NaN; empty if there is none."""
    for name, part in _parts(value):
        if isinstance(part, float) and math.isnan(part):
            return [f"[{name!r:.60}]"]
        found = _nan_in(part)
        if found:
            return [f"[{name!r:.60}]", *found]
    return []


def _largest(value: object, level: int, names: Sequence[str]) -> str:
    parts = _parts(value)
    for _ in range(level):
        parts = [part for _, node in parts for part in _parts(node)]
    sizes = [(len(cast(bytes, msgpack.packb(part))), name) for name, part in parts]
    if not sizes:
        return ""
    size, name = max(sizes, key=lambda one: one[0])
    if isinstance(name, int) and name < len(names):
        name = names[name]
    return f"; the largest part, {name!r:.60}, has {size:,}"
