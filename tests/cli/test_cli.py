"""What holds for every command: exit codes, where text goes, what mistakes look like."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tenure.cli.output import clean, clean_line, lasted, local_time
from tenure.lease.durations import span

from .terminal import Cli

COMMANDS = (
    "dev",
    "demo",
    "worker",
    "scheduler",
    "api",
    "background",
    "jobs",
    "cron",
    "migrate",
    "status",
    "config",
    "explain",
)
SHOWING = (
    ("status",),
    ("config", "show"),
    ("jobs", "list"),
    ("cron", "list"),
    ("background", "list"),
    ("explain",),
    ("cron", "explain", "@daily"),
)


def test_the_help_names_every_command(cli: Cli) -> None:
    said = cli("--help")

    assert said.code == 0
    assert all(f"\n  {command} " in said.out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(cli: Cli, command: str) -> None:
    said = cli(command, "--help")

    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(f"Usage: tenure {command}")


def test_the_version_is_that_of_the_package(cli: Cli) -> None:
    from tenure import __version__

    assert cli("--version").out == f"tenure {__version__}\n"


def test_help_loads_nothing_but_click() -> None:
    program = "import sys, tenure.cli; print([name for name in ('redis', 'rq', 'starlette') if name in sys.modules])"

    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert said.stdout == "[]\n"


@pytest.mark.parametrize("command", SHOWING, ids=" ".join)
def test_whatever_shows_data_shows_it_as_json_too(cli: Cli, command: tuple[str, ...]) -> None:
    table, json = cli(*command), cli(*command, "-o", "json")

    assert (table.code, json.code) == (0, 0)
    assert json.json is not None


@pytest.mark.parametrize(
    ("args", "code", "says", "next_"),
    [
        (
            ["jobs", "show", "NONE"],
            3,
            "job 'NONE' is not in the ledger of tenant default",
            "tenure jobs list",
        ),
        (["jobs", "watch", "NONE"], 3, "job 'NONE' is not in", "tenure jobs list"),
        (
            ["jobs", "cancel", "NONE"],
            3,
            "job 'NONE' is not in the ledger of tenant default",
            "tenure jobs list",
        ),
        (["background", "watch", "NONE"], 3, "job 'NONE' is not in", ""),
        (["background", "cancel", "NONE"], 3, "job 'NONE' is not in", ""),
        (["cron", "show", "no.such"], 3, "schedule 'no.such' is not stored", "tenure cron list"),
        (["cron", "next", "no.such"], 3, "schedule 'no.such' is not stored", "tenure cron list"),
        (["cron", "show", "a..b."], 2, "JobKey name '' is not allowed", "reports.daily"),
        (["jobs", "list", "--status", "asleep"], 2, "status 'asleep' is not a state", "pending"),
        (["jobs", "list", "--cursor", "%%"], 2, "cursor '%%' is not one this list gave", "without a cursor"),
        (["jobs", "list", "--tenant", "A B"], 2, "tenant 'A B' is not a slug", "acme"),
        (["cron", "explain", "61 * * * *"], 2, "minute: 61 is above 59", "five are crontab"),
        (["cron", "explain", "-1 * * * *"], 2, "minute", "five are crontab"),
        (["cron", "explain", "-o", "json", "-1 * * * mon"], 2, "minute", "five are crontab"),
        (["background", "start", "shop.count"], 2, "no application was named", "--app shop.jobs:app"),
        (["cron", "explain", "@daily", "--tz", "Europe/Berln"], 2, "did you mean 'Europe/Berlin'", "IANA"),
        (["explain", "STALE_FENSE"], 2, "code 'STALE_FENSE' is not one", "tenure explain STALE_FENCE"),
        (["worker", "nosuch:app"], 2, "there is no module 'nosuch'", "PYTHONPATH"),
        (["worker", "shop"], 2, "'shop' is not of the form module:name", "shop.jobs:app"),
        (["worker", "shop:other"], 2, "module 'shop' has no 'other'", "shop:app"),
        (["worker"], 2, "no application was named", "TENURE_APP"),
        (
            ["api", "shop:app", "--host", "0.0.0.0"],
            2,
            "host '0.0.0.0' is not a loopback address",
            "127.0.0.1",
        ),
        (["api", "shop:app", "--host", "here"], 2, "host 'here' is not a loopback address", "127.0.0.1"),
        (["worker", "shop:app", "--pool", "A B"], 2, "pool 'A B' is not a pool name", "advance"),
        (["background", "start", "shop.cout", "--app", "shop:app"], 2, "no task 'shop.cout'", "'shop.count'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_told_with_its_value_and_the_next_step(
    cli: Cli, args: list[str], code: int, says: str, next_: str
) -> None:
    said = cli(*args)

    assert (said.code, said.out) == (code, "")
    assert says in said.err
    assert next_ in said.err.split("next:")[1]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["jbos"], "Did you mean 'jobs'?"),
        (["jobs", "lits"], "lits"),
        (["jobs", "show"], "Missing argument 'ID'"),
        (["jobs", "list", "--limit", "0"], "0 is not in the range 1<=x<=100"),
        (["jobs", "list", "-o", "yaml"], "'yaml' is not one of 'table', 'json'"),
        (["worker", "shop:app", "--slots", "0"], "0 is not in the range"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_exit_2_with_a_way_to_the_help(cli: Cli, args: list[str], says: str) -> None:
    said = cli(*args)

    assert (said.code, said.out) == (2, "")
    assert says in said.err
    assert "--help" in said.err


def test_a_server_that_is_away_is_exit_5(cli: Cli) -> None:
    said = cli("status", TENURE_REDIS_URL="redis://user:secret@127.0.0.1:1/0")

    assert (said.code, said.out) == (5, "")
    assert "127.0.0.1:1/0 cannot be reached" in said.err
    assert "redis-cli" in said.err
    assert "secret" not in said.err


def test_a_worker_that_does_not_start_does_not_say_that_it_runs(cli: Cli) -> None:
    said = cli.run("worker", "shop:app", TENURE_REDIS_URL="redis://127.0.0.1:1/0")

    assert said.code == 5
    assert "Ctrl-C" not in said.err


@pytest.mark.parametrize("url", ["http://here", "redis://", "redis://h:port", "redis://h:1/x"])
def test_a_wrong_url_is_exit_2(cli: Cli, url: str) -> None:
    said = cli("status", TENURE_REDIS_URL=url)

    assert (said.code, said.out) == (2, "")
    assert "redis_url is" in said.err


def test_a_refusal_of_the_ledger_is_exit_4(cli: Cli, done: str) -> None:
    said = cli("jobs", "cancel", done)

    assert (said.code, said.out) == (4, "")
    assert "WRONG_STATE" in said.err
    assert "succeeded" in said.err


def test_a_fault_in_the_users_module_is_told_with_its_place(cli: Cli) -> None:
    (cli.folder / "broken.py").write_text("import json\n\njson.nothing\n")
    (cli.folder / "unfinished.py").write_text("def f(:\n")

    broken, unfinished = cli("worker", "broken:app"), cli("worker", "unfinished:app")

    assert (broken.code, unfinished.code) == (2, 2)
    assert "AttributeError: module 'json' has no attribute 'nothing'" in broken.err
    assert "broken.py, line 3" in broken.err
    assert "unfinished.py, line 1" in unfinished.err


def test_an_application_of_another_kind_is_refused(cli: Cli) -> None:
    (cli.folder / "other.py").write_text("app = 3\n")

    assert "other:app is a int, not an application" in cli("worker", "other:app").err


def test_a_port_that_is_taken_is_told_before_anything_starts(cli: Cli) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        said = cli("api", "shop:app", "--port", str(port))

    assert said.code == 1
    assert f"error PORT_UNAVAILABLE: port {port} on 127.0.0.1 cannot be used" in said.err
    assert f"--port {port + 1}" in said.err


def test_serving_without_uvicorn_names_the_extra(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.cli.serve.find_spec", lambda _name: None)

    said = cli("api", "shop:app")

    assert said.code == 1
    assert "MISSING_EXTRA" in said.err
    assert "pip install '.[serve]'" in said.err


def test_a_closed_pipe_is_no_error(cli: Cli) -> None:
    process = cli.start("explain")
    assert process.stdout
    assert process.stderr

    process.stdout.close()

    assert process.wait(30) == 0
    assert process.stderr.read() == ""


def test_colour_is_for_terminals_that_want_it(cli: Cli) -> None:
    assert "\x1b[1mCODE" in cli.on_screen("explain")
    assert "\x1b" not in cli.run("explain").out
    assert "\x1b" not in cli.on_screen("explain", NO_COLOR="1")
    assert "\x1b" not in cli.on_screen("explain", TERM="dumb")


@pytest.mark.parametrize("columns", [80, 60, 40])
def test_tables_fit_their_terminal(cli: Cli, columns: int) -> None:
    lines = cli.on_screen("explain", columns=columns, NO_COLOR="1").splitlines()

    assert max(len(line) for line in lines) == columns
    assert len(lines) > 40


def test_a_table_that_is_read_by_a_program_is_not_cut(cli: Cli) -> None:
    assert "…" not in cli.run("explain").out


def test_output_that_cannot_be_written_is_told(cli: Cli) -> None:
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "tenure", "explain"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert (process.returncode, process.stderr) == (1, "error: [Errno 28] No space left on device\n")


def test_an_argument_that_is_no_text_is_refused(cli: Cli) -> None:
    said = cli("jobs", "show", "\udcff")

    assert said.code == 2
    assert "is not valid text" in said.err


def test_a_bug_of_ours_is_not_dressed_up(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.cli.explain.explanations", lambda: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        cli("explain")


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("\x9b31mred", "\\x9b31mred"),
        ("bell\x07", "bell\\x07"),
        ("turned\u202etext", "turned\\u202etext"),
        ("two\nlines", "two\nlines"),
        ("名字 ümlaut", "名字 ümlaut"),
    ],
)
def test_text_from_elsewhere_cannot_steer_the_terminal(text: str, harmless: str) -> None:
    assert clean(text) == harmless
    assert "\n" not in clean_line(text)


def test_times_are_local_and_carry_their_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    for zone, shown in [
        ("Asia/Shanghai", "2026-09-21 22:13:20+08"),
        ("Asia/Kolkata", "2026-09-21 19:43:20+0530"),
        ("UTC", "2026-09-21 14:13:20+00"),
        ("America/New_York", "2026-09-21 10:13:20-04"),
    ]:
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert local_time(1_790_000_000_000) == shown
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("ms", "shown"),
    [(400, "0s"), (12_000, "12s"), (185_000, "3m05s"), (3_720_000, "1h02m"), (90_000_000, "1d01h")],
)
def test_durations_are_short(ms: int, shown: str) -> None:
    assert span(ms) == shown


@pytest.mark.parametrize(("ms", "shown"), [(0, "0ms"), (999, "999ms"), (1_000, "1s"), (61_000, "1m01s")])
def test_what_took_less_than_a_second_is_told_in_milliseconds(ms: int, shown: str) -> None:
    assert lasted(ms) == shown


def test_settings_come_with_their_source_and_without_passwords(cli: Cli, tmp_path: Path) -> None:
    (cli.folder / "tenure.toml").write_text("lease_ms = 50_000\n")

    said = cli(
        "config",
        "show",
        "-o",
        "json",
        TENURE_REDIS_URL="redis://u:secret@h:1/0",
        TENURE_RQ_URL="redis://:secret@rq:1",
    )

    settings = {one["name"]: (one["value"], one["source"]) for one in said.json}
    assert settings["redis_url"] == ("redis://***@h:1/0", "TENURE_REDIS_URL")
    assert settings["rq_url"] == ("redis://***@rq:1", "TENURE_RQ_URL")
    assert settings["lease_ms"] == (50_000, "tenure.toml")
    assert settings["renew_ms"] == (15_000, "default")
