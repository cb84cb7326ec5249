"""Pages of jobs that go on in the archive: what Redis has and what it has let go, merged.

Each of the two is a list in one order with a place of its own in the cursor, and a page takes from both whichever comes
first. A job that Redis has is never taken from the archive, so none comes twice; one that Redis lets go between two
pages stands in the archive, below the place that the pages have reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..lease import cursors
from ..lease.filters import Filters
from ..lease.jobs import JobView, Page
from ..lease.ledger import Ledger
from ..lease.listing import check_limit, list_jobs
from ..scripts import Call
from ..scripts.loader import texts
from ..scripts.states import ENDED
from .history import History

END_OF_TIME = (1 << 53) - 1


def find_jobs(
    ledger: Ledger, history: History | None, filters: Filters, *, limit: int = 50, cursor: str | None = None
) -> Page:
    """A page of jobs, also of those that only the archive has, if it can be searched by these filters: by an ended
    state and a task.

    A page whose jobs are all younger than what Redis has let go does not ask the archive. Raises BadInput for a limit
    out of range and a cursor that another list gave, ArchiveUnreachable.
    """
    if history is None or (filters.status is not None and filters.status not in ENDED):
        return list_jobs(ledger, filters, limit=limit, cursor=cursor)
    if not _can_be_archived(filters):
        return replace(list_jobs(ledger, filters, limit=limit, cursor=cursor), redis_only=True)
    check_limit(limit)
    of = ("jobs and archive", ledger.tenant, *filters.named())
    place = _Place.read(cursor, of) if cursor else _Place("", END_OF_TIME, "")
    return _Reading(ledger, history, filters, limit, of).page(place)


def _can_be_archived(filters: Filters) -> bool:
    """Whether the archive has columns for all that is asked."""
    tasks = filters.tasks
    return filters == Filters(status=filters.status, tasks=tasks) and (tasks is None or len(tasks) == 1)


@dataclass(frozen=True, slots=True)
class _Place:
    """How far the pages are: Redis's own cursor (empty: at the beginning, None: at the end), and after which instant
    and id they go on in the archive.
    """

    redis: str | None
    time: int
    id: str

    def written(self, of: Sequence[str]) -> str:
        mark = cursors.write(f"{self.time} {self.id}", of)
        return mark if self.redis is None else f"{mark}.{self.redis}"

    @classmethod
    def read(cls, text: str, of: Sequence[str]) -> _Place:
        mark, dot, redis = text.partition(".")
        time, _, id_ = cursors.read(mark, of).partition(" ")
        if not time.isdecimal() or int(time) > END_OF_TIME:
            raise cursors.not_ours(text)
        return cls(redis if dot else None, int(time), id_)


@dataclass(frozen=True, slots=True)
class _Merged:
    """What a page takes: jobs in order, how many of them from Redis, and how many rows of the archive it has passed."""

    items: list[JobView]
    live: int
    passed: int


class _Reading:
    """One page on its way."""

    def __init__(
        self, ledger: Ledger, history: History, filters: Filters, limit: int, of: Sequence[str]
    ) -> None:
        self._ledger = ledger
        self._history = history
        self._filters = filters
        self._limit = limit
        self._of = of

    def page(self, place: _Place) -> Page:
        live = self._live(place.redis, self._limit)
        until, _ = self._let_go([])  # after the read: what went before it is counted
        # A job ends after it was made, so nothing that has gone comes before these, in either order.
        if live.items and until is not None and min(job.created_at for job in live.items) >= until:
            return self._whole(live, place)
        if not live.items and live.next_cursor is not None:
            return self._short(live, place)
        return self._with_archive(live, place)

    def _whole(self, live: Page, place: _Place) -> Page:
        after = min((place.time, place.id), self._key(live.items[-1]))
        return replace(live, next_cursor=_Place(live.next_cursor, *after).written(self._of))

    def _short(self, live: Page, place: _Place) -> Page:
        return replace(live, next_cursor=replace(place, redis=live.next_cursor).written(self._of))

    def _with_archive(self, live: Page, place: _Place) -> Page:
        tasks = self._filters.tasks
        archived = self._history.jobs(
            self._ledger.tenant,
            None if tasks is None else next(iter(tasks)),
            self._filters.status,
            place.time,
            place.id,
            self._limit,
        )
        # Asked after Redis and the archive were read: one that went meanwhile is in `live`.
        _, here = self._let_go([job.id for job in archived])
        known = here.union(job.id for job in live.items)
        at_end = len(archived) < self._limit
        merged = self._merge(live, archived, known, at_end)
        if 0 < merged.live < len(live.items):
            part = self._live(place.redis, merged.live)
            taken = [job.id for job in live.items[: merged.live]]
            if [job.id for job in part.items] != taken:
                return self.page(place)  # a job has come or gone between the two reads
            redis = part.next_cursor
        elif merged.live == len(live.items):
            redis = live.next_cursor
        else:
            redis = place.redis
        return self._written(merged, redis, archived, at_end, place, live.scanned + len(archived))

    def _merge(self, live: Page, archived: Sequence[JobView], known: set[str], at_end: bool) -> _Merged:
        """Whichever comes first, as far as it is known what comes next in both."""
        items: list[JobView] = []
        taken = passed = 0
        while len(items) < self._limit:
            ours = live.items[taken] if taken < len(live.items) else None
            theirs = archived[passed] if passed < len(archived) else None
            if (ours is None and live.next_cursor is not None) or (theirs is None and not at_end):
                break
            if theirs is not None and (ours is None or self._key(theirs) >= self._key(ours)):
                passed += 1
                if theirs.id not in known:
                    items.append(theirs)
            elif ours is not None:
                taken += 1
                items.append(ours)
            else:
                break
        return _Merged(items, taken, passed)

    def _written(
        self,
        merged: _Merged,
        redis: str | None,
        archived: Sequence[JobView],
        at_end: bool,
        place: _Place,
        scanned: int,
    ) -> Page:
        """The page with its cursor. The archive goes on below the last job of the page, which Redis may let go."""
        if redis is None and at_end and merged.passed == len(archived):
            return Page(merged.items, None, scanned)
        passed = [(place.time, place.id)]
        passed += [self._key(job) for job in (*archived[: merged.passed], *merged.items)]
        return Page(merged.items, _Place(redis, *min(passed)).written(self._of), scanned)

    def _live(self, cursor: str | None, limit: int) -> Page:
        if cursor is None:
            return Page([], None)
        return list_jobs(self._ledger, self._filters, limit=limit, cursor=cursor or None)

    def _let_go(self, ids: Sequence[str]) -> tuple[int | None, set[str]]:
        """When the last job ended that Redis has let go (None: it may be any), and which of these it has."""
        args = {"state": self._filters.status or ""}
        until, *here = self._ledger.scripts.run(Call("let_go", self._ledger.keys.home, args, texts, [*ids]))
        return int(until) if until else None, set(here)

    def _key(self, job: JobView) -> tuple[int, str]:
        """Where a job stands, newest first: as the archive has it."""
        return (job.created_at if self._filters.status is None else job.finished_at or 0), job.id
