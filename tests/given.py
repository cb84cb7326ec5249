"""Short ways to arrange a ledger, so that a test shows only what it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from tenure.lease.instances import Instances
from tenure.lease.jobs import JobView, Lease
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail, Succeed
from tenure.scripts import Call
from tenure.scripts.fields import FIELDS
from tenure.scripts.loader import SHARED, Client, Library
from tenure.scripts.states import DeadReason, State
from tenure.testing import START, difference, dump

At = Callable[[int], Ledger]


def claim(ledger: Ledger, worker: str = "one", pool: str = "advance") -> Lease:
    """Claim the one job that is due."""
    found = ledger.claim(pool, worker)
    assert len(found.leases) == 1, f"expected a job to claim, got none: {found.reason}"
    return found.leases[0]


def running(ledger: Ledger, task: str = "report", worker: str = "one", **job: Any) -> Lease:
    """A job that `worker` has claimed."""
    ledger.enqueue(NewJob(task, **job))
    return claim(ledger, worker)


def claimed_ids(ledger: Ledger, want: int, pool: str = "advance") -> list[str]:
    return [lease.id for lease in ledger.claim(pool, "one", want).leases]


# A job in each state that a job can be in today, with the lease its last holder has or had.


def pending_again(ledger: Ledger) -> Lease:
    lease = running(ledger)
    ledger.settle(lease, Fail("no luck", delay_ms=60_000))
    return lease


def between_chunks(ledger: Ledger) -> Lease:
    from tenure.lease.outcome import NextChunk

    lease = running(ledger, fields={"background": "1"})
    ledger.settle(lease, NextChunk(b"cursor", done=1, total=9, delay_ms=60_000))
    return lease


def taken_over(ledger: Ledger) -> Lease:
    lease = running(ledger)
    later = ledger.at(lease.expires_at)
    later.reap()
    claim(later, "another")
    return lease


def succeeded(ledger: Ledger) -> Lease:
    lease = running(ledger)
    ledger.settle(lease, Succeed(b"result"))
    return lease


def dead(ledger: Ledger, fields: dict[str, str] | None = None) -> Lease:
    lease = running(ledger, fields=fields or {})
    ledger.settle(lease, Fail("broken for good", permanent=True))
    return lease


def canceled(ledger: Ledger) -> Lease:
    lease = running(ledger)
    ledger.cancel(lease.id, "not needed")
    return lease


def failed(ledger: Ledger) -> Lease:
    lease = running(ledger, fields={"end_as": "failed"})
    ledger.settle(lease, Fail("its owner looks after it", permanent=True))
    return lease


def unknown_outcome(ledger: Ledger, fields: dict[str, str] | None = None) -> Lease:
    """A job that ended in an outside call. Nothing leads there yet, so the reason is written into the row."""
    lease = dead(ledger, fields)
    redis: Any = ledger.scripts.redis
    redis.hset(ledger.keys("row", id=lease.id), FIELDS["dead_reason"], DeadReason.OUTCOME_UNKNOWN)
    return lease


PAUSABLE = {"instance": "order-7", "pausable": "1"}
"""The fields of a job that pauses with its instance."""


def paused(ledger: Ledger) -> Lease:
    lease = running(ledger, fields=PAUSABLE)
    Instances(ledger).pause("order-7", "stock count", "ada")
    return lease


STALE: dict[str, Callable[[Ledger], Lease]] = {
    "pending": pending_again,
    "between chunks": between_chunks,
    "running for another": taken_over,
    "succeeded": succeeded,
    "dead": dead,
    "failed": failed,
    "canceled": canceled,
    "paused": paused,
}

# No operation leads here yet; the scripts' own way of moving a job does.
_PLACE = """
local job = load(id)
leave_set(job)
count(job.task, job.state, -1)
set(job, 'state', state)
set(job, 'revision', text(job.revision + 1))
join_set(job)
count(job.task, state, 1)
save(job)
"""


def place(ledger: Ledger, job_id: str, state: State) -> None:
    """Put a pending job into a state that nothing leads to yet."""
    shared = files("tenure.scripts").joinpath("lua", "shared")
    parts = {name: shared.joinpath(f"{name}.lua").read_text() for name in SHARED}
    library = Library({"place": f"-- ARGV id text\n-- ARGV state text\n{_PLACE}"}, parts)
    scripts = replace(ledger.scripts, library=library)
    scripts.run(Call("place", ledger.keys.home, {"id": job_id, "state": state}, lambda reply: None))


@dataclass(frozen=True)
class Store:
    """All that the test's namespace holds, to be compared."""

    redis: Client
    namespace: str

    def dump(self) -> dict[str, Any]:
        return dict(dump(self.redis, self.namespace))

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """What happens in the block must leave every key as it was."""
        before = self.dump()
        yield
        assert difference(before, self.dump()) == {}


def view(ledger: Ledger, lease: Lease) -> JobView:
    return ledger.get(lease.id)


__all__ = [
    "PAUSABLE",
    "STALE",
    "START",
    "At",
    "Store",
    "claim",
    "claimed_ids",
    "paused",
    "place",
    "running",
    "unknown_outcome",
    "view",
]
