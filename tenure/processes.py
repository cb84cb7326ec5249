"""Child processes that live and die together: `tenure dev` and `tenure demo` run their parts in one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PARENT = "TENURE_PARENT"  # the process a command ends with, if it is one of several
STOP_S = 10.0
LONGEST_PAUSE_S = 10.0
STEADY_S = 10.0


@dataclass
class _Member:
    argv: Sequence[str]
    process: subprocess.Popen[bytes]
    born: float = field(default_factory=time.monotonic)
    died: float | None = None
    deaths: int = 0
    """In a row, each soon after its birth."""


class Processes:
    """Starts `tenure ...` commands, starts again what dies by itself (with a growing pause), and stops all of
    them warm.

    `say` hears what happens. With `folder`, they work there, and each writes to a log of its own in it. Who has died
    soon after its birth `tries` times in a row is left lying and is `hopeless`; without `tries` nobody is.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        say: Callable[[str], None],
        folder: Path | None = None,
        tries: int | None = None,
    ) -> None:
        self._env = {**env, PARENT: str(os.getpid())}
        self._say = say
        self._folder = folder
        self._tries = tries
        self._members: dict[str, _Member] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._stopped = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="tenure-processes", daemon=True)

    def start(self, name: str, *command: str) -> None:
        argv = [sys.executable, "-m", "tenure", *command]
        with self._lock:
            self._members[name] = _Member(argv, self._spawn(name, argv))
        if not self._keeper.is_alive():
            self._keeper.start()

    def pids(self) -> dict[str, int]:
        """The process of each member, now."""
        with self._lock:
            return {name: member.process.pid for name, member in self._members.items()}

    def hopeless(self) -> tuple[str, str] | None:
        """The name and the ending of a member that is not started any more, if there is one."""
        with self._lock:
            for name, member in self._members.items():
                if self._is_hopeless(member):
                    return name, _ending(member.process.returncode)
        return None

    def log(self, name: str) -> Path:
        """Where a member writes, when there is a folder."""
        assert self._folder is not None
        return self._folder / f"{name}.log"

    def stop(self) -> None:
        """Ask all to stop; who has not after ten seconds is killed."""
        self._stopping.set()
        with self._lock:
            processes = [member.process for member in self._members.values()]
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        until = time.monotonic() + STOP_S
        for process in processes:
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._stopped.set()

    def _spawn(self, name: str, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        out = self.log(name).open("ab") if self._folder else None
        try:
            # A session of its own keeps the terminal's Ctrl-C away: we stop them in its own order.
            return subprocess.Popen(
                argv, cwd=self._folder, env=self._env, stdout=out, stderr=out, start_new_session=True
            )
        finally:
            if out:
                out.close()

    def _keep(self) -> None:
        """Look after the members.

        A member hears of the end of the thread that started it, so this one ends last.
        """
        while not self._stopping.wait(0.1):
            with self._lock:
                for name, member in self._members.items():
                    if member.process.poll() is not None and not self._stopping.is_set():
                        self._again(name, member)
        self._stopped.wait()

    def _again(self, name: str, member: _Member) -> None:
        """Start a member that died: at once if it had lived for a while, else after a pause that doubles."""
        now = time.monotonic()
        if member.died is None:
            member.died = now
            member.deaths = member.deaths + 1 if now - member.born <= STEADY_S else 1
        if self._is_hopeless(member) or now < member.born + min(LONGEST_PAUSE_S, 0.1 * 2**member.deaths):
            return
        self._say(f"{name} ended ({_ending(member.process.returncode)}) and is started again")
        member.process, member.born, member.died = self._spawn(name, member.argv), now, None

    def _is_hopeless(self, member: _Member) -> bool:
        return self._tries is not None and member.died is not None and member.deaths >= self._tries


def _ending(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
