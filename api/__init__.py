"""HTTP: the ledger and the schedules as JSON, over Starlette. `create_api(app)` is all that others need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .create import create_api

__all__ = ["create_api"]


def __getattr__(name: str) -> Any:
    # brought in at first use: the command line reads the views here and needs no Starlette
    if name != "create_api":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .create import create_api

    return create_api
