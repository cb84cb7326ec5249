"""The worker's loop: one thread that waits for slots, hints and answers, and never for the store."""

from __future__ import annotations

import logging
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from ..lease.loop import Loop
from ..scripts.keys import wake_channel
from .application import Application
from .claims import Claims
from .clock import NEVER, ServerClock
from .crew import Crew
from .duties import ClockCheck, Reaper
from .exchange import Exchange
from .hearing import Hearing
from .heartbeat import Heartbeats
from .hints import Due, Held, Listener, Look, Stop
from .leaving import named
from .offers import offers_of
from .options import WorkerOptions
from .outbox import Outbox
from .pool import Pool
from .renewals import Renewals
from .slot import Slot
from .staffing import Staffing
from .stopping import Stopping
from .wire import Why
from .zygote import Zygote

log = logging.getLogger("tenure.worker")

HOUSE_S = 0.1
CONGESTED_S = 0.001
"""How soon a slot has taken something out of a full socket. The kernel lets ten rows wait in one."""
FAREWELL_S = 5.0
"""How long a worker that stops waits for the store to take its outcomes."""
ANSWER_MS = 3_000
"""How much longer than a job that is killed a lease may last at most: until its outcome is stored."""


class Runner:
    def __init__(
        self, app: Application, zygote: Zygote, pools: list[str], worker: str, options: WorkerOptions
    ) -> None:
        self.suspended = False
        """Set from outside: claim nothing for now."""
        self.broken = False
        """Whether it had to end by itself."""
        self._app = app
        self._zygote = zygote
        self._options = options
        self._ledgers = ledgers = app.ledgers()
        self._clock = ServerClock()
        self._pools = [
            Pool(offer.pool, offer.slots, options.ahead_ms / 1000, offer.width)
            for offer in offers_of(app, pools, options)
        ]
        self._outbox = Outbox(ledgers, lambda news: self._claims.heard(news))
        self.crew = Crew(self._pools, app.registry, self._outbox)
        self._claims = Claims(
            ledgers,
            self._clock,
            self._pools,
            worker,
            app.settings.poll_ms / 1000,
            options.grace_ms + ANSWER_MS,
            self.crew.got,
            self.crew.unknown,
        )
        self._heartbeats = Heartbeats(
            ledgers.index, worker, self.crew, self._claims, len(list(app.registry)), lambda: self.suspended
        )
        self._stopping = Stopping(self.crew, options.grace_ms / 1000, ledgers.lease_ms / 1000)
        hearing = Hearing(self.crew, self._outbox.progress)
        self._staffing = Staffing(
            self.crew, hearing, zygote, app.registry, options, self._watch, self._unwatch
        )
        self._orders: deque[Callable[[], None]] = deque()
        self._poked, self._poke = socket.socketpair()
        self._poke.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._poked, selectors.EVENT_READ, self._hear_poke)
        self._selector.register(zygote.socket, selectors.EVENT_READ, self._hear_zygote)
        self._house_at = 0.0
        self._stops = self._stops_obeyed = 0
        self._farewell_at = NEVER
        self._idle_since = time.monotonic()

    def run(
        self, *, burst: bool = False, max_jobs: int | None = None, max_idle_s: float | None = None
    ) -> None:
        """Work until told to stop, or, in a burst, until nothing is due (or RQ is suspended)."""
        self._clock.ask(self._ledgers.scripts.redis, self._ledgers.scripts.address)
        self._claims.left = max_jobs
        self._start()
        try:
            while not self._over(burst, max_idle_s):
                self._turn()
            self._say_what_is_left()
        finally:
            self._close()

    # From other threads and signal handlers.

    def stop(self) -> None:
        """First: claim no more, let running jobs end. Again: hand them back now."""
        self._stops += 1
        self.poke()

    def kill_running(self) -> None:
        """Kill what runs; it counts as lost."""
        self._orders.append(lambda: self._stopping.kill_all(Why.KILLED))
        self.poke()

    def poke(self) -> None:
        """Wake the loop."""
        with suppress(BlockingIOError, OSError):
            self._poke.send(b"x")

    # Beginning and end.

    def _start(self) -> None:
        renew_s = self._app.settings.renew_ms / 1000
        renewals = Renewals(self._ledgers, self._clock, self.crew, self._stopping)
        self._exchange = Exchange(
            self._ledgers, self.crew, self._claims, self._outbox, renewals, renew_s, self.poke
        )
        self._listener = Listener(
            self._app.blocking_redis(),
            wake_channel(self._app.settings.namespace),
            frozenset(pool.name for pool in self._pools),
            self.poke,
        )
        self._clock_loop = Loop(ClockCheck(self._clock, self._ledgers, renew_s), "tenure-clock")
        self._heartbeat_loop = Loop(self._heartbeats, "tenure-heartbeat")
        self._loops = [
            Loop(Reaper(self._ledgers), "tenure-reaper"),
            self._clock_loop,
            self._heartbeat_loop,
            *self._app.upkeep(),
        ]
        for loop in self._loops:
            loop.start()

    def _close(self) -> None:
        for loop in self._loops:
            loop.stop()
        self._listener.close()
        for loop in self._loops:
            loop.stop(timeout=0.5)
        self._exchange.close()
        self._heartbeats.farewell()
        self._zygote.close()
        for slot in self.crew.slots:
            slot.close()
        self._selector.close()
        self._poked.close()
        self._poke.close()

    def _over(self, burst: bool, max_idle_s: float | None) -> bool:
        now = time.monotonic()
        if not self.crew.empty:
            self._idle_since, self._farewell_at = now, NEVER
            return False
        if self.crew.stopping:
            self._farewell_at = min(self._farewell_at, now + FAREWELL_S)
            return self._exchange.quiet or now >= self._farewell_at
        return self._exchange.quiet and self._may_leave(now, burst, max_idle_s)

    def _may_leave(self, now: float, burst: bool, max_idle_s: float | None) -> bool:
        """Whether a worker that was not told to stop has come to the end of its work."""
        if self._claims.left == 0 or (burst and (self.suspended or self._claims.idle(now))):
            return True
        return max_idle_s is not None and now - self._idle_since > max_idle_s

    # One turn.

    def _turn(self) -> None:
        for key, _ in self._selector.select(self._patience(time.monotonic())):
            key.data()
        now = time.monotonic()
        self._obey(now)
        if self._exchange.read():
            self._house_at = now
        if now >= self._house_at:
            self._house_at = self._keep_house(now)
        fed = self.crew.feed(now)
        if self.crew.running:
            self._house_at = min(self._house_at, now + (HOUSE_S if fed else CONGESTED_S))
        self._exchange.send(now)

    def _patience(self, now: float) -> float:
        """How long there is nothing to do, as far as we know."""
        at = min(self._house_at, self._farewell_at, self._exchange.next(now))
        return max(0.0, min(at - now, 1.0))

    def _keep_house(self, now: float) -> float:
        """Answers when to come again."""
        pressed = self._stopping.press(now)
        buried = self._staffing.bury_unreported(now)
        return min(self.crew.tidy(now), pressed, buried, self._staffing.fill(now))

    # What comes in.

    def _hear_poke(self) -> None:
        self._poked.recv(4096)

    def _hear_zygote(self) -> None:
        self._house_at = 0.0
        now = time.monotonic()
        try:
            for event in self._zygote.news():
                self._staffing.news(event, now)
        except EOFError:
            log.error("the fork server has died, and all slots with it: this worker ends")
            self._selector.unregister(self._zygote.socket)
            self.broken = True
            self._staffing.bury_all(now)

    def _hear_slot(self, slot: Slot) -> None:
        self._staffing.heard(slot)
        if slot.gone_at is not None:
            self._house_at = 0.0

    def _watch(self, slot: Slot) -> None:
        self._selector.register(slot.stream, selectors.EVENT_READ, lambda: self._hear_slot(slot))

    def _unwatch(self, slot: Slot) -> None:
        with suppress(KeyError):  # it has hung up before it was buried
            self._selector.unregister(slot.stream)

    def _obey(self, now: float) -> None:
        while self._listener.heard:
            match self._listener.heard.popleft():
                case Due(pool, tenant, run_at):
                    self._claims.hint(pool, tenant, run_at, now)
                case Stop(pool, tenant, job_id, fence, why):
                    self._stopping.withdrawn(pool, tenant, job_id, fence, why)
                    self._house_at = now
                case Held() as hint:
                    self.crew.flush(hint.holds)
                case Look():
                    self._claims.look(now)
                    self._clock_loop.wake()  # it may be another server, with a clock of its own
        while self._orders:
            self._orders.popleft()()
            self._house_at = now
        while self._stops_obeyed < self._stops:
            self._stops_obeyed += 1
            self._obey_stop(now)
            self._house_at = now
        self._claims.open = not (self.suspended or self.crew.stopping)

    def _obey_stop(self, now: float) -> None:
        if self._stops_obeyed == 1:
            grace_s = self._options.stop_grace_ms / 1000
            self._stopping.release(now + grace_s)
            self._heartbeat_loop.wake()
            log.info("stopping: %s, for at most %g s", self._what_runs(), grace_s)
        else:
            log.info("stopping now: what runs is handed back: %s", named(self.crew.leases) or "nothing")
            self._stopping.kill_all(Why.RELEASED)

    def _what_runs(self) -> str:
        running = self.crew.leases
        jobs = "1 job runs on" if len(running) == 1 else f"{len(running)} jobs run on"
        return f"{jobs} ({named(running)})" if running else jobs

    def _say_what_is_left(self) -> None:
        if not self.crew.stopping:
            return
        log.info("stopped; left to other workers: %s", self.crew.left)
        if not self._exchange.quiet:
            log.warning(
                "the store does not answer: what ended last is not stored, and begins again when its lease ends"
            )
