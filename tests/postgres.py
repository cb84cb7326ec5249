"""A PostgreSQL server for one test process: private, on a unix socket, gone with the process."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError

from tenure.testing import wait_until
from tenure.workers.orphans import die_with_parent


def find_binaries() -> Path | None:
    """The folder with `initdb` and `postgres`, the newest if there are several."""
    on_path = shutil.which("postgres")
    packaged = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    found = [Path(on_path)] if on_path else sorted(packaged, key=lambda path: float(path.parts[4]))
    return found[-1].parent if found else None


@contextmanager
def server(binaries: Path) -> Iterator[str]:
    """A running server; gives the URL of its database."""
    folder = Path(tempfile.mkdtemp(prefix="tenure-pg-", dir="/tmp"))
    user = _another_user()
    if user:
        shutil.chown(folder, user)
    data, parent = folder / "data", os.getpid()
    options = ["-U", "tenure", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"]
    subprocess.run(
        [binaries / "initdb", "-D", data, *options], user=user, cwd=folder, check=True, capture_output=True
    )
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [binaries / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"],
            user=user,
            cwd=folder,
            stderr=log,
            preexec_fn=lambda: die_with_parent(parent, signal.SIGQUIT),
        )
    try:
        url = f"postgresql+psycopg://tenure@/postgres?host={folder}"
        wait_until(lambda: process.poll() is not None or _answers(url), "PostgreSQL to answer")
        assert process.poll() is None, (folder / "log").read_text()
        yield url
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait()
        shutil.rmtree(folder)


def _another_user() -> str | None:
    """PostgreSQL does not run as root: then somebody else runs it."""
    if os.geteuid() != 0:
        return None
    with suppress(KeyError):
        return pwd.getpwnam("postgres").pw_name
    return "nobody"


def _answers(url: str) -> bool:
    engine = create_engine(url)
    try:
        engine.connect().close()
    except OperationalError:
        return False
    finally:
        engine.dispose()
    return True
