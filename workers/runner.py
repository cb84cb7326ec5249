"""The worker's loop: one thread that waits for slots, hints and answers, and never for the store."""

from __future__ import annotations

import logging
import selectors
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from ..lease.loop import Loop
from ..scripts.keys import wake_channel
from .application import Application
from .claims import Claims
from .clock import ServerClock
from .courier import Courier
from .crew import NEVER, Crew
from .duties import ClockCheck, Reaper, Sweep
from .hints import Due, Listener, Look, Stop
from .options import WorkerOptions
from .outbox import Outbox
from .pool import Pool
from .renewals import renewal_posts
from .slots import Slot
from .wire import Why
from .zygote import Zygote

log = logging.getLogger("tenure.worker")

FLUSH_JOBS = 32
FLUSH_S = 0.003
"""Outcomes wait for company no longer than this."""
FAREWELL_S = 5.0
"""How long a worker that stops waits for the store to take its outcomes."""
SWITCH_S = 0.0005


class Runner:
    def __init__(
        self, app: Application, zygote: Zygote, pools: list[str], worker: str, options: WorkerOptions
    ) -> None:
        self.suspended = False
        """Set from outside: claim nothing for now."""
        self.broken = False
        """Whether it had to end by itself."""
        self._orders: deque[Callable[[], None]] = deque()
        self._settings = app.settings
        self._zygote = zygote
        self._options = options
        self._poked, self._poke = socket.socketpair()
        self._poke.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._poked, selectors.EVENT_READ, self._hear_poke)
        self._selector.register(zygote.socket, selectors.EVENT_READ, self._hear_zygote)
        self._ledgers = app.ledgers()
        self._redis = app.blocking_redis()
        self._clock = ServerClock()
        self._pools = [Pool(name, options.slots, options.ahead_ms / 1000) for name in dict.fromkeys(pools)]
        self._outbox = Outbox(self._ledgers, lambda news: self._claims.heard(news))
        self.crew = Crew(
            zygote,
            self._pools,
            app.registry,
            self._ledgers,
            self._outbox,
            options,
            self._watch,
            self._unwatch,
        )
        self._claims = Claims(
            self._ledgers,
            self._clock,
            self._pools,
            worker,
            app.settings.poll_ms / 1000,
            options.grace_ms + 3_000,
            self.crew.got,
        )
        self._house_at = 0.0
        self._renew_at = 0.0
        self._stops = 0
        self._stopped = 0
        self._farewell_at = NEVER
        self._idle_since = time.monotonic()

    def run(
        self, *, burst: bool = False, max_jobs: int | None = None, max_idle_s: float | None = None
    ) -> bool:
        """Work until told to stop (or, in a burst, until nothing is due). Answers whether all was handed in."""
        self._clock.ask(self._ledgers.scripts.redis)
        self._claims.left = max_jobs
        self._start()
        try:
            while not self._over(burst, max_idle_s):
                self._turn()
        finally:
            self._close()
        return not self.broken and self._outbox.settled

    def stop(self) -> None:
        """First: claim no more, let running jobs end. Again: end them. For signal handlers and threads."""
        self._stops += 1
        self.poke()

    def kill_running(self) -> None:
        """Kill what runs; it counts as lost. For other threads."""
        self._orders.append(lambda: self.crew.kill_all(Why.KILLED))
        self.poke()

    def poke(self) -> None:
        """Wake the loop."""
        with suppress(BlockingIOError, OSError):
            self._poke.send(b"x")

    def _start(self) -> None:
        sys.setswitchinterval(SWITCH_S)  # the courier must not wait long for the loop, nor the loop for it
        self._courier = Courier(self._ledgers.scripts, "tenure-courier", self.poke)
        self._renewer = Courier(self._ledgers.scripts, "tenure-renewer", self.poke)
        names = frozenset(pool.name for pool in self._pools)
        self._listener = Listener(self._redis, wake_channel(self._settings.namespace), names, self.poke)
        renew_s = self._settings.renew_ms / 1000
        self._loops = [
            Loop(Reaper(self._ledgers), "tenure-reaper"),
            Loop(Sweep(self._ledgers), "tenure-sweep"),
            Loop(ClockCheck(self._clock, self._ledgers, renew_s), "tenure-clock"),
        ]
        for loop in self._loops:
            loop.start()
        self.crew.fill(time.monotonic())

    def _close(self) -> None:
        for loop in self._loops:
            loop.stop()
        self._listener.close()
        for loop in self._loops:
            loop.stop(timeout=0.5)
        self._courier.close(timeout=0.5)
        self._renewer.close(timeout=0.1)
        self._zygote.close()
        for slot in self.crew.slots:
            slot.close()
        self._selector.close()
        self._poked.close()
        self._poke.close()

    # One turn.

    def _turn(self) -> None:
        for key, _ in self._selector.select(self._patience(time.monotonic())):
            key.data()
        now = time.monotonic()
        self._obey(now)
        self._renewer.read()
        if self._courier.read():
            self._house_at = min(self._house_at, now)
        if now >= self._house_at:
            self._house_at = self.crew.press(now)
        self._renew(now)
        self.crew.feed(now)
        if self.crew.running:
            self._house_at = min(self._house_at, now + 0.1)
        self._exchange(now)

    def _patience(self, now: float) -> float:
        """How long there is nothing to do, as far as we know."""
        at = min(self._house_at, self._renew_at, self._farewell_at)
        if not self._courier.busy:
            at = min(at, self._send_at(now))
        return max(0.0, min(at - now, 1.0))

    def _exchange(self, now: float) -> None:
        if self._courier.busy or self._send_at(now) > now:
            return
        posts = [*self.crew.checks(), *self._outbox.posts(now), *self._claims.posts(now)]
        if posts:
            self._courier.send(posts)

    def _send_at(self, now: float) -> float:
        """When the next batch should go."""
        if self.crew.has_checks or self._claims.due(now):
            return now
        at = NEVER if self.suspended or not self._claims.open else self._claims.next_look()
        if at <= now:
            at = NEVER  # there is work, and no room for it: the next free slot will bring us here
        return min(at, self._claims.tell_by, self._outbox.send_at(now, FLUSH_JOBS, FLUSH_S, self.crew.empty))

    def _renew(self, now: float) -> None:
        if now < self._renew_at or self._renewer.busy:
            return
        every = self._settings.renew_ms / 1000
        self._renew_at = now + every
        rows = self.crew.held_since_before(now - every / 2)
        posts = renewal_posts(self._ledgers, rows, self.crew.kept, self.crew.lost)
        if posts:
            self._renewer.send(posts)

    # What comes in.

    def _hear_poke(self) -> None:
        self._poked.recv(4096)

    def _hear_zygote(self) -> None:
        try:
            for event in self._zygote.news():
                self.crew.news(event, time.monotonic())
        except EOFError:
            log.error("the fork server has died, and all slots with it: this worker ends")
            self._selector.unregister(self._zygote.socket)
            self.broken = True
            self.crew.bury_all(time.monotonic())

    def _obey(self, now: float) -> None:
        heard = self._listener.heard
        while heard:
            hint = heard.popleft()
            match hint:
                case Due(pool, tenant, run_at):
                    self._claims.hint(pool, tenant, run_at, now)
                case Stop(pool, tenant, job_id):
                    self.crew.canceled(pool, tenant, job_id)
                    self._house_at = now
                case Look():
                    self._claims.look(now)
        while self._orders:
            self._orders.popleft()()
            self._house_at = now
        if self._stops > self._stopped:
            self._begin_stop(now)
        self._claims.open = not (self.suspended or self.crew.stopping)

    def _begin_stop(self, now: float) -> None:
        if self._stopped == 0:
            self._stopped = 1
            self.crew.release(now + self._options.stop_grace_ms / 1000)
            log.info(
                "stopping: %d jobs run on, for at most %d s",
                self.crew.running,
                self._options.stop_grace_ms // 1000,
            )
        elif self._stopped == 1:
            self._stopped = 2
            log.info("stopping now: %d running jobs are handed back", self.crew.running)
            self.crew.kill_all(Why.RELEASED)
        else:
            self._stopped = self._stops
        self._house_at = now

    def _watch(self, slot: Slot) -> None:
        self._selector.register(slot.stream, selectors.EVENT_READ, lambda: self.crew.heard(slot))

    def _unwatch(self, slot: Slot) -> None:
        self._selector.unregister(slot.stream)

    # The end.

    def _over(self, burst: bool, max_idle_s: float | None) -> bool:
        now = time.monotonic()
        if not self.crew.empty:
            self._idle_since, self._farewell_at = now, NEVER
            return False
        if self.crew.stopping:
            self._farewell_at = min(self._farewell_at, now + FAREWELL_S)
            return self._all_said or now >= self._farewell_at
        return self._all_said and self._may_leave(now, burst, max_idle_s)

    @property
    def _all_said(self) -> bool:
        """Whether the store knows all that we know, and we all that we asked it."""
        return self._outbox.settled and self._claims.tell_by == NEVER and not self._courier.busy

    def _may_leave(self, now: float, burst: bool, max_idle_s: float | None) -> bool:
        """Whether a worker that was not told to stop has come to the end of its work."""
        if self._claims.left == 0 or (burst and self._claims.idle(now)):
            return True
        return max_idle_s is not None and now - self._idle_since > max_idle_s
