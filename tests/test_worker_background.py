"""What background tasks say and how they are stopped, by real workers on a real server."""

from __future__ import annotations

from pathlib import Path

from .test_worker import Shop, Start, env, lines, note, shop, worker

__all__ = ["env", "note", "shop", "worker"]  # fixtures


def test_stages_warnings_and_errors_are_told_without_secrets(worker: Start, shop: Shop) -> None:
    job = shop.make("talks", "hunter2!", max_attempts=1, background="1")

    worker()

    view = shop.ended(job)
    progress = shop.ledger.get(job, lines=9).progress
    assert progress is not None
    assert (progress.stage, progress.warnings, progress.message) == ("stage 2 ***", 3, "*** ***")
    assert [text for _, _, text in progress.lines] == ["warning: *** or ***, password=***"] * 3
    (attempt,) = view.attempts
    assert attempt.error == "ValueError: *** ***: refused"
    assert "*** ***: refused" in str(attempt.stack)


def test_a_tracked_loop_goes_on_after_the_last_committed_item_when_its_process_dies(
    worker: Start, shop: Shop, note: Path
) -> None:
    job = shop.make("tracks", str(note), 40, background="1")

    worker()

    view = shop.ended(job)
    assert (view.status, view.value) == ("succeeded", 40)
    assert [(attempt.status, attempt.cause) for attempt in view.attempts] == [
        ("failed", "killed"),
        ("succeeded", None),
    ]
    assert [int(row) for chunk in lines(note) for row in chunk] == list(range(40))
    assert view.progress is not None
    assert (view.progress.done, view.progress.total) == (40, 40)
