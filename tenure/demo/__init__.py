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
from pathlib import Path

from ..cli.output import clean
from ..embedded import EmbeddedServer
from ..processes import Processes
from ..scripts.errors import TenureError
from .client import Client
from .line import ProgressLine
from .needs import check_needs
from .pace import Pace
from .source import check, named, zone_table
from .summary import summarize
from .words import count

LEASE_MS = 6_000
KILL_AT = 0.3
FEWEST_ROWS = 20  # fewer have passed before anybody can be killed
FIRES = 2
PATIENCE_S = 120.0
TRIES = 4
LOG_LINES = 15
_APP = "tenure.demo.shop:app"
_ROOT = Path(__file__).parents[2]


def run(source: Path | None = None, stay: bool = False) -> int:
    """Run the demo; answers the exit code. Raises BadInput for a file that cannot be imported, MissingExtra."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure:
        reconfigure(line_buffering=True)  # each step is seen before the wait that follows it
    server = Path(os.environ["TENURE_SERVER"]).absolute() if os.environ.get("TENURE_SERVER") else None
    check_needs(server)
    folder = Path(tempfile.mkdtemp(prefix="tenure-demo-"))
    try:
        file = zone_table(folder) if source is None else named(source)
        rows = check(file)
        return _run(file, rows, folder, _environment(folder, server), stay)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(file: Path, rows: int, folder: Path, env: dict[str, str], stay: bool) -> int:
    line = ProgressLine(sys.stdout)
    processes = Processes(env, say=line.say, folder=folder, tries=TRIES)
    client = Client(lambda: _check(processes))
    try:
        _start(processes, client)
        good = _show(processes, client, line, file, rows, folder / "import.sqlite")
        if stay:
            _wait_for_ctrl_c(processes, client)
        return 0 if good else 1
    except TenureError:
        line.end()
        _print_logs(processes, folder)
        raise
    finally:
        line.end()
        processes.stop()
        _end_server(folder)
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


def _show(
    processes: Processes, client: Client, line: ProgressLine, file: Path, rows: int, target: Path
) -> bool:
    print(
        f"2. A button starts the import of {count(rows, 'row')} from {file.name}: POST {client.base}/background-tasks"
    )
    if rows:
        print(f"    {Pace.of(rows).in_words(rows)}")
    click = {
        "task": "demo.import",
        "kwargs": {"source": str(file), "target": str(target)},
        "idempotencyKey": "the-button",
    }
    started, again = client.post("/background-tasks", click), client.post("/background-tasks", click)
    print(
        f"    task {started['id']}; a second click gave {'the same one' if again['id'] == started['id'] else 'ANOTHER'}"
    )
    print(f"    watch it yourself: curl -N {client.base}/background-tasks/{started['id']}/events")
    page = client.base.removesuffix("/api") + str(started["links"]["page"])
    print(f"    or see it in a browser: {page}")

    kill = rows >= FEWEST_ROWS
    if kill:
        print("3. It is watched by its events, and the worker that runs it is killed with -9 on the way")
    else:
        print(
            f"3. It is watched by its events; the file is short ({count(rows, 'row')}), so no worker is killed"
        )
    task = _watch(processes, client, line, str(started["id"]), kill)
    if len(client.fires("demo.heartbeat")) < FIRES:
        print(f"    the cron job fires every ten seconds: waiting for its fire number {FIRES}")
        client.wait_fires("demo.heartbeat", FIRES, PATIENCE_S)
    return summarize(client, task, file, target)


def _watch(
    processes: Processes, client: Client, line: ProgressLine, task_id: str, kill: bool
) -> dict[str, object]:
    """Draw the progress until the task has ended; to `kill`, kill its worker once, when a third is done."""
    last = dict[str, object]()
    for task in client.events(f"/background-tasks/{task_id}/events", PATIENCE_S):
        line.draw(task)
        if kill and _share(task) >= KILL_AT and task["status"] == "running":
            kill = not _kill_its_worker(processes, client, task_id, line)
        last = task
    line.end()
    if kill:
        line.say("no worker was killed: the import had ended before one could be")
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


def _wait_for_ctrl_c(processes: Processes, client: Client) -> None:
    print(f"    it stays up until Ctrl-C: {client.base}/jobs")
    try:
        while True:
            _check(processes)
            time.sleep(1)
    except KeyboardInterrupt:
        print()


def _check(processes: Processes) -> None:
    """Raises TenureError when a part cannot live, so that nobody waits for it."""
    found = processes.hopeless()
    if found:
        name, ending = found
        raise TenureError(
            f"{name} dies whenever it is started ({ending})", hint="its last lines are above this error"
        )


def _environment(folder: Path, server: Path | None) -> dict[str, str]:
    """A store of the demo's own, whatever this machine is set up for. The parts work in `folder`, so they find this
    package by its path, and no tenure.toml."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TENURE_")}
    given = [os.path.abspath(one) for one in kept.get("PYTHONPATH", "").split(os.pathsep) if one]
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join([str(_ROOT), *given]),
        "TENURE_DATA": str(folder / "store"),
        "TENURE_LEASE_MS": str(LEASE_MS),
        "TENURE_RENEW_MS": str(LEASE_MS // 4),
        **({"TENURE_SERVER": str(server)} if server else {}),
    }


def _end_server(folder: Path) -> None:
    """End the server if the parts could not, as when all of them had to be killed."""
    server = EmbeddedServer(folder / "store")
    server.join()
    server.close()
    if not server.socket.is_relative_to(folder.resolve()):
        shutil.rmtree(server.socket.parent, ignore_errors=True)


def _print_logs(processes: Processes, folder: Path) -> None:
    """The last lines of the part that cannot live, or of all."""
    guilty = processes.hopeless()
    for log in [processes.log(guilty[0])] if guilty else sorted(folder.glob("*.log")):
        lines = log.read_text(errors="replace").strip().splitlines()[-LOG_LINES:]
        if lines:
            print("\n".join([f"--- {log.name}", *map(clean, lines)]), file=sys.stderr)
