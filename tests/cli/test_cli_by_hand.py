"""`tenure jobs retry|skip|reschedule` and `tenure why`: what an operator does to one job."""

from __future__ import annotations

from typing import Any

import pytest

from tenure import Tenure
from tenure.api import views
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail
from tenure.lease.payload import pack_args, unpack_args
from tenure.lease.who import whoami
from tenure.lease.why import why

from ..given import claim, unknown_outcome
from .terminal import Cli

NOWHERE = "01J00000000000000000000000"


@pytest.fixture
def now_ledger(app: Tenure) -> Ledger:
    return app.ledger()


@pytest.fixture
def dead_job(now_ledger: Ledger) -> str:
    job = now_ledger.enqueue(NewJob("shop.greet", pack_args(["north"], {})))
    now_ledger.settle(claim(now_ledger), Fail("ValueError: no such shop", permanent=True))
    return job.id


def test_a_dead_job_is_retried_once(cli: Cli, now_ledger: Ledger, dead_job: str) -> None:
    first = cli("jobs", "retry", dead_job, "--reason", "the shop is there")
    again = cli("jobs", "retry", dead_job)
    stale = cli("jobs", "retry", dead_job, "--generation", "1")

    assert (first.code, first.out) == (0, f"{dead_job} is pending; round 2 begins\n")
    assert (again.code, again.out) == (4, "")
    assert "refused: it is pending" in again.err
    assert (stale.code, stale.out) == (4, "")
    assert "it is in generation 2, not 1" in stale.err


def test_a_retry_answers_as_the_api_does(cli: Cli, now_ledger: Ledger, dead_job: str) -> None:
    as_json = cli("jobs", "retry", dead_job, "-o", "json", "--reason", "the shop is there")

    assert as_json.json == views.job(now_ledger.get(dead_job))
    assert now_ledger.get(dead_job).reason == "the shop is there"


def test_a_job_is_retried_with_other_arguments(cli: Cli, now_ledger: Ledger, dead_job: str) -> None:
    refused = cli("jobs", "retry", dead_job, '{"odd": 1}', "--app", "shop:app")
    taken = cli("jobs", "retry", dead_job, '{"name": "south"}', "--app", "shop:app")

    assert refused.code == 2
    assert taken.code == 0, taken.err
    args = unpack_args(now_ledger.get(dead_job).args)
    assert "south" in str(args)
    assert now_ledger.get(dead_job).edit == 1


def test_a_job_is_skipped(cli: Cli, now_ledger: Ledger, dead_job: str) -> None:
    said = cli("jobs", "skip", dead_job, "--reason", "no need")

    assert (said.code, said.out) == (0, f"{dead_job} is canceled; it was dead\n")
    assert "status     canceled (skipped: no need)\n" in cli("jobs", "show", dead_job).out


def test_a_job_is_rescheduled(cli: Cli, now_ledger: Ledger) -> None:
    job = now_ledger.enqueue(NewJob("report", when="+3600000"))

    later = cli("jobs", "reschedule", job.id, "--at", "2030-01-01T00:00:00Z", "--priority", "2")
    now = cli("jobs", "reschedule", job.id, "--now", "-o", "json")
    again = cli("jobs", "reschedule", job.id, "--now")

    assert later.out.startswith(f"{job.id} is pending; due 20")
    assert later.out.endswith(", priority 2\n")
    assert (now.code, now.json["priority"]) == (0, 2)
    assert again.out.endswith("priority 2, as before\n")
    assert claim(now_ledger).id == job.id


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (["jobs", "retry", NOWHERE], 3, "NOT_FOUND"),
        (["jobs", "skip", NOWHERE], 3, "NOT_FOUND"),
        (["jobs", "reschedule", NOWHERE, "--now"], 3, "NOT_FOUND"),
        (["why", NOWHERE], 3, "NOT_FOUND"),
        (["why", "reports.daily"], 3, "is not stored"),
        (["jobs", "retry", "PENDING"], 4, "WRONG_STATE"),
        (["jobs", "retry", "PENDING", "--generation", "7"], 4, "STALE_PLAN"),
        (["jobs", "retry", "PENDING", "--force"], 2, "force needs a reason"),
        (["jobs", "retry", "PENDING", "--at", "noon"], 2, "is not an instant"),
        (["jobs", "retry", "PENDING", "{", "--app", "shop:app"], 2, "are not JSON"),
        (["jobs", "confirm", NOWHERE, "--happened"], 3, "NOT_FOUND"),
        (["jobs", "confirm", "PENDING", "--happened"], 4, "WRONG_STATE"),
        (["jobs", "confirm", "PENDING"], 2, "--happened or --not-happened"),
        (["jobs", "reschedule", "PENDING"], 2, "nothing is asked for"),
        (["jobs", "reschedule", "PENDING"], 2, "next: --now, --after 5m, --at"),
        (["jobs", "reschedule", "PENDING", "--now", "--after", "5m"], 2, "one due time"),
        (["jobs", "reschedule", "PENDING", "--priority", "10"], 2, "0<=x<=9"),
    ],
)
def test_what_cannot_be_is_said_and_counts(
    cli: Cli, now_ledger: Ledger, command: list[str], code: int, said: str
) -> None:
    job = now_ledger.enqueue(NewJob("report"))

    answer = cli(*[job.id if word == "PENDING" else word for word in command])

    assert answer.code == code
    assert said in answer.err
    assert answer.out == ""


def test_why_says_it_in_words_and_as_the_api_does(cli: Cli, now_ledger: Ledger, dead_job: str) -> None:
    table, as_json = cli("why", dead_job), cli("why", dead_job, "-o", "json")

    assert table.code == as_json.code == 0
    assert "It is dead (permanent_error) and is not tried again by itself." in table.out
    assert f"  tenure jobs retry {dead_job}\n" in table.out
    expected: Any = views.why(why(now_ledger.get(dead_job)))
    assert as_json.json == expected


def test_what_was_done_by_hand_is_shown_with_the_job(cli: Cli, now_ledger: Ledger, dead_job: str) -> None:
    cli("jobs", "retry", dead_job, "--reason", "the shop is there")
    cli("jobs", "reschedule", dead_job, "--priority", "1", "--reason", "first of all")
    cli("jobs", "cancel", dead_job)

    history = now_ledger.get(dead_job).history
    shown = cli("jobs", "show", dead_job).out

    assert [(deed.verb, deed.reason) for deed in history] == [
        ("retry", "the shop is there"),
        ("reschedule", "first of all"),
        ("cancel", ""),
    ]
    assert {deed.by for deed in history} == {whoami()}
    assert "DONE BY HAND  AT" in shown
    assert "first of all" in shown


def test_an_outcome_is_confirmed(cli: Cli, now_ledger: Ledger) -> None:
    job_id = unknown_outcome(now_ledger).id

    why_before = cli("why", job_id).out
    first = cli("jobs", "confirm", job_id, "--not-happened", "--note", "the bank has none")
    again = cli("jobs", "confirm", job_id, "--not-happened")

    assert f"  tenure jobs confirm {job_id} --not-happened\n" in why_before
    assert first.out == f"{job_id} is dead; confirmed as not happened\n"
    assert again.out == f"{job_id} is dead; confirmed as not happened, as before\n"
    assert f"  tenure jobs retry {job_id}\n" in cli("why", job_id).out


def test_several_jobs_are_retried_and_skipped_at_once(cli: Cli, now_ledger: Ledger, dead_job: str) -> None:
    other = now_ledger.enqueue(NewJob("report", when="+60000")).id

    retried = cli("jobs", "retry", dead_job, other, "--rate", "5", "--reason", "mended")
    skipped = cli("jobs", "skip", dead_job, other, "-o", "json")

    assert (retried.code, skipped.code) == (4, 0)
    rows = [line.split() for line in retried.out.splitlines()]
    assert rows == [["ID", "OUTCOME", "REASON"], [dead_job, "accepted"], [other, "skipped", "WRONG_STATE"]]
    assert "retry of 2 jobs: 1 accepted, 1 skipped" in retried.err
    assert (skipped.json["success"], skipped.json["by"]) == (2, whoami())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["ID", "ID", "[7]"], "each is retried as it is"),
        (["ID", "ID", "--force", "--reason", "why"], "each is retried as it is"),
        (["ID", "ID", "--after", "5m"], "each is retried as it is"),
        (["ID", "ID", "--rate", "201"], "1<=x<=200"),
        (["ID", "nowhere"], "is not the id of a job"),
        (["ID", "--rate", "5"], "--rate is for several jobs"),
        ([], "Missing argument"),
    ],
)
def test_what_cannot_be_said_of_several_jobs_is_refused(
    cli: Cli, dead_job: str, options: list[str], said: str
) -> None:
    answer = cli("jobs", "retry", *[dead_job if word == "ID" else word for word in options])

    assert answer.code == 2
    assert said in answer.err
