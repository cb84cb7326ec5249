"""`tenure replay`: look first, then say the word; and see later what was done."""

from __future__ import annotations

import pytest

from tenure import Tenure
from tenure.api.batch_views import batch_with_jobs
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail
from tenure.lease.who import whoami

from ..given import claim, unknown_outcome
from .terminal import Cli

NOBODY = "01M8R7WKE2WM8C6V02GGWEX30C"  # an id that no replay has


@pytest.fixture
def now_ledger(app: Tenure) -> Ledger:
    return app.ledger()


def die(ledger: Ledger, task: str = "shop.sync") -> str:
    job = ledger.enqueue(NewJob(task))
    ledger.settle(claim(ledger), Fail("ValueError: no luck", permanent=True))
    return job.id


def test_a_preview_says_what_would_be_done_and_how_to_do_it(
    cli: Cli, app: Tenure, now_ledger: Ledger
) -> None:
    one, unknown = die(now_ledger), unknown_outcome(now_ledger).id

    seen = cli("replay", "preview", "--type", "shop.sync", "--error", "No Luck", "--max-age", "1h")
    whole = cli("replay", "preview", "-o", "json").json
    done = cli("replay", "apply", whole["token"], "--rate", "5", "--reason", "mended")
    again = cli("replay", "apply", whole["token"], "-o", "json")

    assert [line.split()[0] for line in seen.out.splitlines()] == ["ID", one]
    assert "jobs to retry: 1, to skip: 0" in seen.err
    assert "to do that: tenure replay apply 0" in seen.err
    assert [job["id"] for job in whole["skipped"]] == [unknown]
    assert "status     done\n" in done.out
    assert "accepted   1 of 2\n" in done.out
    assert "skipped    OUTCOME_UNKNOWN=1\n" in done.out
    assert f"by         {whoami()}\n" in done.out
    assert again.json == batch_with_jobs(app.jobs.batch(whole["token"]))
    assert again.json["reason"] == "mended"
    assert now_ledger.get(one).status == "pending"


def test_jobs_are_replayed_by_conditions_at_once(cli: Cli, now_ledger: Ledger) -> None:
    one, other = die(now_ledger), die(now_ledger, "shop.mail")

    done = cli("replay", "apply", "--type", "shop.mail", "--limit", "10", "-o", "json")

    assert (done.code, done.json["success"]) == (0, 1)
    assert (now_ledger.get(one).status, now_ledger.get(other).status) == ("dead", "pending")


def test_what_was_done_is_listed_and_shown(cli: Cli, now_ledger: Ledger) -> None:
    die(now_ledger)
    planned = cli("replay", "preview", "-o", "json").json["token"]
    done = cli("replay", "apply", "--reason", "mended", "-o", "json").json

    listed = cli("replay", "list")
    shown = cli("replay", "show", planned)

    rows = [line.split() for line in listed.out.splitlines()[1:]]
    assert [(row[0], row[1], row[2]) for row in rows] == [
        (done["id"], "replay", "done"),
        (planned, "replay", "planned"),
    ]
    assert rows[0][-1] == "mended"
    assert f"tenure replay apply {planned}" in shown.err
    assert cli("replay", "show", done["id"], "-o", "json").json == done
    assert len(cli("replay", "list", "-o", "json").json["items"]) == 2


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (["apply", NOBODY], 3, "is not on record"),
        (["show", NOBODY], 3, "is not on record"),
        (["apply", "mine"], 2, "is not the id of a batch"),
        (["apply", NOBODY, "--type", "x"], 2, "beside a preview"),
        (["apply", NOBODY, "--limit", "5"], 2, "beside a preview"),
        (["apply", "--rate", "201"], 2, "1<=x<=200"),
        (["preview", "--limit", "501"], 2, "1<=x<=500"),
        (["preview", "--status", "canceled"], 2, "is not one of 'dead', 'failed'"),
        (["preview", "--min-age", "soon"], 2, "is not a duration"),
        (["preview", "--ended-from", "noon"], 2, "is not an instant"),
    ],
)
def test_what_cannot_be_is_said_and_counts(cli: Cli, command: list[str], code: int, said: str) -> None:
    answer = cli("replay", *command)

    assert answer.code == code
    assert said in answer.err
    assert answer.out == ""
