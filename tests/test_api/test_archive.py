"""What the store has let go, over HTTP: the same answers from the archive, and none that only looks empty."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tenure import Tenure
from tenure.archive import Archiver
from tenure.lease.outcome import Succeed
from tenure.lease.requests import Options
from tenure.scheduler.plan import month
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.trigger import Trigger
from tenure.testing import wipe

from .conftest import Hand, local, refused

KEY = "reports.nightly"


@pytest.fixture
def kept(shop: Tenure, tmp_path: Path) -> Iterator[Tenure]:
    """The application with an archive, which has a job and what became of some instants."""
    kept = Tenure(replace(shop.settings, archive_url=f"sqlite:///{tmp_path}/archive.db"))
    assert kept.archive
    shop.schedules.put(KEY, task="reports.daily", triggers=[Trigger("default", every="1s")])
    (due,) = shop.schedules.get(KEY).next_fires.values()
    Schedules(shop.ledger().at(due + 3_000)).delete(KEY)
    shop.enqueue(shop.registry.get("reports.daily"), (), {}, Options())
    shop.enqueue(shop.registry.get("orders.sync"), (), {}, Options())
    for _ in range(2):
        Hand(shop.ledger()).work(Succeed(b"\x07"))
    archiver = Archiver(shop.ledgers(), kept.archive)
    while archiver.round() == 0.0:
        pass
    yield kept
    kept.close()


def answers(client: TestClient, paths: list[str]) -> list[Any]:
    return [client.get(path).json() for path in paths]


def test_answers_are_the_same_when_the_store_has_let_it_go(kept: Tenure, shop: Tenure) -> None:
    job, synced = (shop.jobs.list(task=task).items[0] for task in ("reports.daily", "orders.sync"))
    paths = [
        f"/schedules/{KEY}/logs?month={month(job.created_at)}",
        f"/jobs/{job.id}",
        f"/jobs/{job.id}/why",
        f"/background-tasks/{synced.id}",
    ]
    with local(kept.api()) as client:
        before = answers(client, paths)
        assert len(before[0]["items"]) == 1

        wipe(shop.redis(), shop.settings.namespace)

        assert answers(client, paths) == before
        assert client.get(f"/schedules/{KEY}/logs?month=202001").status_code == 404
        refused(client.get(f"/background-tasks/{job.id}"), 404, "NOT_FOUND")


def test_the_events_of_an_archived_task_are_its_last_snapshot(kept: Tenure, shop: Tenure) -> None:
    (synced,) = shop.jobs.list(task="orders.sync").items
    events = f"/background-tasks/{synced.id}/events"
    with local(kept.api()) as client:
        before = client.get(events).text
        assert f"id: {synced.revision}" in before

        wipe(shop.redis(), shop.settings.namespace)

        assert client.get(events).text == before
        assert client.get(events, headers={"last-event-id": str(synced.revision)}).status_code == 204


def test_an_archive_that_is_away_is_a_failed_query(kept: Tenure, shop: Tenure) -> None:
    lost = Tenure(replace(shop.settings, archive_url="sqlite:////nowhere/at/all.db"))
    job = shop.jobs.list().items[0]
    wipe(shop.redis(), shop.settings.namespace)
    shop.schedules.put(KEY, task="reports.daily", triggers=[Trigger("default", every="1s")])

    with local(lost.api()) as client:
        for path in (f"/schedules/{KEY}/logs", f"/schedules/{KEY}/fires", f"/jobs/{job.id}"):
            refused(client.get(path), 503, "ARCHIVE_UNREACHABLE")
        refused(client.get("/jobs/no-id"), 404, "NOT_FOUND")
    lost.close()
