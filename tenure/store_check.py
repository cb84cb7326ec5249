"""Whether the server is still as fit to hold jobs as it was at the start: its settings can be changed while it runs."""

from __future__ import annotations

import logging
from collections.abc import Callable

from .facts import ServerFacts
from .scripts.errors import StoreError
from .settings import DURABILITIES

EVERY_S = 60.0
log = logging.getLogger("tenure.store")


class StoreCheck:
    """Asks the server every minute; says once what has become bad, and once that it is good again."""

    def __init__(self, before: ServerFacts, ask: Callable[[], ServerFacts]) -> None:
        self._before = before
        self._ask = ask
        self._said = ""

    def round(self) -> float:
        code, text = self._trouble()
        if code and code != self._said:
            log.error("%s", text)
        elif self._said and not code:
            log.info("%s is fit to hold jobs again", self._before.address)
        self._said = code
        return EVERY_S

    def _trouble(self) -> tuple[str, str]:
        """A code to know it by, and what it is; empty when all is well."""
        try:
            facts = self._ask()
        except StoreError as exc:
            return exc.code, f"{exc} ({exc.hint})" if exc.hint else str(exc)
        was, now = self._before.durability, facts.durability
        if DURABILITIES.index(now) < DURABILITIES.index(was):
            return (
                f"durability {now}",
                f"{facts.address} now reaches durability {now!r} only, it was {was!r} when this process began: "
                f"somebody changed appendonly or appendfsync (redis-cli CONFIG GET append*)",
            )
        return "", ""
