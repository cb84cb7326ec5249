"""`ctx.track`: a loop over what a task works through. It ends its chunk by itself, the next one goes on after it."""

from __future__ import annotations

import time
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Sized,
)
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from ..lease.durations import Duration, duration_ms
from ..lease.outcome import Continue
from ..lease.reports import check_count
from ..scripts.errors import BadInput

if TYPE_CHECKING:
    from .ctx import Ctx

T = TypeVar("T")
Items = Iterable[T] | AsyncIterable[T]
Source = Items[T] | Callable[[int], Items[T]]

CURSOR = "tracked"
REPORT_S = 0.25


class Track(Generic[T]):
    """What `ctx.track` gives, to be looped over once, with `for` or `async for`."""

    def __init__(self, ctx: Ctx, source: Source[T], total: int | None, every: Duration) -> None:
        check_count(total, "total")
        self.finished = False
        """Whether all items were given; False while it goes on, and when the rest is for the next chunk."""
        self.over = False
        """Whether the chunk has ended before the items did."""
        self.done = _done_before(ctx.job_id, ctx.cursor)
        """How many items are done, those of earlier chunks counted."""
        self.total = len(source) if total is None and isinstance(source, Sized) else total
        self._ctx = ctx
        self._source = source
        self._every_s = duration_ms(every, what="every", least_ms=1) / 1000
        self._ends_at: float | None = None
        self._report_at = 0.0

    def __iter__(self) -> Iterator[T]:
        rest = self._rest()
        while self._goes_on():
            try:
                item = next(rest)
            except StopIteration:
                return self._finish()
            yield item
            self.done += 1  # the next one is asked for: the work on this one has ended

    async def __aiter__(self) -> AsyncIterator[T]:
        rest = await self._rest_of_async()
        while self._goes_on():
            try:
                item = await anext(rest)
            except StopAsyncIteration:
                self._finish()
                return
            yield item
            self.done += 1

    def next_chunk(self) -> Continue:
        """Where the next chunk begins."""
        return Continue({CURSOR: self.done}, done=self.done, total=self.total)

    def _goes_on(self) -> bool:
        """Whether this chunk has time for one more item: for the first always. Raises when the job must stop."""
        self._ctx.check()
        now = time.monotonic()
        self._ends_at = now + self._every_s if self._ends_at is None else self._ends_at
        if now >= self._report_at:
            self._report_at = now + REPORT_S
            self._ctx.report(doing=self.done, total=self.total)
        self.over = now >= self._ends_at
        return not self.over

    def _finish(self) -> None:
        self.finished = True
        self.total = self.done
        self._ctx.report(doing=self.done, total=self.done)

    def _rest(self) -> Iterator[T]:
        items: Any = self._source(self.done) if callable(self._source) else self._source
        if not isinstance(items, Iterable):
            raise _cannot_track(items, "for" if isinstance(items, AsyncIterable) else None)
        if callable(self._source):
            return iter(cast("Iterable[T]", items))
        if isinstance(items, Sequence):
            given = cast("Sequence[T]", items)
            return (given[at] for at in range(self.done, len(given)))
        return islice(cast("Iterable[T]", items), self.done, None)

    async def _rest_of_async(self) -> AsyncIterator[T]:
        items: Any = self._source(self.done) if callable(self._source) else self._source
        if not isinstance(items, AsyncIterable):
            raise _cannot_track(items, "async for" if isinstance(items, Iterable) else None)
        rest = aiter(cast("AsyncIterable[T]", items))
        if not callable(self._source):
            for _ in range(self.done):
                await anext(rest, None)
        return rest


def _done_before(job_id: str, cursor: Mapping[str, Any]) -> int:
    done = cursor.get(CURSOR, None if cursor else 0)
    if not isinstance(done, int) or len(cursor) > 1:
        raise BadInput(
            f"job {job_id} has the cursor {dict(cursor)!r:.80}, which no ctx.track has left",
            hint="retry it from the start, or let the task read that cursor and return Continue(...) itself",
        )
    return done


def _cannot_track(items: object, loop: str | None) -> BadInput:
    if loop is None:
        return BadInput(
            f"{items!r:.60} cannot be tracked: nothing can be taken from it one by one",
            hint="ctx.track(rows), or ctx.track(lambda done: rows_after(done))",
        )
    other = "async for" if loop == "for" else "for"
    return BadInput(f"{items!r:.60} cannot be tracked by `{loop}`", hint=f"loop over it with `{other}`")
