"""Say how what was found differs from what must be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_ABSENT = object()


def same(
    number: str, what: str, found: Mapping[Any, Any], expected: Mapping[Any, Any]
) -> Iterator[tuple[str, str]]:
    """Nothing if they are equal, else the number of the broken invariant and a sentence."""
    if found != expected:
        extra = {key: value for key, value in found.items() if expected.get(key, _ABSENT) != value}
        missing = {key: value for key, value in expected.items() if found.get(key, _ABSENT) != value}
        yield number, f"{what}: has {extra or 'nothing'} too much, lacks {missing or 'nothing'}"
