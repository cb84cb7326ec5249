"""How long the jobs of a tenant stay."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tenure import Keep, Tenure

from .conftest import pointers, refused

DEFAULTS: dict[str, Any] = {
    "succeeded": {"afterMs": 86_400_000, "most": 100_000},
    "canceled": {"afterMs": 86_400_000, "most": 100_000},
    **{state: {"afterMs": None, "most": None} for state in ("failed", "dead", "paused")},
}


def test_how_long_jobs_stay_is_said_for_each_state(client: TestClient, shop: Tenure) -> None:
    said = {"dead": {"afterMs": 1_000, "most": 5}, "succeeded": {"afterMs": None}}

    answer = client.put("/tenants/acme/retention", json={**said, "reason": "an audit"})

    assert answer.json() == {**DEFAULTS, "dead": said["dead"], "succeeded": {"afterMs": None, "most": None}}
    assert client.get("/tenants/acme/retention").json() == answer.json()
    assert shop.tenants.retention("acme")["dead"] == Keep(1_000, 5)
    assert client.get("/tenants/other/retention").json() == DEFAULTS
    assert client.put("/tenants/acme/retention", json={}).json() == DEFAULTS, (
        "what is not named is as by default"
    )


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ({"running": {}}, ["/running"]),
        ({"dead": "1d"}, ["/dead"]),
        ({"dead": {"afterMs": 0, "most": "x"}}, ["/dead/afterMs", "/dead/most"]),
        ({"dead": {"after": 1}}, ["/dead/after"]),
    ],
)
def test_what_breaks_a_rule_is_named(client: TestClient, body: dict[str, Any], places: list[str]) -> None:
    assert pointers(refused(client.put("/tenants/acme/retention", json=body), 400, "BAD_INPUT")) == places


def test_a_tenant_that_is_no_slug_is_refused(client: TestClient) -> None:
    refused(client.get("/tenants/A/retention"), 400, "BAD_INPUT")
