"""`tenure api`: the HTTP API on this machine, under /api."""

from __future__ import annotations

import socket
from importlib import import_module
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Any

import click
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Mount

from ..api.problems import on_http_error
from ..app import Tenure
from ..scripts.errors import BadInput, MissingExtra, TenureError, install
from .foreground import begin, turning, until_stopped
from .options import app_argument, find_app, warn
from .output import say

PORT = 8321
STOP_S = 3


class PortUnavailable(TenureError):
    """A port that another process has, or that this user may not have."""

    code = "PORT_UNAVAILABLE"


@click.command()
@app_argument
@click.option("--host", default="127.0.0.1", show_default=True, help="A loopback address.")
@click.option("--port", type=click.IntRange(1, 65535), default=PORT, show_default=True)
def api(app_name: str | None, host: str, port: int) -> None:
    """Serve the API of MODULE:APP at http://HOST:PORT/api. Without credentials only this machine is served."""
    begin("api")
    listener = listen(host, port)
    app = find_app(app_name)
    warn(app)
    web = served(app)
    uvicorn: Any = import_module("uvicorn")
    config = uvicorn.Config(web, log_config=None, access_log=False, timeout_graceful_shutdown=STOP_S)
    try:
        with until_stopped(), listener, turning(app.upkeep()):
            say(f"the API is at http://{_shown(host)}:{port}/api; Ctrl-C stops it")
            uvicorn.Server(config).run(sockets=[listener])  # ends by raising the signal again, for us
    finally:
        app.close()
    say("the API has stopped")


def served(app: Tenure) -> Starlette:
    """The API under /api, and beside it nothing but problems."""
    return Starlette(
        routes=[Mount("/api", app.api())], exception_handlers={HTTPException: on_http_error("/api/tasks")}
    )


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises BadInput, MissingExtra, PortUnavailable."""
    if find_spec("uvicorn") is None:
        raise MissingExtra("serving HTTP needs the package uvicorn", hint=install("serve"))
    family = _loopback(host)
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as exc:
        listener.close()
        raise PortUnavailable(
            f"port {port} on {host} cannot be used: {exc.strerror}; expected a free port",
            hint=f"choose another: --port {port + 1 if port < 65535 else PORT}",
        ) from exc
    return listener


def _loopback(host: str) -> socket.AddressFamily:
    try:
        address = ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        address = None
    if address is None or not address.is_loopback:
        raise BadInput(
            f"host {host!r:.80} is not a loopback address: without credentials only this machine is served",
            hint="tenure api --host 127.0.0.1 (and a proxy that knows its users in front)",
        )
    return socket.AF_INET6 if address.version == 6 else socket.AF_INET


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
