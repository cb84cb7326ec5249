"""HTTP: the ledger and the schedules as JSON, over Starlette. `create_api(app)` is all that others need."""

from .create import create_api

__all__ = ["create_api"]
