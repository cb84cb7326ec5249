"""`app.jobs`: jobs over all tenants, by id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lease.jobs import JobView, Page

if TYPE_CHECKING:
    from .app import Tenure


class JobBook:
    def __init__(self, app: Tenure) -> None:
        self._app = app

    def get(self, job_id: str, tenant: str = "default") -> JobView:
        """One job. Raises NotFound."""
        return self._app.ledger(tenant).get(job_id)

    def list(
        self,
        *,
        status: str | None = None,
        task: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        tenant: str = "default",
    ) -> Page:
        """A page of jobs, newest first. See Ledger.list."""
        return self._app.ledger(tenant).list(status=status, task=task, limit=limit, cursor=cursor)

    def cancel(self, job_id: str, reason: str = "", tenant: str = "default") -> None:
        """Cancel a job that has not succeeded; a running one is told to stop, then killed."""
        self._app.ledger(tenant).cancel(job_id, reason)
