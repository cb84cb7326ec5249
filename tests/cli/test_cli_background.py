"""`tenure background`: start, watch, list and cancel; and the line that shows how far a task is."""

from __future__ import annotations

import json
from dataclasses import replace

import click
import pytest

from tenure import Tenure
from tenure.cli.progress import describe
from tenure.cli.watch import _plain
from tenure.lease.bindings import Rows
from tenure.lease.jobs import JobView, Progress
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail, NextChunk, Succeed
from tenure.lease.payload import pack
from tenure.scripts.states import State

from ..given import START, claim
from .terminal import Cli

RIGHTS = """
from tenure import Tenure

app = Tenure()

@app.background("count")
def count() -> None: ...

def may(user, record):
    raise ConnectionError("rights are down")

app.binding("boom", print, may=may)
"""


def test_a_task_is_started_with_named_or_positional_arguments(cli: Cli, app: Tenure) -> None:
    named = cli("background", "start", "shop.count", '{"to": 3}', "--app", "shop:app")
    positional = cli("background", "start", "shop.count", "[4]", TENURE_APP="shop:app")

    assert (named.code, positional.code) == (0, 0)
    assert cli("jobs", "show", named.out.strip(), "-o", "json").json["args"] == [3]
    assert cli("jobs", "show", positional.out.strip(), "-o", "json").json["args"] == [4]
    assert "tenure background watch" in named.err


def test_started_again_under_its_key_it_is_the_same_task(cli: Cli, app: Tenure) -> None:
    start = (
        "background",
        "start",
        "shop.count",
        '{"to": 3}',
        "--key",
        "once",
        "--app",
        "shop:app",
        "-o",
        "json",
    )

    first, again = cli(*start).json, cli(*start).json

    assert (first["created"], again["created"]) == (True, False)
    assert first["id"] == again["id"]


def test_arguments_may_be_its_key(cli: Cli) -> None:
    begin = ("background", "start", "shop.count", "--app", "shop:app")

    def start(arguments: str) -> tuple[bool, str]:
        told = cli(*begin, arguments, "--key-field", "to", "-o", "json").json
        return told["created"], told["id"]

    created, job = start("[3]")

    assert created
    assert start('{"to": 3}') == (False, job)
    assert start("[4]")[0]
    assert start_fails(cli, "--key-field", "nothing").endswith("next: its arguments are: to\n")


def start_fails(cli: Cli, *options: str) -> str:
    said = cli("background", "start", "shop.count", "[3]", "--app", "shop:app", *options)
    assert (said.code, said.out) == (2, "")
    return said.err


@pytest.mark.parametrize(
    ("options", "says", "todo"),
    [
        (
            ("--key-field", "to", "--key", "k"),
            "--key and --key-field are both given",
            "leave one of the two out",
        ),
        (("--record", "order"), "record 'order' is not TYPE:ID", "--record order:4711"),
        (("--binding", "orders"), "--binding orders is given and no --record", "--record order:4711 says"),
    ],
)
def test_options_that_do_not_fit_are_told_in_words_of_the_command_line(
    cli: Cli, app: Tenure, options: tuple[str, ...], says: str, todo: str
) -> None:
    said = start_fails(cli, *options)

    assert says in said
    assert f"next: {todo}" in said
    assert app.jobs.list().items == []


@pytest.mark.parametrize("verb", ["watch", "cancel", "retry"])
def test_who_names_no_task_is_led_to_the_list_of_tasks(cli: Cli, verb: str) -> None:
    said = cli("background", verb, "nope")

    assert (said.code, said.out) == (3, "")
    assert "next: tenure background list" in said.err


def test_what_a_task_in_this_state_does_not_allow_says_what_it_allows(cli: Cli, app: Tenure) -> None:
    start = cli("background", "start", "shop.count", "[3]", "--app", "shop:app")

    said = cli("background", "retry", start.out.strip())

    assert said.code == 4
    assert "next: while it is pending, it takes: reschedule, cancel, skip" in said.err


def test_it_may_need_a_concurrency_key(cli: Cli, app: Tenure) -> None:
    said = cli("background", "start", "shop.count", "[3]", "--concurrency-key", "shop:7", "--app", "shop:app")

    assert app.jobs.get(said.out.strip()).concurrency_key == "shop:7"
    assert "shop:7" in cli("jobs", "show", said.out.strip()).out


def test_another_start_under_the_same_key_is_refused(cli: Cli, app: Tenure) -> None:
    start = ("background", "start", "shop.count", "--key", "once", "--app", "shop:app")
    cli(*start, '{"to": 3}')

    said = cli(*start, '{"to": 4}')

    assert (said.code, said.out) == (4, "")
    assert "KEY_REUSED" in said.err
    assert "the key is 'once'" in said.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{to: 3}", "are not JSON: Expecting property name"),
        ("{to: 3}", "next: quote them for the shell"),
        ("3", "neither object nor array"),
        ("[NaN]", "NaN is no number in JSON"),
        ('{"to": NaN}', "next: write null, or the number as text"),
        ("[" * 100_000, "next: nest them less deeply"),
        ('{"too": 3}', "task shop.count does not take these arguments"),
        (f'{{"to": {10**30}}}', "cannot be stored"),
    ],
)
def test_arguments_that_do_not_fit_are_told(cli: Cli, text: str, says: str) -> None:
    said = cli("background", "start", "shop.count", text, "--app", "shop:app")

    assert (said.code, said.out) == (2, "")
    assert says in said.err
    assert len(said.err) < 500


def test_a_plain_task_is_no_background_task(cli: Cli, app: Tenure) -> None:
    job = app.ledger().enqueue(NewJob("report"))

    started = cli("background", "start", "shop.greet", '["you"]', "--app", "shop:app")
    watched = cli("background", "watch", job.id)

    assert (started.code, watched.code) == (2, 3)
    assert "'shop.greet' is no background task" in started.err
    assert f"next: tenure jobs show {job.id}" in watched.err


def test_only_background_tasks_are_listed(cli: Cli, app: Tenure) -> None:
    for at in range(3):
        app.ledger().at(START + at).enqueue(NewJob("report"))
    tasks = [
        app.ledger().at(START + at).enqueue(NewJob("sync", fields={"background": "1"})).id for at in range(3)
    ]

    first = cli("background", "list", "--limit", "2", "-o", "json").json
    rest = cli("background", "list", "--limit", "2", "-o", "json", "--cursor", first["nextCursor"]).json

    assert sorted(one["id"] for one in first["items"] + rest["items"]) == sorted(tasks)
    assert len(first["items"]) == 2
    assert all(task in cli("background", "list").out for task in tasks)


def test_background_tasks_are_found_behind_any_number_of_jobs(cli: Cli, app: Tenure) -> None:
    ledger = app.ledger()
    tasks = [ledger.enqueue(NewJob("sync", fields={"background": "1"})).id for _ in range(3)]
    for task in range(30):
        ledger.enqueue_many([NewJob(f"report.{task}") for _ in range(20)])
    ledger.enqueue_many([NewJob("sync") for _ in range(3)])  # it is a plain task now

    found = cli("background", "list", "--limit", "2", "-o", "json").json
    rest = cli("background", "list", "--limit", "2", "-o", "json", "--cursor", found["nextCursor"]).json

    assert sorted(one["id"] for one in found["items"] + rest["items"]) == sorted(tasks)
    assert len(found["nextCursor"]) < 200
    assert rest["nextCursor"] is None


def test_a_task_is_canceled(cli: Cli, app: Tenure) -> None:
    task = app.ledger().enqueue(NewJob("sync", fields={"background": "1"})).id

    assert cli("background", "cancel", task).out == f"{task} is canceled; it was pending\n"
    assert cli("background", "watch", task).code == 1


def test_watching_shows_the_share_that_is_done(cli: Cli, app: Tenure) -> None:
    ledger = app.ledger()
    ledger.enqueue(NewJob("sync", fields={"background": "1"}))
    ledger.settle(claim(ledger), NextChunk(pack({"at": 3}, what="cursor"), done=3, total=4))
    half = cli("background", "list").out
    lease = claim(ledger)
    ledger.settle(lease, Succeed())

    assert "75.0% [#########...] 3/4" in half
    assert "100.0% [############]" in cli("background", "watch", lease.id).out


# -- the line ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def view(ledger: Ledger) -> JobView:
    job = ledger.enqueue(NewJob("sync", fields={"background": "1"}))
    return ledger.get(job.id)


STEADY = tuple((second * 1000, second * 100) for second in range(1, 21))


def progress(**changes: object) -> Progress:
    plain = Progress(
        done=2_000,
        total=10_000,
        doing=None,
        message="",
        busy_ms=20_000,
        running_since=None,
        updated_at=None,
        samples=STEADY,
        lines=(),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_the_line_has_share_count_rate_and_eta(view: JobView) -> None:
    line = describe(replace(view, status=State.RUNNING, progress=progress()))

    assert line == "running    20.0% [##..........] 2,000/10,000  100/s  1m20s left (1m13s-1m28s)"
    assert len(line) < 80


def test_the_line_has_unit_stage_and_warnings(view: JobView) -> None:
    running = replace(
        view, status=State.RUNNING, progress=progress(unit="rows", stage="prices \x1b[2J", warnings=2)
    )
    line = "running    20.0% [##..........] 2,000/10,000 rows  100/s  1m20s left"
    begun = progress(done=None, total=None, stage="opening", warnings=1, samples=())

    assert describe(running) == f"{line} (1m13s-1m28s)  prices  2 warnings"
    assert describe(running, 100) == f"{line} (1m13s-1m28s)  2 warnings"
    assert describe(running, 85) == f"{line}  2 warnings"
    assert describe(replace(running, progress=begun)) == "running  opening  1 warning"
    assert describe(replace(running, status=State.SUCCEEDED)).endswith("100/s  2 warnings")


def test_watching_prints_a_line_for_each_stage(app: Tenure, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = app.ledger()
    ledger.enqueue(NewJob("sync", fields={"background": "1", "unit": "rows"}))
    lease = claim(ledger)
    ledger.report(
        lease, cursor=pack({"at": 3}, what="cursor"), done=3, total=4, stage="prices\x1b[2J", warnings=1
    )
    seen: list[str] = []

    monkeypatch.setattr(click, "echo", seen.append)

    show = _plain()
    for report in ({}, {"doing": 3}, {"stage": "stock"}):
        ledger.report(lease, **report)  # type: ignore[arg-type]
        show(ledger.get(lease.id))

    assert len(seen) == 2
    assert seen[0].endswith("3/4 rows  ETA: estimating  prices  1 warning")
    assert seen[1].endswith("stock  1 warning")


def test_the_line_counts_from_when_the_next_attempt_is_due(view: JobView) -> None:
    waits = replace(view, status=State.PENDING, run_at=view.read_at + 3_600_000, progress=progress())

    assert "1h01m left" in describe(waits)
    assert "ETA: estimating" in describe(replace(waits, progress=progress(samples=())))


def test_the_line_does_not_guess(view: JobView) -> None:
    few = replace(view, status=State.RUNNING, progress=progress(samples=STEADY[:1], done=100))
    open_ended = replace(view, status=State.RUNNING, progress=progress(total=None))

    assert describe(few).endswith("100/10,000  ETA: estimating")
    assert describe(open_ended).startswith("running       ?% [............] 2,000  100/s")
    assert describe(open_ended).endswith("ETA: estimating")


def test_the_line_of_a_paused_task_names_no_end(view: JobView) -> None:
    paused = replace(view, status=State.PAUSED, progress=progress())

    line = describe(paused)

    assert line.startswith("paused     20.0% [")
    assert "left" not in line
    assert "ETA" not in line


def test_the_line_of_an_ended_task_has_no_eta(view: JobView) -> None:
    dead = replace(view, status=State.DEAD, dead_reason="attempts_exhausted", progress=progress())

    assert describe(dead).endswith("100/s  (attempts_exhausted)")
    assert describe(replace(view, status=State.SUCCEEDED, progress=progress())).startswith(
        "succeeded 100.0% [####"
    )


@pytest.mark.parametrize(("options", "done"), [([], 3), (["--from-start"], None)])
def test_a_task_is_retried_from_its_checkpoint_or_from_the_start(
    cli: Cli, app: Tenure, options: list[str], done: int | None
) -> None:
    ledger = app.ledger()
    job_id = ledger.enqueue(NewJob("shop.sync", fields={"background": "1"})).id
    ledger.settle(claim(ledger), NextChunk(b"\x80", done=3, total=9))
    ledger.settle(claim(ledger), Fail("no data", permanent=True))

    first = cli("background", "retry", job_id, *options)
    again = cli("background", "retry", job_id, *options)
    ledger.cancel(job_id)
    as_json = cli("background", "retry", job_id, "-o", "json")

    assert (again.code, again.out) == (4, "")
    assert "it is pending" in again.err
    assert (first.code, first.out) == (0, f"{job_id} is pending; round 2 begins\n")
    assert (as_json.json["done"], as_json.json["status"]) == (done, "pending")


def test_only_a_background_task_is_retried_as_one(cli: Cli, app: Tenure) -> None:
    job_id = app.ledger().enqueue(NewJob("mail")).id

    said = cli("background", "retry", job_id)

    assert (said.code, "is no background task" in said.err) == (3, True)


def test_it_may_be_bound_to_a_record(cli: Cli, app: Tenure) -> None:
    start = ("background", "start", "shop.count", "[3]", "--app", "shop:app")

    job = cli(*start, "--record", "order:7", "--binding", "orders").out.strip()
    nobody = cli(*start, "--record", "order:8", "--binding", "orders")
    unknown = cli(*start, "--record", "order:7", "--binding", "order")
    odd = cli(*start, "--record", "order")

    found = app.jobs.get(job)
    assert found.bound
    assert (found.record, found.bound.binding) == (("order", "7"), "orders")
    assert (cli.folder / "rows").read_text() == f"7 accepted {job}\n"
    assert (nobody.code, "may not start" in nobody.err) == (4, True)
    assert (unknown.code, "did you mean 'orders'?" in unknown.err) == (2, True)
    assert (odd.code, "order" in odd.err) == (2, True)


def test_a_start_fails_in_words_when_who_may_cannot_be_asked(cli: Cli, app: Tenure) -> None:
    (cli.folder / "rights.py").write_text(RIGHTS)
    start = ("background", "start", "count", "--app", "rights:app", "--record", "order:1")

    said = cli(*start, "--binding", "boom")

    assert (said.code, said.out) == (1, "")
    assert "error RIGHTS_UNKNOWN: " in said.err
    assert "`may` of binding 'boom' raised ConnectionError: rights are down; nothing was made" in said.err
    assert "next: mend what `may` asks" in said.err
    assert "Traceback" not in said.err
    assert app.jobs.list().items == []


def test_tasks_are_found_by_their_record_and_say_how_its_row_follows(cli: Cli, app: Tenure) -> None:
    ledger = app.ledger()

    def start(record: str) -> str:
        return ledger.enqueue(
            NewJob("sync", fields={"background": "1", "binding": "orders", "record": record})
        ).id

    def row(job: str) -> str:
        return next(line for line in cli("jobs", "show", job).out.splitlines() if line.startswith("binding"))

    first, other = start("order:7"), start("order:8")
    rows = {one.task.id: one for one in Rows(ledger).take(["orders"])[0]}
    assert row(first).endswith("orders: about to be written")
    Rows(ledger).done([(rows[first], None), (rows[other], "OSError: the database is away")])
    assert row(first).endswith("orders: written")
    assert row(other).endswith(
        "orders: not written, tried once, and again soon: OSError: the database is away"
    )
    newest = start("order:7")
    assert row(first).endswith("orders: its row tells of a later task")

    for record, jobs in (("order:7", [newest, first]), ("order:8", [other]), ("order:9", [])):
        listed = cli("background", "list", "--record", record, "-o", "json")
        assert [task["id"] for task in json.loads(listed.out)["items"]] == jobs
    assert cli("background", "list", "--record", "order").code == 2
