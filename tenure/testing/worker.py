"""A worker without processes: runs due jobs where the test stands, one after the other, and waits for nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ..app import Tenure
from ..lease.durations import Duration, duration_ms
from ..lease.jobs import DUE, JobView, Lease
from ..lease.ledger import Ledger
from ..lease.ledgers import Ledgers
from ..lease.outcome import Stopped
from ..lease.pools import BUILT_IN
from ..scripts.errors import StaleFence
from ..workers.attempt import Attempts
from ..workers.interrupts import Interrupts
from ..workers.wire import Report, Ticket, Why

MOST = 1_000


class InlineWorker:
    """Runs an application's jobs as its workers would, but here: an exception's traceback leads into your task.

    Time limits are not enforced, and a lease is not renewed; both belong to processes.
    """

    def __init__(self, app: Tenure, name: str = "inline") -> None:
        self.app = app
        self.name = name

    def run(self, later: Duration = 0, *, pools: tuple[str, ...] = ()) -> list[JobView]:
        """Run every job that is due, with all its chunks, and answer what has become of each, in the order they ran.

        Without `pools`, those of the built-in pools and of all that `app.pool` declares.

        With `later`, it is that much later than now for this call: "31s" runs what waits for its second attempt.
        """
        ledgers = self._ledgers(duration_ms(later, what="later"))
        ran: dict[tuple[str, str], Ledger] = {}
        for lease in self._claimed(ledgers, pools or (*BUILT_IN, *self.app.pools)):
            ledger = ledgers.of(lease.tenant)
            self.attempt(lease, ledger)
            ran[lease.tenant, lease.id] = ledger
        return [ledger.get(job_id) for (_, job_id), ledger in ran.items()]

    def attempt(self, lease: Lease, ledger: Ledger | None = None) -> None:
        """Run the task of a job that is claimed already, up to its end or that of its chunk, and settle it."""
        ledger = ledger or self.app.ledger(lease.tenant)
        task = self.app.registry.get(lease.task)
        attempts = Attempts(_Here(ledger, lease), _Unbroken(), self.app.registry.secrets)
        outcome = attempts.run(task, _ticket(lease))
        try:
            ledger.settle(lease, outcome)
        except StaleFence:  # canceled while it ran: its state says so
            ledger.settle(lease, Stopped())

    def _ledgers(self, later_ms: int) -> Ledgers:
        real = self.app.ledgers()
        if not later_ms:
            return real
        now = real.index.take(DUE, 0).now_ms
        return Ledgers(real.scripts.at(now + later_ms), real.namespace, real.lease_ms)

    def _claimed(self, ledgers: Ledgers, pools: tuple[str, ...]) -> Iterator[Lease]:
        for _ in range(MOST):
            claims = [
                ledgers.of(tenant).claim(pool, self.name)
                for pool in pools
                for tenant in ledgers.index.take(DUE + pool, 100).tenants
            ]
            if not any(claim.leases or claim.again for claim in claims):
                return
            for claim in claims:
                yield from claim.leases
        raise AssertionError(f"after {MOST} rounds there are still jobs due: does one of them make the next?")


class _Here:
    """The context's way to the ledger: straight."""

    def __init__(self, ledger: Ledger, lease: Lease) -> None:
        self._ledger = ledger
        self._lease = lease

    def stopped(self, ticket: Ticket) -> Why | None:
        job = self._ledger.get(ticket.id)
        if job.status == "canceled":
            return Why.CANCELED
        if job.status == "paused":
            return Why.PAUSED
        return None if job.status == "running" and job.fence == ticket.fence else Why.LOST

    def report(self, ticket: Ticket, report: Report) -> None:
        if ticket.background or report.steps:
            self._ledger.report(self._lease, **report._asdict())

    def spent(self, ticket: Ticket) -> int:
        return 0

    def note(self, ticket: Ticket, request: str, response: str) -> None:
        self._ledger.report(self._lease, request=request, response=response)

    def checkpoint(
        self, ticket: Ticket, cursor: bytes, done: int | None, total: int | None, message: str
    ) -> None:
        self._ledger.report(self._lease, cursor=cursor, done=done, total=total, message=message)

    async def acheckpoint(
        self, ticket: Ticket, cursor: bytes, done: int | None, total: int | None, message: str
    ) -> None:
        self.checkpoint(ticket, cursor, done, total, message)

    def over(self, ticket: Ticket) -> None:
        """Its end says so."""


class _Unbroken(Interrupts):
    """Nothing breaks into a task that runs in the test's own thread."""

    def arm(self, limit_at: float) -> None:
        self.raised = None

    def disarm(self) -> None:
        pass

    def press(self) -> None:
        pass


def _ticket(lease: Lease) -> Ticket:
    now = time.monotonic()
    return Ticket(
        number=1,
        id=lease.id,
        tenant=lease.tenant,
        task=lease.task,
        fence=lease.fence,
        attempt=lease.attempt,
        chunk=lease.chunk,
        edit=lease.edit,
        failures=lease.failures,
        background=lease.background,
        fire=lease.fire,
        fire_time=lease.fire_time,
        limit_at=now + 1e9,
        start_by=now + 1e9,
        held_until=now + 1e9,
        args=lease.args,
        cursor=lease.cursor,
        trace=lease.trace,
        lineage=lease.lineage,
        spent=lease.spent,
    )
