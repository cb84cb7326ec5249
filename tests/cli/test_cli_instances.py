"""`tenure instances` and `tenure why --instance`: what an operator does to a workflow instance."""

from __future__ import annotations

import pytest

from tenure import Tenure
from tenure.api import views
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.who import whoami

from .terminal import Cli

FIELDS = {"instance": "order-7", "pausable": "1", "cleared_on_end": "1", "node": "remind"}


@pytest.fixture
def now_ledger(app: Tenure) -> Ledger:
    return app.ledger()


@pytest.fixture
def job(now_ledger: Ledger) -> str:
    return now_ledger.enqueue(NewJob("report", when="+3600000", fields=FIELDS)).id


def test_an_instance_is_suspended_resumed_and_ended(cli: Cli, app: Tenure, job: str) -> None:
    paused = cli("instances", "pause", "order-7", "--reason", "stock count")
    flag = app.instances.get("order-7").flag
    resumed = cli("instances", "resume", "order-7")
    ended = cli("instances", "end", "order-7", "-o", "json")

    assert (paused.code, paused.out) == (0, "order-7 is suspended; its jobs: 1 paused\n")
    assert (flag.by, flag.reason) == (whoami(), "stock count")
    assert (resumed.code, resumed.out) == (0, "order-7 is normal; its jobs: 1 pending\n")
    assert (ended.code, ended.json["state"], ended.json["states"]) == (0, "ended", {"canceled": 1})


def test_an_instance_is_shown_as_the_api_shows_it(cli: Cli, app: Tenure, job: str) -> None:
    cli("instances", "pause", "order-7", "--reason", "stock\x1b[31m count")

    shown = cli("instances", "show", "order-7").out
    as_json = cli("instances", "show", "order-7", "-o", "json").json

    assert as_json == views.instance(app.instances.get("order-7"))
    assert "state     suspended\n" in shown
    assert "reason    stock count\n" in shown
    assert shown.endswith("STATE   JOBS\npaused  1\n")


def test_an_ended_instance_is_refused_as_a_conflict(cli: Cli, job: str) -> None:
    cli("instances", "end", "order-7")

    refused = cli("instances", "resume", "order-7")

    assert (refused.code, refused.out) == (4, "")
    assert "error INSTANCE_ENDED: instance order-7 has ended, it cannot be resumed" in refused.err
    assert "tenure explain INSTANCE_ENDED" in refused.err
    assert cli("explain", "INSTANCE_ENDED").code == 0


def test_why_of_an_instance_and_of_a_node_of_it(cli: Cli, app: Tenure, job: str) -> None:
    cli("instances", "pause", "order-7")

    whole = cli("why", "--instance", "order-7")
    node = cli("why", "--instance", "order-7", "--node", "remind")

    assert "verdict  instance_suspended\n" in whole.out
    assert "  tenure instances resume order-7\n" in whole.out
    assert node.out == cli("why", job).out
    assert cli("why", "--instance", "order-7", "-o", "json").json == views.why(app.instances.why("order-7"))


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--node", "remind"],
        ["JOB", "--instance", "order-7"],
        ["JOB", "--node", "remind"],
        ["--instance", ""],
        ["--instance", "x" * 201],
        ["--instance", "order-7", "--node", ""],
    ],
)
def test_why_of_nothing_or_of_two_things_is_a_mistake(cli: Cli, job: str, words: list[str]) -> None:
    refused = cli("why", *[job if word == "JOB" else word for word in words])

    assert (refused.code, refused.out) == (2, "")
    assert "next: " in refused.err


def test_a_paused_job_shows_its_instance_and_the_time_it_has_left(cli: Cli, job: str) -> None:
    cli("instances", "pause", "order-7")

    shown = cli("jobs", "show", job).out

    assert "instance   order-7\n" in shown
    assert "when it is resumed\n" in shown
    assert "waits for  state_paused\n" in shown


@pytest.mark.parametrize("verb", ["pause", "resume", "end"])
def test_an_instance_nobody_has_heard_of_is_said_to_have_no_jobs(cli: Cli, verb: str) -> None:
    """The word holds, for jobs may be made later; but it may be a slip of the pen."""
    said = cli("instances", verb, "oder-7")

    assert said.code == 0
    assert said.out.endswith("; no job of it is known here\n")
    assert "look at its name" in said.err
