"""Numbers in words."""

from __future__ import annotations


def count(number: int, noun: str) -> str:
    """`0 rows`, `1 row`, `1,234 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
