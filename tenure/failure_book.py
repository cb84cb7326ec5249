"""What `app.jobs` does about failures: gather them, retry or skip many jobs at once, by ids or by conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from .lease.batches import MOST_BATCHES, MOST_JOBS, RATE, Batch, Batches, check_rate
from .lease.failures import FailurePage, Failures
from .lease.replay import ReplayConditions, ReplayPreview, Replays
from .lease.who import who
from .scripts.errors import BadInput
from .scripts.kinds import checked

if TYPE_CHECKING:
    from .app import Tenure


@checked
class FailureBook:
    def __init__(self, app: Tenure) -> None:
        self._app = app

    def failures(
        self,
        by: str = "reason",
        *,
        key: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        members: int = 3,
        tenant: str = "default",
    ) -> FailurePage:
        """Dead and failed jobs gathered by reason, type, instance or trace, each group with its newest members.

        `by="reason"` is one kind of error: its type, the function of yours it came from, its message without what
        varies. See Failures.groups.
        """
        found = Failures(self._app.ledger(tenant))
        return found.groups(by, key=key, limit=limit, cursor=cursor, members=members)

    def retry_many(
        self,
        ids: Sequence[str],
        *,
        rate: int = RATE,
        reason: str = "",
        by: str | None = None,
        token: str | None = None,
        tenant: str = "default",
    ) -> Batch:
        """Begin a new round of each of at most 500 jobs, `rate` of them due in a second; answers what became of each.

        One that cannot be retried, or of which an outcome is unknown, is skipped. A batch that has begun is done also
        if this process dies; with a `token` (an id of yours in ULID form) the same call again is the same batch.
        """
        batches = Batches(self._app.ledger(tenant))
        return batches.retry(ids, rate=rate, reason=reason, by=who(by), batch_id=token)

    def skip_many(
        self,
        ids: Sequence[str],
        *,
        reason: str = "",
        by: str | None = None,
        token: str | None = None,
        tenant: str = "default",
    ) -> Batch:
        """Cancel each of at most 500 jobs because they need not be done any more. See `retry_many`."""
        batches = Batches(self._app.ledger(tenant))
        return batches.skip(ids, reason=reason, by=who(by), batch_id=token)

    def replay_preview(
        self, *, limit: int = MOST_JOBS, tenant: str = "default", **conditions: Unpack[ReplayConditions]
    ) -> ReplayPreview:
        """Show which dead or failed jobs a replay would retry, at most 500, and which not, and why.

            preview = app.jobs.replay_preview(task="orders.sync", error="timed out", max_age="2h")
            app.jobs.replay(preview, rate=5, reason="the bank is back")

        See ReplayConditions for what may be asked. Raises BadInput.
        """
        return Replays(self._app.ledger(tenant)).preview(conditions, limit)

    def replay(
        self,
        preview: ReplayPreview | str | None = None,
        *,
        rate: int = RATE,
        reason: str = "",
        by: str | None = None,
        limit: int = MOST_JOBS,
        tenant: str = "default",
        **conditions: Unpack[ReplayConditions],
    ) -> Batch:
        """Do what a preview (or its token) has shown; or preview and do it at once, by conditions.

        At most `rate` jobs are due in a second. What has moved since the preview is skipped. A replay that has begun is
        done also if this process dies, and the same preview again is the same replay. Raises NotFound for a preview
        that is not on record any more.
        """
        ledger = self._app.ledger(preview.tenant if isinstance(preview, ReplayPreview) else tenant)
        if preview is not None and conditions:
            raise BadInput("conditions are given beside a preview, which has its own", hint="leave one out")
        token = preview.token if isinstance(preview, ReplayPreview) else preview
        if token is None:
            check_rate(rate)
            token = Replays(ledger).preview(conditions, limit).token
        return Replays(ledger).apply(token, rate=rate, reason=reason, by=who(by))

    def batches(self, limit: int = MOST_BATCHES, tenant: str = "default") -> Sequence[Batch]:
        """What was done to many jobs at once, the newest first: replays, also those only previewed, and batches."""
        return Batches(self._app.ledger(tenant)).newest(limit)

    def batch(self, batch_id: str, tenant: str = "default") -> Batch:
        """How a replay or a batch stands, and what became of each of its jobs. Raises NotFound."""
        return Batches(self._app.ledger(tenant)).get(batch_id)
