"""Adapter of the side-by-side harness: one worker process with process slots, and the ledger with all its records."""

import os
from datetime import UTC, datetime

from peers import tasks
from peers.base import Peer

from tenure import Settings, Tenure
from tenure.lease.ledger import NewJob
from tenure.lease.payload import pack_args
from tenure.workers import WorkerOptions, run_worker

app = Tenure(Settings(redis_url=os.environ["BENCH_URL"]))
noop = app.task("noop")(tasks.noop)
slow = app.task("slow")(tasks.slow)


class Adapter(Peer):
    def open(self):
        self.ledger = app.ledger()

    def close(self):
        app.close()

    def enqueue(self, i, slow_one=False):
        (slow if slow_one else noop).enqueue(i)

    def enqueue_bulk(self, indexes):
        self.ledger.enqueue_many([NewJob("noop", pack_args([i], {})) for i in indexes])

    def enqueue_at(self, eta, i):
        noop.using(at=datetime.fromtimestamp(eta, UTC)).enqueue(i)

    def work(self):
        options = WorkerOptions(slots=self.opts.get("slots", 2))
        run_worker(app, ["advance"], options=options, logging_level="WARNING")
