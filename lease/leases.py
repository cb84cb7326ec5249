"""Named leases: a time-bound right that is renewed, released only by its owner, and carries a fence.

    with app.lease("stock:sku-17", ttl="30s", wait="5s") as lease:
        write(..., fence=lease.fence)
        lease.check()

The holder renews in the background. It trusts its lease only until `start of the call + ttl - margin` on its
own monotonic clock, so a process that was stopped knows on waking that it may no longer be the holder; the
fence protects the rest.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from redis.exceptions import RedisClusterException, RedisError

from ..scripts import Call, Keys, Scripts
from ..scripts.errors import BadInput, LeaseLost, LeaseTaken, StaleFence, StoreError
from ..scripts.loader import Arg, Client, texts
from .durations import Duration, duration_ms
from .index import TenantIndex
from .jobs import REAP, News
from .waits import pop

SHORTEST_MS = 100
NAME_LIMIT = 200
T = TypeVar("T")
_log = logging.getLogger("tenure.lease")


class NamedLease:
    """A lease that is held. Made by `Leases.hold`; all its methods may be called from any thread."""

    def __init__(self, name: str, owner: str, fence: int, ttl_ms: int, taken_at: float) -> None:
        self.name = name
        self.owner = owner
        self.fence = fence
        self.ttl_ms = ttl_ms
        self._trusted_until = 0.0
        self._lost: str | None = None
        self.confirm(taken_at)

    @property
    def lost(self) -> bool:
        """Whether the lease is over, or can no longer be trusted because no renewal was confirmed in time."""
        return self._lost is not None or time.monotonic() > self._trusted_until

    def check(self) -> None:
        """Raise LeaseLost if the lease is over: call it before a step that cannot be undone."""
        if self.lost:
            why = self._lost or f"no renewal was confirmed within its {self.ttl_ms} ms"
            raise LeaseLost(
                f"lease {self.name!r} under fence {self.fence} is lost: {why}", hint="stop; write nothing"
            )

    def require(self, accepted: bool) -> None:
        """Raise StaleFence unless the fenced write was accepted, that is, unless no later holder has written."""
        if not accepted:
            raise StaleFence(
                f"a write under fence {self.fence} of lease {self.name!r} was refused: a later holder has written",
                hint="stop; write nothing",
            )

    def confirm(self, asked_at: float) -> None:
        """A take or renewal sent at `asked_at` (monotonic seconds) was granted."""
        margin = min(1000, self.ttl_ms / 10)
        self._trusted_until = asked_at + (self.ttl_ms - margin) / 1000

    def lose(self, why: str) -> None:
        self._lost = why


class Leases:
    """The named leases of one tenant in this process, kept alive by one thread."""

    def __init__(
        self, scripts: Scripts, keys: Keys, index: TenantIndex, blocking: Callable[[], Client]
    ) -> None:
        self.scripts = scripts
        self.keys = keys
        self.index = index
        self._blocking = blocking
        self._held: set[NamedLease] = set()
        self._changed = threading.Condition()
        self._keeper: threading.Thread | None = None

    @contextmanager
    def hold(self, name: str, ttl: Duration = "30s", wait: Duration = 0) -> Iterator[NamedLease]:
        """Hold a lease while the block runs. Raises LeaseTaken when it is not free within `wait`.

        A store that does not answer is noticed a second after the wait, and then costs one call's time-out at most
        (about 20 s) before StoreUnreachable is raised; so much later than `wait` this may end, and no more.

        The release is best effort: when the store cannot be reached at the end of the block, a warning is logged and
        the lease ends by itself, within its ttl. That neither fails what the block did nor replaces its own error.
        """
        lease = self.take(name, duration_ms(ttl, what="ttl"), duration_ms(wait, what="wait"))
        with self._changed:
            self._held.add(lease)
            self._start_keeper()
            self._changed.notify()
        try:
            yield lease
        finally:
            with self._changed:
                self._held.discard(lease)
            self._release_quietly(lease)

    def take(self, name: str, ttl_ms: int, wait_ms: int = 0) -> NamedLease:
        """Take a lease without keeping it alive. Raises LeaseTaken when it is not free within `wait_ms`."""
        _check_name(name)
        if ttl_ms < SHORTEST_MS:
            raise BadInput(f"ttl {ttl_ms} ms is too short: at least {SHORTEST_MS} ms", hint="ttl='30s'")
        self.index.register(self.keys.tenant)
        owner = os.urandom(8).hex()
        until = time.monotonic() + wait_ms / 1000
        while True:
            asked_at = time.monotonic()
            fence, left, due = self._run("lease_take", texts, name=name, owner=owner, ttl=ttl_ms)
            if fence:
                lease = NamedLease(name, owner, int(fence), ttl_ms, asked_at)
                with suppress(StoreError):  # the lease is ours, and the sweep tells the index what it missed
                    self.index.put([News(self.keys.tenant, REAP, int(due), int(fence))])
                return lease
            patience = min(until - time.monotonic(), int(left) / 1000)
            if patience <= 0 and time.monotonic() >= until:
                raise LeaseTaken(
                    f"lease {name!r} is taken; its holder's time is over in {left} ms, you waited {wait_ms} ms",
                    hint="wait longer: wait='30s'",
                )
            self._wait(name, max(patience, 0.001))

    def renew(self, lease: NamedLease) -> None:
        """Prolong the lease. Raises StaleFence when somebody has taken it over."""
        asked_at = time.monotonic()
        self._run("lease_renew", int, name=lease.name, owner=lease.owner, fence=lease.fence, ttl=lease.ttl_ms)
        lease.confirm(asked_at)

    def release(self, lease: NamedLease) -> bool:
        """Give the lease back; False if it was not ours any more."""
        return bool(self._run("lease_release", int, name=lease.name, owner=lease.owner, fence=lease.fence))

    def _run(self, script: str, parse: Callable[[Any], T], **args: Arg) -> T:
        return self.scripts.run(Call(script, self.keys.home, args, parse))

    def _wait(self, name: str, seconds: float) -> None:
        """Sleep until a release wakes us, or the holder's time is over; a missed wake-up costs only the rest
        of that time.
        """
        try:
            pop(self._blocking(), self.keys("handover", name=name), seconds)
        except (RedisError, RedisClusterException, OSError):
            time.sleep(min(seconds, 0.1))

    def _start_keeper(self) -> None:
        if self._keeper is None or not self._keeper.is_alive():
            self._keeper = threading.Thread(target=self._keep, name="tenure-leases", daemon=True)
            self._keeper.start()

    def _keep(self) -> None:
        """Renew each lease when a third of its time has passed; end when none is left."""
        due: dict[NamedLease, float] = {}
        while True:
            with self._changed:
                if not self._held:
                    self._keeper = None
                    return
                now = time.monotonic()
                due = {
                    lease: due.get(lease, now + lease.ttl_ms / 3000)
                    for lease in self._held
                    if not lease._lost
                }
                first = min(due.values(), default=now + 3600)
                if first > now:
                    self._changed.wait(first - now)
                    continue
            for lease in [lease for lease, at in due.items() if at <= now]:
                due[lease] = now + lease.ttl_ms / 3000
                self._renew_quietly(lease)

    def _renew_quietly(self, lease: NamedLease) -> None:
        """A refusal is final; a fault of the store is not: the holder's own clock decides how long it is
        trusted.
        """
        try:
            self.renew(lease)
        except StaleFence as exc:
            lease.lose(str(exc))
        except StoreError as exc:
            _log.warning("renewal of lease %r failed, trying again: %s", lease.name, exc)

    def _release_quietly(self, lease: NamedLease) -> None:
        try:
            self.release(lease)
        except StoreError as exc:
            _log.warning(
                "lease %r was not released and ends by itself, in %d ms at most: %s",
                lease.name,
                lease.ttl_ms,
                exc,
            )


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not name.isprintable() or not 1 <= len(name.encode()) <= NAME_LIMIT:
        raise BadInput(
            f"lease name {name!r:.80} is not allowed: 1 to {NAME_LIMIT} bytes of printable text",
            hint="like 'stock:sku-17'",
        )
