"""Where records are that Redis has let go: an archive, as the schedules and who looks for a job see it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol

from ..lease.ids import is_id
from ..lease.jobs import JobView
from ..lease.ledger import Ledger
from ..scripts.errors import NotFound
from .execution_log import LogEntry
from .fire_record import Fire

KEEP_MONTHS = 12
"""The months before this one of which Redis has all that it ever had."""


class History(Protocol):
    """Each raises ArchiveUnreachable when it cannot be asked: nothing found is something else."""

    def log(
        self, tenant: str, job_key: str, month: str, before: int | None, limit: int
    ) -> Sequence[LogEntry]:
        """The newest entries whose place is less than `before` (None: any), newest first."""
        ...

    def fires(
        self, tenant: str, job_key: str, trigger: str, month: str, before: int | None, limit: int
    ) -> Sequence[Fire]:
        """The newest fire records of before an instant (epoch ms; None: any), newest first."""
        ...

    def triggers(self, tenant: str, job_key: str) -> Sequence[str]:
        """Those of which there are fire records, in the order of their names."""
        ...

    def fire_at(self, tenant: str, job_key: str, trigger: str, month: str, instant: int) -> Fire | None: ...

    def job(self, tenant: str, job_id: str) -> JobView | None:
        """A job as it was when it was last seen, at its end."""
        ...

    def jobs(
        self, tenant: str, task: str | None, status: str | None, before: int, id_: str, limit: int
    ) -> Sequence[JobView]:
        """The newest jobs that come after (`before`, `id_`): by when they ended if a `status` is asked for, else by
        when they were made (epoch ms); those of one instant by id.
        """
        ...


def is_whole(month: str, now: str, born: str) -> bool:
    """Whether Redis has all records of a month (YYYYMM): it lets none go that is this young, and has lost none since
    the tenant's clock began (`born`, in microseconds; empty: it has none). `now` is epoch ms.
    """
    moment = datetime.fromtimestamp(int(now) / 1000, UTC)
    age = moment.year * 12 + moment.month - int(month[:4]) * 12 - int(month[4:])
    begins = datetime(int(month[:4]), int(month[4:]), 1, tzinfo=UTC).timestamp() * 1000
    return age <= KEEP_MONTHS and born != "" and int(born) // 1000 <= begins


def find_job(ledger: Ledger, history: History | None, job_id: str, lines: int = 0) -> JobView:
    """A job with its newest `lines` log lines, from the archive if the ledger has let it go.

    Raises NotFound, ArchiveUnreachable.
    """
    try:
        return ledger.get(job_id, lines)
    except NotFound:
        found = history.job(ledger.tenant, job_id) if history and is_id(job_id) else None
        if found is None:
            raise
        return found
