"""An RQ worker by its looks: RQ gives it the command line, heartbeat and commands; the ledger gives it its jobs."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from types import FrameType
from typing import Any, cast

from rq import worker_registration
from rq.command import parse_payload
from rq.defaults import DEFAULT_LOGGING_DATE_FORMAT, DEFAULT_LOGGING_FORMAT
from rq.logutils import setup_loghandlers
from rq.worker import BaseWorker, DequeueStrategy

from ..lease.jobs import Lease
from ..lease.loop import Loop
from ..lease.tasks import check_pool
from ..scripts.errors import TenureError
from .application import Application
from .finding import find_application, mistakes_told
from .naming import worker_name
from .options import WorkerOptions
from .presence import TTL_S, Presence
from .runner import Runner
from .slot_process import Ends, SlotProcess
from .zygote import Zygote

SLOTS = "TENURE_SLOTS"
TWICE_S = 1.0
"""A pool of workers passes on a signal that its members have had: the second within this time does not count."""


class LedgerWorker(BaseWorker):
    """Runs the ledger's jobs of the pools it is given as RQ's queues.

    `TENURE_APP=shop:app rq worker --worker-class tenure.workers.LedgerWorker advance outbound`
    """

    def __init__(
        self,
        queues: Any,
        name: str | None = None,
        *args: Any,
        app: Application | None = None,
        options: WorkerOptions | None = None,
        zygote: Zygote | None = None,
        started: Callable[[], None] | None = None,
        prepare_for_work: bool = True,
        **kwargs: Any,
    ) -> None:
        # RQ makes instances merely to read about a worker: those get no processes.
        self._by_rq = app is None
        self._started = started
        if prepare_for_work:
            with self._mistakes():
                for pool in queues if isinstance(queues, (list, tuple)) else [queues]:
                    check_pool(pool if isinstance(pool, str) else pool.name)
                self._app = app or find_application()
                self._options = options or options_from(os.environ)
            # before the first thread and the first socket of this class
            self._zygote = zygote or Zygote(slot_main(self._app))
        kwargs["prepare_for_work"] = prepare_for_work
        self._base = cast(Any, super())  # RQ is typed in part
        self._base.__init__(queues, name or worker_name(), *args, **kwargs)
        self._runner: Runner | None = None
        self._stop_at = 0.0

    # RQ's life cycle.

    def work(
        self,
        burst: bool = False,
        logging_level: str | None = None,
        date_format: str = DEFAULT_LOGGING_DATE_FORMAT,
        log_format: str = DEFAULT_LOGGING_FORMAT,
        max_jobs: int | None = None,
        max_idle_time: int | None = None,
        with_scheduler: bool = False,
        dequeue_strategy: DequeueStrategy = DequeueStrategy.DEFAULT,
    ) -> bool:
        """Work until told to stop. Answers whether any job was processed.

        `with_scheduler` and `dequeue_strategy` are RQ's and mean nothing here: `tenure scheduler` plans, and the ledger
        decides the order.
        """
        with self._mistakes():
            runner = Runner(self._app, self._zygote, self.queue_names(), self.name, self._options)
        self._runner = runner
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.request_stop)
        setup_loghandlers(logging_level or "INFO", date_format, log_format, name="tenure")
        self.bootstrap(logging_level, date_format, log_format)
        presence = Presence(cast(Any, self), runner)
        loop = Loop(presence, "tenure-presence")
        try:
            presence.round()  # before the first claim: RQ may be suspended
            loop.start()
            if self._started:
                self._started()
            runner.run(burst=burst, max_jobs=max_jobs, max_idle_s=max_idle_time)
        finally:
            loop.stop(timeout=1.0)
            self._base.register_death()
            self._base.unsubscribe()
        if runner.broken:
            raise SystemExit(1)
        return bool(runner.crew.tally.jobs)

    def _mistakes(self) -> AbstractContextManager[None]:
        """RQ's own command would show a user's mistake as a traceback; a program of ours catches it."""
        return mistakes_told() if self._by_rq else nullcontext()

    def register_birth(self) -> None:
        self._base.register_birth()
        self.heartbeat(TTL_S)  # RQ's own first one would show a killed worker for eight minutes

    def announce(self, pipeline: Any) -> None:
        """Write again what registration wrote."""
        pipeline.hset(self.key, mapping=self._base.serialize())
        pipeline.expire(self.key, TTL_S)
        worker_registration.register(self, pipeline)

    # Signals and commands.

    def request_stop(self, signum: Any, frame: FrameType | None) -> None:
        """First: claim no more and let running jobs end for a while. Again, a second later: hand them back at once."""
        if self._runner is None:
            raise SystemExit(0)
        now = time.monotonic()
        if self._stop_at and now - self._stop_at < TWICE_S:
            return
        self._stop_at = now
        self._runner.stop()

    def handle_payload(self, message: Any) -> None:
        """A command of RQ. Runs in the thread that listens for them."""
        payload = parse_payload(message)
        if payload.get("command") in ("stop-job", "stop-execution"):
            self._cancel(str(payload.get("job_id", "")))
        else:
            self._base.handle_payload(message)

    def kill_horse(self, sig: signal.Signals = signal.SIGKILL) -> None:
        """RQ's `kill-horse`: kill all that runs; the ledger hears that it was lost."""
        if self._runner is not None:
            self._runner.kill_running()

    @property
    def horse_pid(self) -> int:
        """0 when nothing runs: then RQ ignores `kill-horse`."""
        slots = [] if self._runner is None else self._runner.crew.slots
        return next((slot.pid for slot in slots if slot.rows and slot.pid), 0)

    def _cancel(self, job_id: str) -> None:
        """RQ's `stop-job`: cancel the job in the ledger, which then tells whoever runs it, and that is us."""
        lease = next((lease for lease in self._running() if lease.id == job_id), None)
        if lease is None:
            self.log.warning("not running job %s, command ignored", job_id)
            return
        try:
            self._app.ledgers().of(lease.tenant).cancel(job_id, reason="stopped by a command of RQ", by="rq")
        except TenureError as exc:
            self.log.warning("job %s was not stopped: %s", job_id, exc)

    def _running(self) -> list[Lease]:
        slots = [] if self._runner is None else self._runner.crew.slots
        return [row.lease for slot in slots for row in list(slot.rows.values())]


def run_worker(
    app: Application,
    pools: Sequence[str],
    *,
    options: WorkerOptions | None = None,
    name: str | None = None,
    burst: bool = False,
    max_jobs: int | None = None,
    logging_level: str | None = None,
    started: Callable[[], None] | None = None,
) -> bool:
    """Run a worker in this process until it is told to stop (SIGTERM). To be called before threads are started.

    `started` is called when it is registered and about to claim.
    """
    with closing(Zygote(slot_main(app))) as zygote, closing(app.rq_redis()) as redis:
        worker = LedgerWorker(
            list(pools), name, app=app, options=options, zygote=zygote, started=started, connection=redis
        )
        return worker.work(burst=burst, max_jobs=max_jobs, logging_level=logging_level)


def slot_main(app: Application) -> Callable[[list[socket.socket], int], None]:
    """What a slot runs."""
    return lambda ends, width: SlotProcess(app.registry, Ends(*ends), width).run()


def options_from(env: Mapping[str, str]) -> WorkerOptions:
    """The options that can be set from outside."""
    text = env.get(SLOTS)
    return WorkerOptions().with_slots(text) if text else WorkerOptions()
