"""The census: finds the tenants in the store itself, so that a lost set of tenants only delays."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ..scripts.errors import BadInput
from ..scripts.keys import parse
from .ledgers import Ledgers

EVERY_MS = 600_000
CHECK_S = 5.0
KEYS = 1_000
PAUSE_S = 0.05
"""20,000 keys in a second, which takes the server less than 1 % of its time."""


class Census:
    """Passes over all keys of the store when the set of tenants has shrunk, and every ten minutes.

    Of all processes one at a time does so; it takes a minute for a million keys.
    """

    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers
        self._pages: Iterator[list[bytes]] | None = None
        self._found: list[str] = []

    def round(self) -> float:
        going = self._pages is not None
        if self._ledgers.index.census(self._found, EVERY_MS, going=going):
            self._pages = self._begin()
        self._found = []
        if self._pages is None:
            return CHECK_S * random.uniform(1, 2)
        try:
            page = next(self._pages, None)
        except BaseException:
            self._pages = self._begin()  # one that has failed would end here, as if it had seen all
            raise
        if page is None:
            self._pages = None
            return CHECK_S
        self._found = [tenant for name in page if (tenant := _tenant(name, self._ledgers.namespace))]
        return PAUSE_S

    def _begin(self) -> Iterator[list[bytes]]:
        return self._ledgers.scripts.pages(f"{self._ledgers.namespace}:{{*}}:meta", KEYS)


def _tenant(name: bytes, namespace: str) -> str | None:
    """The tenant whose home the key is; None for every other key."""
    try:
        found = parse(name.decode())
    except (BadInput, UnicodeDecodeError):
        return None
    return found[1] if (found[0], found[2]) == (namespace, "meta") else None
