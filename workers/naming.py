"""Names of workers: short, as every attempt of every job carries one."""

from __future__ import annotations

import os
import re
import socket

_HOST = 20


def worker_name() -> str:
    """host.pid.chance, at most 40 characters."""
    host = re.sub(r"[^A-Za-z0-9_-]", "-", socket.gethostname().split(".")[0])[:_HOST] or "host"
    return f"{host}.{os.getpid()}.{os.urandom(2).hex()}"
