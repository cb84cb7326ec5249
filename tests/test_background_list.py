"""Which tasks are shown as background tasks: as the newest or the oldest job of each says."""

from __future__ import annotations

import pytest

from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Succeed

from .given import Store, running

GONE = "01J00000000000000000000000"

JOURNALS: list[tuple[str, bool]] = [
    ("b", True),
    ("p", False),
    ("pb", True),
    ("bp", True),
    ("pbp", False),
    ("gb" + "p", True),
    ("p" + "bg", True),
    ("pbgpg", False),
    ("gpgbp", False),
    ("p" + "b" + 9 * "g", True),
    ("p" + "b" + 10 * "g", False),
    (9 * "g" + "b" + "p", True),
    (10 * "g" + "b" + "p", False),
]


@pytest.mark.parametrize(("journal", "shown"), JOURNALS, ids=[journal for journal, _ in JOURNALS])
def test_the_newest_or_the_oldest_job_tells(ledger: Ledger, store: Store, journal: str, shown: bool) -> None:
    """p: a plain job, b: one of a background task, g: an entry whose job has gone; the oldest first.

    So that the question stays short, ten entries of each end are looked at.
    """
    key = ledger.keys("journal", task="report")
    for kind in journal:
        if kind == "g":
            store.redis.rpush(key, GONE)
        else:
            ledger.enqueue(NewJob("report", fields={"background": "1"} if kind == "b" else {}))

    assert ledger.background_tasks() == (["report"] if shown else [])


@pytest.mark.parametrize(("journal", "shown"), [("pp", False), ("bp", True), ("pb", False), ("", True)])
def test_what_was_set_aside_is_older_than_the_journal(
    ledger: Ledger, store: Store, journal: str, shown: bool
) -> None:
    """Jobs that stay for long are set aside from the head of their journal; the first of them tells."""
    for kind in f"{journal or 'b'}p":
        ledger.enqueue(NewJob("report", fields={"background": "1"} if kind == "b" else {}))
    for position in range(len(journal or "b")):
        id_ = store.redis.lpop(ledger.keys("journal", task="report"))
        store.redis.zadd(ledger.keys("aside", task="report"), {id_: position})
        store.redis.hincrby(ledger.keys("meta"), "cut:report", 1)

    assert ledger.background_tasks() == (["report"] if shown else [])


def test_a_task_is_shown_once_whatever_states_its_jobs_are_in(ledger: Ledger) -> None:
    for task in ("import", "export"):
        for _ in range(3):
            ledger.enqueue(NewJob(task, fields={"background": "1"}))
    ledger.settle(running(ledger, "import", fields={"background": "1"}), Succeed())
    running(ledger, "import", fields={"background": "1"})

    assert sorted(ledger.background_tasks()) == ["export", "import"]
