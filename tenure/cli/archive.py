"""`tenure archive`: what Redis lets go is kept in a database; the process that does it, and how things stand there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..app import Tenure
from ..lease.loop import Loop
from ..scripts.errors import ArchiveUnreachable, BadInput
from .foreground import begin, turning, until_stopped, wait
from .options import opened, output_option, warn
from .output import print_fields, print_json, say

if TYPE_CHECKING:
    from ..archive import Archive, Archiver, Spool


@click.group()
def archive() -> None:
    """Keep fire records, the execution log and ended jobs in a database, for when Redis has let them go."""


@archive.command()
@click.option("--once", is_flag=True, help="End when all that is new has been archived.")
def run(once: bool) -> None:
    """Copy what is new in Redis to the archive of TENURE_ARCHIVE_URL; any number may run, on any machine."""
    begin("archive")
    with opened() as app:
        _needed(app)
        warn(app)
        spool = app.archive_spool()
        if spool is None:
            say(
                "warning: there is no folder for a spool; while the archive is away nothing new is kept: TENURE_SPOOL"
            )
        elif why := spool.volatile():
            say(
                f"warning: the spool in {spool.folder} may be lost in a restart, because {why}: set TENURE_SPOOL"
            )
        archiver = app.archiver(spool)
        if once:
            _all_that_is_new(archiver)
            return
        with until_stopped(), turning([Loop(archiver, "archive"), *app.upkeep()]):
            say("the archive is kept up to date; Ctrl-C stops it")
            wait()
    say("the archive is kept no more")


def _all_that_is_new(archiver: Archiver) -> None:
    while archiver.round() == 0.0:
        pass
    if archiver.away:
        raise ArchiveUnreachable(
            "the archive is away: what is new is in the spool", hint="tenure archive check"
        )


def _needed(app: Tenure) -> Archive:
    if app.archive is None:
        raise BadInput(
            "there is no archive: TENURE_ARCHIVE_URL is not set",
            hint="TENURE_ARCHIVE_URL=postgresql+psycopg://user@host/name, or sqlite:////path/archive.db",
        )
    return app.archive


@archive.command()
@output_option
def check(as_json: bool) -> None:
    """Say whether the database has the tables and indexes of an archive; exit 1 if it has not."""
    with opened() as app:
        found = list(_needed(app).check())
    if as_json:
        print_json({"problems": found})
    else:
        for one in found:
            click.echo(one)
    if found:
        say(
            "`tenure archive run` makes missing tables; columns and indexes of one that is there are yours to change: "
            "run the statements that are shown"
        )
        raise click.exceptions.Exit(1)
    say("the archive has its tables and indexes")


@archive.command()
@click.option(
    "--event",
    metavar="EVENTID",
    help="Say of this log entry or fire record whether it is stored, or spooled.",
)
@output_option
def status(event: str | None, as_json: bool) -> None:
    """Show whether the archive can be reached, and what waits for it on this machine."""
    with opened() as app:
        store = _needed(app)
        try:
            problems = list(store.check())
            state = "incomplete" if problems else "ok"
        except ArchiveUnreachable as exc:
            problems, state = [str(exc)], "unreachable"
        spool = app.archive_spool()
        waiting = spool.counts() if spool else {}
        found = _state_of(event, None if state == "unreachable" else store, spool) if event else None
    said = {
        "archive": app.settings.shown()["archive_url"],
        "state": state,
        "problems": problems,
        "spool": str(spool.folder) if spool else None,
        "spooled": sum(waiting.values()),
        **({"event": found} if event else {}),
    }
    if as_json:
        print_json(said)
    else:
        print_fields(
            [(name, "; ".join(value) if isinstance(value, list) else value) for name, value in said.items()]
        )


def _state_of(event_id: str, store: Archive | None, spool: Spool | None) -> str:
    """Where an entry is: it is spooled on this machine until it is stored."""
    if spool and spool.has(event_id):
        return "spooled"
    if store is None:
        return "unknown"
    return "stored" if store.has(event_id) else "not archived"
