"""The context: what a task knows about its job, and how it speaks to the ledger while it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, Protocol, TypeVar

from ..lease.budgets import NONE as NO_BUDGETS
from ..lease.budgets import Budgets, Lineage
from ..lease.durations import Duration
from ..lease.instants import from_ms
from ..lease.outcome import Continue
from ..lease.payload import pack_cursor, unpack
from ..lease.redaction import Redaction, check_secrets
from ..lease.reports import (
    MESSAGE_LIMIT,
    NOTE_LIMIT,
    check_count,
    checked_text,
    note_text,
    stage_text,
    storable,
    warning_text,
)
from ..scripts.errors import BadInput, Canceled, LeaseLost
from .meter import Meter
from .track import Source, Track
from .wire import Report, Ticket, Why

T = TypeVar("T")


class Link(Protocol):
    """The way from a slot to its worker."""

    def stopped(self, ticket: Ticket) -> Why | None:
        """Why the job must stop; None while it may go on."""
        ...

    def report(self, ticket: Ticket, report: Report) -> None: ...

    def note(self, ticket: Ticket, request: str, response: str) -> None: ...

    def checkpoint(
        self, ticket: Ticket, cursor: bytes, done: int | None, total: int | None, message: str
    ) -> None:
        """Return when it is committed; raise StaleFence when it was refused."""
        ...

    async def acheckpoint(
        self, ticket: Ticket, cursor: bytes, done: int | None, total: int | None, message: str
    ) -> None: ...

    def spent(self, ticket: Ticket) -> int:
        """How many steps the call tree has counted, as far as was heard since the claim."""
        ...

    def over(self, ticket: Ticket) -> None:
        """Say that a job is over its budget of memory. Called in a thread beside it."""
        ...


class Ctx:
    """Given to a task as its first parameter, if it asks for it by the name `ctx` or the annotation `Ctx`."""

    def __init__(
        self,
        ticket: Ticket,
        link: Link,
        secrets: Redaction,
        budgets: Budgets = NO_BUDGETS,
        parameters: Sequence[str] = (),
    ) -> None:
        self._ticket = ticket
        self._link = link
        self._app_secrets = secrets
        self._own_secrets: Redaction | None = None
        self._parameters = parameters
        """The names of those that take the positional arguments."""
        self._track: Track[Any] | None = None
        self.meter = Meter(
            budgets, Lineage.of(ticket.lineage).of_job(ticket.id, ticket.task, budgets), ticket.spent
        )
        """For those who run it."""

    def takes(self, ticket: Ticket) -> None:
        """Its arguments and cursor, which were too long for the first ticket, have come."""
        self._ticket = ticket

    def over(self) -> None:
        """Say that the task is over its budget of memory."""
        self._link.over(self._ticket)

    @property
    def job_id(self) -> str:
        return self._ticket.id

    @property
    def task(self) -> str:
        return self._ticket.task

    @property
    def tenant(self) -> str:
        return self._ticket.tenant

    @property
    def trace(self) -> str:
        """The trace of this job and of all that it enqueues: the id of the job that began it, or one given then."""
        return self._ticket.trace

    @property
    def operation_key(self) -> str:
        """Stable over all attempts at the same input; new when the payload is edited."""
        return f"{self._ticket.id}.{self._ticket.edit}"

    @property
    def fence(self) -> int:
        """Grows with every claim of the job: let your own store refuse what comes with a lower one."""
        return self._ticket.fence

    @property
    def attempt(self) -> int:
        return self._ticket.attempt

    @property
    def chunk(self) -> int:
        """How many chunks have ended before this one."""
        return self._ticket.chunk

    @property
    def fire_id(self) -> str | None:
        """The fire this job was made by; None when nobody planned it."""
        return self._ticket.fire or None

    @property
    def fire_time(self) -> datetime:
        """The planned instant of the fire, in UTC: never "now". Raises LookupError for a job that nobody planned."""
        if self._ticket.fire_time is None:
            raise LookupError(f"job {self.job_id} was made by no fire, so it has no fire_time")
        return from_ms(self._ticket.fire_time)

    @cached_property
    def cursor(self) -> dict[str, Any]:
        """Where the last chunk or checkpoint stopped; empty at first."""
        return dict(unpack(self._ticket.cursor)) if self._ticket.cursor else {}

    @property
    def lost(self) -> bool:
        """Whether the right to work has ended: canceled, paused, taken over, or not renewed in time."""
        return self._link.stopped(self._ticket) is not None

    def check(self) -> None:
        """Return if the job may go on. Raises Canceled or LeaseLost: stop then, and write nothing more."""
        why = self._link.stopped(self._ticket)
        if why is None:
            return
        if why is Why.CANCELED:
            raise Canceled(f"job {self.job_id} was canceled")
        if why is Why.PAUSED:
            raise LeaseLost(
                f"job {self.job_id} is paused: it goes on from its last checkpoint when it is resumed"
            )
        if why is Why.RELEASED:
            raise LeaseLost(f"job {self.job_id} is handed back: its worker stops")
        raise LeaseLost(f"the lease of job {self.job_id} under fence {self.fence} has ended")

    def report(
        self,
        *,
        doing: int | None = None,
        total: int | None = None,
        message: str = "",
        log: str | None = None,
    ) -> None:
        """Show how far the work inside this chunk is, of a background task. Cheap: it waits for nothing.

        Of the log the newest 1,000 lines are kept, at most 256 KB. Text over 1,000 characters is cut; in all that a
        task says, secrets are masked: what has a name like `password=`, what looks like a token, what `mask` was given,
        and the text among its arguments whose name says so. Raises BadInput for what is no count or no text.
        """
        check_count(doing, "doing")
        check_count(total, "total")
        lines = [] if log is None else [self._words(log, "log")]
        self._link.report(self._ticket, Report(doing, total, self._words(message), lines))

    def track(self, items: Source[T], total: int | None = None, *, every: Duration = "10s") -> Track[T]:
        """Work through `items` one by one, in chunks that end by themselves:

            with engine.begin() as db:                    # one transaction a chunk
                for row in ctx.track(rows):
                    insert(db, row)
            return Done(...)

        After `every` the loop ends as if there were no more items. The task goes on below it, commits what it has open,
        and returns; then the chunk is committed, and the next one begins after its last item, on any worker. So the
        cursor never stands for work that the task itself has not committed: it is stored after the task has returned,
        and never inside the loop. An item counts as done when the next one is asked for. What the task returns is its
        result only in the last chunk; what must not be done before all is done asks for it:

            rows = ctx.track(...)
            for row in rows: ...
            if rows.finished: close_the_books()

        A chunk that fails, is lost or canceled is done again from its first item: let your store know what it has, by a
        unique key or `ctx.fence`. Between two items, progress is shown, and Canceled or LeaseLost raised where the job
        must stop: what the task has open is then rolled back, and the chunk with it.

        `items` must come in the same order each time, as each chunk passes over those that are done. What can do better
        is a function of how many are done: `ctx.track(lambda done: query.offset(done))`. `total` is how many there are
        in all (their `len`, if they have one). A task has one such loop, and no cursor or checkpoint beside it. Raises
        BadInput for a second one.
        """
        if self._track is not None:
            raise BadInput(
                f"job {self.job_id} tracks a loop already: a task has one place to go on from",
                hint="make one loop of the two, or return Continue(...) with a cursor that says which it is in",
            )
        self._track = Track(self, items, total, every)
        return self._track

    def end_of_chunk(self, value: object) -> object:
        """What an attempt that returned `value` has come to: the next chunk, if its loop has left one."""
        if self._track is None or not self._track.over:
            return value
        if isinstance(value, Continue):
            raise BadInput(
                f"job {self.job_id} returned Continue, and its tracked loop has ended the chunk too",
                hint="return Continue(...) only if the loop is `finished`, or leave ctx.track out",
            )
        return self._track.next_chunk()

    def step(self, steps: int = 1) -> None:
        """Count `steps` of work, of whatever the task counts. Cheap: it waits for nothing.

        Raises LimitCrossed once the chunk, or the call tree, has more of them than its budget; the attempt then ends by
        that, even if the task catches it. BadInput for what is no count.
        """
        check_count(steps, "steps")
        try:
            self.meter.step(steps, self._link.spent(self._ticket))
        finally:
            if self.meter.is_due:
                self.tell_steps()

    def tell_steps(self) -> None:
        """Charge to the call tree what was counted since the last time."""
        if steps := self.meter.take_untold():
            self._link.report(self._ticket, Report(steps=steps, root=self.meter.lineage.root))

    def warn(self, text: str) -> None:
        """Count a warning of a background task, and write it into its log.

        Raises BadInput for what is no text, and for none.
        """
        said = warning_text(self._words(text, "warning"))
        self._link.report(self._ticket, Report(lines=[f"warning: {said}"], warnings=1))

    def stage(self, name: str) -> None:
        """Say what a background task is at, as a label until the next one: nothing is counted or timed by it.

        Raises BadInput for what is no text, and for none.
        """
        self._link.report(self._ticket, Report(stage=stage_text(self._words(name, "stage"))))

    def mask(self, values: str | bytes | Sequence[str | bytes]) -> None:
        """Let `values` stand in no message, log line, note or error of this attempt: `***` stands there instead.

        For those of every task there is `app.mask`. Raises BadInput for one under 6 characters.
        """
        check_secrets(values)
        self._own_secrets = self.secrets.copy()
        self._own_secrets.know(values)

    @property
    def secrets(self) -> Redaction:
        """Knows the secrets of the application and of this attempt: what `mask` was given, and among its arguments
        the text under the name of a secret. For those who run it.
        """
        if self._own_secrets is None:  # most attempts say nothing, and need no look at their arguments
            self._own_secrets = self._with_arguments()
        return self._own_secrets

    def without_secrets(self, text: str, limit: int) -> str:
        """`text` as it may be shown, in at most `limit` characters."""
        return self.secrets.beginning(text, limit) if text else text

    def _with_arguments(self) -> Redaction:
        try:
            return self._app_secrets.of_job(self._ticket.args or b"", self._parameters)
        except Exception:  # arguments that cannot be read fail the attempt, whose error is to be told
            return self._app_secrets

    def _words(self, text: str, what: str = "message") -> str:
        return self.without_secrets(checked_text(text, what), MESSAGE_LIMIT)

    def note(self, *, request: object = None, response: object = None) -> None:
        """Keep with this attempt what it asks of others and what it is answered; the last word of each counts.

        Text is kept as it is, other values as JSON, cut at 4,000 characters; it goes when the attempt goes. Keep
        secrets out of it. Cheap: it waits for nothing. Raises BadInput for what cannot be written down.
        """
        asked, answered = self._note(request, "request"), self._note(response, "response")
        if asked or answered:
            self._link.note(self._ticket, asked, answered)

    def _note(self, value: object, what: str) -> str:
        try:
            shown = (
                self.without_secrets(storable(value), NOTE_LIMIT)
                if isinstance(value, str)
                else self.secrets.masked(value)
            )
        except RecursionError as exc:
            raise BadInput(f"{what} {value!r:.60} cannot be noted: {exc}", hint=f"{what}=str(...)") from exc
        return self.secrets.without_known(note_text(shown, what))

    def checkpoint(
        self,
        cursor: Mapping[str, Any],
        *,
        done: int | None = None,
        total: int | None = None,
        message: str = "",
    ) -> None:
        """Commit the work up to `cursor` and go on. Returns when it is committed.

        It waits for the store, and in an `async def` so does the event loop, with all that runs in it: write
        `await ctx.acheckpoint(...)` there. Raises Canceled, LeaseLost or StaleFence when this attempt may write no
        more; BadInput for what is no count, no text, or a cursor that cannot be stored.
        """
        packed, text = self._checked(cursor, done, total, message)
        self._link.checkpoint(self._ticket, packed, done, total, text)
        self.cursor = dict(cursor)

    async def acheckpoint(
        self,
        cursor: Mapping[str, Any],
        *,
        done: int | None = None,
        total: int | None = None,
        message: str = "",
    ) -> None:
        """`checkpoint` for async code: others run while it waits."""
        packed, text = self._checked(cursor, done, total, message)
        await self._link.acheckpoint(self._ticket, packed, done, total, text)
        self.cursor = dict(cursor)

    def _checked(
        self, cursor: Mapping[str, Any], done: int | None, total: int | None, message: str
    ) -> tuple[bytes, str]:
        """The cursor and the message as they are stored, if this attempt may still write and they may be."""
        if self._track is not None:
            raise BadInput(
                f"job {self.job_id} has a tracked loop: a checkpoint would say another place to go on from",
                hint="leave the checkpoint out, and let each chunk be shorter: ctx.track(..., every='1s')",
            )
        check_count(done, "done")
        check_count(total, "total")
        text, packed = self._words(message), pack_cursor(cursor)
        self.check()
        return packed, text
