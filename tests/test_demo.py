"""The demo is the main job on real processes: whichever of them is killed, nothing is lost and nothing doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.testing import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

ROWS = 400


@pytest.fixture
def home() -> Iterator[Path]:
    """A short path: the server's socket stays inside it."""
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:
        yield Path(folder)


@pytest.fixture
def demo(home: Path) -> Iterator[subprocess.Popen[str]]:
    source = home / "rows.csv"
    source.write_text("".join(f'{number},row {number},"a, b"\n' for number in range(ROWS)))
    env = {**os.environ, "TMPDIR": str(home), "HOME": str(home), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tenure", "demo", "--csv", str(source)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_each_process_of_the_demo_may_be_killed(demo: subprocess.Popen[str], home: Path) -> None:
    _read_until(demo, "curl -N")
    for part in ("api", "scheduler", "worker", "valkey-server"):
        killed = _find(part, home)[0]
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda part=part, killed=killed: set(_find(part, home)) - {killed})

    text = _read_until(demo, "nothing is left running")

    assert "every row is there exactly once" in text
    assert f"has {ROWS} rows, the table has {ROWS}" in text
    assert demo.wait(timeout=30) == 0
    assert not _find("", home)


def test_when_the_demo_itself_is_killed_nothing_is_left_running(
    demo: subprocess.Popen[str], home: Path
) -> None:
    _read_until(demo, "curl -N")

    demo.kill()

    wait_until(lambda: not _find("", home), seconds=30)


def test_sigterm_stops_everything_and_leaves_no_folder(demo: subprocess.Popen[str], home: Path) -> None:
    _read_until(demo, "curl -N")

    demo.terminate()
    text = _read_until(demo, "nothing is left running")

    assert demo.wait(timeout=30) == 128 + signal.SIGTERM
    assert "Traceback" not in text
    assert not _find("", home)
    assert not list(home.glob("tenure-demo-*"))


def test_a_short_file_is_imported_without_a_kill_whatever_the_folder_is_set_up_for(home: Path) -> None:
    (home / "rows.csv").write_text("\ufeffname,note\n# one,no comment\n")
    (home / "tenure.toml").write_text('redis_url = "redis://127.0.0.1:1"\n')
    root = str(Path(__file__).parents[1])

    done = subprocess.run(
        [sys.executable, "-m", "tenure", "demo", "--csv", "rows.csv"],
        cwd=home,
        env={**os.environ, "TMPDIR": str(home), "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=90,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "the file is short (2 rows), so no worker is killed" in done.stdout
    assert "was killed with -9" not in done.stdout
    assert "has 2 rows, the table has 2, under 2 rising fences" in done.stdout
    assert "every row is there exactly once" in done.stdout


def _read_until(demo: subprocess.Popen[str], wanted: str) -> str:
    assert demo.stdout is not None
    text = ""
    for line in demo.stdout:
        text += line
        if wanted in line:
            return text
    raise AssertionError(f"the demo ended without saying {wanted!r}:\n{text}")


def _find(part: str, home: Path) -> list[int]:
    """Processes of this demo that have `part` in their command line. All have its HOME in their environment, but for
    the server, which overwrites that with its title and names its socket there."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environ = (entry / "environ").read_bytes()
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if (
            f"HOME={home}\0".encode() in environ or f"unixsocket:{home}" in command
        ) and f"{part} " in command:
            found.append(int(entry.name))
    return sorted(found)
