"""Ids in paths: whatever an id of the user's own may be, it is reached; whatever is sent, an error is a problem."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from tenure import Tenure
from tenure.cli.serve import served
from tenure.lease.requests import Options

from .conftest import local, refused

NAMES = ["a/b", "/", "a//b", "a b?c#d", "%2F", "日本/🚀", "pause", "{id}", "a;b=c", "a+b", "x" * 200]


@pytest.fixture(params=["alone", "mounted", "served"])
def under(request: pytest.FixtureRequest, shop: Tenure) -> tuple[TestClient, str]:
    """A client, and where the API is."""
    webs: dict[str, Any] = {
        "alone": (shop.api(), ""),
        "mounted": (Starlette(routes=[Mount("/very/tenure", shop.api())]), "/very/tenure"),
        "served": (served(shop), "/api"),
    }
    web, root = webs[request.param]
    return local(web), root


@pytest.mark.parametrize("name", NAMES)
def test_an_instance_is_reached_whatever_its_name(
    under: tuple[TestClient, str], shop: Tenure, name: str
) -> None:
    client, root = under
    shop.enqueue(shop.registry.get("reports.daily"), (), {}, Options(instance=name))
    path = f"{root}/instances/{quote(name, safe='')}"

    seen = client.get(path)
    paused = client.post(f"{path}/pause", json={"reason": "stock count"})
    why = client.get(f"{path}/why")

    assert (seen.json()["id"], paused.json()["id"]) == (name, name)
    assert shop.instances.get(name).flag.reason == "stock count"
    assert why.json()["verdict"] == "instance_suspended"


def test_a_schedule_is_reached_by_a_key_with_a_slash_and_its_links_too(
    under: tuple[TestClient, str], shop: Tenure
) -> None:
    client, root = under
    body = {"task": "reports.daily", "triggers": [{"cron": "0 0 2 ? * *"}]}

    made = client.put(f"{root}/schedules/{quote('a/b.daily/1', safe='')}", json=body)

    assert (made.status_code, made.json()["jobKey"]) == (201, "a/b.daily/1")
    assert made.headers["location"] == f"{root}/schedules/a%2Fb.daily%2F1"
    assert client.get(made.headers["location"]).json()["jobKey"] == "a/b.daily/1"
    assert client.get(f"{made.headers['location']}/next").status_code == 200


@pytest.mark.parametrize(
    "path", ["/jobs%2Fsummary", "/instances/a/b", "/instances/", "/instances//why", "/jobs/"]
)
def test_a_slash_divides_only_where_it_stands_as_such(under: tuple[TestClient, str], path: str) -> None:
    client, root = under

    refused(client.get(f"{root}{path}", follow_redirects=False), 404, "NO_SUCH_PATH")


@pytest.mark.parametrize("odd", ["%0A", "a%0Ab", "a%0A", "%0Aa", "%00", "%FF", "%E2%80%A8", "a%0D%0Ab"])
@pytest.mark.parametrize(
    "path", ["/jobs/{}", "/instances/{}", "/jobs/chain/{}", "/schedules/{}/why", "/{}", "/{}/x"]
)
@pytest.mark.parametrize("under", ["alone", "served"], indirect=True)
def test_an_odd_path_is_a_problem(under: tuple[TestClient, str], path: str, odd: str) -> None:
    """Where it is mounted, what is beside the mount is answered by whoever mounts."""
    client, root = under

    answer = client.get(root + path.format(odd))

    assert answer.status_code in (400, 404)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/", "/x", "/ap%0Ai", "/api%0A/jobs", "/api/jobs/%0A/why"])
def test_what_is_beside_the_served_api_is_a_problem(shop: Tenure, path: str) -> None:
    answer = local(served(shop)).get(path)

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
