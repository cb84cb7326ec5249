"""The next step of an error in the words of HTTP: errors of the layers below name commands."""

from __future__ import annotations

import re
from urllib.parse import quote

_STEPS = (
    (r"tenure jobs list(?: shows jobs, tenure jobs show ID the trace of one)?", "GET /jobs"),
    (r"tenure jobs show (\S+)", "GET /jobs/{}"),
    (r"tenure failures list shows them", "GET /jobs/failure-clusters shows them"),
    (r"(?:make a preview again; or )?tenure replay list", "GET /jobs/replays"),
    (
        r"tenure cron list(?: shows what is; what code declares is stored when a scheduler starts)?",
        "GET /schedules",
    ),
    (r"tenure cron show (\S+)", "GET /schedules/{}"),
    (r"tenure cron next (\S+)", "GET /schedules/{}/next"),
    (r"tenure cron explain .+", "POST /schedules/preview"),
    (r"tenure calendars list", "GET /calendars"),
    (
        r"tenure tenants show (\S+) says since when and why; .+",
        "GET /tenants/{0}/scheduling says since when and why; PUT it with enabled: true to enable it again",
    ),
)
_KNOWN = tuple((re.compile(command), request) for command, request in _STEPS)


def over_http(hint: str) -> str:
    """The request that does what a command would; any other hint stays as it is."""
    for command, request in _KNOWN:
        found = command.fullmatch(hint)
        if found:
            return request.format(*(quote(part, safe="") for part in found.groups()))
    return hint
