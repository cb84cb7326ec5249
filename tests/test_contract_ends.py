"""The contract's table "what ended the attempt": one test a row, from what the task does to what the ledger says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tenure import Continue, Done, Permanent, Retry, RetryAfter, Skip
from tenure.lease.instances import Instances
from tenure.lease.jobs import Lease
from tenure.lease.ledger import Ledger
from tenure.lease.outcome import Fail, GiveBack, Lose
from tenure.lease.tasks import Task
from tenure.scripts.states import Cause
from tenure.testing import START
from tenure.workers.attempt import failed, returned
from tenure.workers.interrupts import OutOfTime

from .given import PAUSABLE, running, view

TASK = Task("report", print, retry=Retry(permanent=(KeyError,)))
End = Callable[[Ledger, Lease], object]


def returns(value: object) -> End:
    return lambda ledger, lease: ledger.settle(lease, returned(value))


def raises(exc: BaseException) -> End:
    return lambda ledger, lease: ledger.settle(lease, failed(exc, TASK, lease.failures))


@dataclass(frozen=True)
class Row:
    """A row of the table, or one of the cases that a row names."""

    ended_by: str
    end: End
    attempt: tuple[str, str | None]
    job: str
    failures: int = 0
    losses: int = 0
    waits: bool = False
    """Whether it comes again after a delay, and not at once."""
    max_attempts: int = 3


LIMIT = Fail("STEPS: more than 1000", Cause.LIMIT, 30_000)
ROWS = [
    Row("returned", returns(5), ("succeeded", None), "succeeded"),
    Row("returned nothing", returns(None), ("succeeded", None), "succeeded"),
    Row("Done", returns(Done(5)), ("succeeded", None), "succeeded"),
    Row("Continue", returns(Continue({"at": 1})), ("running", None), "pending"),
    Row("Continue with a delay", returns(Continue({}, delay="5s")), ("running", None), "pending", waits=True),
    Row("Skip(reason), returned", returns(Skip("none")), ("skipped", None), "succeeded"),
    Row("Skip(reason), raised", raises(Skip("none")), ("skipped", None), "succeeded"),
    Row("raised", raises(ValueError()), ("failed", "raised"), "pending", 1, waits=True),
    Row("raised, the last time", raises(ValueError()), ("failed", "raised"), "attempts_exhausted", 1,
        max_attempts=1),
    Row("limit crossed", lambda ledger, lease: ledger.settle(lease, LIMIT), ("failed", "limit"), "pending", 1,
        waits=True),
    Row("raised an error the task lists as permanent", raises(KeyError("a")), ("failed", "raised"),
        "permanent_error", 1),
    Row("raised Permanent", raises(Permanent()), ("failed", "raised"), "permanent_error", 1),
    Row("result too large", returns(bytes(300_000)), ("failed", "too_large"), "permanent_error", 1),
    Row("RetryAfter(delay)", raises(RetryAfter("1h")), ("failed", "refused"), "pending", 1, waits=True),
    Row("RetryAfter(delay), the last time", raises(RetryAfter("1h")), ("failed", "refused"),
        "attempts_exhausted", 1, max_attempts=1),
    Row("timed out, told", raises(OutOfTime()), ("failed", "timeout"), "pending", 1, waits=True),
    Row("timed out, found by the reaper", lambda ledger, lease: ledger.at(lease.deadline).reap(),
        ("failed", "timeout"), "pending", 1, waits=True),
    Row("lease lost", lambda ledger, lease: ledger.at(lease.expires_at).reap(), ("failed", "lease_lost"),
        "pending", 0, 1),
    Row("slot or worker died", lambda ledger, lease: ledger.settle(lease, Lose("exit code -9")),
        ("failed", "killed"), "pending", 0, 1),
    Row("graceful stop", lambda ledger, lease: ledger.settle(lease, GiveBack()), ("canceled", "released"),
        "pending"),
    Row("canceled by a person", lambda ledger, lease: ledger.cancel(lease.id), ("canceled", "canceled"),
        "canceled"),
    Row("paused by a person", lambda ledger, lease: Instances(ledger).pause("order-7"), ("canceled", "paused"),
        "paused"),
    Row("skipped by a person", lambda ledger, lease: ledger.skip(lease.id), ("canceled", "canceled"),
        "canceled"),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[row.ended_by for row in ROWS])
def test_what_ended_the_attempt(ledger: Ledger, row: Row) -> None:
    lease = running(ledger, fields={"max_attempts": str(row.max_attempts), **PAUSABLE})

    row.end(ledger, lease)

    found = view(ledger, lease)
    (attempt,) = found.attempts
    assert (attempt.status, attempt.cause) == row.attempt
    assert (found.dead_reason or found.status) == row.job
    assert found.status == ("dead" if found.dead_reason else row.job)
    assert (found.failures, found.losses) == (row.failures, row.losses)
    if found.status == "pending":
        ended = attempt.ended_at or START
        assert (found.run_at > ended) == row.waits


def test_a_chunk_resets_the_consecutive_failures(ledger: Ledger) -> None:
    """The rest of the row `Continue`."""
    lease = running(ledger)
    ledger.settle(lease, Fail("no luck"))
    (second,) = ledger.claim("advance", "one").leases

    ledger.settle(second, returned(Continue({"at": 1})))

    assert (view(ledger, lease).failures, view(ledger, lease).chunk) == (0, 1)


def test_lost_for_the_third_time(ledger: Ledger) -> None:
    """The rest of the row `lease lost, slot or worker died`."""
    lease = running(ledger)
    for _ in range(2):
        ledger.settle(lease, Lose("exit code -9"))
        (lease,) = ledger.claim("advance", "one").leases
    ledger.settle(lease, Lose("exit code -9"))

    found = view(ledger, lease)
    assert (found.status, found.dead_reason, found.losses) == ("dead", "lost_too_often", 3)
