"""Whether this process lives, and whether it can work."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from .needs import App
from .routing import answer


class Health:
    def __init__(self, app: App) -> None:
        self._app = app

    async def livez(self, _request: Request) -> Response:
        """It answers, so it lives; asks nobody, also not for a thread."""
        return answer({"status": "ok"})

    def readyz(self, _request: Request) -> Response:
        """Whether the store answers and takes writes, and what to mind about it; a problem when it does not."""
        facts = self._app.store.check()
        store = {
            "address": facts.address,
            "product": facts.product,
            "version": facts.version,
            "durability": facts.durability,
            "declared": facts.declared,
            "cluster": facts.cluster,
        }
        return answer({"status": "ready", "store": store, "warnings": list(facts.warnings)})
