"""The command line as a user types it: in this process for most tests, as a process of its own for a few."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from tenure.cli import root

SHOP = """
from tenure import Continue, Ctx, Done, Tenure

app = Tenure()

@app.task("shop.greet")
def greet(name: str) -> str:
    return f"hello {name}"

@app.background("shop.count", startable=True)
def count(ctx: Ctx, to: int) -> Continue | Done[int]:
    at = ctx.cursor.get("at", 0) + 1
    return Done(at) if at >= to else Continue({"at": at}, done=at, total=to)

@app.binding("orders", may=lambda user, record: record.id == "7")
def write(bound):
    with open("rows", "a") as file:
        file.write(f"{bound.record.id} {bound.status} {bound.task_id}\\n")

@app.cron("shop.tick", "* * * * * ?")
def tick(ctx: Ctx) -> None:
    pass
"""


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Cli:
    """Runs `tenure ...` in `folder` with the environment `env`."""

    env: Mapping[str, str]
    folder: Path

    def __call__(self, *args: str, **env: str) -> Said:
        """Run a command in this process."""
        here, path = os.getcwd(), list(sys.path)
        os.chdir(self.folder)
        try:
            result = CliRunner(env={**self.env, **env}).invoke(root, list(args), catch_exceptions=False)
        finally:
            os.chdir(here)
            sys.path[:] = path
            for name, module in list(sys.modules.items()):
                if (getattr(module, "__file__", None) or "").startswith(str(self.folder)):
                    del sys.modules[name]  # the next command reads it anew
        assert "Traceback" not in result.stderr
        return Said(result.exit_code, result.stdout, result.stderr)

    def start(self, *args: str, **env: str) -> subprocess.Popen[str]:
        """Start a command as a process."""
        return subprocess.Popen(
            [sys.executable, "-m", "tenure", *args],
            cwd=self.folder,
            env={**_clean(), **self.env, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *args: str, **env: str) -> Said:
        """Run a command as a process."""
        process = self.start(*args, **env)
        out, err = process.communicate(timeout=60)
        assert "Traceback" not in err, err
        return Said(process.returncode, out, err)

    def on_screen(self, *args: str, columns: int = 80, **env: str) -> str:
        """Run a command in a terminal; answers all that it wrote there."""
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-m", "tenure", *args],
            cwd=self.folder,
            env={**_clean(), "TERM": "xterm", **self.env, **env},
            stdin=its,
            stdout=its,
            stderr=its,
        )
        os.close(its)
        written = b""
        with suppress(OSError):  # what Linux says at the end
            while part := os.read(ours, 4096):
                written += part
        os.close(ours)
        process.wait()
        return written.decode().replace("\r\n", "\n")


def _clean() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TENURE_") and name not in ("COLUMNS", "NO_COLOR")
    }
    return {**kept, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
