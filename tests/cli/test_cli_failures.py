"""`tenure failures list`: what an operator sees at three in the morning of what went wrong."""

from __future__ import annotations

import pytest

from tenure import Tenure
from tenure.api.failure_views import failure_page
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail
from tenure.workers.fingerprint import failure

from ..given import claim
from .terminal import Cli

GONE = failure("KeyError", "shop.orders.sync", "order 7 is gone")


@pytest.fixture
def now_ledger(app: Tenure) -> Ledger:
    return app.ledger()


def die(ledger: Ledger) -> str:
    job = ledger.enqueue(NewJob("shop.sync", fields={"instance": "i-1"}))
    ledger.settle(claim(ledger), Fail("KeyError: order 7 is gone", permanent=True, failure=GONE))
    return job.id


def test_failures_are_listed_with_what_where_how_often_and_what_to_do(
    cli: Cli, app: Tenure, now_ledger: Ledger
) -> None:
    first, second = die(now_ledger), die(now_ledger)

    table, as_json = cli("failures", "list"), cli("failures", "list", "-o", "json")

    key = GONE.partition("\n")[0]
    lines = [line.split() for line in table.out.splitlines()]
    assert lines[0] == ["COUNT", "FIRST", "SEEN", "LAST", "SEEN", "REASON", "WHAT", "WHERE"]
    assert lines[1][0] == "2"
    assert f"{key}  KeyError: order # is gone  shop.orders.sync" in table.out
    assert [line[1] for line in lines[4:]] == [second, first]
    assert f"tenure replay preview --fingerprint {key}" in table.err
    assert as_json.json == failure_page(app.jobs.failures())


def test_they_are_listed_by_instance(cli: Cli, now_ledger: Ledger) -> None:
    die(now_ledger)

    said = cli("failures", "list", "--by", "instance", "--members", "0")

    assert said.out.splitlines()[1].split()[0] == "1"
    assert said.out.splitlines()[1].endswith("i-1")
    assert "1 were looked at" in said.err


def test_where_nothing_went_wrong_there_is_nothing(cli: Cli) -> None:
    said = cli("failures", "list")

    assert (said.code, len(said.out.splitlines()), said.err) == (0, 1, "")


def test_the_jobs_of_a_fingerprint_are_listed(cli: Cli, now_ledger: Ledger) -> None:
    job_id = die(now_ledger)
    now_ledger.enqueue(NewJob("shop.sync", when="+60000"))

    listed = cli("jobs", "list", "--fingerprint", GONE.partition("\n")[0], "-o", "json").json

    assert [job["id"] for job in listed["items"]] == [job_id]
