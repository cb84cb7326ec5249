"""`tenure calendars`: times that triggers leave out, stored by name."""

from __future__ import annotations

import click

from ..api.calendars import calendar as as_json_object
from ..api.views import page
from ..lease.cursors import cut
from ..lease.who import whoami
from ..scheduler.calendar_store import CalendarView
from ..scripts.errors import BadInput, NotFound
from .job_list import say_more
from .options import opened, output_option, tenant_option
from .output import clean_line, local_time, print_fields, print_json, print_table, say

name_argument = click.argument("name", metavar="NAME")
revision_option = click.option(
    "--revision", type=click.IntRange(0), help="Only if it is still at this revision."
)


@click.group()
def calendars() -> None:
    """List, show, store and delete calendars: times at which the triggers that name them do not fire."""


@calendars.command(name="list")
@tenant_option
@click.option("--limit", type=click.IntRange(1, 100), default=50, show_default=True)
@click.option("--cursor", metavar="NAME", help="Where the page before ended.")
@output_option
def list_(tenant: str, limit: int, cursor: str | None, as_json: bool) -> None:
    """List calendars by name."""
    with opened() as app:
        listed = app.calendars.list(tenant, limit + 1, cursor)
    items, more = cut(listed, limit, lambda one: one.name)
    if as_json:
        print_json(page([as_json_object(one) for one in items], more))
        return
    print_table(("NAME", "EXCLUDES", "USED BY", "SINCE"), map(_row, items), stretch=1)
    say_more(more)


@calendars.command()
@name_argument
@tenant_option
@output_option
def show(name: str, tenant: str, as_json: bool) -> None:
    """Show a calendar and the schedules that use it."""
    with opened() as app:
        _print(app.calendars.get(name, tenant), as_json)


@calendars.command()
@name_argument
@click.option("--dates", multiple=True, metavar="DATE,...", help="Whole days, like 2026-12-25,2026-12-26.")
@click.option("--weekdays", multiple=True, metavar="DAY,...", help="Whole days of each week, like SAT,SUN.")
@click.option("--window", multiple=True, metavar="FROM-TO", help="A time of each day, like 22:00-06:00.")
@click.option("--outside", multiple=True, metavar="FROM-TO", help="All but a time of each day.")
@click.option(
    "--cron", multiple=True, metavar="EXPRESSION", help="The seconds it names: '* * * 13 * ?' is each 13th."
)
@click.option("--tz", help="On whose clock it is read.  [default: that of each trigger]")
@click.option("--reason", default="", help="Kept with the calendar.")
@revision_option
@tenant_option
@output_option
def put(
    name: str,
    dates: tuple[str, ...],
    weekdays: tuple[str, ...],
    window: tuple[str, ...],
    outside: tuple[str, ...],
    cron: tuple[str, ...],
    tz: str | None,
    reason: str,
    revision: int | None,
    tenant: str,
    as_json: bool,
) -> None:
    """Store a calendar, in place of what is stored under its name. The options may be given again.

    tenure calendars put holidays --dates 2026-12-25,2026-12-26 --weekdays SAT,SUN
    """
    parts = {
        "dates": _listed(dates),
        "weekdays": [day.upper() for day in _listed(weekdays)],
        "window": [
            *(_window(text, "--window") for text in window),
            *({**_window(text, "--outside"), "outside": True} for text in outside),
        ],
        "cron": list(cron),
        "tz": tz,
    }
    data = {part: value for part, value in parts.items() if value}
    with opened() as app:
        app.calendars.put(name, data, tenant=tenant, expected_revision=revision, reason=reason, by=whoami())
        _print(app.calendars.get(name, tenant), as_json)


@calendars.command()
@name_argument
@revision_option
@tenant_option
def delete(name: str, revision: int | None, tenant: str) -> None:
    """Delete a calendar that no schedule uses."""
    with opened() as app:
        if not app.calendars.delete(name, tenant, expected_revision=revision):
            raise NotFound(
                f"calendar {name!r} is not stored in tenant {tenant}", hint="tenure calendars list"
            )
    say(f"calendar {name} of tenant {tenant} is deleted")


def _listed(texts: tuple[str, ...]) -> list[str]:
    return [part.strip() for text in texts for part in text.split(",")]


def _window(text: str, what: str) -> dict[str, object]:
    first, dash, last = text.partition("-")
    if not dash:
        raise BadInput(
            f"{what} {text!r:.40} is not a time of day from one to another", hint=f"{what} 22:00-06:00"
        )
    return {"from": first.strip(), "to": last.strip()}


def _row(found: CalendarView) -> tuple[str, ...]:
    return found.name, clean_line(_words(found)), str(len(found.used_by)), local_time(found.stored)


def _words(found: CalendarView) -> str:
    return "; ".join(f"{part} {value}" for part, value in found.data.items())


def _print(found: CalendarView, as_json: bool) -> None:
    if as_json:
        print_json(as_json_object(found))
        return
    print_fields(
        [
            ("name", found.name),
            ("tenant", found.tenant),
            ("revision", found.revision),
            *((part, str(value)) for part, value in found.data.items()),
            ("used by", ", ".join(found.used_by) or "no schedule"),
            ("since", local_time(found.stored)),
            ("by", found.by),
            ("reason", found.reason),
        ]
    )
