"""What went wrong, gathered: dead and failed jobs by what they died of, by task, by instance or by trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..scripts import Call
from ..scripts.errors import BadInput
from ..scripts.loader import Arg
from ..scripts.states import Cause, DeadReason
from . import cursors
from .failed import FailedJob, failed_jobs
from .filters import FAILED, Filters
from .ledger import Ledger
from .listing import LONGEST, list_failed

BY = ("reason", "type", "instance", "trace")
LOOK = 1_000
"""So many jobs are looked at for a page by instance or trace, and to find the newest of each type."""
MOST_MEMBERS = 100
ROWS = 500
"""So many members of clusters are read by one call."""
FIXED: dict[str, str] = {
    Cause.TIMEOUT: "ran longer than its time-out",
    Cause.LEASE_LOST: "its worker did not renew its lease",
    Cause.KILLED: "its process was killed",
    Cause.TOO_LARGE: "its result was too large to keep",
    Cause.LIMIT: "crossed one of its budgets",
    Cause.REFUSED: "the other side asked too often to come back later",
    Cause.RAISED: "raised an error whose kind was not told",
    DeadReason.EXPIRED: "was not started by its latest start",
}
"""In words what a fingerprint says that is a cause and not the mark of an error."""


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Dead and failed jobs that have something in common: `key` is a fingerprint, a task, an instance or a trace.

    `first_seen` and `last_seen` are epoch ms, None where the jobs looked at do not tell. `exception`, `frame` and
    `template` are of a reason: the type, the innermost function of one's own code, the message without what varies.
    """

    by: str
    key: str
    count: int
    first_seen: int | None
    last_seen: int | None
    members: tuple[FailedJob, ...]
    """The newest."""
    exception: str | None = None
    frame: str | None = None
    template: str | None = None

    @property
    def condition(self) -> dict[str, str]:
        """What chooses these jobs for a replay."""
        name = {"reason": "fingerprint", "type": "task"}.get(self.by, self.by)
        return {name: self.key}


@dataclass(frozen=True, slots=True)
class FailurePage:
    """Some groups, and the cursor of the next page (None: there is none).

    `scanned` is None where counters told all; else the counts, and the first and the last sight, are of so many jobs
    that were looked at, the newest of those that the pages before have not looked at.
    """

    items: list[FailureGroup]
    next_cursor: str | None
    scanned: int | None


class Failures:
    """What went wrong in one tenant."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def groups(
        self,
        by: str = "reason",
        *,
        key: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        members: int = 3,
    ) -> FailurePage:
        """A page of groups, the last seen first; by task the largest first. With `key` only that one, if it is there.

        Each has its newest `members`, at most 100. Raises BadInput.
        """
        if by not in BY:
            raise BadInput(f"by {by!r:.40} is no way to gather failures", hint=f"one of: {', '.join(BY)}")
        _check_number("limit", limit, 1, LONGEST)
        _check_number("members", members, 0, MOST_MEMBERS)
        match by:
            case "reason":
                return self._by_reason(key, limit, cursor, members)
            case "type":
                return self._by_task(key, limit, cursor, members)
            case _:
                return self._by_context(by, key, limit, cursor, members)

    def _of(self, by: str, key: str | None) -> tuple[str, ...]:
        return ("failures", self._ledger.tenant, by, key or "")

    def _by_reason(self, key: str | None, limit: int, cursor: str | None, members: int) -> FailurePage:
        of = self._of("reason", key)
        score, _, name = (cursors.read(cursor, of) if cursor else "").partition(" ")
        if score and not (score.isascii() and score.isdigit() and len(score) < 16 and name):
            raise cursors.not_ours(cursor or "")
        found: list[FailureGroup] = []
        while len(found) <= limit:
            want = min(limit + 1 - len(found), max(1, ROWS // max(1, members)))
            more = self._clusters(key or "", score, name, want, members)
            found += more
            if len(more) < want or key is not None:
                break
            score, name = str(more[-1].last_seen), more[-1].key
        following = None
        if len(found) > limit:
            following = cursors.write(f"{found[limit - 1].last_seen} {found[limit - 1].key}", of)
        return FailurePage(found[:limit], following, None)

    def _clusters(self, key: str, score: str, name: str, limit: int, members: int) -> list[FailureGroup]:
        args: dict[str, Arg] = {
            "fingerprint": key,
            "score": score,
            "name": name,
            "limit": limit,
            "members": members,
        }
        call = Call("clusters", self._ledger.keys.home, args, lambda reply: [_cluster(one) for one in reply])
        return self._ledger.scripts.run(call)

    def _by_task(self, key: str | None, limit: int, cursor: str | None, members: int) -> FailurePage:
        counts: Counter[str] = Counter()
        for (task, state), number in self._ledger.counts().items():
            if state in FAILED and key in (None, task):
                counts[task] += number
        order = sorted(counts, key=lambda task: (-counts[task], task))
        of = self._of("type", key)
        start = _position(cursors.read(cursor, of) if cursor else "")
        wanted = order[start : start + limit]
        seen = _Seen("type", members)
        over = self._look(seen, Filters(tasks=[key] if key else None), None) is None if wanted else True
        items = [_counted(task, counts[task], seen.groups.get(task), over) for task in wanted]
        more = cursors.write(str(start + limit), of) if len(order) > start + limit else None
        return FailurePage(items, more, None)

    def _by_context(
        self, by: str, key: str | None, limit: int, cursor: str | None, members: int
    ) -> FailurePage:
        seen = _Seen(by, members)
        filters = Filters(instance=key) if by == "instance" else Filters(trace=key)
        more = self._look(seen, filters, cursor, limit if key is None else None)
        return FailurePage(list(seen.groups.values()), more, seen.scanned)

    def _look(
        self, seen: _Seen, filters: Filters, cursor: str | None, most_groups: int | None = None
    ) -> str | None:
        """Look at jobs, the newest first, until there are enough of them, or of their groups. Answers where it stopped.

        No step looks at more jobs than there is room for groups, so that a page ends where its last group is whole.
        """
        while True:
            room = LONGEST if most_groups is None else min(LONGEST, most_groups - len(seen.groups))
            if room <= 0 or seen.scanned >= LOOK:
                return cursor
            found = list_failed(self._ledger, filters, limit=room, cursor=cursor, view=seen.by)
            seen.see(found.items, found.scanned)
            cursor = found.next_cursor
            if cursor is None:
                return None


class _Seen:
    """Groups of the jobs that were looked at, in the order in which they were met."""

    def __init__(self, by: str, members: int) -> None:
        self.groups: dict[str, FailureGroup] = {}
        self.scanned = 0
        self.by = by
        self._members = members

    def see(self, jobs: Iterable[FailedJob], scanned: int) -> None:
        self.scanned += scanned
        for job in jobs:
            key = {"type": job.task, "instance": job.instance, "trace": job.trace}[self.by]
            if key is not None:
                group = self.groups.get(key) or FailureGroup(self.by, key, 0, job.at, job.at, ())
                self.groups[key] = self._with(group, job)

    def _with(self, group: FailureGroup, job: FailedJob) -> FailureGroup:
        assert group.first_seen is not None
        assert group.last_seen is not None
        return replace(
            group,
            count=group.count + 1,
            first_seen=min(group.first_seen, job.at),
            last_seen=max(group.last_seen, job.at),
            members=(*group.members, job)[: self._members],
        )


def _counted(task: str, count: int, seen: FailureGroup | None, over: bool) -> FailureGroup:
    """A task by its counters; only a look at all jobs tells when the first of them ended."""
    if seen is None:
        return FailureGroup("type", task, count, None, None, ())
    return replace(seen, count=count, first_seen=seen.first_seen if over else None)


def _cluster(one: list[Any]) -> FailureGroup:
    fingerprint, count, last, sample, rows = one
    first, exception, frame, template = (*sample.decode().split("\n", 3), "", "", "")[:4]
    key = fingerprint.decode()
    return FailureGroup(
        by="reason",
        key=key,
        count=int(count),
        first_seen=int(first) if first else None,
        last_seen=int(last),
        members=tuple(failed_jobs(rows)),
        exception=exception or None,
        frame=frame or None,
        template=template or FIXED.get(key) or None,
    )


def _check_number(what: str, number: int, least: int, most: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(
            f"{what} {number!r:.40} is out of range: {least} to {most}", hint=f"{what}={least} or more"
        )


def _position(place: str) -> int:
    if not place:
        return 0
    if place.isascii() and place.isdigit() and len(place) < 10:
        return int(place)
    raise cursors.not_ours(place)
