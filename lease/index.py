"""The index over tenants: who wants a visit, and when.

It holds no truth: what is lost here is found again by `sweep`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..scripts import Call, Index, Scripts
from ..scripts.errors import TenureError
from ..scripts.loader import Arg, texts
from .jobs import News

DUE = "due:"
REAP = "reap"
FIRE = "fire"


@dataclass(frozen=True, slots=True)
class Visit:
    """Tenants to visit now, when the next one will want it (None: nobody is waiting), and the server's time
    (epoch ms).
    """

    tenants: list[str]
    next_due_ms: int | None
    now_ms: int


class TenantIndex:
    """Verbs of the index. `queue` is `due:POOL`, `reap` or `fire`."""

    def __init__(self, scripts: Scripts, namespace: str) -> None:
        self.scripts = scripts
        self.keys = Index(namespace)
        self._known: set[str] = set()

    def register(self, *tenants: str) -> None:
        """Make sure the sweep will find the tenants; asked once per process, before their first write."""
        new = [tenant for tenant in dict.fromkeys(tenants) if tenant not in self._known]
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

    def put_call(self, news: News) -> Call[bool]:
        due = "" if news.due_ms is None else news.due_ms
        args: dict[str, Arg] = {"queue": news.queue, "who": news.tenant, "due": due, "version": news.version}
        return Call("index_put", self.keys.home, args, bool)

    def put(self, news: Iterable[News]) -> None:
        self.scripts.run_all([self.put_call(item) for item in news])

    def sweep(self, cursor: str, limit: int) -> tuple[str, list[str]]:
        """Some tenants from `cursor` on ("0" starts, "0" in the answer ends a round)."""
        found = self.scripts.run(
            Call("index_sweep", self.keys.home, {"cursor": cursor, "limit": limit}, texts)
        )
        return found[0], found[1:]


def _visit(reply: list[bytes]) -> Visit:
    now, first, *tenants = texts(reply)
    return Visit(tenants, int(first) if first else None, int(now))
