"""`app.jobs`: jobs over all tenants, by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from .failure_book import FailureBook
from .lease.chain import Chain, chain
from .lease.context import Record
from .lease.durations import Duration
from .lease.filters import Filters
from .lease.instants import to_ms
from .lease.jobs import JobView, Page
from .lease.requests import due, edited_args
from .lease.status import RuntimeStatus, runtime_status
from .lease.summary import Summary, summary
from .lease.tasks import check_priority
from .lease.who import who
from .lease.why import Why, why_seen
from .scheduler.history import find_job
from .scheduler.job_pages import find_jobs
from .scripts.errors import BadInput
from .scripts.kinds import checked


@checked
class JobBook(FailureBook):
    """What changes a job takes `by`, who does it (this process's user and host if it is left out), for its history."""

    def get(self, job_id: str, tenant: str = "default") -> JobView:
        """One job, from the archive if the ledger has let it go. Raises NotFound, ArchiveUnreachable."""
        return find_job(self._app.ledger(tenant), self._app.archive, job_id)

    def list(
        self,
        *,
        status: str | None = None,
        task: str | None = None,
        instance: str | None = None,
        node: str | None = None,
        trace: str | None = None,
        record: Record | None = None,
        labels: Mapping[str, str] | None = None,
        q: str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        fingerprint: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        tenant: str = "default",
    ) -> Page:
        """A page of the jobs that pass all filters, newest first, pending ones by due time.

        All `labels` must be there; `created_to` is not included. `q` is the id of a job, its idempotency key, or words
        of the error of a dead or failed one. With several filters a page may be short, or empty, though there are more:
        `next_cursor` says so, `scanned` how many were looked at. Jobs that only the archive has are found by `status`
        and `task`; with another filter they are left out, and `redis_only` says so. Raises BadInput, and
        ArchiveUnreachable for a page that needs the archive.
        """
        filters = Filters(
            status=status,
            tasks=None if task is None else (task,),
            instance=instance,
            node=node,
            trace=trace,
            record=record,
            labels=labels or {},
            q=q,
            created_from=None if created_from is None else to_ms(created_from, what="created_from"),
            created_to=None if created_to is None else to_ms(created_to, what="created_to"),
            fingerprint=fingerprint,
        )
        return find_jobs(self._app.ledger(tenant), self._app.archive, filters, limit=limit, cursor=cursor)

    def summary(self, tenant: str = "default") -> Summary:
        """How many jobs there are by state and by task, from counters."""
        return summary(tenant, self._app.ledger(tenant).counts())

    def status(self, tenant: str = "default") -> RuntimeStatus:
        """The runtime status: what runs, waits and went wrong, at this moment and over the last hour."""
        return runtime_status(self._app.ledger(tenant))

    def chain(
        self, trace: str, *, limit: int = 1_000, cursor: str | None = None, tenant: str = "default"
    ) -> Chain:
        """The jobs of a trace in the order they were made, at most 1,000 at once; `links` has them as a tree.

        A job's own id is the trace of all that it has made. Raises NotFound when the ledger has no job of it.
        """
        return chain(self._app.ledger(tenant), trace, limit=limit, cursor=cursor)

    def cancel(
        self, job_id: str, reason: str = "", tenant: str = "default", *, by: str | None = None
    ) -> None:
        """Cancel a job that has not succeeded; a running one is told to stop, then killed."""
        self._app.ledger(tenant).cancel(job_id, reason, who(by))

    def why(self, job_id: str, tenant: str = "default") -> Why:
        """What stands between a job and its start, as the claim judges it, and whether a live worker serves its pool.

        Raises NotFound.
        """
        return why_seen(self._app.ledger(tenant), self.get(job_id, tenant))

    def skip(self, job_id: str, reason: str = "", tenant: str = "default", *, by: str | None = None) -> None:
        """Cancel a job because it need not be done any more; its reason says `skipped`."""
        self._app.ledger(tenant).skip(job_id, reason, who(by))

    def reschedule(
        self,
        job_id: str,
        *,
        now: bool = False,
        after: Duration | None = None,
        at: datetime | None = None,
        priority: int | None = None,
        revision: int | None = None,
        token: str | None = None,
        reason: str = "",
        by: str | None = None,
        tenant: str = "default",
    ) -> bool:
        """Let a pending job run now, at another time, or with another priority; answers whether anything changed.

        With `revision`, only as you saw it: raises StalePlan when it has moved on. Raises WrongState when it is not
        pending. The same call again under the same `token` answers what it did.
        """
        if now and (after is not None or at is not None):
            raise BadInput("now is given with another time: a job has one due time", hint="leave one out")
        when = "+0" if now else due(after, at)
        if when is None and priority is None:
            raise BadInput(
                "nothing is asked for: neither a time nor a priority", hint="now=True, after='5m', at=..."
            )
        if priority is not None:
            check_priority(priority)
        return self._app.ledger(tenant).reschedule(
            job_id, when=when, priority=priority, revision=revision, token=token, reason=reason, by=who(by)
        )

    def retry(
        self,
        job_id: str,
        *,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        from_start: bool = False,
        after: Duration | None = None,
        at: datetime | None = None,
        generation: int | None = None,
        token: str | None = None,
        reason: str = "",
        by: str | None = None,
        force: bool = False,
        tenant: str = "default",
    ) -> int:
        """Begin a new round of a job that failed, is dead or was canceled; answers the generation that it began.

        It goes on from its last checkpoint, or begins `from_start`. With `args` or `kwargs`, which replace all it had,
        it starts from the beginning; its task must be registered here. With `generation`, only in the round you saw:
        raises StalePlan when it is in another. A call whose answer was lost may be sent again under the same `token`,
        and answers the same; without one it is another retry, and refused as the job then stands (WrongState). See
        Ledger.retry for what else it raises. `force`, which needs a reason, retries also a job of whose last outside
        call nobody knows whether it happened.
        """
        if force and not reason:
            raise BadInput("force needs a reason", hint="say how you know that it has not happened")
        ledger, when = self._app.ledger(tenant), due(after, at)
        others = None
        if args is not None or kwargs is not None:
            others = edited_args(self._app.registry.get(ledger.get(job_id).task), args, kwargs)
        return ledger.retry(
            job_id,
            args=others,
            from_start=from_start,
            when=when,
            generation=generation,
            token=token,
            reason=reason,
            by=who(by),
            force=force,
        )

    def confirm(
        self, job_id: str, happened: bool, *, note: str = "", by: str | None = None, tenant: str = "default"
    ) -> bool:
        """Say whether the last outside call of a dead(`outcome_unknown`) job has happened, and how you know.

        Only one that has not happened may be retried without force. Answers whether that is news; see Ledger.confirm.
        """
        return self._app.ledger(tenant).confirm(job_id, happened, note, who(by))
