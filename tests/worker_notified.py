"""An application whose workers tell of deaths, by two notifiers of which the second fails at first."""

from __future__ import annotations

import os
from pathlib import Path

from tenure import Notice, Tenure

app = Tenure()
FILE = Path(os.environ["NOTICE_FILE"])


@app.task("report", owner="accounts")
def report() -> None:
    raise AssertionError("the jobs of the test died elsewhere")


@app.notifier()
def note(notice: Notice) -> None:
    with FILE.open("a") as file:
        file.write(f"{notice.owner}: {notice.text}, {len(notice.jobs)} named\n")


@app.notifier()
async def fails_at_first(notice: Notice) -> None:
    tried = FILE.with_suffix(".tried")
    if not tried.exists():
        tried.touch()
        raise ConnectionError("the mail server does not answer")
    FILE.with_suffix(".second").write_text(notice.text)
