"""`tenure status`: what an operator sees first, and the same as the API says as JSON."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tenure import Tenure
from tenure.lease.attention import alarms
from tenure.lease.ledger import LEASE_MS, Ledger, NewJob
from tenure.lease.outcome import Fail, Succeed
from tenure.lease.status import runtime_status
from tenure.lease.workers import Heartbeat, Slots, WorkerState
from tenure.testing import START

from ..given import At, claim, running
from .terminal import Cli, Said

SAID = Heartbeat("north", 7, "0.1.0", WorkerState.ACTIVE, {"advance": Slots(1, 4)}, 3, 5, 1, 60_000, None)


@pytest.fixture
def now_ledger(app: Tenure) -> Ledger:
    return app.ledger()


def attention(said: Said) -> list[str]:
    """What wants a look; a server's own warnings stand before it."""
    return [line for line in said.err.splitlines() if line.startswith("!")]


def test_the_status_tells_of_the_server_the_jobs_and_the_last_hour(
    cli: Cli, now_ledger: Ledger, done: str
) -> None:
    now_ledger.index.beat("w1", SAID)
    now_ledger.enqueue(NewJob("mail"))
    now_ledger.enqueue(NewJob("mail", when="+60000"))

    said = cli("status")

    assert attention(said) == []
    for line in (
        "workers     1 live, 1 seen in 10 minutes\n",
        "slots       1 of 4 used\n",
        "running     0, none stuck\n",
        "jobs        2 pending, 1 succeeded\n",
        "attempts    1 ended in the last hour, 0.0 % failed;",
        "of 1 starts in the last hour\n",
    ):
        assert line in said.out
    rows = {words[0]: words for line in said.out.splitlines() if (words := line.split())}
    assert rows["backlog"][1:3] == ["1", "due,"]
    assert rows["advance"][1:7] == ["1", "of", "4", "-", "-", "1"]
    assert rows["mail"][3:4] + rows["mail"][5:6] == ["1", "1"]
    assert rows["w1"][1:5] == ["active", "1", "of", "4"]


def test_as_json_it_is_what_the_api_says_and_more(cli: Cli, now_ledger: Ledger, done: str) -> None:
    from tenure.api.status_views import runtime_status as view

    now_ledger.index.beat("w1", SAID)
    now_ledger.enqueue(NewJob("mail", when="+60000"))

    seen = cli("status", "-o", "json").json

    api = view(runtime_status(now_ledger))
    assert seen.keys() - api.keys() == {"server", "jobs", "unservedPools", "attention", "workerList"}
    assert {name: seen[name] for name in api if name != "at"} == {
        name: value for name, value in api.items() if name != "at"
    }
    assert (seen["jobs"]["pending"], seen["jobs"]["dead"]) == (1, 0)
    assert seen["server"]["durability"] in ("memory", "process", "disk")
    assert [one["name"] for one in seen["workerList"]] == ["w1"]


def test_what_wants_a_look_comes_with_the_next_command(cli: Cli, now_ledger: Ledger) -> None:
    now_ledger.settle(running(now_ledger), Fail("never", permanent=True))
    now_ledger.enqueue(NewJob("mail", pool="outbound"))

    table, seen = cli("status"), cli("status", "-o", "json").json

    unserved = "no live worker serves pool 'outbound', 1 job is due"
    dead = "1 job is dead and waits for a person"
    assert attention(table) == [
        f"! {unserved}: tenure worker --pool outbound",
        f"! {dead}: tenure jobs list --status dead",
    ]
    assert seen["attention"] == [
        {"text": unserved, "do": "tenure worker --pool outbound"},
        {"text": dead, "do": "tenure jobs list --status dead"},
    ]
    assert seen["unservedPools"] == ["outbound"]


def test_what_was_not_looked_at_is_a_question_mark(
    cli: Cli, now_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.lease.status.LOOK", 20)
    now_ledger.enqueue_many([NewJob("mail") for _ in range(30)])

    said = cli("status").out

    assert "backlog     30 due" in said
    assert "looked at   20 pending jobs; what tasks the others are of is not known\n" in said
    row = next(line.split() for line in said.splitlines() if line.startswith("mail"))
    assert row[3:6] == ["?", "?", "?"]


def test_the_tables_fit_a_terminal(cli: Cli, now_ledger: Ledger, done: str) -> None:
    lines = cli.on_screen("status", columns=100, NO_COLOR="1").splitlines()
    table = lines[next(at for at, line in enumerate(lines) if line.startswith("POOL")) :]

    assert max(map(len, table)) <= 100


def test_all_is_well_while_the_reaper_has_a_minute_and_jobs_wait_less(ledger: Ledger, at: At) -> None:
    ledger.index.beat("w1", SAID)
    running(ledger)
    at(START + LEASE_MS).index.beat("w1", SAID)
    at(START + LEASE_MS).enqueue(NewJob("report"))

    assert alarms(runtime_status(at(START + 2 * LEASE_MS - 1))) == []


def test_a_job_that_is_stuck_for_a_minute_and_a_backlog_of_a_minute_are_alarms(
    ledger: Ledger, at: At
) -> None:
    running(ledger)
    ledger.enqueue(NewJob("report"))
    later = at(START + LEASE_MS + 60_000)
    later.index.beat("w1", replace(SAID, pools={"advance": Slots(4, 4)}))

    found = alarms(runtime_status(later))

    assert [(one.text, one.do) for one in found] == [
        (
            "1 job is stuck: the lease is gone, the first since 1m00s, and no worker takes it back",
            "tenure jobs list --status running --tenant acme",
        ),
        (
            "1 job is due in pool 'advance', the oldest for 2m00s; 4 of 4 slots are used",
            "tenure jobs list --status pending --tenant acme",
        ),
    ]


def test_a_reaped_and_finished_job_is_no_alarm(ledger: Ledger, at: At) -> None:
    later = at(running(ledger).expires_at + 60_000)
    later.reap()
    later.index.beat("w1", SAID)
    later.settle(claim(later), Succeed())

    assert alarms(runtime_status(later)) == []
