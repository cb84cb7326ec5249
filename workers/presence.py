"""A worker's presence in RQ: heartbeat, state, counts, suspension, and what runs. Nothing depends on it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Protocol, cast

from redis import Redis
from redis.exceptions import RedisError
from rq.suspension import is_suspended

from ..scripts.store_errors import store_error
from .crew import Crew
from .mirror import Mirror
from .row import Row
from .runner import Runner
from .tally import Tally

EVERY_S = 2.0
TTL_S = 30
SHOWN_AFTER_S = 1.0
SHOWN = 100
"""So many of the jobs that run long are shown; a lane may have a thousand."""


class RQWorker(Protocol):
    """What is used of RQ's worker."""

    connection: Redis
    name: str
    key: str

    def heartbeat(self, timeout: int | None = None, pipeline: Any = None) -> None: ...
    def get_state(self) -> str: ...
    def set_state(self, state: str, pipeline: Any = None) -> None: ...
    def serialize(self) -> dict[str, Any]: ...
    def announce(self, pipeline: Any) -> None: ...


class Presence:
    """One round: hear whether RQ is suspended; say that we live, what we did since the last round and what runs."""

    def __init__(self, worker: RQWorker, runner: Runner) -> None:
        self._worker = worker
        self._runner = runner
        self._mirror = Mirror(worker.connection, worker.name)
        self._told = Tally()

    def round(self) -> float:
        try:
            return self._round()
        except (RedisError, OSError) as exc:
            raise store_error(exc, "the server of RQ's register") from exc

    def _round(self) -> float:
        crew = self._runner.crew
        running = _long_running(crew)
        tally = replace(crew.tally)
        suspended = bool(is_suspended(self._worker.connection))
        if suspended != self._runner.suspended:
            self._runner.suspended = suspended
            self._runner.poke()
        self._say(tally, busy=crew.running > 0)
        self._told = tally
        self._mirror.show(running)
        return EVERY_S / 2 if crew.running else EVERY_S

    def _say(self, tally: Tally, *, busy: bool) -> None:
        succeeded, failed = tally.succeeded - self._told.succeeded, tally.failed - self._told.failed
        seconds = tally.working_s - self._told.working_s
        worker = self._worker
        with cast(Any, worker.connection).pipeline(transaction=False) as pipe:
            worker.heartbeat(TTL_S, pipeline=pipe)
            state = "suspended" if self._runner.suspended else "busy" if busy else "idle"
            if state != worker.get_state():
                worker.set_state(state, pipeline=pipe)
            if succeeded:
                pipe.hincrby(worker.key, "successful_job_count", succeeded)
            if failed:
                pipe.hincrby(worker.key, "failed_job_count", failed)
            if seconds:
                pipe.hincrbyfloat(worker.key, "total_working_time", seconds)
            made_anew = pipe.execute()[0] == 1
        if (
            made_anew
        ):  # it had expired while we could not reach the server: a part of the hash would be nobody's
            with cast(Any, worker.connection).pipeline(transaction=False) as pipe:
                worker.announce(pipe)
                pipe.execute()


def _long_running(crew: Crew) -> list[Row]:
    before = time.monotonic() - SHOWN_AFTER_S
    return [row for slot in crew.slots for row in slot.running if slot.began(row) < before][:SHOWN]
