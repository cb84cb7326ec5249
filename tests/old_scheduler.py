"""The old side of a hand-over: an application whose jobs rq-scheduler and RQ's workers run, and its new side."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rq.job import get_current_job
from rq.queue import Queue

from tenure import Ctx, Tenure
from tenure.scheduler.rq_gate import GatedQueue
from tenure.scheduler.rq_store import SCHEDULED

app = Tenure()


class NotingQueue(Queue):
    """RQ's queue, which notes for which instants the old scheduler fires: a row is used again while it still waits."""

    def enqueue_job(self, job: Any, *args: Any, **options: Any) -> Any:
        score = self.connection.zscore(SCHEDULED, job.id)
        done = super().enqueue_job(job, *args, **options)
        if score is not None:
            self.connection.rpush(f"planned:{job.id}", f"{int(score)} {time.time()}")
        return done


class NotingGate(GatedQueue, NotingQueue):
    """The same behind a gate."""


def note(path: str, *words: object) -> None:
    with Path(path).open("a") as file:
        file.write(" ".join(map(str, words)) + "\n")


def tick(path: str, name: str) -> None:
    """What the old scheduler's jobs call: it notes who ran it, and the planned instant in seconds."""
    job = get_current_job()
    assert job is not None
    noted: Any = job.connection.blpop([f"planned:{job.id}"], timeout=5)
    if noted:
        planned, fired = noted[1].split()
    else:  # it was stopped just then
        planned, fired = job.connection.zscore(SCHEDULED, job.id), time.time()
    note(path, "old", name, int(planned), float(fired))


@app.task("old_scheduler.tick", aliases=["shop.tick"])
def new_tick(ctx: Ctx, path: str, name: str) -> None:
    """The same in Tenure."""
    assert ctx.fire_time is not None
    note(path, "new", name, round(ctx.fire_time.timestamp()), round(time.time(), 3))


@app.task("old_scheduler.nothing", pool="outbound")
def nothing(*args: Any, **kwargs: Any) -> None: ...
