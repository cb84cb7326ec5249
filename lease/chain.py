"""A chain: all jobs of a trace, in the order they were made, and how they hang together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ..scripts import Call
from ..scripts.errors import BadInput, NotFound
from ..scripts.loader import Arg, texts
from . import cursors
from .context import check_trace
from .ids import is_id
from .jobs import JobView

if TYPE_CHECKING:
    from .ledger import Ledger

MOST = 1_000
READ = 100


@dataclass(frozen=True, slots=True)
class Link:
    """A job in its chain: how many of its ancestors are in the chain too, and the jobs it has made."""

    job: JobView
    depth: int
    children: Sequence[str]


@dataclass(frozen=True)
class Chain:
    """Jobs of a trace in the order they were made. With a `next_cursor` there are more, made later."""

    trace: str
    jobs: Sequence[JobView]
    next_cursor: str | None

    @cached_property
    def links(self) -> Sequence[Link]:
        """The jobs as a tree from its top: each is followed by those it has made. One whose parent is not here, because
        it has gone or stands in another part or tenant, begins a tree of its own.
        """
        here = {job.id for job in self.jobs}
        below: dict[str | None, list[JobView]] = {}
        for job in self.jobs:
            below.setdefault(job.parent if job.parent in here else None, []).append(job)
        links: list[Link] = []
        left = [(job, 0) for job in reversed(below.get(None, []))]
        while left:
            job, depth = left.pop()
            children = below.get(job.id, [])
            links.append(Link(job, depth, [child.id for child in children]))
            left += [(child, depth + 1) for child in reversed(children)]
        return links


def chain(
    ledger: Ledger, trace: str, *, limit: int = MOST, cursor: str | None = None, lines: int = 0
) -> Chain:
    """The jobs of a trace, at most `limit` of them, with their newest log lines. Raises NotFound when there is none,
    BadInput.
    """
    check_trace(trace)
    if not 1 <= limit <= MOST:
        raise BadInput(f"limit {limit!r} is out of range: 1 to {MOST}", hint=f"the default is {MOST}")
    of = ("chain", ledger.tenant, trace)
    score, id_ = _read(cursor, of)
    args: dict[str, Arg] = {"trace": trace, "score": score, "id": id_, "limit": limit}
    more, made, *ids = ledger.scripts.run(Call("trace", ledger.keys.home, args, texts))
    if not ids and cursor is None:
        raise NotFound(
            f"no job of trace {trace!r:.80} is in the ledger of tenant {ledger.tenant}",
            hint="tenure jobs list shows jobs, tenure jobs show ID the trace of one",
        )
    slices = [ids[at : at + READ] for at in range(0, len(ids), READ)]
    jobs = [job for part in slices for job in ledger.get_many(part, lines, deeds=READ)]
    return Chain(trace, jobs, _written(made, ids[-1], of) if more else None)


def _written(made: str, last: str, of: Sequence[str]) -> str:
    return cursors.write(f"{made}:{last}", of)


def _read(cursor: str | None, of: Sequence[str]) -> tuple[str, str]:
    """When the last job of the part before was made, and its id; empty ones at the beginning."""
    if not cursor:
        return "", ""
    made, _, last = cursors.read(cursor, of).partition(":")
    if is_id(last) and made.isascii() and made.isdigit() and int(made) < 1 << 53:
        return made, last
    raise cursors.not_ours(cursor)
