"""What a task gives or raises, however odd, is told: a real worker on a real server."""

from __future__ import annotations

import pytest

from tenure.lease.failures import Failures

from .test_worker import Shop, Start, env, shop, worker

__all__ = ["env", "shop", "worker"]  # fixtures


@pytest.mark.parametrize(
    ("kind", "reason", "says"),
    [
        ("half a character", "attempts_exhausted", "RuntimeError: sur \\udc80"),
        ("unreadable", "attempts_exhausted", "Unreadable: (its text raised SystemExit)"),
        ("delay", "attempts_exhausted", "its outcome cannot be told: TypeError: unsupported type"),
        ("cursor", "permanent_error", "cursor 'notadict' is no mapping"),
        ("unstorable cursor", "permanent_error", "cursor cannot be stored: at ['at'][1]: can not serialize"),
        ("count", "attempts_exhausted", "BadInput: done -1 is out of range"),
    ],
)
def test_whatever_ends_a_task_is_told_and_kills_no_slot(
    worker: Start, shop: Shop, kind: str, reason: str, says: str
) -> None:
    job = shop.make("odd.error", kind, max_attempts=1)

    worker(slots=1)

    view = shop.ended(job)
    assert (view.dead_reason, view.losses) == (reason, 0)
    (attempt,) = view.attempts
    assert attempt.cause in ("raised", "refused")
    assert says in str(attempt.error)


def test_a_reason_that_is_no_text_is_written_out(worker: Start, shop: Shop) -> None:
    job = shop.make("odd.error", "reason")

    worker()

    assert (shop.ended(job).attempts[0].status, shop.view(job).reason) == ("skipped", "7")


@pytest.mark.parametrize(
    ("way", "says"),
    [("chunk", "attempt 2 goes on from 40 of 100"), ("cursor", "attempt 2 goes on from the last checkpoint")],
)
def test_a_retry_says_that_it_goes_on_from_its_checkpoint(
    worker: Start, shop: Shop, way: str, says: str
) -> None:
    job = shop.make("interrupted", way, background="1")

    worker()

    view = shop.ended(job)
    assert view.status == "succeeded"
    assert view.progress
    assert [text for _, _, text in view.progress.lines] == [says]
    assert len(view.progress.message) <= 1_000


def test_a_job_that_dies_is_found_by_what_it_died_of(worker: Start, shop: Shop) -> None:
    """The kind of the error is made in the slot, where the traceback is, and goes all the way to the ledger."""
    job = shop.make("odd.error", "unreadable", max_attempts=1)

    worker(slots=1)

    view = shop.ended(job)
    (group,) = Failures(shop.ledger).groups().items
    assert (group.key, group.count, group.members[0].id) == (view.fingerprint, 1, view.id)
    assert (group.exception, group.template) == ("Unreadable", "(its text raised SystemExit)")
    assert group.frame == "worker_shop.odd_error"
