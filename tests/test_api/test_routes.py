"""Every path and method there is: a route without a row here fails."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from starlette.routing import Route
from starlette.testclient import TestClient

from tenure import Tenure
from tenure.api.health import Health
from tenure.api.problems import STATUSES, status_of
from tenure.api.tasks import Tasks
from tenure.scripts import errors

from .conftest import local, refused

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")

# Path, and what each of its methods answers without a body and with nothing in the store.
TABLE: dict[str, dict[str, int]] = {
    "/tasks": {"GET": 200, "HEAD": 200},
    "/background-tasks": {"GET": 200, "HEAD": 200, "POST": 400},
    "/background-tasks/{id}": {"GET": 404, "HEAD": 404},
    "/background-tasks/{id}/cancel": {"POST": 404},
    "/background-tasks/{id}/retry": {"POST": 404},
    "/background-tasks/{id}/events": {"GET": 404, "HEAD": 404},
    "/jobs": {"GET": 200, "HEAD": 200},
    "/jobs/summary": {"GET": 200, "HEAD": 200},
    "/jobs/runtime-status": {"GET": 200, "HEAD": 200},
    "/jobs/failure-clusters": {"GET": 200, "HEAD": 200},
    "/jobs/batch-retry": {"POST": 400},
    "/jobs/batch-skip": {"POST": 400},
    "/jobs/replay-preview": {"POST": 200},
    "/jobs/replay-dead": {"POST": 200},
    "/jobs/replays": {"GET": 200, "HEAD": 200},
    "/jobs/replays/{id}": {"GET": 404, "HEAD": 404},
    "/jobs/chain/{trace}": {"GET": 404, "HEAD": 404},
    "/jobs/chain/{trace}/diagnostic-bundle": {"GET": 404, "HEAD": 404},
    "/jobs/{id}": {"GET": 404, "HEAD": 404},
    "/jobs/{id}/why": {"GET": 404, "HEAD": 404},
    "/jobs/{id}/retry": {"POST": 404},
    "/jobs/{id}/skip": {"POST": 404},
    "/jobs/{id}/cancel": {"POST": 404},
    "/jobs/{id}/reschedule": {"POST": 400},
    "/jobs/{id}/confirm": {"POST": 400},
    "/instances/{id}": {"GET": 200, "HEAD": 200},
    "/instances/{id}/why": {"GET": 200, "HEAD": 200},
    "/instances/{id}/pause": {"POST": 200},
    "/instances/{id}/resume": {"POST": 200},
    "/instances/{id}/end": {"POST": 200},
    "/tenants/{tenant}/retention": {"GET": 200, "HEAD": 200, "PUT": 200},
    "/workers": {"GET": 200, "HEAD": 200},
    "/schedules": {"GET": 200, "HEAD": 200},
    "/schedules/preview": {"POST": 400},
    "/schedules/{job_key}": {"GET": 404, "HEAD": 404, "PUT": 400, "PATCH": 404, "DELETE": 404},
    "/schedules/{job_key}/pause": {"POST": 404},
    "/schedules/{job_key}/resume": {"POST": 404},
    "/schedules/{job_key}/run": {"POST": 404},
    "/schedules/{job_key}/backfill": {"POST": 400},
    "/schedules/{job_key}/dry-run": {"POST": 404},
    "/schedules/{job_key}/next": {"GET": 404, "HEAD": 404},
    "/schedules/{job_key}/fires": {"GET": 404, "HEAD": 404},
    "/schedules/{job_key}/logs": {"GET": 404, "HEAD": 404},
    "/schedules/{job_key}/why": {"GET": 404, "HEAD": 404},
    "/holds": {"GET": 200, "HEAD": 200, "POST": 400, "DELETE": 400},
    "/calendars": {"GET": 200, "HEAD": 200},
    "/calendars/{name}": {"GET": 404, "HEAD": 404, "PUT": 400, "DELETE": 404},
    "/tenants": {"GET": 200, "HEAD": 200},
    "/tenants/{tenant}/scheduling": {"GET": 200, "HEAD": 200, "PUT": 400},
    "/livez": {"GET": 200, "HEAD": 200},
    "/readyz": {"GET": 200, "HEAD": 200},
}


def test_the_table_has_every_route(shop: Tenure) -> None:
    routes = [route for route in shop.api().routes if isinstance(route, Route)]

    assert {route.path: set(route.methods or ()) for route in routes} == {
        path: set(methods) for path, methods in TABLE.items()
    }


@pytest.mark.parametrize("path", TABLE)
@pytest.mark.parametrize("method", METHODS)
def test_a_method_answers_as_the_table_says(client: TestClient, path: str, method: str) -> None:
    answer = client.request(
        method,
        path.replace("{id}", "x")
        .replace("{job_key}", "x")
        .replace("{tenant}", "x")
        .replace("{trace}", "x")
        .replace("{name}", "x"),
    )

    expected = TABLE[path].get(method)
    if expected is None and method == "HEAD":
        assert answer.status_code == 405
    elif expected is None:
        problem = refused(answer, 405, "METHOD_NOT_ALLOWED")
        assert {name.strip() for name in answer.headers["allow"].split(",")} == set(TABLE[path])
        assert "GET" in problem["hint"] or "POST" in problem["hint"]
    else:
        assert answer.status_code == expected


@pytest.mark.parametrize("path", ["/", "/nothing", "/jobs/", "/jobs/x/y", "//jobs", "/jobs%2Fx%2Fy"])
def test_an_unknown_path_is_a_problem_and_no_redirect(client: TestClient, path: str) -> None:
    refused(client.get(path, follow_redirects=False), 404, "NO_SUCH_PATH")


def test_every_error_has_a_status() -> None:
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.TenureError)
    ]

    assert {kind: status_of(kind) for kind in kinds if status_of(kind) == 500} == {
        errors.TenureError: 500,
        errors.Canceled: 500,
        errors.JobFailed: 500,
        errors.RightsUnknown: 500,
    }
    assert all(issubclass(kind, errors.TenureError) for kind in STATUSES)


@pytest.mark.parametrize("kind", [kind for kind in STATUSES if status_of(kind) == 503])
def test_a_store_that_cannot_serve_asks_to_come_back(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, kind: type[errors.TenureError]
) -> None:
    def away(*_: Any) -> Any:
        raise kind("redis://***@localhost cannot be reached", hint="start it")

    monkeypatch.setattr(Tenure, "ledger", away)

    answer = client.get("/jobs")

    problem = refused(answer, 503, kind.code)
    assert answer.headers["retry-after"] == "2"
    assert problem["hint"] == "start it"


def test_our_own_mistake_tells_the_client_nothing_and_the_log_everything(
    shop: Tenure, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("password=hunter2")

    caplog.set_level(logging.WARNING, "tenure.api")
    monkeypatch.setattr(Tasks, "list", broken)
    monkeypatch.setattr(Health, "livez", broken)

    with local(shop.api()) as client:
        for path in ("/tasks", "/livez"):
            answer = client.get(path)

            problem = refused(answer, 500, "INTERNAL")
            assert "hunter2" not in answer.text
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert problem["traceId"] in caplog.text
    assert "hunter2" in caplog.text
