"""`tenure chain`: all jobs of a trace, as a tree and as a bundle."""

from __future__ import annotations

import json
import zipfile

from tenure import Tenure
from tenure.lease.ledger import NewJob
from tenure.lease.outcome import Fail
from tenure.lease.payload import pack_args

from ..given import claim
from .terminal import Cli


def failed_chain(app: Tenure) -> str:
    ledger = app.ledger()
    root = ledger.enqueue(NewJob("shop.tick", pack_args([], {"password": "hunter2-of-ada"}))).id
    ledger.settle(claim(ledger), Fail("no access with hunter2-of-ada", permanent=True))
    ledger.enqueue(NewJob("mail", fields={"trace": root, "parent": root, "source": "continuation"}))
    return root


def test_a_chain_is_shown_as_a_tree(cli: Cli, app: Tenure) -> None:
    root = failed_chain(app)

    shown = cli("chain", "show", root).out.splitlines()

    assert shown[1].startswith(f"{root}    dead")
    assert "no access" in shown[1]
    assert shown[2].startswith("· 01")
    assert [job["depth"] for job in cli("chain", "show", root, "-o", "json").json["items"]] == [0, 1]
    part = cli("chain", "show", root, "--limit", "1")
    assert "there are more: the same with --cursor" in part.err
    assert cli("chain", "show", "nobody").code == 3
    assert cli("chain", "show", "a b").code == 2


def test_a_bundle_is_written_once_and_for_its_owner_alone(cli: Cli, app: Tenure) -> None:
    root = failed_chain(app)

    done = cli("chain", "bundle", root)

    path = cli.folder / f"tenure-chain-{root}.zip"
    assert (done.code, done.out) == (0, f"{path.name}\n")
    assert path.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(path) as archive:
        everything = {name: archive.read(name).decode() for name in archive.namelist()}
    assert "hunter2-of-ada" not in str(everything)
    assert json.loads(everything["manifest.json"])["jobs"] == 2
    again = cli("chain", "bundle", root)
    assert (again.code, "is there already" in again.err) == (4, True)
    assert cli("chain", "bundle", root, "--file", "other.zip").code == 0
