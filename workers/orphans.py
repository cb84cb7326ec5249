"""No process outlives the one it works for."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int, sig: signal.Signals) -> None:
    """Ask the kernel to send `sig` to this process when its parent, `parent`, ends. Linux only; elsewhere who reads a
    socket to the parent hears of its end there."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, int(sig), 0, 0, 0)
    if os.getppid() != parent:  # it ended before we could ask
        os._exit(1)


def has_ended(pid: int, parent: int) -> bool:
    """Whether a child of `parent` has ended, though perhaps nobody has waited for it yet."""
    try:
        if sys.platform != "linux":
            os.kill(pid, 0)
            return False
        state, its_parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX" or int(its_parent) != parent  # the number may be another's by now


def kill_group(leader: int) -> None:
    """Kill a process with all that it started and that stayed in its group."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:  # macOS says so when only zombies are left in the group
        pass
