"""The commands that stay: they do the work, end warm on a signal, and leave nothing running."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tenure import Tenure
from tenure.scripts import Index
from tenure.testing import Server, wait_until

from .terminal import SHOP, Cli


def end(process: subprocess.Popen[str], sig: signal.Signals = signal.SIGTERM) -> str:
    """Stop it and answer what it said; it must have ended well."""
    process.send_signal(sig)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    return err


def descendants(pid: int) -> list[int]:
    children: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += [int(child) for child in (task / "children").read_text().split()]
    return children + [grandchild for child in children for grandchild in descendants(child)]


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def workers(tenure_server: Server) -> None:
    """A test that starts workers: they are RQ workers, and RQ knows no cluster."""
    if tenure_server.kind == "cluster":
        pytest.skip("RQ knows no cluster")


@pytest.fixture
def running() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes to be killed if the test has not ended them."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.usefixtures("workers")
def test_a_worker_in_a_burst_does_what_is_due_and_ends(cli: Cli, app: Tenure) -> None:
    task = cli.run("background", "start", "shop.count", '{"to": 1}', "--app", "shop:app").out.strip()

    said = cli.run("worker", "shop:app", "--burst", "--slots", "1")

    assert (said.code, said.out) == (0, "")
    assert "Traceback" not in said.err
    assert app.jobs.get(task).status == "succeeded"
    assert cli("background", "watch", task).code == 0


@pytest.mark.usefixtures("workers")
def test_a_worker_is_told_the_lane_of_a_pool(cli: Cli, app: Tenure) -> None:
    task = cli.run("background", "start", "shop.count", '{"to": 2}', "--app", "shop:app").out.strip()

    said = cli.run("worker", "shop:app", "--burst", "--slots", "1", "--pool", "advance=async(3)")

    assert "worker with 1 slots of async(3) in advance" in said.err
    assert app.jobs.get(task).status == "succeeded"


@pytest.mark.parametrize(
    ("pool", "lanes", "says"),
    [
        ("io=fast", "advance=exclusive", "lane 'fast' is not known"),
        ("io", "oi=async(3)", "names a lane for the pool 'oi', which this application does not have"),
        ("io", "io", "'io' names no lane"),
    ],
)
def test_a_lane_that_makes_no_sense_is_a_mistake_told_in_words(
    cli: Cli, pool: str, lanes: str, says: str
) -> None:
    said = cli("worker", "shop:app", "--burst", "--pool", pool, TENURE_LANES=lanes)

    assert says in said.err
    assert said.code == 2
    assert "Traceback" not in said.err


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_is_seen_and_stops_warm(
    cli: Cli, running: list[subprocess.Popen[str]], sig: signal.Signals
) -> None:
    worker = cli.start("worker", "--slots", "1", "--pool", "advance", TENURE_APP="shop:app")
    running.append(worker)

    def seen() -> bool:
        workers = cli("status", "-o", "json").json["workerList"]
        return any(one["pid"] == worker.pid and one["live"] for one in workers)

    wait_until(lambda: len(descendants(worker.pid)) >= 2)
    wait_until(seen)
    children = descendants(worker.pid)

    err = end(worker, sig)

    assert "worker has stopped" in err
    assert not seen()
    wait_until(lambda: all(gone(child) for child in children))


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_scheduler_stores_what_is_declared_and_fires_it(
    cli: Cli, app: Tenure, running: list[subprocess.Popen[str]], sig: signal.Signals
) -> None:
    scheduler = cli.start("scheduler", "shop:app")
    running.append(scheduler)
    wait_until(lambda: app.jobs.list(task="shop.tick").items)

    err = end(scheduler, sig)

    assert "schedule shop.tick of tenant default is stored as revision 1" in err
    assert "scheduler has stopped" in err


@pytest.mark.parametrize("command", ["worker", "scheduler", "api"])
def test_every_process_that_stays_looks_after_the_index(
    cli: Cli,
    app: Tenure,
    running: list[subprocess.Popen[str]],
    port: int,
    command: str,
    request: pytest.FixtureRequest,
) -> None:
    """So that what is lost there only delays, whichever processes are up: the walk and the census leave their marks."""
    if command == "worker":
        request.getfixturevalue("workers")
    options = {"worker": ["--slots", "1"], "api": ["--port", str(port)]}.get(command, [])
    process = cli.start(command, "shop:app", *options)
    running.append(process)
    walk = Index(app.settings.namespace)("walk")

    wait_until(lambda: {b"next", b"counted"} <= app.redis().hgetall(walk).keys())

    end(process)


def test_a_scheduler_warns_of_what_it_cannot_store_and_of_what_is_left_over(
    cli: Cli, app: Tenure, running: list[subprocess.Popen[str]]
) -> None:
    app.cron("gone.daily", "@daily", tenant="acme")(lambda: None)
    app.schedules.declare()
    (cli.folder / "shop.py").write_text(
        f'{SHOP}\n@app.cron("shop.once", "0 0 12 1 6 ? 2019")\ndef once() -> None: ...\n'
    )

    scheduler = cli.start("scheduler", "shop:app")
    running.append(scheduler)
    wait_until(lambda: app.jobs.list(task="shop.tick").items)
    err = end(scheduler, signal.SIGTERM)

    assert "warning: schedule shop.once of tenant default is not stored as declared: " in err
    assert "never fires again: '0 0 12 1 6 ? 2019'; next: tenure cron explain" in err
    assert "warning: schedule gone.daily of tenant acme is stored as declared in code, and this code" in err
    assert "tenure cron delete gone.daily --tenant acme" in err


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_the_api_serves_this_machine_until_it_is_stopped(
    cli: Cli, port: int, running: list[subprocess.Popen[str]], sig: signal.Signals
) -> None:
    api = cli.start("api", "shop:app", "--port", str(port))
    running.append(api)
    wait_until(lambda: answers(port))

    err = end(api, sig)

    assert f"http://127.0.0.1:{port}/api" in err
    assert "the API has stopped" in err
    assert not answers(port)


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/livez", timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def test_dev_runs_all_parts_and_restarts_what_dies_and_leaves_nothing(
    cli: Cli, port: int, running: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    cli = Cli({"TENURE_DATA": str(tmp_path / "data")}, cli.folder)  # the embedded server
    dev = cli.start("dev", "shop:app", "--port", str(port), "--slots", "1")
    running.append(dev)
    wait_until(lambda: answers(port))
    worker = part(dev, "worker")
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: part(dev, "worker") not in (0, worker))
    task = cli.run("background", "start", "shop.count", '{"to": 3}', "--app", "shop:app").out.strip()
    assert cli.run("background", "watch", task).code == 0
    children = descendants(dev.pid)

    err = end(dev, signal.SIGINT)

    assert re.search(r"worker ended \(killed by SIGKILL\) and is started again", err)
    assert "everything has stopped" in err
    wait_until(lambda: all(gone(child) for child in children))
    server = (
        int((tmp_path / "data" / "server.pid").read_text())
        if (tmp_path / "data" / "server.pid").exists()
        else 0
    )
    assert server == 0 or gone(server)


@pytest.mark.usefixtures("workers")
def test_a_killed_dev_takes_its_parts_along(
    cli: Cli, port: int, running: list[subprocess.Popen[str]]
) -> None:
    dev = cli.start("dev", "shop:app", "--port", str(port), "--slots", "1")
    running.append(dev)
    wait_until(lambda: answers(port) and part(dev, "worker") and len(descendants(part(dev, "worker"))) > 1)
    children = descendants(dev.pid)

    dev.kill()

    wait_until(lambda: all(gone(child) for child in children))


def part(dev: subprocess.Popen[str], name: str) -> int:
    """The process that runs `tenure NAME` for dev; 0 when there is none."""
    for pid in descendants(dev.pid):
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if words[1:4] == [b"-m", b"tenure", name.encode()] and _parent(pid) == dev.pid:
                return pid
    return 0


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
