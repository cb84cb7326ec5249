"""The fork server: a small single-threaded process that alone forks slots, ends them, and says which have ended.

It is forked from the worker before that has threads or sockets, and has the application loaded, so a new slot takes a
few milliseconds and shares most of its memory. Each slot leads a process group, which is killed whole.

    worker ── fork KEY WIDTH + sockets, kill KEY SIGNAL ──> zygote ── fork ──> slot
           <──────── born KEY PID, died KEY STATUS ──────┘
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from .orphans import die_with_parent, has_ended, kill_group

_ORDER = struct.Struct("!cII")  # F key width, K key signal
_NEWS = struct.Struct("!cIi")  # B key pid, D key status
_SOCKETS = 3
CLOSE_S = 2.0

Main = Callable[[list[socket.socket], int], None]
"""What a slot runs: with its sockets, and how many jobs at a time."""


@dataclass(frozen=True, slots=True)
class Born:
    key: int
    pid: int


@dataclass(frozen=True, slots=True)
class Died:
    key: int
    status: int
    """As of os.waitstatus_to_exitcode: an exit code, or minus the number of a signal."""


class Zygote:
    """The worker's side."""

    def __init__(self, main: Main) -> None:
        """Fork the server; `main` is what each slot runs."""
        self.socket, theirs = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        worker = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            self.socket.close()
            _serve(theirs, main, worker)
        theirs.close()
        self._unread = b""

    def fork(self, key: int, ends: list[socket.socket], width: int = 1) -> None:
        """Ask for a slot that runs `width` jobs at a time; `ends` are given to it and closed here."""
        socket.send_fds(self.socket, [_ORDER.pack(b"F", key, width)], [end.fileno() for end in ends])
        for end in ends:
            end.close()

    def kill(self, key: int, sig: signal.Signals) -> None:
        """Send a signal to a slot (SIGKILL: to its whole group). Nothing happens if it has ended."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # then all slots are dead
            self.socket.sendall(_ORDER.pack(b"K", key, sig))

    def has_ended(self, pid: int) -> bool:
        """Whether a slot has ended, without asking the server, which may be stopped."""
        return has_ended(pid, self.pid)

    def kill_directly(self, pid: int) -> None:
        """Kill a slot and its group without the server. It stays the server's to bury, so its number is no other's."""
        if not has_ended(pid, self.pid):
            _kill(pid, signal.SIGKILL)

    def news(self) -> list[Born | Died]:
        """What happened since; does not wait. Raises EOFError when the fork server has died, and all slots with it."""
        try:
            data = self.socket.recv(4096, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return []
        except ConnectionResetError:
            data = b""
        if not data:
            raise EOFError("the fork server has died")
        self._unread += data
        whole = len(self._unread) - len(self._unread) % _NEWS.size
        found, self._unread = self._unread[:whole], self._unread[whole:]
        return [
            Born(key, value) if kind == b"B" else Died(key, value)
            for kind, key, value in _NEWS.iter_unpack(found)
        ]

    def close(self) -> None:
        """End the server and all slots: it does so when it sees the socket close, or is killed if it does not."""
        self.socket.close()
        give_up_at = time.monotonic() + CLOSE_S
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
                if time.monotonic() > give_up_at:
                    os.kill(self.pid, signal.SIGKILL)
                time.sleep(0.002)


def _kill(pid: int, sig: signal.Signals) -> None:
    if sig is signal.SIGKILL:
        kill_group(pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sig)  # before it leads a group the line above finds nobody


def _serve(orders: socket.socket, main: Main, worker: int) -> NoReturn:
    status = 1
    try:
        _Server(orders, main, worker).run()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


class _Server:
    def __init__(self, orders: socket.socket, main: Main, worker: int) -> None:
        self._orders = orders
        self._main = main
        self._worker = worker
        self._slots: dict[int, int] = {}
        self._woken, self._wake = socket.socketpair()
        self._over = False

    def run(self) -> None:
        self._set_signals()
        die_with_parent(self._worker, signal.SIGUSR1)
        gc.collect()
        gc.freeze()
        try:
            while not self._over and os.getppid() == self._worker:
                # the time-out is for systems that do not tell of a parent's death
                ready = select.select([self._orders, self._woken], [], [], 5.0)[0]
                if self._woken in ready:
                    self._woken.recv(4096)
                    self._reap()
                if self._orders in ready:
                    self._obey()
        except (BrokenPipeError, ConnectionResetError):
            pass  # the worker died while we spoke to it
        finally:
            for pid in self._slots.values():
                kill_group(pid)

    def _set_signals(self) -> None:
        self._wake.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGUSR1, self._worker_died)
        # a terminal's Ctrl-C and a supervisor's SIGTERM reach the whole group; what to do is the worker's decision
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def _worker_died(self, number: int, frame: object) -> None:
        self._over = True

    def _obey(self) -> None:
        # Exactly one order's length is read, so an order's sockets come with it. On Python 3.11 `recv_fds` ignores its
        # flags and blocks; here it is only called when there is something to read.
        data, handles, _, _ = socket.recv_fds(self._orders, _ORDER.size, _SOCKETS)
        if not data:
            self._over = True
            return
        kind, key, value = _ORDER.unpack(data)
        if kind == b"F":
            self._fork(key, value, [socket.socket(fileno=handle) for handle in handles])
        elif key in self._slots:
            _kill(self._slots[key], signal.Signals(value))

    def _fork(self, key: int, width: int, ends: list[socket.socket]) -> None:
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_slot(server, ends, width)
        for end in ends:
            end.close()
        self._slots[key] = pid
        self._orders.sendall(_NEWS.pack(b"B", key, pid))

    def _become_slot(self, server: int, ends: list[socket.socket], width: int) -> NoReturn:
        status = 1
        try:
            os.setpgid(0, 0)
            die_with_parent(server, signal.SIGKILL)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGUSR1, signal.SIG_DFL)
            for inherited in (self._orders, self._woken, self._wake):
                inherited.close()
            self._main(ends, width)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def _reap(self) -> None:
        while self._slots:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            if ended is None:
                return
            # what it started and left behind; its number is ours until it is waited for
            kill_group(ended.si_pid)
            _, status = os.waitpid(ended.si_pid, 0)
            code = os.waitstatus_to_exitcode(status)
            for key in [key for key, pid in self._slots.items() if pid == ended.si_pid]:
                del self._slots[key]
                self._orders.sendall(_NEWS.pack(b"D", key, code))
