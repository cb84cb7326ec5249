"""Whether the server that runs us was asked to stop. It waits for open streams before it tells anybody."""

from __future__ import annotations

import signal


def server_stops() -> bool:
    """True once uvicorn has had its signal: it handles SIGTERM by a method of the server, which has `should_exit`.

    ASGI has no word for this, and a lifespan's shutdown comes only after the last stream has ended by itself.
    """
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return getattr(server, "should_exit", False) is True
