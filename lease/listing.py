"""Pages of jobs: by state from the state's own list, else from the journals of the tasks, merged newest
first.
"""

from __future__ import annotations

import base64
import heapq
import json
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from ..scripts import Call
from ..scripts.errors import BadInput
from ..scripts.loader import Arg, texts
from ..scripts.states import State
from .jobs import DUE, JobView, Page

if TYPE_CHECKING:
    from .ledger import Ledger

LONGEST = 100
# A position in a source: None is its start (the newest entry), "" its end.
Positions = dict[str, str]


def list_jobs(
    ledger: Ledger, *, status: str | None, tasks: Collection[str] | None, limit: int, cursor: str | None
) -> Page:
    """See Ledger.list. `tasks` are those to show; None is all. With a status too, a page may be short."""
    if not 1 <= limit <= LONGEST:
        raise BadInput(f"limit {limit!r} is out of range: 1 to {LONGEST}", hint="the default is 50")
    positions = _read_cursor(cursor)
    sources = _sources(ledger, _state(status), tasks)
    if status == State.PENDING:
        order: Callable[[JobView], Any] = lambda job: (job.run_at, job.id)  # noqa: E731
    else:
        order = lambda job: (-job.created_at, job.id)  # noqa: E731
    return _merge(ledger, sources, positions, order, lambda job: tasks is None or job.task in tasks, limit)


def pending_pools(ledger: Ledger) -> list[str]:
    """The pools that have pending jobs."""
    return [pool for pool in _pools(ledger) if _read(ledger, "queue", pool, 0, 1)[2]]


def _pools(ledger: Ledger) -> list[str]:
    """The pools that have pending jobs, or had some that nobody has looked for since."""
    queues = {news.queue for news in ledger.standing() if news.queue.startswith(DUE)}
    return sorted(queue.removeprefix(DUE) for queue in queues)


def _state(status: str | None) -> State | None:
    try:
        return State(status) if status else None
    except ValueError:
        raise BadInput(f"status {status!r:.40} is not a state", hint=f"one of: {', '.join(State)}") from None


def _sources(ledger: Ledger, status: State | None, tasks: Collection[str] | None) -> list[tuple[str, str]]:
    """(family, name) of the lists that together hold the jobs asked for."""
    if status is State.PENDING:
        return [("queue", pool) for pool in _pools(ledger)]
    if status is State.RUNNING:
        return [("running", "")]
    if status is State.SUCCEEDED:
        return [("succeeded", "")]
    if status:
        return [("stopped", status)]
    return [
        ("journal", name) for name in sorted({key[0] for key in ledger.counts()} if tasks is None else tasks)
    ]


def _merge(
    ledger: Ledger,
    sources: list[tuple[str, str]],
    positions: Positions,
    order: Callable[[JobView], Any],
    wanted: Callable[[JobView], bool],
    limit: int,
) -> Page:
    """Take the first `limit` jobs over all sources; what was read but not taken stays in its source for the
    next page. Jobs of one source keep its order, whatever `order` says of them: so what is left is its rest.
    """
    found: list[list[tuple[str, int, JobView]]] = []
    ends: Positions = {}
    for family, name in sources:
        place = f"{family}:{name}"
        if positions.get(place) == "":
            ends[place] = ""
            continue
        step = -1 if family in ("journal", "succeeded") else 1
        ends[place], first, ids = _read(ledger, family, name, int(positions.get(place, min(step, 0))), limit)
        spot = {id_: int(first) + step * at for at, id_ in enumerate(ids)}
        found.append([(place, spot[job.id], job) for job in ledger.get_many(ids) if wanted(job)])
    merged = list(heapq.merge(*found, key=lambda entry: order(entry[2])))
    taken, left = merged[:limit], merged[limit:]
    for place, at, _ in reversed(left):
        ends[place] = str(at)
    more = any(after != "" for after in ends.values())
    return Page([job for _, _, job in taken], _write_cursor(ends) if more else None)


def _read(ledger: Ledger, family: str, name: str, start: int, limit: int) -> tuple[str, str, list[str]]:
    args: dict[str, Arg] = {"family": family, "name": name, "from": start, "limit": limit}
    reply = ledger.scripts.run(Call("list", ledger.keys.home, args, texts))
    return reply[0], reply[1], reply[2:]


def _write_cursor(positions: Positions) -> str:
    return base64.urlsafe_b64encode(json.dumps(positions).encode()).decode().rstrip("=")


def _read_cursor(cursor: str | None) -> Positions:
    if not cursor:
        return {}
    try:
        data = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        return {str(place): "" if at == "" else str(_position(at)) for place, at in data.items()}
    except (ValueError, AttributeError, TypeError, OverflowError, RecursionError):
        raise BadInput(
            f"cursor {cursor!r:.40} is not one this list gave", hint="start again without a cursor"
        ) from None


def _position(at: Any) -> int:
    position = int(at)
    if not -1 <= position < 1 << 53:
        raise ValueError
    return position
