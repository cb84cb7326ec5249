"""Tasks for users to watch, mounted in their own application: each request is asked for, and nothing can be changed."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Mount
from starlette.testclient import TestClient

from tenure import Tenure
from tenure.api import progress_app
from tenure.lease.outcome import Fail, NextChunk, Succeed
from tenure.lease.payload import pack
from tenure.lease.requests import Options
from tenure.scripts.errors import BadInput, NotAllowed

from .conftest import Hand, refused

CURSOR = pack({}, what="cursor")


class Site:
    """A user's application: whoever sends `user: ada` is Ada, who may see tasks of order 7."""

    def __init__(self, app: Tenure) -> None:
        self.app = app
        self.asked: list[tuple[str | None, Any]] = []
        self.progress = app.progress(authorize=self.may)
        web = Starlette(routes=[Mount("/my/tasks", self.progress)])
        self.client = TestClient(web, base_url="http://shop.example", headers={"user": "ada"})

    def may(self, request: Request, task: dict[str, Any]) -> bool:
        user = request.headers.get("user")
        self.asked.append((user, task["id"]))
        return user == "ada" and task["record"] == {"type": "order", "id": "7"}

    def start(self, order: str = "7", tenant: str = "default") -> str:
        task = self.app.registry.get("orders.sync")
        return self.app.enqueue(task, (), {}, Options(tenant=tenant, record=("order", order))).id


@pytest.fixture
def site(shop: Tenure) -> Site:
    return Site(shop)


def test_a_user_sees_his_task_from_any_host(site: Site) -> None:
    job = site.start()

    task = site.client.get(f"/my/tasks/tasks/{job}").json()

    assert (task["id"], task["status"], task["percent"]) == (job, "pending", None)
    assert site.asked == [("ada", job)]


@pytest.mark.parametrize("what", ["", "/events", "/page"])
def test_a_no_and_what_does_not_exist_are_the_same_404(site: Site, what: str) -> None:
    mine, his = site.start(), site.start(order="8")
    answers = [
        site.client.get(f"/my/tasks/tasks/{his}{what}"),
        site.client.get(f"/my/tasks/tasks/{mine}{what}", headers={"user": "eve"}),
        site.client.get(f"/my/tasks/tasks/{'0' * 26}{what}"),
        site.client.get(f"/my/tasks/tasks/{mine}{what}?tenant=acme"),
    ]

    bodies = [{**refused(one, 404, "NOT_FOUND"), "detail": ""} for one in answers]
    assert all(body == bodies[0] for body in bodies)
    assert all("there is no task" in one.json()["detail"] for one in answers)


@pytest.mark.parametrize("said", ["yes", 1, None, ["yes"]], ids=repr)
def test_only_true_is_a_yes(shop: Tenure, said: Any) -> None:
    site = Site(shop)
    site.may = lambda request, task: said  # type: ignore[method-assign]
    site.progress = shop.progress(authorize=lambda request, task: said)
    client = TestClient(site.progress)

    assert client.get(f"/tasks/{site.start()}").status_code == 404


def test_it_may_be_asked_by_a_coroutine(shop: Tenure) -> None:
    async def may(request: Request, task: dict[str, Any]) -> bool:
        return request.query_params.get("as") == "ada"

    job = Site(shop).start()
    client = TestClient(shop.progress(authorize=may))

    assert client.get(f"/tasks/{job}").status_code == 404
    with pytest.raises(BadInput, match="cannot be called"):
        shop.progress(authorize="ada")  # type: ignore[arg-type]


def test_an_unknown_path_leads_to_one_that_the_mount_has(site: Site) -> None:
    problem = refused(site.client.get("/my/tasks/"), 404, "NO_SUCH_PATH")

    assert problem["hint"] == "GET /my/tasks/tasks/{id} is a beginning"


def test_who_cannot_be_asked_for_sees_nothing(shop: Tenure, caplog: pytest.LogCaptureFixture) -> None:
    async def later(request: Request, task: dict[str, Any]) -> bool:
        raise OSError("rights at 10.0.0.7 are down")

    def now(request: Request, task: dict[str, Any]) -> bool:
        raise OSError("rights at 10.0.0.7 are down")

    job = Site(shop).start()
    for authorize in (later, now):
        client = TestClient(shop.progress(authorize=authorize))
        for what in ("", "/events", "/page"):
            caplog.clear()
            answer = client.get(f"/tasks/{job}{what}")
            problem = refused(answer, 500, "RIGHTS_UNKNOWN")
            assert "10.0.0.7" not in answer.text
            assert "the application failed to answer" in problem["detail"]
            assert problem["traceId"] in caplog.text
            assert "OSError: rights at 10.0.0.7" in caplog.text


@pytest.mark.parametrize("no", [HTTPException(403), NotAllowed("not yours")], ids=["http", "ours"])
def test_a_no_may_be_raised(shop: Tenure, no: Exception) -> None:
    def authorize(request: Request, task: dict[str, Any]) -> bool:
        raise no

    site = Site(shop)
    client = TestClient(shop.progress(authorize=authorize))

    his, none = client.get(f"/tasks/{site.start()}"), client.get(f"/tasks/{'0' * 26}")

    assert refused(his, 404, "NOT_FOUND")["hint"] == refused(none, 404, "NOT_FOUND")["hint"]


def test_nothing_can_be_changed(site: Site) -> None:
    job = site.start()
    for path in (
        f"tasks/{job}",
        f"tasks/{job}/events",
        f"tasks/{job}/page",
        "tenure-progress.js",
        "page.css",
    ):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert site.client.request(method, f"/my/tasks/{path}").status_code in (404, 405), (method, path)
    for path in (f"tasks/{job}/cancel", "background-tasks", "jobs", ""):
        assert site.client.get(f"/my/tasks/{path}").status_code == 404, path
    assert site.app.ledger().get(job).status == "pending"


def test_a_user_sees_neither_result_nor_log_nor_arguments(site: Site, hand: Hand) -> None:
    job = site.start()
    lease = hand.take()
    hand.ledger.report(lease, cursor=CURSOR, done=1, total=2, lines=["connected to db-3"])
    hand.ledger.settle(lease, Succeed(pack("secret", what="result")))

    answer = site.client.get(f"/my/tasks/tasks/{job}")

    assert tuple(answer.json()) == progress_app.SHOWN
    assert "secret" not in answer.text
    assert "db-3" not in answer.text


def test_the_stream_shows_each_change_and_ends_with_the_task(site: Site, hand: Hand) -> None:
    job = site.start()
    hand.work(NextChunk(CURSOR, done=1, total=2))
    hand.work(Fail("ValueError: no", permanent=True))

    answer = site.client.get(f"/my/tasks/tasks/{job}/events")

    assert answer.headers["content-type"].startswith("text/event-stream")
    assert '"status":"dead"' in answer.text
    revision = answer.text.partition("id: ")[2].partition("\n")[0]
    again = site.client.get(f"/my/tasks/tasks/{job}/events", headers={"last-event-id": revision})
    assert again.status_code == 204


def test_a_user_may_wait_for_news_without_a_stream(site: Site, hand: Hand) -> None:
    place = f"/my/tasks/tasks/{site.start()}"
    seen = site.client.get(place).json()

    assert site.client.get(place, params={"waitMs": 20, "since": seen["revision"]}).json() == seen
    hand.take()
    assert (
        site.client.get(place, params={"waitMs": 60_000, "since": seen["revision"]}).json()["status"]
        == "running"
    )


def test_a_stream_ends_after_some_minutes_so_that_its_user_is_asked_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_app, "LONGEST_S", -1.0)
    job = site.start()

    answer = site.client.get(f"/my/tasks/tasks/{job}/events")  # it would not come back while the task waits

    assert "data:" not in answer.text


def test_files_are_served_once_and_then_known(site: Site) -> None:
    for name, kind in (("tenure-progress.js", "text/javascript"), ("page.css", "text/css")):
        first = site.client.get(f"/my/tasks/{name}", headers={"user": "anybody"})
        again = site.client.get(f"/my/tasks/{name}", headers={"if-none-match": first.headers["etag"]})

        assert first.headers["content-type"].startswith(kind)
        assert first.headers["x-content-type-options"] == "nosniff"
        assert (again.status_code, again.content) == (304, b"")


def test_the_page_of_a_task_needs_no_inline_script_and_escapes_what_it_shows(site: Site) -> None:
    job = site.start()

    page = site.client.get(f"/my/tasks/tasks/{job}/page")
    chinese = site.client.get(f"/my/tasks/tasks/{job}/page", headers={"accept-language": "zh-CN,en"})

    assert f'<tenure-progress task="{job}" tenant="default">' in page.text
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert '<html lang="en">' in page.text
    assert '<html lang="zh">' in chinese.text
    assert page.text.count("<script") == 1


def test_the_api_leads_to_the_page_of_a_task(client: TestClient) -> None:
    started = client.post("/background-tasks", json={"task": "orders.sync"}).json()

    page = client.get(started["links"]["page"])

    assert page.status_code == 200
    assert started["id"] in page.text


def test_two_who_watch_in_two_applications_share_one_subscription(shop: Tenure) -> None:
    heard: list[Any] = []
    one, two = heard.append, lambda watched: heard.append(watched)

    shop.hints.listen(one)
    shop.hints.listen(two)
    thread = shop.hints._loop
    shop.hints.leave(one)

    assert shop.hints._loop is thread
    shop.hints.leave(two)
