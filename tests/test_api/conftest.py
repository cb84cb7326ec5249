"""An application with a few tasks, a client on this machine, and a hand that plays the worker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.testclient import TestClient

from tenure import Ctx, Tenure
from tenure.lease.jobs import Lease
from tenure.lease.ledger import Ledger
from tenure.lease.outcome import Outcome


@pytest.fixture
def shop(app: Tenure) -> Tenure:
    """`app` with tasks. Nobody runs them but the test."""

    @app.background("orders.sync", startable=True, unit="rows")
    def sync(ctx: Ctx, shop: str = "north") -> int:
        return len(shop)

    @app.background("orders.purge")
    def purge() -> None: ...

    @app.task("reports.daily", startable=True)
    def daily(day: int = 1) -> int:
        return day

    return app


@pytest.fixture
def client(shop: Tenure) -> Iterator[TestClient]:
    with local(shop.api()) as client:
        yield client


def local(api: Any, **options: Any) -> TestClient:
    """A client that comes from this machine."""
    return TestClient(api, base_url="http://localhost", client=("127.0.0.1", 50000), **options)


@dataclass(frozen=True)
class Hand:
    """Plays a worker of one tenant."""

    ledger: Ledger

    def take(self) -> Lease:
        """Claim the next job; there must be one."""
        (lease,) = self.ledger.claim("advance", "hand").leases
        return lease

    def work(self, outcome: Outcome) -> Lease:
        lease = self.take()
        self.ledger.settle(lease, outcome)
        return lease


@pytest.fixture
def hand(shop: Tenure) -> Hand:
    return Hand(shop.ledger())


def start(client: TestClient, **fields: Any) -> dict[str, Any]:
    """Start a background task; the answer's content."""
    answer = client.post("/background-tasks", json={"task": "orders.sync", **fields})
    assert answer.status_code in (200, 202), answer.text
    content: dict[str, Any] = answer.json()
    return content


def refused(answer: Any, status: int, code: str) -> dict[str, Any]:
    """The content of a problem, after a look at all that problems have in common."""
    assert answer.headers["content-type"] == "application/problem+json"
    content: dict[str, Any] = answer.json()
    assert (answer.status_code, content["status"], content["code"]) == (status, status, code), content
    assert set(content) == {"type", "title", "status", "code", "detail", "hint", "errors", "traceId"}
    assert content["detail"]
    assert content["hint"]
    assert "Traceback" not in answer.text
    return content


def pointers(problem: dict[str, Any]) -> list[str]:
    return [error["pointer"] for error in problem["errors"]]
