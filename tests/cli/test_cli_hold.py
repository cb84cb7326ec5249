"""`tenure hold`: what an operator keeps from being claimed."""

from __future__ import annotations

import pytest

from tenure import Tenure
from tenure.lease.who import whoami

from .terminal import Cli


def test_a_hold_is_added_listed_and_removed(cli: Cli, app: Tenure) -> None:
    added = cli("hold", "add", "--task", "reports.daily", "--reason", "wrong\x1b[31m numbers", "--for", "2h")
    listed = cli("hold", "list")
    removed, again = (cli("hold", "remove", "--task", "reports.daily") for _ in range(2))

    assert added.code == 0
    assert added.out.startswith("task reports.daily is held since ")
    assert "wrong" in listed.out
    assert "\x1b" not in listed.out
    assert whoami() in listed.out
    assert (removed.code, removed.err.strip()) == (0, "task reports.daily is released")
    assert again.err.strip() == "task reports.daily was not held"
    assert app.holds() == []


def test_a_pool_and_all_jobs_of_a_tenant_are_held(cli: Cli, app: Tenure) -> None:
    pool = cli("hold", "add", "--pool", "outbound", "-o", "json").json
    every = cli(
        "hold", "add", "--all", "--tenant", "acme", "--until", "2030-01-01T00:00:00Z", "-o", "json"
    ).json

    assert (pool["pool"], pool["tenant"], pool["until"]) == ("outbound", "default", None)
    assert (every["pool"], every["task"], every["until"]) == (None, None, "2030-01-01T00:00:00.000Z")
    assert [one["tenant"] for one in cli("hold", "list", "--tenant", "acme", "-o", "json").json["items"]] == [
        "acme"
    ]
    assert cli("hold", "remove", "--all", "--tenant", "acme").err.strip() == "tenant acme is released"
    assert cli("hold", "list", "--tenant", "acme").err.strip() == "nothing is held in tenant acme"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "one of --pool, --task and --all"),
        (("--pool", "a", "--task", "b"), "one of --pool, --task and --all"),
        (("--task", "a", "--for", "2h", "--until", "2030-01-01T00:00:00Z"), "a hold has one end"),
        (("--task", "a", "--for", "soon"), "--for"),
        (("--task", "No Task"), "task key"),
    ],
)
def test_a_mistake_is_told(cli: Cli, app: Tenure, args: tuple[str, ...], says: str) -> None:
    said = cli("hold", "add", *args)

    assert said.code != 0
    assert says in said.err
