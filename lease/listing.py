"""Pages of jobs: the shortest list that holds all that are asked for is read, and each job in it is tested.

Newest first: by when they were made; those of one ended state by when they ended, unless a shorter list holds them;
pending ones by due time. A page that looked at many jobs and found few is short and says so. Its cursor goes on where
it stopped, and neither skips nor repeats a job that stays as it is while others come and go.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ..scripts import Call
from ..scripts.errors import BadInput
from ..scripts.loader import Arg, texts
from ..scripts.states import State
from . import cursors, views
from .failed import FailedJob, failed_jobs
from .filters import Filters
from .ids import is_id
from .jobs import Page
from .payload import digest

if TYPE_CHECKING:
    from .ledger import Ledger


class Shown(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def trace(self) -> str: ...


T = TypeVar("T", bound=Shown)
LONGEST = 100
LOOK = 1_000
"""So many jobs are looked at by one call, 2 to 4 us each, ..."""
CALLS = 4
"""... and so many calls make a page."""
GATHER = 1_000
"""A list that is not in the order asked for is read whole and sorted, if it is no longer than this."""
CLUSTERS, MOST_CLUSTERS = "clusters", 20
"""Words that stand in the messages of a few kinds of failure find the jobs of these first."""
SOUGHT = 25
SLICE = 5_000
CURSOR_BYTES = 200_000


@dataclass(frozen=True, slots=True)
class Way:
    """Lists that hold all jobs asked for, in one order: (family, name, value) as the query script takes them."""

    name: str
    order: str
    lists: Sequence[tuple[Arg, Arg, Arg]]
    size: float = 0

    @property
    def by_position(self) -> bool:
        return self.name in ("succeeded", "task", "all") and not self.gathered

    @property
    def by_state(self) -> bool:
        """Whether the lists hold jobs of the states that are asked for, and no others."""
        return self.name in ("succeeded", "stopped", "pending")

    @property
    def gathered(self) -> bool:
        """Whether the order asked for is not that of the lists, so that they are read whole at each page."""
        return self.order == "due" and self.name != "pending"

    def going_on(self, cursor: Cursor) -> Way:
        """The same lists from where the cursor is; those that are at their end are left out."""
        if not self.by_position:
            return self
        family = "succeeded" if self.name == "succeeded" else "journal"
        return replace(self, lists=[(family, name, position) for name, position in cursor.at.items()])


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page ended: on which way, after which job or, for lists by position, at which position of each."""

    way: str
    score: str = ""
    id: str = ""
    at: Mapping[str, str] = field(default_factory=dict[str, str])

    def written(self, of: Sequence[str]) -> str:
        data = json.dumps([self.way, self.score, self.id, self.at], separators=(",", ":")).encode()
        return cursors.write(base64.urlsafe_b64encode(zlib.compress(data)).decode(), of)

    @classmethod
    def read(cls, text: str, of: Sequence[str]) -> Cursor:
        """Raises BadInput for one that no list gave, or another one."""
        place = cursors.read(text, of)
        try:
            packed = base64.b64decode(place, b"-_", validate=True)
            way, score, id_, at = json.loads(zlib.decompressobj().decompress(packed, CURSOR_BYTES))
            cursor = cls(str(way), _number(score), str(id_), {str(name): _number(at[name]) for name in at})
            if not cursor.id or is_id(cursor.id):
                return cursor
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError, zlib.error):
            pass
        raise cursors.not_ours(text)


def _number(text: str) -> str:
    """A score or a position as it was written; empty stays empty. Raises ValueError."""
    if text and not 0 <= int(text) < 1 << 53:
        raise ValueError(text)
    return str(int(text)) if text else ""


def list_jobs(ledger: Ledger, filters: Filters, *, limit: int = 50, cursor: str | None = None) -> Page:
    """A page of jobs. Raises BadInput for a limit out of range, and for a cursor that another list gave."""
    check_limit(limit)
    found = _read(ledger, filters, Form("", views.jobs), limit, cursor)
    return Page(found.items, found.next_cursor, found.scanned)


def check_limit(limit: int) -> None:
    """Raises BadInput for what is no number of jobs on a page."""
    if not 1 <= limit <= LONGEST:
        raise BadInput(f"limit {limit!r} is out of range: 1 to {LONGEST}", hint="the default is 50")


def list_failed(
    ledger: Ledger,
    filters: Filters,
    *,
    judged: bool = False,
    limit: int = LONGEST,
    cursor: str | None = None,
    view: str = "",
) -> Found[FailedJob]:
    """The same of dead and failed jobs, in few words; with `judged` it says of each why it could not be retried. A
    cursor of one `view` of them is none of another.
    """
    form = Form("judged" if judged else "failed", lambda _, rows: failed_jobs(rows[1:]))
    return _read(ledger, replace(filters, failed=True), form, limit, cursor, view)


def _read(
    ledger: Ledger, filters: Filters, form: Form[T], limit: int, cursor: str | None, view: str = ""
) -> Found[T]:
    of = ("jobs", view, ledger.tenant, *filters.named())
    reading = _Reading(ledger, filters, form, limit, of)
    return reading.first_page() if not cursor else reading.next_page(Cursor.read(cursor, of), cursor)


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """How jobs are given: the script's name of it, and what makes values of `now` and the rows that it gives."""

    name: str
    parse: Callable[[str, list[Any]], list[T]]


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """Some jobs in a stable order, the cursor of what comes next (None: nothing), how many were looked at."""

    items: list[T]
    next_cursor: str | None
    scanned: int


@dataclass(frozen=True, slots=True)
class _Answer:
    scanned: int
    cursor: Cursor
    more: bool


def pending_pools(ledger: Ledger) -> list[str]:
    """The pools that have pending jobs."""
    return sorted(ledger.scripts.run(Call("pools", ledger.keys.home, {}, texts)))


class _Reading(Generic[T]):
    """One page on its way."""

    def __init__(
        self, ledger: Ledger, filters: Filters, form: Form[T], limit: int, of: Sequence[str]
    ) -> None:
        self._ledger = ledger
        self._of = of
        self._filters = filters
        self._form = form
        self._limit = limit
        self._tests = filters.tests()
        self._items: list[T] = []
        self._scanned = 0

    def first_page(self) -> Found[T]:
        if self._filters.q is not None and self._found_exactly(self._filters.q):
            return self._page(None)
        way = self._shortest()
        if not way.size:
            return self._alone(self._filters.trace or "")
        cursor = self._start(way)
        words = self._filters.error_words
        if way.name == "stopped" and words is not None:
            cursor = replace(cursor, way=CLUSTERS, at=dict.fromkeys(self._clusters(words), "0"))
            way = _by_cluster(cursor)
        return self._read(way, cursor)

    def _alone(self, trace: str) -> Found[T]:
        """A job that is alone in its trace, and so its name, stands in no list of it."""
        if is_id(trace):
            self._tests = [*replace(self._filters, trace=None).tests(), *self._filters.words()]
            self._take(Way("", "given", [("these", "", trace)]), Cursor(""), _in(self._filters.states))
            self._items = [job for job in self._items if job.trace == trace]
        return self._page(None)

    def _clusters(self, words: str) -> list[str]:
        """The kinds of failure in whose message the words stand: their jobs are found at once, before all others."""
        args: dict[str, Arg] = {"words": words, "look": LOOK, "most": MOST_CLUSTERS}
        return self._ledger.scripts.run(Call("clusters_like", self._ledger.keys.home, args, texts))

    def next_page(self, cursor: Cursor, written: str) -> Found[T]:
        ways = {way.name: way for way in self._ways({}, {})}
        if cursor.way == CLUSTERS and self._filters.error_words is not None:
            return self._read(_by_cluster(cursor), cursor)
        if cursor.way not in ways:
            raise cursors.not_ours(written)
        return self._read(ways[cursor.way], cursor)

    # -- which list to read -------------------------------------------------------------------------------------------

    def _shortest(self) -> Way:
        """The way with the fewest jobs. Pending jobs stand in their order on one way only; another is read whole."""
        shared = self._filters.shared
        rest: list[Arg] = [part for pair in shared.values() for part in pair]
        counts, *lengths = self._ledger.scripts.run(Call("sizes", self._ledger.keys.home, {}, list, rest))
        by_task_and_state = {
            (task, State(state)): int(number)
            for name, number in views.pairs(texts(counts))
            for task, _, state in [name.rpartition("|")]
        }
        ways = self._ways(by_task_and_state, dict(zip(shared, lengths, strict=True)))
        if self._filters.status == State.PENDING:
            ways = [way for way in ways if way.name == "pending" or way.size <= GATHER]
        return min(ways, key=lambda way: way.size)

    def _ways(self, counts: Mapping[tuple[str, State], int], lengths: Mapping[str, int]) -> list[Way]:
        filters = self._filters
        order = "due" if filters.status == State.PENDING else "created"
        ways = [
            Way(
                name,
                "stopped" if kind == "fingerprint" else order,
                [("group", kind, value)],
                lengths.get(name, 0),
            )
            for name, (kind, value) in filters.shared.items()
        ]
        if filters.states is not None:
            ways.append(_by_state(filters.states, counts))
        if filters.tasks is not None:
            size = sum(number for (task, _), number in counts.items() if task in filters.tasks)
            ways.append(Way("task", order, [("journal", task, "") for task in filters.tasks], size))
        if not ways:
            tasks = sorted({task for task, _ in counts})
            ways.append(Way("all", order, [("journal", task, "") for task in tasks], sum(counts.values())))
        return ways

    def _start(self, way: Way) -> Cursor:
        """Where the first page begins: at the newest job, or at the newest before `created_to` or `ended_to`, in a list
        that stands in that order.
        """
        at = {str(name): "" for _, name, _ in way.lists} if way.by_position else {}
        if self._filters.ended_to is not None and way.order == "stopped" and not way.by_position:
            return Cursor(way.name, str(self._filters.ended_to))
        before = self._filters.created_to
        if before is not None and way.order == "created":
            if not way.by_position:
                return Cursor(way.name, str(before))
            at = self._sought(list(at), before)
        return Cursor(way.name, at=at)

    def _sought(self, tasks: Sequence[str], before: int) -> dict[str, str]:
        """The position in each journal of the newest job that was made before an instant, if there is one."""
        home = self._ledger.keys.home
        slices = [tasks[at : at + SOUGHT] for at in range(0, len(tasks), SOUGHT)]
        found: list[str] = []
        for part in slices:
            found += self._ledger.scripts.run(Call("seek", home, {"before": before}, texts, part))
        return {task: position for task, position in zip(tasks, found, strict=True) if position != "-1"}

    # -- reading it ---------------------------------------------------------------------------------------------------

    def _found_exactly(self, q: str) -> bool:
        """Take the job of that id and the holder of that idempotency key; answers whether nothing else can be meant."""
        lists: list[tuple[Arg, Arg, Arg]] = [("these", "", q)] if is_id(q) else []
        states = self._filters.asked_states
        self._take(Way("", "given", [*lists, ("key", "", digest(q))]), Cursor(""), _in(states))
        return is_id(q) and any(job.id == q for job in self._items)

    def _read(self, way: Way, cursor: Cursor) -> Found[T]:
        self._tests += self._filters.words()
        if way.name == "running":
            return self._running(cursor.id)
        for _ in range(CALLS):
            if len(self._items) >= self._limit:
                break
            going = way.going_on(cursor)
            answer = self._take(going, cursor, self._more_tests(way, cursor)) if going.lists else None
            if answer and answer.more:
                cursor = answer.cursor
            elif way.name == CLUSTERS:
                cursor = replace(self._start(_STOPPED), at=cursor.at)
                way = _by_state(self._filters.states or frozenset(), {})
            else:
                return self._page(None)
        return self._page(cursor)

    def _more_tests(self, way: Way, cursor: Cursor) -> list[Arg]:
        """What a job must pass on this way only: its state, and that it did not come on the way before."""
        tests = [] if way.by_state else _in(self._filters.states)
        if way.name == "stopped":
            tests += [part for fingerprint in cursor.at for part in ("isnt", "fingerprint", fingerprint)]
        return tests

    def _running(self, after: str) -> Found[T]:
        """Leases are renewed all the time: the ids of all that run are read, and have an order of their own."""
        ids = sorted((id_ for id_ in self._leased() if not after or id_ < after), reverse=True)
        for start in range(0, min(len(ids), CALLS * LOOK), LOOK):
            part = ids[start : start + LOOK]
            way = Way("running", "given", [("these", "", " ".join(part))])
            answer = self._take(way, Cursor("running"), _in(self._filters.states))
            if answer.more:
                return self._page(Cursor("running", id=answer.cursor.id))
        return self._page(Cursor("running", id=ids[CALLS * LOOK - 1]) if len(ids) > CALLS * LOOK else None)

    def _leased(self) -> set[str]:
        found: set[str] = set()
        score = id_ = ""
        while True:
            args: dict[str, Arg] = {"score": score, "id": id_, "limit": SLICE}
            score, *ids = self._ledger.scripts.run(Call("leased", self._ledger.keys.home, args, texts))
            found.update(ids)
            if len(ids) < SLICE:
                return found
            id_ = ids[-1]

    def _take(self, way: Way, cursor: Cursor, tests: list[Arg]) -> _Answer:
        """Read on from the cursor, and keep the jobs that are found."""
        args: dict[str, Arg] = {
            "order": way.order,
            "score": cursor.score,
            "id": cursor.id,
            "limit": self._limit - len(self._items),
            "form": self._form.name,
            "most": self._most(way),
        }
        rest = [*tests, *self._tests, *(part for one in way.lists for part in one)]
        answer = self._ledger.scripts.run(
            Call("query", self._ledger.keys.home, args, lambda reply: self._answer(way, cursor, reply), rest)
        )
        self._scanned += answer.scanned
        return answer

    def _most(self, way: Way) -> int:
        """How many jobs a call looks at: to look for words in an error takes longer than to compare a field."""
        if way.gathered:
            return 2 * GATHER
        look = LOOK if self._filters.q is None and self._filters.error is None else LOOK // 2
        return look if len(way.lists) <= 20 else 20 * look // len(way.lists)

    def _answer(self, way: Way, before: Cursor, reply: Any) -> _Answer:
        scanned, score, id_, more, positions, *rows = reply
        at = before.at
        if way.by_position:
            names = [str(name) for _, name, _ in way.lists]
            at = {name: position for name, position in zip(names, texts(positions), strict=True) if position}
        cursor = Cursor(way.name, score.decode(), id_.decode(), at)
        self._items += self._form.parse(self._ledger.tenant, rows)
        return _Answer(int(scanned), cursor, more == b"1")

    def _page(self, cursor: Cursor | None) -> Found[T]:
        return Found(self._items, cursor.written(self._of) if cursor else None, self._scanned)


def _in(states: frozenset[State] | None) -> list[Arg]:
    return [part for state in sorted(states or ()) for part in ("is", "state", state)]


def _by_cluster(cursor: Cursor) -> Way:
    """The lists of the kinds of failure that the cursor names."""
    return Way(CLUSTERS, "stopped", [("group", "fingerprint", fingerprint) for fingerprint in cursor.at])


_STOPPED = Way("stopped", "stopped", [])


def _by_state(states: frozenset[State], counts: Mapping[tuple[str, State], int]) -> Way:
    """The lists of the states themselves."""
    size = sum(number for (_, state), number in counts.items() if state in states)
    if states == {State.PENDING}:
        return Way("pending", "due", [("pending", "", "")], size)
    if states == {State.RUNNING}:
        return Way("running", "given", [("these", "", "")], size)
    if states == {State.SUCCEEDED}:
        return Way("succeeded", "stopped", [("succeeded", "", "")], size)
    return Way("stopped", "stopped", [("stopped", state, "") for state in sorted(states)], size)
