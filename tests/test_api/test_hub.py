"""A feed alone, without a store: what its watchers get."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest

from tenure.api import hub
from tenure.api.hub import Feed, Snapshot
from tenure.scripts.errors import NotFound


def snapshot(revision: int, ended: bool = False) -> Snapshot:
    return Snapshot(revision, ended, None, b"{}")


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(10):
            await story()

    asyncio.run(limited())


def feed(read: Callable[[], Snapshot]) -> Feed:
    return Feed(snapshot(1), read, anyio.CapacityLimiter(1))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "GAP_S", 0.0)


def test_a_slow_watcher_gets_the_newest_snapshot_and_no_older_one() -> None:
    async def story() -> None:
        watched = feed(lambda: snapshot(1))
        slow = watched.follow(None, 60)
        assert await anext(slow) == snapshot(1)
        for revision in range(2, 50):
            watched.publish(snapshot(revision))

        assert await anext(slow) == snapshot(49)
        watched.end()

    run(story)


def test_the_last_snapshot_reaches_everybody_before_the_stream_ends() -> None:
    async def story() -> None:
        watched = feed(lambda: snapshot(2, ended=True))
        watched.hint()

        for _ in range(3):
            seen = [one async for one in watched.follow(1, 60)]
            assert seen == [snapshot(2, ended=True)]

    run(story)


def test_a_task_whose_retention_is_over_ends_the_stream() -> None:
    def gone() -> Snapshot:
        raise NotFound("gone")

    async def story() -> None:
        watched = feed(gone)
        watched.hint()

        assert [one async for one in watched.follow(1, 60)] == []

    run(story)


def test_a_fault_of_ours_ends_the_stream_rather_than_leaving_it_silent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken() -> Snapshot:
        raise RuntimeError("bug")

    async def story() -> None:
        watched = feed(broken)
        watched.hint()

        assert [one async for one in watched.follow(1, 60)] == []

    run(story)
    assert "bug" in caplog.text


def test_a_quiet_watcher_hears_that_nothing_came() -> None:
    async def story() -> None:
        watched = feed(lambda: snapshot(1))
        assert await anext(watched.follow(1, 0.0)) is None
        watched.end()

    run(story)


def test_an_end_wakes_watchers_at_once() -> None:
    async def story() -> None:
        watched = feed(lambda: snapshot(1))
        waiting = asyncio.ensure_future(anext(watched.follow(1, 3600), None))
        await asyncio.sleep(0)
        watched.end()

        assert await waiting is None

    run(story)
