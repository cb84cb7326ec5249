"""What background tasks say and how they are stopped, by real workers on a real server."""

from __future__ import annotations

from .test_worker import Shop, Start, env, shop, worker

__all__ = ["env", "shop", "worker"]  # fixtures


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
