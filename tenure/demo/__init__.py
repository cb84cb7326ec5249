"""`tenure demo`: the main job on a real server with real data, in under a minute.

An embedded server, one scheduler, two workers and the API run as processes of their own. A POST starts the
import as a menu button would; its events draw the progress line; the worker that runs it is killed with -9 on
the way. At the end every row is compared with the file.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from importlib.resources import as_file, files
from pathlib import Path

from ..processes import Processes
from ..scripts.errors import BadInput, MissingExtra, TenureError
from .client import Client
from .line import ProgressLine
from .shop import count_rows
from .summary import summarize

LEASE_MS = 6_000
KILL_AT = 0.3
PATIENCE_S = 120.0
_APP = "tenure.demo.shop:app"


def run(source: Path | None = None, stay: bool = False) -> int:
    """Run the demo; answers the exit code. Raises BadInput for a file that cannot be read."""
    folder = Path(tempfile.mkdtemp(prefix="tenure-demo-"))
    try:
        return _run(_source(source, folder), folder, stay)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(source: Path, folder: Path, stay: bool) -> int:
    client = Client()
    processes = Processes(_environment(folder), say=lambda text: print(f"    {text}"), logs=folder)
    try:
        _start(processes, client)
        good = _show(processes, client, source, folder / "import.sqlite")
        if stay:
            _wait_for_ctrl_c(client)
        return 0 if good else 1
    except TenureError:
        _print_logs(folder)
        raise
    finally:
        processes.stop()
        print("    everything is stopped, nothing is left running")


def _start(processes: Processes, client: Client) -> None:
    print("1. Start: an embedded server, a scheduler, two workers, the API")
    print(
        f"    leases last {LEASE_MS // 1000} s here (60 s by default), so that you need not wait long for what comes"
    )
    processes.start("api", "api", _APP, "--port", str(client.port))
    processes.start("scheduler", "scheduler", _APP)
    processes.start("worker-1", "worker", _APP, "--slots", "2")
    processes.start("worker-2", "worker", _APP, "--slots", "2")
    client.wait_ready(PATIENCE_S)


def _show(processes: Processes, client: Client, source: Path, target: Path) -> bool:
    total = count_rows(str(source))
    print(
        f"2. A button starts the import of {total} rows from {source.name}: POST {client.base}/background-tasks"
    )
    started = client.post("/background-tasks", {
        "task": "demo.import",
        "kwargs": {"source": str(source), "target": str(target)},
        "idempotencyKey": "the-button",
    })  # fmt: skip
    again = client.post("/background-tasks", {
        "task": "demo.import",
        "kwargs": {"source": str(source), "target": str(target)},
        "idempotencyKey": "the-button",
    })  # fmt: skip
    print(
        f"    task {started['id']}; a second click gave {'the same one' if again['id'] == started['id'] else 'ANOTHER'}"
    )
    print(f"    watch it yourself: curl -N {client.base}/background-tasks/{started['id']}/events")

    print("3. It is watched by its events, and the worker that runs it is killed with -9 on the way")
    task = _watch(processes, client, str(started["id"]))
    _wait_for_fires(client)
    return summarize(client, task, source, target)


def _watch(processes: Processes, client: Client, task_id: str) -> dict[str, object]:
    """Draw the progress until the task has ended; kill its worker once, when a third is done."""
    line = ProgressLine(sys.stdout)
    killed, last = False, dict[str, object]()
    for task in client.events(f"/background-tasks/{task_id}/events", PATIENCE_S):
        line.draw(task)
        if not killed and _share(task) >= KILL_AT and task["status"] == "running":
            killed = _kill_its_worker(processes, client, task_id, line)
        last = task
    line.end()
    return last


def _share(task: dict[str, object]) -> float:
    percent = task["percent"]
    return percent / 100 if isinstance(percent, (int, float)) else 0.0


def _kill_its_worker(processes: Processes, client: Client, task_id: str, line: ProgressLine) -> bool:
    job = client.get(f"/jobs/{task_id}")
    worker = str(job["worker"])
    for name, pid in processes.pids().items():
        if f".{pid}." in worker:
            os.kill(pid, signal.SIGKILL)
            line.say(f"{name} (pid {pid}), which held fence {job['fence']}, was killed with -9")
            return True
    return False  # between two chunks: at the next event


def _wait_for_fires(client: Client) -> None:
    """The cron job fires every ten seconds: at least two fires belong into the picture."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and len(client.fires("demo.heartbeat")) < 2:
        time.sleep(0.2)


def _wait_for_ctrl_c(client: Client) -> None:
    print(f"    it stays up until Ctrl-C: {client.base}/jobs")
    try:
        signal.pause()
    except KeyboardInterrupt:
        print()


def _environment(folder: Path) -> dict[str, str]:
    """A store of the demo's own, whatever this machine is set up for."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TENURE_")}
    return {
        **kept,
        "TENURE_DATA": str(folder / "store"),
        "TENURE_LEASE_MS": str(LEASE_MS),
        "TENURE_RENEW_MS": str(LEASE_MS // 4),
    }


def _source(named: Path | None, folder: Path) -> Path:
    """The file to import: the user's, or the time zone table that the tzdata package ships."""
    if named is not None:
        if not named.is_file():
            raise BadInput(
                f"{named} is not a file that can be read", hint="name a CSV file: tenure demo --csv rows.csv"
            )
        return named.absolute()
    try:
        table = files("tzdata").joinpath("zoneinfo", "zone.tab")
    except ModuleNotFoundError:
        raise MissingExtra("the demo imports the zone table of tzdata, which is not installed",
                           hint="pip install 'tenure[demo]'") from None  # fmt: skip
    with as_file(table) as path:
        return Path(shutil.copy(path, folder / "zone.tab"))


def _print_logs(folder: Path) -> None:
    for log in sorted(folder.glob("*.log")):
        text = log.read_text(errors="replace").strip()
        if text:
            print(f"--- {log.name}\n{text[-2000:]}", file=sys.stderr)
