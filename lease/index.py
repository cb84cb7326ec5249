"""The index over tenants: who wants a visit, and when.

It holds no truth: a hint that is lost here is found again by the sweep, a tenant by the census.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..scripts import Call, Index, Scripts
from ..scripts.errors import TenureError
from ..scripts.loader import Arg, texts
from .jobs import FIRE, News
from .witness import Witness
from .workers import SEEN_MS, Heartbeat, WorkerView, read_page

KNOWN_S = 60.0
WORKERS_PAGE = 500
WORKERS_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Visit:
    """Tenants to visit now, when the next one will want it (None: nobody is waiting), and the server's time
    (epoch ms).
    """

    tenants: list[str]
    next_due_ms: int | None
    now_ms: int


@dataclass(frozen=True, slots=True)
class SweepPage:
    """Tenants for the sweep to read; none when it is another's turn. The next page is there after `wait_ms`."""

    tenants: list[str]
    wait_ms: int


class TenantIndex:
    """Verbs of the index. `queue` is `due:POOL`, `reap` or `fire`."""

    def __init__(
        self, scripts: Scripts, namespace: str, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.scripts = scripts
        self.keys = Index(namespace)
        self.witness = Witness()
        self._monotonic = monotonic
        self._known: set[str] = set()
        self._known_since = monotonic()

    def register(self, *tenants: str) -> None:
        """Make sure the sweep will find the tenants, before a write of theirs; asked again after a minute, in case the
        index was lost.
        """
        now = self._monotonic()
        if now - self._known_since >= KNOWN_S:
            self._known, self._known_since = set(), now
        new = [tenant for tenant in dict.fromkeys(tenants) if tenant not in self._known]
        if not new:
            return
        calls = [Call("index_register", self.keys.home, {"who": tenant}, int) for tenant in new]
        for tenant, answer in zip(new, self.scripts.run_all(calls), strict=True):
            if isinstance(answer, TenureError):
                raise answer
            self._known.add(tenant)

    def take_call(self, queue: str, limit: int, revisit_ms: int = 0) -> Call[Visit]:
        args: dict[str, Arg] = {"queue": queue, "limit": limit, "revisit": revisit_ms}
        return Call("index_take", self.keys.home, args, _visit)

    def take(self, queue: str, limit: int, revisit_ms: int = 0) -> Visit:
        """The tenants due for a visit, longest unvisited first; others leave them alone for `revisit_ms`."""
        return self.scripts.run(self.take_call(queue, limit, revisit_ms))

    def now_ms(self) -> int:
        """The server's time (epoch ms)."""
        return self.take(FIRE, 0).now_ms

    def put_call(self, news: News) -> Call[bool]:
        if news.version:
            self.witness.saw(news.tenant, news.version)
        due = "" if news.due_ms is None else news.due_ms
        args: dict[str, Arg] = {"queue": news.queue, "who": news.tenant, "due": due, "version": news.version}
        return Call("index_put", self.keys.home, args, bool)

    def put(self, news: Iterable[News]) -> None:
        self.scripts.run_all([self.put_call(item) for item in news])

    def tenants(self) -> list[str]:
        """All tenants that are known, by name."""
        return sorted(self.scripts.run(Call("index_tenants", self.keys.home, {}, texts)))

    def declared(self, *, add: Iterable[str] = (), drop: Iterable[str] = ()) -> list[str]:
        """Change, and answer, the schedules that code has declared, each `tenant:JobKey`. A finding aid: the mark is
        at the schedule.
        """
        change, names = ("add", [*add]) if add else ("drop", [*drop])
        return sorted(
            self.scripts.run(Call("index_declared", self.keys.home, {"change": change}, texts, names))
        )

    def sweep(self, limit: int, pause_ms: int, round_ms: int) -> SweepPage:
        """The next page of the walk over all tenants that all processes share, if it is time for one."""
        args: dict[str, Arg] = {"limit": limit, "pause": pause_ms, "round": round_ms}
        wait, *tenants = self.scripts.run(Call("index_sweep", self.keys.home, args, texts))
        return SweepPage(tenants, int(wait))

    def beat(self, worker: str, said: Heartbeat) -> None:
        """Tell the register that a worker lives; a few that nobody has heard for long are forgotten meanwhile."""
        args: dict[str, Arg] = {"worker": worker, "said": said.packed(), "keep": SEEN_MS}
        self.scripts.run(Call("index_beat", self.keys.home, args, int))

    def workers(self) -> list[WorkerView]:
        """The workers heard in the last ten minutes, by name; 10,000 at most."""
        found: dict[str, WorkerView] = {}
        cursor = ""
        while cursor != "0" and len(found) < WORKERS_MOST:
            args: dict[str, Arg] = {"cursor": cursor or "0", "limit": WORKERS_PAGE}
            cursor, page = self.scripts.run(Call("index_workers", self.keys.home, args, read_page))
            found |= {worker.name: worker for worker in page if worker.seen}
        return [found[name] for name in sorted(found)]

    def census(self, found: Sequence[str], every_ms: int, *, going: bool) -> bool:
        """Add the tenants that a pass over the store has found; answers whether the asker is to begin one."""
        args: dict[str, Arg] = {"every": every_ms, "going": int(going)}
        return self.scripts.run(Call("index_census", self.keys.home, args, bool, found))


def _visit(reply: list[bytes]) -> Visit:
    now, first, *tenants = texts(reply)
    return Visit(tenants, int(first) if first else None, int(now))
