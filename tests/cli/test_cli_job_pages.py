"""Lists of jobs that go on in the archive, as they are asked for: by HTTP, from Python and on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from tenure import Tenure
from tenure.api import views
from tenure.archive import Archive, Archiver
from tenure.lease.ledger import NewJob
from tenure.lease.outcome import Succeed
from tenure.testing import wipe

from .terminal import Cli

NOWHERE = {"sqlite": "sqlite:////nowhere/at/all.db", "postgresql": "postgresql+psycopg://x@/x?host=/nowhere"}


@pytest.fixture
def kept(app: Tenure, archive: Archive) -> Iterator[Tenure]:
    """An application with an archive. Redis has lost the first three of five jobs, all of them done."""
    kept = Tenure(replace(app.settings, archive_url=archive.engine.url.render_as_string(hide_password=False)))
    ledger = app.ledger()
    for many in (3, 2):
        wipe(app.redis(), app.settings.namespace)
        for _ in range(many):
            ledger.enqueue(NewJob("plain"))
            ledger.settle(ledger.claim("advance", "one").leases[0], Succeed())
        archiver = Archiver(app.ledgers(), archive)
        while archiver.round() == 0.0:
            pass
    yield kept
    kept.close()


def test_all_pages_by_http_python_and_the_command_line(kept: Tenure, cli: Cli) -> None:
    where = {"TENURE_ARCHIVE_URL": kept.settings.archive_url or ""}
    with TestClient(kept.api(), base_url="http://localhost", client=("127.0.0.1", 50000)) as client:
        cursor: str | None = None
        ids: list[str] = []
        for _ in range(4):
            page = views.jobs_page(kept.jobs.list(limit=2, cursor=cursor), views.job)
            query = "/jobs?limit=2" + (f"&cursor={cursor}" if cursor else "")
            assert ids_of(client.get(query).json()) == ids_of(page)
            args = ("--cursor", cursor) if cursor else ()
            assert ids_of(cli("jobs", "list", "--limit", "2", *args, "-o", "json", **where).json) == ids_of(
                page
            )
            ids += ids_of(page)[0]
            cursor = page["nextCursor"]
            if cursor is None:
                break
        assert client.get("/jobs?label=team%3Dx").json()["redisOnly"] is True
        assert client.get("/background-tasks").json()["redisOnly"] is True

    assert len(ids) == len(set(ids)) == 5
    assert cursor is None
    assert "only what Redis has was searched" in cli("jobs", "list", "--label", "team=x", **where).err
    assert cli("background", "list", "-o", "json", **where).json["redisOnly"] is True


def ids_of(page: dict[str, Any]) -> tuple[list[str], str | None, bool]:
    return [job["id"] for job in page["items"]], page["nextCursor"], page["redisOnly"]


def test_an_archive_that_is_away_fails_the_page_that_needs_it(
    kept: Tenure, cli: Cli, archive: Archive
) -> None:
    nowhere = NOWHERE[archive.engine.dialect.name]
    away = Tenure(replace(kept.settings, archive_url=nowhere))
    with TestClient(away.api(), base_url="http://localhost", client=("127.0.0.1", 50000)) as client:
        first = client.get("/jobs")
        assert (first.status_code, len(first.json()["items"])) == (200, 2)
        second = client.get(f"/jobs?cursor={first.json()['nextCursor']}")
        assert (second.status_code, second.json()["code"]) == (503, "ARCHIVE_UNREACHABLE")
        assert client.get("/jobs?status=dead").status_code == 503
    away.close()

    said = cli("jobs", "list", "--status", "dead", TENURE_ARCHIVE_URL=nowhere)
    assert said.code == 1
    assert "ARCHIVE_UNREACHABLE" in said.err
