"""`tenure dev`: server, scheduler, worker and API in one command, each a process of its own."""

from __future__ import annotations

import os

import click

from ..lease.pools import MOST_SLOTS
from ..processes import Processes
from .foreground import until_stopped, wait
from .options import app_argument, find_app, warn
from .output import say
from .serve import PORT, listen


@click.command()
@app_argument
@click.option("--port", type=click.IntRange(1, 65535), default=PORT, show_default=True, help="Of the API.")
@click.option(
    "--slots",
    type=click.IntRange(1, MOST_SLOTS),
    help="Slots of each pool.  [default: what app.pool() says, else 4]",
)
def dev(app_name: str | None, port: int, slots: int | None) -> None:
    """Run all parts of MODULE:APP: the embedded server (or TENURE_REDIS_URL), a scheduler, a worker, the API.

    What dies is reported and started again; Ctrl-C stops everything warm and leaves nothing running.
    """
    listen("127.0.0.1", port).close()  # a mistake is said here, once, and not by a child again and again
    app = find_app(app_name)
    try:
        warn(app)  # opens the store: an embedded server now lives as long as this process
        named = [app_name] if app_name else []
        processes = Processes(os.environ, say)
        try:
            with until_stopped():
                processes.start("scheduler", "scheduler", *named)
                processes.start("worker", "worker", *named, *(["--slots", str(slots)] if slots else []))
                processes.start("api", "api", *named, "--port", str(port))
                wait()
        finally:
            say("stopping all parts")
            processes.stop()
    finally:
        app.close()
    say("everything has stopped")
