"""`tenure jobs` and `tenure status`: what an operator sees of the ledger, and what he can do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tenure import Tenure
from tenure.api import views
from tenure.lease.budgets import Limit, LimitCrossed
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail, Succeed
from tenure.lease.payload import pack, pack_args
from tenure.scripts.states import Cause

from ..given import START, claim
from .terminal import Cli


@pytest.fixture
def now_ledger(app: Tenure) -> Ledger:
    """The default tenant's ledger at this moment, as the command line sees it."""
    return app.ledger()


def test_a_new_namespace_has_no_jobs(cli: Cli) -> None:
    assert cli("jobs", "list").out == "ID  STATUS  CREATED  TASK\n"
    assert cli("jobs", "list", "-o", "json").json == {
        "items": [],
        "nextCursor": None,
        "hasMore": False,
        "scanned": 0,
        "redisOnly": False,
    }


def test_jobs_are_listed_newest_first_page_by_page(cli: Cli, now_ledger: Ledger) -> None:
    ids = [now_ledger.at(START + at).enqueue(NewJob("report")).id for at in range(3)]

    first = cli("jobs", "list", "--limit", "2", "-o", "json").json
    second = cli("jobs", "list", "--limit", "2", "--cursor", first["nextCursor"], "-o", "json").json

    assert [job["id"] for job in first["items"] + second["items"]] == ids[::-1]
    assert (first["hasMore"], second["hasMore"]) == (True, False)
    assert f"--cursor {first['nextCursor']}" in cli("jobs", "list", "--limit", "2").err


def test_jobs_are_filtered_by_state_task_and_tenant(cli: Cli, app: Tenure, now_ledger: Ledger) -> None:
    now_ledger.enqueue(NewJob("report"))
    other = app.ledger("acme").enqueue(NewJob("report"))
    now_ledger.settle(claim(now_ledger), Fail("broken", permanent=True))
    later = now_ledger.enqueue(NewJob("mail", when="+60000"))

    def ids(*options: str, **env: str) -> list[str]:
        return [job["id"] for job in cli("jobs", "list", "-o", "json", *options, **env).json["items"]]

    assert ids("--status", "pending") == [later.id]
    assert ids("--task", "mail") == [later.id]
    assert ids("--tenant", "acme") == ids(TENURE_TENANT="acme") == [other.id]
    assert "DUE" in cli("jobs", "list", "--status", "pending").out


def test_jobs_are_found_by_what_they_belong_to(cli: Cli, now_ledger: Ledger) -> None:
    fields: dict[str, str | bytes | int] = {
        "record": "order:7",
        "labels": "team=billing\ntier=1",
        "instance": "i-1",
    }
    job = now_ledger.enqueue(NewJob("report", idempotency_key="key", fields=fields)).id
    now_ledger.enqueue(NewJob("report", fields={"labels": "team=billing"}))

    for options in (
        ("--record", "order:7"),
        ("--label", "team=billing", "--label", "tier=1"),
        ("--instance", "i-1", "--status", "pending"),
        ("-q", "key"),
        ("--created-from", "2020-01-01T00:00:00Z", "--instance", "i-1"),
    ):
        assert [one["id"] for one in cli("jobs", "list", *options, "-o", "json").json["items"]] == [job]
    assert cli("jobs", "list", "--created-to", "2020-01-01T00:00:00Z", "-o", "json").json["items"] == []
    assert cli("jobs", "list", "--label", "team").code == 2
    assert cli("jobs", "list", "--record", "order").code == 2


def test_a_job_is_shown_as_the_api_shows_it(cli: Cli, now_ledger: Ledger) -> None:
    job = now_ledger.enqueue(NewJob("report", args=pack_args([1], {"day": "monday"})))
    now_ledger.settle(claim(now_ledger), Succeed(pack({"rows": 7}, what="result")))

    assert cli("jobs", "show", job.id, "-o", "json").json == views.job_with_attempts(now_ledger.get(job.id))


def test_a_job_shows_its_limits_and_no_secret_of_its_arguments(cli: Cli, now_ledger: Ledger) -> None:
    args = pack_args([{"pwd": "hunter2", "n": 1}], {"token": "t-123456", "day": "monday"})
    job = now_ledger.enqueue(NewJob("report", args=args, fields={"timeout": "90000"}))

    shown = cli("jobs", "show", job.id)
    listed = cli("jobs", "list", "-o", "json")

    assert '{"pwd": "***", "n": 1}, token="***", day="monday"' in shown.out
    assert "time-out" in shown.out
    assert "0 of 3 attempts, 0 of 3 lost" in shown.out
    for text in (shown.out, listed.out):
        assert "hunter2" not in text
        assert "t-123456" not in text


def test_the_command_line_masks_positional_arguments_by_the_names_of_the_application(
    cli: Cli, now_ledger: Ledger, tmp_path: Path
) -> None:
    (tmp_path / "bank.py").write_text(
        "from tenure import Tenure\n\napp = Tenure()\n\n"
        '@app.background("bank.pay")\ndef pay(password: str, amount: int) -> None: ...\n'
    )
    tasks = {"TENURE_APP": "bank:app"}
    job = cli("background", "start", "bank.pay", '{"password": "hunter2!", "amount": 7}', **tasks).out.strip()

    shown = cli("jobs", "show", job, **tasks)
    as_json = [
        cli("jobs", "show", job, "-o", "json", **tasks).json,
        *cli("jobs", "list", "-o", "json", **tasks).json["items"],
        cli("jobs", "reschedule", job, "--after", "1h", "-o", "json", **tasks).json,
        cli("jobs", "cancel", job, "-o", "json", **tasks).json,
    ]

    assert '"***", 7' in shown.out
    assert "hunter2" not in shown.out
    assert [one["args"] for one in as_json] == [["***", 7]] * 4
    unknown = cli("jobs", "show", job, TENURE_APP="bank:nothing")
    assert (unknown.code, "positional arguments are shown whatever their names" in unknown.err) == (0, True)


def test_what_a_result_names_as_a_secret_is_masked(cli: Cli, now_ledger: Ledger) -> None:
    job = now_ledger.enqueue(NewJob("login"))
    now_ledger.settle(
        claim(now_ledger), Succeed(pack({"user": "ada", "of": [{"apiToken": "t-1"}]}, what="result"))
    )

    masked = {"user": "ada", "of": [{"apiToken": "***"}]}
    assert cli("jobs", "show", job.id, "-o", "json").json["result"] == masked
    assert cli("jobs", "list", "-o", "json").json["items"][0]["result"] == masked
    assert json.dumps(masked) in cli("jobs", "show", job.id).out


def test_a_dead_job_shows_what_killed_it(cli: Cli, now_ledger: Ledger) -> None:
    job = now_ledger.enqueue(NewJob("report", args=pack_args([1], {"day": "monday"})))
    stack = "Traceback (most recent call here):\n  in report\nValueError: no rows"
    now_ledger.settle(claim(now_ledger, "w1"), Fail("ValueError: no rows", permanent=True, stack=stack))

    shown = cli("jobs", "show", job.id).out

    assert "status     dead (permanent_error)\n" in shown
    assert 'arguments  1, day="monday"\n' in shown
    assert "ValueError: no rows" in shown
    assert "\nthe error of attempt 1\nTraceback (most recent call here):\n  in report\n" in shown


def test_a_crossed_budget_shows_what_to_change_and_where_it_was(cli: Cli, now_ledger: Ledger) -> None:
    job = now_ledger.enqueue(NewJob("report"))
    crossed = LimitCrossed(Limit.STEPS, "11 steps in one chunk, its budget is 10", ("daily", "report"))
    lease = claim(now_ledger)
    now_ledger.settle(lease, Fail(crossed.summary, Cause.LIMIT, permanent=True, stack="Traceback: in report"))

    shown = cli("jobs", "show", job.id).out

    assert shown.partition("the error of attempt 1\n")[2].splitlines() == [
        "STEPS: 11 steps in one chunk, its budget is 10. Make the chunks smaller: return Continue(...) earlier",
        "call path: daily > report",
        "Traceback: in report",
    ]


def test_a_job_shows_what_it_belongs_to_and_what_its_attempts_noted(cli: Cli, now_ledger: Ledger) -> None:
    fields: dict[str, str | bytes | int] = {
        "record": "order:7",
        "labels": "team=billing",
        "node": "n1",
        "trace": "t1",
    }
    job = now_ledger.enqueue(NewJob("report", fields=fields))
    lease = claim(now_ledger)
    now_ledger.report(lease, request="GET /orders/7", response="404\x1b[2J")

    shown = cli("jobs", "show", job.id).out

    for line in ("trace        t1", "record       order 7", "labels       team=billing", "node         n1"):
        assert line.split() in [said.split() for said in shown.splitlines()]
    assert "\nwhat attempt 1 asked\nGET /orders/7\n\nwhat attempt 1 was answered\n404\n" in shown


def test_each_attempt_shows_its_worker_its_fence_and_how_long_it_took(cli: Cli, now_ledger: Ledger) -> None:
    job = now_ledger.enqueue(NewJob("report"))
    lease = claim(now_ledger, "host.7.ab")
    now_ledger.settle(lease, Fail("x" * 4_000, permanent=True))

    shown = cli("jobs", "show", job.id).out
    narrow = cli.on_screen("jobs", "show", job.id, columns=100)

    heads, row = (line.split() for line in shown.splitlines() if line.startswith(("#", "1  ")))
    assert heads == ["#", "STATUS", "CAUSE", "WORKER", "FENCE", "STARTED", "LASTED", "ERROR"]
    assert row[1:5] == ["failed", "raised", "host.7.ab", str(lease.fence)]
    assert re.fullmatch(r"\d+ms|\d+s", row[7])
    assert row[8] == "x" * 99 + "…"
    assert f"the error of attempt 1\n{'x' * 4_000}\n" in shown
    assert max(len(line) for line in narrow.splitlines() if not line.startswith("xxx")) <= 100


def test_a_canceled_job_is_no_longer_dead(cli: Cli, now_ledger: Ledger) -> None:
    job = now_ledger.enqueue(NewJob("report"))
    now_ledger.settle(claim(now_ledger), Fail("broken", permanent=True))

    cli("jobs", "cancel", job.id)

    shown = cli("jobs", "show", job.id, "-o", "json").json
    assert (shown["status"], shown["deadReason"]) == ("canceled", None)


def test_a_pool_that_no_worker_serves_is_told(cli: Cli, now_ledger: Ledger) -> None:
    job = now_ledger.enqueue(NewJob("report", pool="advnce", when="+60000"))
    says = "no live worker serves pool 'advnce': tenure worker --pool advnce"

    shown, status = cli("jobs", "show", job.id), cli("status")
    as_json = cli("status", "-o", "json").json
    now_ledger.cancel(job.id)

    assert says in shown.err
    waits = "no live worker serves pool 'advnce', 1 job is waiting there: tenure worker --pool advnce"
    assert waits in status.err
    assert as_json["unservedPools"] == ["advnce"]
    assert says not in cli("jobs", "show", job.id).err
    assert "advnce" not in cli("status").err


def test_what_a_task_wrote_cannot_steer_the_terminal(cli: Cli, now_ledger: Ledger) -> None:
    job = now_ledger.enqueue(NewJob("report", args=pack_args(["\x1b[2Jgone\u202e"], {})))
    now_ledger.settle(
        claim(now_ledger), Fail("\x1b]0;owned\x07bad\r\nnews", permanent=True, stack="\x1b[31mred")
    )

    for said in (
        cli("jobs", "show", job.id),
        cli("jobs", "show", job.id, "-o", "json"),
        cli("jobs", "watch", job.id),
    ):
        assert not set("\x1b\x07\r\u202e") & set(said.out + said.err)


def test_a_job_is_canceled_once_and_again_without_harm(cli: Cli, now_ledger: Ledger) -> None:
    job = now_ledger.enqueue(NewJob("report"))

    first = cli("jobs", "cancel", job.id, "--reason", "not needed")
    again = cli("jobs", "cancel", job.id, "-o", "json")

    assert (first.code, first.out) == (0, f"{job.id} is canceled; it was pending\n")
    assert (again.code, again.json["status"]) == (0, "canceled")
    assert now_ledger.get(job.id).reason == "not needed"


def test_watching_an_ended_job_says_how_it_ended(cli: Cli, now_ledger: Ledger, done: str) -> None:
    now_ledger.enqueue(NewJob("report", id="01J00000000000000000000000"))
    now_ledger.settle(claim(now_ledger), Fail("ValueError: no rows", permanent=True))

    good, bad = cli("jobs", "watch", done), cli("jobs", "watch", "01J00000000000000000000000")

    assert (good.code, good.out, good.err) == (0, "succeeded\n", "")
    assert (bad.code, bad.out) == (1, "dead (permanent_error)\n")
    assert "is dead (permanent_error): ValueError: no rows" in bad.err
    assert "next: tenure jobs show 01J00000000000000000000000" in bad.err


def test_on_a_terminal_the_line_is_drawn_over_itself(cli: Cli, done: str) -> None:
    assert cli.on_screen("jobs", "watch", done) == "\r\x1b[2Ksucceeded\n"


def test_watching_as_json_gives_an_object_a_line(cli: Cli, done: str) -> None:
    said = cli("jobs", "watch", done, "-o", "json")

    assert said.out.count("\n") == 1
    assert said.json["status"] == "succeeded"


def test_ctrl_c_ends_watching_and_not_the_job(cli: Cli, now_ledger: Ledger) -> None:
    import signal

    job = now_ledger.enqueue(NewJob("report"))
    process = cli.start("jobs", "watch", job.id)
    assert process.stdout
    assert process.stdout.readline() == "pending\n"

    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)

    assert process.returncode == 130
    assert "Traceback" not in err
    assert f"job {job.id} goes on" in err
    assert now_ledger.get(job.id).status == "pending"
