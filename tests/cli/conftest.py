"""The command line on the test's own server and namespace."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure import Tenure
from tenure.lease.ledger import NewJob
from tenure.lease.outcome import Succeed
from tenure.testing import Server

from ..given import claim
from .terminal import SHOP, Cli


@pytest.fixture
def cli(tenure_server: Server, tenure_namespace: str, tmp_path: Path) -> Cli:
    """The command line in an empty folder with `shop.py`, on the test's namespace."""
    if tenure_server.url is None:
        pytest.skip(f"the command line needs a server to connect to; this is {tenure_server.kind}")
    (tmp_path / "shop.py").write_text(SHOP)
    return Cli({"TENURE_REDIS_URL": tenure_server.url, "TENURE_NAMESPACE": tenure_namespace}, tmp_path)


@pytest.fixture
def done(app: Tenure) -> str:
    """A job that has succeeded."""
    ledger = app.ledger()
    job = ledger.enqueue(NewJob("report"))
    ledger.settle(claim(ledger), Succeed())
    return job.id
