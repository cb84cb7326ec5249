"""Values on their way through the store: msgpack bytes that the scripts never look into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, cast

import msgpack

from ..scripts.errors import BadPayload

LIMIT = 256 * 1024
DEPTH = 32
_EMPTY = b"\x92\x90\x80"  # [[], {}]


def pack(value: object, *, what: str, limit: int = LIMIT) -> bytes:
    """`value` as bytes, exact on the way back (a tuple comes back as a list).

    Raises BadPayload for what msgpack cannot hold, or over `limit` bytes.
    """
    _check_depth(value, what)
    try:
        data = cast(bytes, msgpack.packb(value))
    except (TypeError, ValueError, OverflowError) as exc:
        raise BadPayload(
            f"{what} cannot be stored: {exc}",
            hint="use None, bool, int (64 bit), float, str, bytes, list and dict; turn others into these first",
        ) from exc
    if len(data) > limit:
        raise BadPayload(
            f"{what} is {len(data):,} bytes, the limit is {limit:,}{_largest(value)}",
            hint="store the data elsewhere and pass its name",
        )
    return data


def unpack(data: bytes) -> Any:
    return msgpack.unpackb(data, strict_map_key=False)


def pack_args(args: Sequence[object], kwargs: Mapping[str, object], *, what: str = "arguments") -> bytes:
    """The arguments of a call; no arguments at all are no bytes."""
    data = pack([list(args), dict(kwargs)], what=what)
    return b"" if data == _EMPTY else data


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
    level = [value]
    for _ in range(DEPTH):
        level = [child for node in level for child in _children(node)]
        if not level:
            return
    raise BadPayload(f"{what} is nested deeper than {DEPTH} levels", hint="flatten it")


def _children(node: object) -> list[object]:
    if isinstance(node, dict):
        return list(cast("dict[object, object]", node).values())
    if isinstance(node, (list, tuple)):
        return list(cast("Sequence[object]", node))
    return []


def _largest(value: object) -> str:
    named = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, (list, tuple))
        else ()
    )
    sizes = [(len(cast(bytes, msgpack.packb(part))), str(name)) for name, part in named]  # pyright: ignore
    return f"; the largest part, {max(sizes)[1]!r:.40}, has {max(sizes)[0]:,}" if sizes else ""
