"""Plain values out of a pickle; every class is refused, and with it all code.

This is the one place that reads pickles: rows that rq-scheduler has written, and nothing else. `None`, booleans,
numbers, text, bytes, lists, tuples, dicts and sets come out; what names a class or a function does not, whatever it is.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import zlib
from collections.abc import Iterator
from typing import Any, NoReturn, cast

from ..scripts.errors import BadPayload

LIMIT = 4 * 1024 * 1024
PARTS = 100_000
DEPTH = 32
_REMEMBERS = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})


class _Refusing(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> NoReturn:
        raise BadPayload(f"it holds a {module_name}.{global_name}, and only plain values are read")

    def persistent_load(self, pid: Any, /) -> NoReturn:
        raise BadPayload("it refers to something outside of it")


def read_pickle(data: bytes) -> Any:
    """The value of a pickle. Raises BadPayload naming the class it would need, or what else is wrong with it."""
    if len(data) > LIMIT:
        raise BadPayload(f"it has {len(data):,} bytes, at most {LIMIT:,} are read")
    try:
        _check_memo(data)
        value = _Refusing(io.BytesIO(data)).load()
    except BadPayload:
        raise
    except Exception as exc:  # whatever a damaged pickle makes of the reader
        raise BadPayload(f"it cannot be read: {type(exc).__name__}: {exc!s:.100}") from None
    _check_size(value)
    return value


def write_pickle(value: object) -> bytes:
    """A plain value as RQ stores it, for a row that is given back."""
    return pickle.dumps(value, 4)


def inflated(data: bytes) -> bytes:
    """`data` without its compression, if it has one, as RQ takes it. Raises BadPayload when there is no end to it."""
    reader = zlib.decompressobj()
    try:
        plain = reader.decompress(data, LIMIT + 1)
    except zlib.error:
        return data
    if len(plain) > LIMIT:
        raise BadPayload(f"it has over {LIMIT:,} bytes, which is more than is read")
    return plain


def _check_memo(data: bytes) -> None:
    """A value may be remembered under any number, and the reader makes room up to the highest."""
    for opcode, arg, _ in pickletools.genops(data):
        if opcode.name in _REMEMBERS and cast(int, arg) > len(data):
            raise BadPayload("it asks for more memory than it can need")


def _check_size(value: object) -> None:
    """A few bytes can name the same list many times over: so what is written out must have an end."""
    level, parts = [value], 0
    for _ in range(DEPTH):
        level = [part for node in level for part in _within(node)]
        parts += len(level)
        if not level:
            return
        if parts > PARTS:
            raise BadPayload(f"it has more than {PARTS:,} parts")
    raise BadPayload(f"it is nested deeper than {DEPTH} levels")


def _within(node: object) -> Iterator[object]:
    if isinstance(node, dict):
        yield from cast("dict[object, object]", node).values()
    elif isinstance(node, (list, tuple, set, frozenset)):
        yield from cast("list[object]", node)
