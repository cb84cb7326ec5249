"""A small HTTP client of Tenure's API, with nothing but the standard library: what a page would do."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from ..scripts.errors import StoreUnreachable, TenureError

ENDED = ("succeeded", "failed", "dead", "canceled")
SILENCE_S = 5.0
_AWAY = (URLError, HTTPException, OSError)


class Client:
    """`check` is asked while it waits, and raises what makes waiting useless."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check
        self.port = _free_port()
        self.base = f"http://127.0.0.1:{self.port}/api"

    def get(self, path: str) -> dict[str, Any]:
        return self._send(Request(self.base + path))

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = Request(self.base + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        return self._send(request)

    def fires(self, job_key: str) -> list[dict[str, Any]]:
        """The newest fire records."""
        return list(self.get(f"/schedules/{job_key}/fires")["items"])

    def wait_ready(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while True:
            try:
                self.get("/readyz")
                return
            except (TenureError, *_AWAY):
                self._check()
                if time.monotonic() > until:
                    raise StoreUnreachable(f"{self.base} did not become ready in {seconds:.0f} s") from None
                time.sleep(0.1)

    def events(self, path: str, seconds: float) -> Iterator[dict[str, Any]]:
        """Snapshots of a task until it has ended; a stream that breaks is opened again where it was.

        Raises TenureError when there was no news for so many seconds.
        """
        heard = time.monotonic()
        last = ""
        while time.monotonic() < heard + seconds:
            self._check()
            try:
                headers = {"Last-Event-ID": last} if last else {}
                with urlopen(Request(self.base + path, headers=headers), timeout=SILENCE_S) as stream:
                    for number, task in _snapshots(stream):
                        heard = time.monotonic()
                        last = number
                        yield task
                        if task["status"] in ENDED:
                            return
            except _AWAY:
                time.sleep(0.2)
        raise TenureError(f"{self.base}{path} sent nothing new for {seconds:.0f} s")

    def wait_fires(self, job_key: str, count: int, seconds: float) -> None:
        """Wait until so many fires are on record, or so many seconds are over."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and len(self.fires(job_key)) < count:
            self._check()
            time.sleep(0.2)

    def _send(self, request: Request) -> dict[str, Any]:
        try:
            with urlopen(request, timeout=20) as reply:
                return dict(json.load(reply))
        except HTTPError as exc:
            problem = json.loads(exc.read() or b"{}")
            text = problem.get("detail") or f"{request.get_method()} {request.full_url}: HTTP {exc.code}"
            raise TenureError(text, hint=problem.get("hint", "")) from None


def _snapshots(stream: HTTPResponse) -> Iterator[tuple[str, dict[str, Any]]]:
    """(id, data) of each event of a text/event-stream."""
    number, data, named = "", "", False
    for raw in stream:
        line = raw.decode().rstrip("\r\n")
        name, _, value = line.partition(":")
        if name == "id":
            number = value.strip()
        elif name == "event":
            named = True  # news of another kind, as of a lost stretch of the log
        elif name == "data":
            data += value.strip()
        elif not line:
            if data and not named:
                yield number, json.loads(data)
            data, named = "", False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
