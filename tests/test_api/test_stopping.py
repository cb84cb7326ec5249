"""A server with open streams stops when it is told to: uvicorn as people run it, in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest

from tenure import Tenure
from tenure.api.hub import STOP_POLL_S

APPLICATION = """
from starlette.applications import Starlette
from starlette.routing import Mount
from tenure import Tenure

app = Tenure()

@app.background("orders.sync", startable=True)
def sync() -> None: ...

api = app.api()
mine = app.progress(authorize=lambda request, task: True)
mounted = Starlette(routes=[Mount("/tenure", app.api()), Mount("/my", mine)])
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
def test_a_signal_ends_all_streams_promptly(server: subprocess.Popen[str], number: signal.Signals) -> None:
    """A server waits for open streams, for ever if nobody ends them; ours are ended at the next look at the signal."""
    url = address(server)
    root = "/tenure" if httpx.get(f"{url}/tenure/livez").status_code == 200 else ""
    started = httpx.post(f"{url}{root}/background-tasks", json={"task": "orders.sync"}).json()
    places = [started["links"]["events"]] * 2 + [f"/my/tasks/{started['id']}/events"] * (2 if root else 0)
    begun, ends = threading.Barrier(len(places) + 1), list[bool]()

    def watch(place: str) -> None:
        with httpx.stream("GET", url + place, timeout=120) as answer:
            lines = answer.iter_lines()
            next(line for line in lines if line.startswith("data:"))
            begun.wait(60)
            list(lines)
            ends.append(True)

    threads = [threading.Thread(target=watch, args=(place,)) for place in places]
    for thread in threads:
        thread.start()
    begun.wait(60)
    server.send_signal(number)
    server.wait(60)

    assert STOP_POLL_S < 1
    for thread in threads:
        thread.join(60)
    assert ends == [True] * len(places)
    assert server.stderr
    assert "Traceback" not in server.stderr.read()


def address(server: subprocess.Popen[str]) -> str:
    assert server.stderr
    for line in server.stderr:
        found = re.search(r"running on (http://\S+)", line)
        if found:
            return found[1]
    raise AssertionError("the server did not start")
