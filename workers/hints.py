"""Hears the hints on the wake channel: a job is due, a job must stop. Losing one costs at most a poll."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from redis.exceptions import RedisError

from ..lease.jobs import Lease
from ..lease.loop import retry_after
from ..lease.waits import Subscription
from ..scripts.loader import Client
from .wire import Why

log = logging.getLogger("tenure.worker")

LISTEN_S = 5.0
CLOSE_S = 2.0


class Due(NamedTuple):
    """A tenant has a job of a pool, due at an instant of the server."""

    pool: str
    tenant: str
    run_at: int


class Stop(NamedTuple):
    """A running job has been canceled, or paused. It may run again since, under another fence: then it is not meant."""

    pool: str
    tenant: str
    job_id: str
    fence: int
    why: Why = Why.CANCELED


class Held(NamedTuple):
    """A tenant, or its jobs of a pool or a task, are held from now on."""

    tenant: str
    kind: str
    name: str

    def holds(self, lease: Lease, pool: str) -> bool:
        """Whether a job is one of them."""
        of = {"tenant": "", "pool": pool, "task": lease.task}.get(self.kind)
        return lease.tenant == self.tenant and of == self.name


class Look(NamedTuple):
    """The connection was away: there may be anything."""


Hint = Due | Stop | Held | Look


def parse(message: bytes) -> Due | Stop | Held | None:
    """A message of the wake channel; None for one that a newer version may understand."""
    match message.decode(errors="replace").split(" "):
        case ["due", pool, tenant, run_at] if run_at.isdigit():
            return Due(pool, tenant, int(run_at))
        case ["stop", pool, tenant, job_id, fence] if fence.isdigit():
            return Stop(pool, tenant, job_id, int(fence))
        case ["stop", pool, tenant, job_id, fence, "paused"] if fence.isdigit():
            return Stop(pool, tenant, job_id, int(fence), Why.PAUSED)
        case ["hold", tenant, kind, name]:
            return Held(tenant, kind, name)
        case _:
            return None


class Listener:
    """Listens in a thread of its own and keeps what it hears until the worker's loop takes it."""

    def __init__(self, redis: Client, channel: str, pools: frozenset[str], poke: Callable[[], None]) -> None:
        self.heard: deque[Hint] = deque(maxlen=10_000)
        self._redis = redis
        self._channel = channel
        self._pools = pools
        self._poke = poke
        self._over = threading.Event()
        self._subscription: Subscription | None = None
        self._thread = threading.Thread(target=self._run, name="tenure-hints", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Hear nothing more. Its thread has ended then, unless the store does not answer."""
        self._over.set()
        subscription = self._subscription
        if subscription is not None:
            with suppress(RedisError, OSError):
                subscription.leave()  # the answer wakes the thread
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        failures = 0
        while not self._over.is_set():
            try:
                self._listen()
                failures = 0
            except (RedisError, OSError) as exc:
                failures += 1
                log.debug("no hints: %s", exc)
                self._over.wait(retry_after(failures))

    def _listen(self) -> None:
        """Until the connection breaks, or falls silent."""
        self._subscription = subscription = Subscription(self._redis, self._channel)
        try:
            while not self._over.is_set():
                message = subscription.next(LISTEN_S)
                if message is not None:
                    self._hear(message)
        finally:
            subscription.close()

    def _hear(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "subscribe":
                self._keep(Look())
            case "message":
                hint = parse(message["data"])
                if hint is not None and (isinstance(hint, Held) or hint.pool in self._pools):
                    self._keep(hint)
            case _:
                pass  # the answer to our own farewell

    def _keep(self, hint: Hint) -> None:
        self.heard.append(hint)
        self._poke()
