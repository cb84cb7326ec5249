"""A scheduler as a process of its own, on a machine without any tz database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def start(**where: Any) -> subprocess.Popen[bytes]:
    blind = {**os.environ, "PYTHONTZPATH": ""}
    return subprocess.Popen(
        [sys.executable, "-m", __name__, json.dumps(where)], cwd=ROOT, env=blind, stdin=subprocess.PIPE
    )


def main(redis_url: str, namespace: str, name: str) -> None:
    sys.modules["tzdata"] = None  # type: ignore[assignment]  # the package that would stand in
    from tenure import Settings, Tenure
    from tenure.cli.foreground import turning
    from tenure.lease.loop import Loop
    from tenure.scheduler.scheduler import Scheduler

    app = Tenure(Settings(redis_url=redis_url, namespace=namespace))
    with turning([Loop(Scheduler(app.ledgers(), name), "scheduler")]):
        sys.stdin.read()  # until whoever started it closes its end, or has died


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
