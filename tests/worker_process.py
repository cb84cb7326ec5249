"""A worker as a process of its own, for tests that kill, stop and starve it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tenure.testing import wait_until

T = TypeVar("T")
HERE = Path(__file__).parent
ROOT = HERE.parent


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid: int) -> list[int]:
    """All processes below one."""
    found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return found + [deeper for child in found for deeper in children(child)]


@dataclass
class WorkerProcess:
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def said(self) -> str:
        return self.log.read_text()

    def family(self) -> list[int]:
        """The worker's fork server and slots."""
        return children(self.pid)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """As an out-of-memory killer or an operator does it."""
        self.process.kill()
        self.process.wait(60)

    def stop(self, deadline: float = 25.0) -> int:
        """Ask it to stop; answers its exit code. What runs for ever would hold it up for 30 s."""
        self.signal(signal.SIGTERM)
        return self.process.wait(deadline)


def start_worker(folder: Path, env: dict[str, str], *pools: str, **options: Any) -> WorkerProcess:
    order = json.dumps({"pools": pools or ["advance"], **options})
    return start(folder, env, sys.executable, str(HERE / "worker_process.py"), order)


def start(folder: Path, env: dict[str, str], *command: str) -> WorkerProcess:
    """A command with the shop as its application; its output goes to a file in `folder`."""
    paths = os.pathsep.join([str(ROOT), str(HERE), os.environ.get("PYTHONPATH", "")])
    log = folder / f"worker-{time.monotonic_ns()}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            env={**os.environ, "TENURE_APP": "worker_shop:app", **env, "PYTHONPATH": paths},
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return WorkerProcess(process, log)


def end_all(started: list[WorkerProcess]) -> None:
    """Kill workers, and wait until none of their processes is left."""
    for one in started:
        family = one.family() if alive(one.pid) else []
        one.kill()
        wait_until(lambda family=family: not any(map(alive, family)), "the end of the worker's processes")


def main(order: str) -> None:
    from tenure.workers import WorkerOptions, load_application, run_worker

    options = json.loads(order)
    pools = options.pop("pools")
    name = options.pop("name", None)
    burst = options.pop("burst", False)
    run_worker(load_application(), pools, options=WorkerOptions(**options), name=name, burst=burst)


if __name__ == "__main__":
    main(sys.argv[1])
