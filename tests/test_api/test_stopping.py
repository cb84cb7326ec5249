"""A server with open streams stops when it is told to: uvicorn as people run it, in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest

from tenure import Tenure

APPLICATION = """
from starlette.applications import Starlette
from starlette.routing import Mount
from tenure import Tenure

app = Tenure()

@app.background("orders.sync", startable=True)
def sync() -> None: ...

api = app.api()
mounted = Starlette(routes=[Mount("/tenure", app.api())])
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "shopweb.py").write_text(APPLICATION)
    return tmp_path


@pytest.fixture(params=["api", "mounted"])
def server(request: pytest.FixtureRequest, place: Path, app: Tenure) -> Iterator[subprocess.Popen[str]]:
    env = {
        **os.environ,
        "TENURE_REDIS_URL": app.settings.redis_url or "",
        "TENURE_NAMESPACE": app.settings.namespace,
        "PYTHONPATH": os.pathsep.join([str(place), *(path for path in sys.path if path)]),
    }
    command = [sys.executable, "-m", "uvicorn", f"shopweb:{request.param}", "--port", "0"]
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True, cwd=place)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_streams_in_two_seconds(
    server: subprocess.Popen[str], number: signal.Signals
) -> None:
    url = address(server)
    root = "/tenure" if httpx.get(f"{url}/tenure/livez").status_code == 200 else ""
    links = httpx.post(f"{url}{root}/background-tasks", json={"task": "orders.sync"}).json()["links"]
    begun, ends = threading.Barrier(4), list[bool]()

    def watch() -> None:
        with httpx.stream("GET", url + links["events"], timeout=20) as answer:
            lines = answer.iter_lines()
            next(line for line in lines if line.startswith("data:"))
            begun.wait(10)
            list(lines)
            ends.append(True)

    threads = [threading.Thread(target=watch) for _ in range(3)]
    for thread in threads:
        thread.start()
    begun.wait(10)
    asked = time.monotonic()
    server.send_signal(number)
    server.wait(10)

    assert time.monotonic() - asked < 2
    for thread in threads:
        thread.join(10)
    assert ends == [True] * 3
    assert server.stderr
    assert "Traceback" not in server.stderr.read()


def address(server: subprocess.Popen[str]) -> str:
    assert server.stderr
    for line in server.stderr:
        found = re.search(r"running on (http://\S+)", line)
        if found:
            return found[1]
    raise AssertionError("the server did not start")
