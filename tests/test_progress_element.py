"""<tenure-progress> in a real browser, on a user's own site with a strict policy, watching a real ledger."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route

from tenure import Tenure
from tenure.api import events
from tenure.lease.instances import Instances
from tenure.lease.jobs import Lease
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail, NextChunk, Succeed
from tenure.lease.payload import pack
from tenure.testing import wait_until

from .browser import browser, find_browser
from .line import Line

CURSOR = pack({}, what="cursor")
PREFIX = "/shop/my/tasks"
CSP = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'"
HTML = '<img src="/hit" onerror="document.title=1"><script>document.title=2</script>'


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    found = find_browser()
    if found is None:
        pytest.skip("there is no browser on this machine (pip install playwright, apt-get install chromium)")
    with browser(found) as running:
        yield running


@dataclass
class Site:
    """A user's application on a port of its own; `hidden` are the tasks that its user may not see."""

    app: Tenure
    hidden: set[str]
    port: int = 0

    def may(self, request: Request, task: dict[str, Any]) -> bool:
        return task["id"] not in self.hidden

    async def page(self, request: Request) -> HTMLResponse:
        tasks = request.query_params.getlist("task")
        elements = "".join(
            f'<tenure-progress task="{one}" label="Import"></tenure-progress>' for one in tasks
        )
        text = (
            f'<!doctype html><html lang="{request.query_params.get("lang", "en")}"><title>shop</title>'
            f'<script type="module" src="{PREFIX}/tenure-progress.js"></script>{elements}</html>'
        )
        return HTMLResponse(text, headers={"content-security-policy": CSP})

    @contextmanager
    def served(self) -> Iterator[None]:
        """Up while the block runs, on the same port each time."""
        progress = self.app.progress(authorize=self.may)
        web = Starlette(routes=[Route("/page", self.page), Mount(PREFIX, progress)])
        server = uvicorn.Server(uvicorn.Config(web, "127.0.0.1", self.port, log_level="error"))
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            wait_until(lambda: server.started)
            self.port = server.servers[0].sockets[0].getsockname()[1]
            yield
        finally:
            server.should_exit = True
            wait_until(lambda: ended(thread, progress), "the server to end")


def ended(thread: threading.Thread, progress: Starlette) -> bool:
    """An element that lost its stream may have come again before the server stopped to listen."""
    progress.state.hub.close()
    thread.join(0.2)
    return not thread.is_alive()


@dataclass
class Shown:
    """A page with elements, as somebody sees it."""

    page: Any
    complaints: list[str]

    def text(self, part: str, nth: int = 0) -> str:
        return str(self.page.locator(f"tenure-progress .{part}").nth(nth).inner_text())

    def bar(self, name: str) -> str | None:
        found: str | None = self.page.locator("tenure-progress [role=progressbar]").get_attribute(name)
        return found

    def becomes(self, state: str, nth: int = 0) -> None:
        wait_until(lambda: self.text("state", nth) == state, f"{state!r} to be shown")


@pytest.fixture
def site(app: Tenure) -> Site:
    return Site(app, set())


@pytest.fixture
def ledger_(app: Tenure) -> Ledger:
    return app.ledger()


@pytest.fixture
def shown(chromium: Any, site: Site) -> Iterator[Any]:
    """Opens a page that shows tasks; at the end nobody may have complained, of a policy or otherwise."""
    context = chromium.new_context()
    opened: list[Shown] = []

    def show(*tasks: str, lang: str = "en", port: int | None = None, impatient: bool = False) -> Shown:
        page = context.new_page()
        if impatient:
            page.route("**/tenure-progress.js", soon_without_patience)
        seen = Shown(page, [])
        page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        page.on("console", lambda said: _complain(seen, said))
        query = "&".join([f"lang={lang}", *(f"task={task}" for task in tasks)])
        page.goto(f"http://localhost:{port or site.port}/page?{query}")
        opened.append(seen)
        return seen

    with site.served():
        yield show
        context.close()
    assert [complaint for seen in opened for complaint in seen.complaints] == []


def soon_without_patience(route: Any) -> None:
    """Serve the element as it is, but that silence counts as a loss after a second."""
    module = route.fetch()
    found = module.text()
    for name, usual, brief in (("SILENT_MS", "25_000", "1_000"), ("ANSWER_MS", "10_000", "1_000")):
        assert f"const {name} = {usual};" in found
        found = found.replace(f"const {name} = {usual};", f"const {name} = {brief};")
    route.fulfill(response=module, body=found)


def _complain(seen: Shown, said: Any) -> None:
    if said.type == "error" and "Failed to load resource" not in said.text:
        seen.complaints.append(said.text)


def start(ledger: Ledger, **fields: str) -> str:
    return ledger.enqueue(NewJob("orders.import", fields={"background": "1", **fields})).id


def take(ledger: Ledger) -> Lease:
    (lease,) = ledger.claim("advance", "hand").leases
    return lease


def test_it_shows_a_task_from_its_start_to_its_end(shown: Any, ledger_: Ledger) -> None:
    seen = shown(start(ledger_))

    seen.becomes("Waiting to start")
    assert seen.bar("aria-valuenow") is None
    lease = take(ledger_)
    seen.becomes("Running")
    ledger_.report(lease, cursor=CURSOR, done=420, total=1000, message="row 420")
    wait_until(lambda: seen.text("counts") == "42% · 420 of 1,000")
    assert seen.text("left") == "Estimating time left…"
    assert seen.text("message") == "row 420"
    assert seen.bar("aria-valuenow") == "42"
    assert seen.bar("aria-label") == "Import"
    assert seen.bar("aria-valuetext") == "Running, 42% · 420 of 1,000, Estimating time left…"
    ledger_.settle(lease, Succeed())
    seen.becomes("Done")
    assert (seen.text("counts"), seen.bar("aria-valuenow")) == ("100% · 1,000 of 1,000", "100")
    assert seen.text("hear") == "Import: Done"


def test_it_speaks_chinese(shown: Any, ledger_: Ledger) -> None:
    job = start(ledger_)
    ledger_.report(take(ledger_), cursor=CURSOR, done=1, total=4)

    seen = shown(job, lang="zh-CN")

    seen.becomes("运行中")
    assert (seen.text("counts"), seen.text("left")) == ("25% · 1 / 4", "正在估算剩余时间…")
    ledger_.cancel(job)
    seen.becomes("已取消")
    assert seen.bar("aria-valuenow") == "25"


def test_without_a_total_there_is_no_percent(shown: Any, ledger_: Ledger) -> None:
    job = start(ledger_)
    ledger_.report(take(ledger_), cursor=CURSOR, done=7)

    seen = shown(job)

    seen.becomes("Running")
    assert seen.text("counts") == "7 done"
    assert seen.bar("aria-valuenow") is None


def work_off(app: Tenure, ledger: Ledger, lease: Lease) -> None:
    """40 of 100 are done, one a minute."""
    redis: Any = app.redis()
    ledger.report(lease, cursor=CURSOR, done=1, total=100)
    samples = " ".join(f"{second * 60_000}:{second}" for second in range(1, 41))
    redis.hset(
        ledger.keys("progress", id=lease.id), mapping={"samples": samples, "done": 40, "busy": 40 * 60_000}
    )


def test_an_eta_is_a_range(shown: Any, app: Tenure, ledger_: Ledger) -> None:
    job = start(ledger_)
    work_off(app, ledger_, take(ledger_))

    seen = shown(job)

    seen.becomes("Running")
    low, _, high = seen.text("left").removesuffix(" min left").partition("\u2013")
    assert 40 <= int(low) < 60 < int(high) <= 80, seen.text("left")
    assert seen.text("clock").startswith("ends ")


def test_what_waits_has_work_left_but_no_time_of_day(shown: Any, app: Tenure, ledger_: Ledger) -> None:
    job = start(ledger_)
    lease = take(ledger_)
    work_off(app, ledger_, lease)
    ledger_.settle(lease, Fail("ValueError: no", delay_ms=60_000))

    seen = shown(job)

    seen.becomes("Waiting to try again")
    assert seen.text("left").endswith(" min left")
    assert seen.text("clock") == ""


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (NextChunk(CURSOR, done=1, total=2, delay_ms=60_000), "Running"),
        (Fail("ValueError: no", delay_ms=60_000), "Waiting to try again"),
        (Fail("ValueError: no", permanent=True), "Failed"),
    ],
    ids=["between chunks", "waits for another try", "failed"],
)
def test_each_state_has_its_word(shown: Any, ledger_: Ledger, outcome: Any, state: str) -> None:
    job = start(ledger_)
    ledger_.settle(take(ledger_), outcome)

    shown(job).becomes(state)


def test_a_paused_task_says_so_and_names_no_end(shown: Any, ledger_: Ledger) -> None:
    job = start(ledger_, instance="order-7", pausable="1")
    Instances(ledger_).pause("order-7")

    seen = shown(job)

    seen.becomes("Paused")
    assert (seen.text("left"), seen.text("clock")) == ("", "")


def test_what_a_task_says_is_text_and_nothing_else(shown: Any, ledger_: Ledger) -> None:
    job = start(ledger_)
    lease = take(ledger_)
    ledger_.report(lease, message=HTML)
    seen = shown(job)
    seen.becomes("Running")
    assert seen.text("message").startswith("<img src=")

    ledger_.settle(lease, Fail(f"ValueError: {HTML}", cause="raised", permanent=True))

    seen.becomes("Failed")
    assert "<script>" in seen.text("error")
    assert seen.page.locator("tenure-progress img, tenure-progress script").count() == 0
    assert seen.page.title() == "shop"


def test_it_catches_up_after_the_network_was_away(shown: Any, ledger_: Ledger) -> None:
    job = start(ledger_)
    lease = take(ledger_)
    seen = shown(job)
    seen.becomes("Running")

    seen.page.context.set_offline(True)
    seen.becomes("Connection lost, trying again…")
    ledger_.settle(lease, Succeed())
    assert seen.text("state") == "Connection lost, trying again…"
    assert seen.text("left").startswith("As of ")
    seen.page.context.set_offline(False)

    seen.becomes("Done")


@pytest.fixture
def line(site: Site, shown: Any) -> Iterator[Line]:
    """The browser's way to the site. What goes silent on it is never told that it has."""
    line = Line(f"http://127.0.0.1:{site.port}")
    yield line
    line.drop()
    line.close()


@pytest.mark.parametrize("moved", [True, False], ids=["there is news", "nothing has happened"])
def test_a_line_gone_silent_is_told_and_the_last_state_shown_as_old_until_it_speaks_again(
    shown: Any, line: Line, ledger_: Ledger, monkeypatch: pytest.MonkeyPatch, moved: bool
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.2)
    job = start(ledger_)
    lease = take(ledger_)
    before = ledger_.report(lease, cursor=CURSOR, done=40, total=100, message="row 40")
    seen = shown(job, port=line.port, impatient=True)
    seen.becomes("Running")
    told: list[str | None] = []
    seen.page.on(
        "request",
        lambda asked: told.append(asked.headers.get("last-event-id")) if "/events" in asked.url else None,
    )

    line.silent = True
    seen.becomes("Connection lost, trying again…")
    assert (seen.text("counts"), seen.text("message")) == ("40% · 40 of 100", "")
    assert seen.text("left").startswith("As of ")
    assert seen.bar("aria-busy") == "false"
    if moved:
        ledger_.report(lease, cursor=CURSOR, done=60, message="row 60")
    assert seen.text("counts") == "40% · 40 of 100"
    line.silent = False
    line.drop()

    seen.becomes("Running")
    assert seen.text("message") == ("row 60" if moved else "row 40")
    assert seen.text("counts") == ("60% · 60 of 100" if moved else "40% · 40 of 100")
    assert set(told) == {str(before)}


def test_it_says_nothing_of_running_while_the_server_is_down(
    chromium: Any, site: Site, ledger_: Ledger
) -> None:
    job = start(ledger_)
    lease = take(ledger_)
    page = chromium.new_page()
    seen = Shown(page, [])
    with site.served():
        page.goto(f"http://localhost:{site.port}/page?task={job}")
        seen.becomes("Running")

    seen.becomes("Connection lost, trying again…")
    ledger_.settle(lease, Fail("ValueError: no", permanent=True))

    with site.served():
        seen.becomes("Failed")
        page.close()


def test_what_may_not_be_seen_is_not_there(shown: Any, site: Site, ledger_: Ledger) -> None:
    job, other = start(ledger_), "0" * 26
    site.hidden.add(job)

    seen = shown(job, other)

    for nth in range(2):
        seen.becomes("This task is not available", nth)


def test_ten_tasks_on_a_page_all_follow(shown: Any, ledger_: Ledger) -> None:
    """A browser has six connections to a server, for all its pages."""
    jobs = [start(ledger_) for _ in range(10)]
    one, two = shown(*jobs), shown(*jobs)
    for seen in (one, two):
        for nth in range(10):
            seen.becomes("Waiting to start", nth)

    for job in jobs:
        ledger_.cancel(job)

    for seen in (one, two):
        for nth in range(10):
            seen.becomes("Canceled", nth)
