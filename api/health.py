"""Whether this process lives, and whether it can work."""

from __future__ import annotations

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response

from ..scripts.errors import StoreUnreachable
from .needs import App, Facts
from .routing import answer

READY_S = 2.0
"""Who asks whether we are ready asks often, and takes silence for a no: an answer that comes later is none."""
ASKING = 4


class Health:
    def __init__(self, app: App) -> None:
        self._app = app
        self._asking = anyio.CapacityLimiter(ASKING)

    async def livez(self, _request: Request) -> Response:
        """It answers, so it lives; asks nobody, also not for a thread."""
        return answer({"status": "ok"})

    async def readyz(self, _request: Request) -> Response:
        """Whether the store answers and takes writes, and what to mind about it; a problem when it does not."""
        facts = await self._ask()
        store = {
            "address": facts.address,
            "product": facts.product,
            "version": facts.version,
            "durability": facts.durability,
            "declared": facts.declared,
            "cluster": facts.cluster,
        }
        return answer({"status": "ready", "store": store, "warnings": list(facts.warnings)})

    async def _ask(self) -> Facts:
        """In a few threads of its own: those of the requests may all be waiting for the store."""
        with anyio.move_on_after(READY_S):
            return await anyio.to_thread.run_sync(
                lambda: self._app.store.check(), abandon_on_cancel=True, limiter=self._asking
            )
        raise StoreUnreachable(
            f"the store did not say within {READY_S:g} s how it is",
            hint="look at its load (redis-cli --latency) and the network",
        )
