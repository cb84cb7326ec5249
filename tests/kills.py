"""A duty as a process of its own that ends itself with -9 at a step: a script call, or a word of its database."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def start(module: str, **where: Any) -> subprocess.Popen[bytes]:
    """Run a module of the tests; its `main` takes what is in `where`."""
    return subprocess.Popen([sys.executable, "-m", module, json.dumps(where)], cwd=ROOT)


class Kills:
    """Reached by the script calls and by the database: ends this process at its step, the `nth` time."""

    def __init__(self, step: str, nth: int = 1) -> None:
        self.step = step
        self.left = nth

    def before(self, script: str) -> None:
        self.reach(f"before {script}")

    def after(self, script: str) -> None:
        self.reach(f"after {script}")

    def reach(self, step: str) -> None:
        if step == self.step:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
