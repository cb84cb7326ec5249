"""Finds work: which tenants to claim from, how much, and when to look again."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..lease.index import Visit
from ..lease.jobs import DUE, REAP, Claim, Lease, News
from ..lease.ledger import new_token
from ..lease.ledgers import Ledgers
from ..scripts.errors import TenureError
from .clock import NEVER, ServerClock
from .courier import Post
from .pool import Pool
from .row import Row
from .trust import hold

TENANTS = 32
"""How many tenants are visited in one batch."""
FIRST_PAUSE_S, LAST_PAUSE_S = 0.002, 0.5
AHEAD_PAUSE_S = 0.02
"""After a claim that found work for free slots only: for so long, nothing is claimed ahead."""
TELL_S = 0.05
"""The index hears news with the next batch, or after this time."""


@dataclass(slots=True)
class Lookout:
    """Where to look for a pool's work."""

    pool: Pool
    tenants: dict[str, None] = field(default_factory=dict[str, None])
    """To be claimed from next, in turn."""
    look_at: float = 0.0
    """When to ask the index again."""
    pause: float = 0.0
    looking: bool = False
    found_nobody: bool = False
    """What the last look said."""
    claiming: int = 0
    """Rows asked for and not yet answered."""
    claiming_free: int = 0
    """Those of them that could begin at once."""
    ahead_from: float = 0.0
    """Before, claim for free slots only."""

    def want(self, now: float) -> int:
        """How many rows to ask for."""
        return (self.pool.want(now) if now >= self.ahead_from else self.pool.free) - self.claiming

    @property
    def free(self) -> int:
        """For how many of them a slot is free."""
        return max(0, self.pool.free - self.claiming_free)

    @property
    def idle(self) -> bool:
        return self.found_nobody and not (self.tenants or self.looking or self.claiming)

    def turn_to(self, tenant: str) -> None:
        self.tenants[tenant] = None
        self.pause = 0.0

    def wake_at(self, instant: float) -> None:
        self.look_at = min(self.look_at, instant)

    def try_again_at(self, instant: float) -> None:
        self.found_nobody = False
        self.look_at = instant


class Claims:
    def __init__(
        self,
        ledgers: Ledgers,
        clock: ServerClock,
        pools: list[Pool],
        worker: str,
        poll_s: float,
        grace_ms: int,
        got: Callable[[Row], None],
        unknown: Sequence[str] = (),
    ) -> None:
        self.open = True
        """False: claim nothing more."""
        self.left: int | None = None
        """How many jobs may still be claimed; None: any number."""
        self.last_at: float | None = None
        """When jobs were last claimed (monotonic)."""
        self._ledgers = ledgers
        self._clock = clock
        self._lookouts = {pool.name: Lookout(pool) for pool in pools}
        self._worker = worker
        self._poll_s = poll_s
        self._grace_ms = grace_ms
        self._got = got
        self._unknown = unknown
        self._news: dict[tuple[str, str], News] = {}
        self._tell_by = NEVER
        self._numbers = itertools.count(1)

    def hint(self, pool: str, tenant: str, run_at: int, now: float) -> None:
        """A tenant has, or will have, a due job of a pool."""
        lookout = self._lookouts.get(pool)
        if lookout is None:
            return
        if self._clock.may_be_past(run_at, now):
            lookout.turn_to(tenant)
        else:
            lookout.wake_at(self._clock.local(run_at))

    def look(self, now: float) -> None:
        """There may be anything: ask the index."""
        for lookout in self._lookouts.values():
            lookout.try_again_at(now)

    def heard(self, news: list[News]) -> None:
        """What a settle said of jobs that are to be claimed again."""
        for item in news:
            self._heard(item)

    def _heard(self, news: News) -> None:
        now = self._clock.monotonic()
        self._tell(news, now)
        lookout = self._lookouts.get(news.queue.removeprefix(DUE))
        if lookout is None or news.due_ms is None:
            return
        # by the server's clock, not our guess of it: that may be a moment behind, and a burst would end between chunks
        if news.is_due:
            lookout.turn_to(news.tenant)
        else:
            lookout.wake_at(self._clock.local(news.due_ms))

    def next_look(self) -> float:
        """When there may be something to claim."""
        return min(0.0 if lookout.tenants else lookout.look_at for lookout in self._lookouts.values())

    def idle(self, now: float) -> bool:
        """Whether nothing is due: the last look found nobody, and nothing has been heard since."""
        return all(lookout.idle and lookout.look_at > now for lookout in self._lookouts.values())

    @property
    def has_news(self) -> bool:
        """Whether the index has to hear something yet."""
        return bool(self._news)

    def send_at(self, now: float) -> float:
        """When there is something to ask for and room for it, or something to tell."""
        if not self.open:
            return self._tell_by
        if self._due(now):
            return now
        look_at = (
            self.next_look()
        )  # one that is past waits for room, and the next free slot brings us here again
        return min(self._tell_by, look_at if look_at > now else NEVER)

    def _due(self, now: float) -> bool:
        return any(
            (lookout.tenants or lookout.look_at <= now) and self._want(lookout, now) > 0
            for lookout in self._lookouts.values()
        )

    def posts(self, now: float) -> list[Post]:
        """The claims that can be made now, the looks at the index, and the news that go there first."""
        found = [Post(self._ledgers.index.put_call(news), _passed_over) for news in self._news.values()]
        self._news.clear()
        self._tell_by = NEVER
        if not self.open:
            return found
        for lookout in self._lookouts.values():
            want = self._want(lookout, now)
            if want <= 0:
                continue
            found += self._claims(lookout, want)
            if not lookout.tenants and not lookout.looking and lookout.look_at <= now:
                found.append(self._look(lookout))
        return found

    def _want(self, lookout: Lookout, now: float) -> int:
        want = lookout.want(now)
        return want if self.left is None else min(want, self.left)

    def _claims(self, lookout: Lookout, want: int) -> list[Post]:
        tenants = list(lookout.tenants)[: min(want, TENANTS)]
        found: list[Post] = []
        free = lookout.free
        for tenant in tenants:
            del lookout.tenants[tenant]
            share = math.ceil(want / len(tenants))
            found += self._claim(lookout, tenant, share, min(share, free))
            free -= min(share, free)
        return found

    def _claim(self, lookout: Lookout, tenant: str, want: int, free: int) -> list[Post]:
        ledger = self._ledgers.of(tenant)
        # Before the claim, so that the leases are found again even if this process ends right after it. Version 0 says
        # that it is a guess, which puts off no visit; the answer to the claim says how it is.
        reap = News(tenant, REAP, self._clock.now_ms() + ledger.lease_ms, 0)
        call = ledger.claim_call(
            lookout.pool.name,
            self._worker,
            want,
            new_token(),
            self._grace_ms,
            ahead=want - free,
            unknown=list(self._unknown),
        )
        lookout.claiming += want
        lookout.claiming_free += free
        if self.left is not None:
            self.left -= want

        def read(answer: Any, sent_at: float) -> None:
            lookout.claiming -= want
            lookout.claiming_free -= free
            if self.left is not None:
                self.left += want
            if isinstance(answer, TenureError):
                lookout.try_again_at(sent_at + LAST_PAUSE_S)
            else:
                self._claimed(lookout, answer, sent_at)

        return [Post(self._ledgers.index.put_call(reap), _passed_over), Post(call, read)]

    def _claimed(self, lookout: Lookout, claim: Claim, sent_at: float) -> None:
        now = self._clock.monotonic()
        for lease in claim.leases:
            self._got(self._row(lookout.pool.name, lease, sent_at, now))
        if claim.leases:
            self.last_at = now
            lookout.pause = 0.0
            self._heard(claim.reap)
            if claim.rows:
                self._heard(claim.rows)
        elif claim.reason == "ahead":
            lookout.ahead_from = now + AHEAD_PAUSE_S
        if self.left is not None:
            self.left -= len(claim.leases)
        if claim.reason == "task_unknown":
            self._tell(claim.news, now)  # what is due is for others: we come again with the next look
            lookout.found_nobody = not (lookout.tenants or lookout.claiming)
        else:
            self._heard(claim.news)

    def _row(self, pool: str, lease: Lease, sent_at: float, now: float) -> Row:
        limit_at = self._clock.local(lease.deadline - self._grace_ms)
        held = hold(self._clock, self._ledgers.lease_ms, lease, lease.expires_at, sent_at)
        return Row(next(self._numbers), pool, lease, held, now, limit_at)

    def _look(self, lookout: Lookout) -> Post:
        lookout.looking = True

        def read(answer: Any, sent_at: float) -> None:
            lookout.looking = False
            now = self._clock.monotonic()
            if isinstance(answer, TenureError):
                lookout.try_again_at(now + LAST_PAUSE_S)
            else:
                self._looked(lookout, answer, now)

        return Post(self._ledgers.index.take_call(DUE + lookout.pool.name, TENANTS), read)

    def _looked(self, lookout: Lookout, visit: Visit, now: float) -> None:
        lookout.found_nobody = not visit.tenants
        if lookout.found_nobody:
            lookout.pause = 0.0
            due = now + self._poll_s if visit.next_due_ms is None else self._clock.local(visit.next_due_ms)
            lookout.look_at = min(now + self._poll_s, max(due, now + FIRST_PAUSE_S))
            return
        for tenant in visit.tenants:
            lookout.tenants[tenant] = None
        # Others may have been quicker. If again and again nothing is left for us, ask less often.
        lookout.look_at = now + lookout.pause
        lookout.pause = min(LAST_PAUSE_S, max(FIRST_PAUSE_S, 2 * lookout.pause))

    def _tell(self, news: News, now: float) -> None:
        """Keep what the index has to hear until the next batch; only the newest of each queue."""
        self._tell_by = min(self._tell_by, now + TELL_S)
        known = self._news.get((news.tenant, news.queue))
        if known is None or known.version <= news.version:
            self._news[news.tenant, news.queue] = news


def _passed_over(answer: Any, sent_at: float) -> None:
    """The index holds no truth: what it missed is found by the sweep."""
