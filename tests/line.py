"""A line to a server that a test can make silent, as a firewall does that forgot a connection: nothing is refused."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit


class Line:
    """A loopback port in front of a server. While `silent`, its connections stay open and no answer comes back."""

    def __init__(self, server_url: str) -> None:
        self.silent = False
        self._server = urlsplit(server_url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = [self._listener]
        self.port: int = self._listener.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def connections(self) -> int:
        """How many there have been."""
        return len(self._ends) // 2

    def close(self) -> None:
        for end in self._ends:
            end.close()

    def drop(self) -> None:
        """Reset the connections that there are; new ones may come."""
        for end in self._ends[1:]:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                ours, _ = self._listener.accept()
            except OSError:
                return
            theirs = self._connect()
            self._ends += [ours, theirs]
            threading.Thread(target=self._carry, args=(ours, theirs, False), daemon=True).start()
            threading.Thread(target=self._carry, args=(theirs, ours, True), daemon=True).start()

    def _connect(self) -> socket.socket:
        if self._server.scheme == "unix":
            end = socket.socket(socket.AF_UNIX)
            end.connect(self._server.path)
            return end
        return socket.create_connection((self._server.hostname or "", self._server.port or 6379))

    def _carry(self, source: socket.socket, to: socket.socket, is_answer: bool) -> None:
        try:
            while data := source.recv(65536):
                if not (is_answer and self.silent):
                    to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            pass
