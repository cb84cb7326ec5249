"""A hand-over with real processes on both sides: rq-scheduler and an RQ worker, a Tenure scheduler and worker. Every
job notes its planned instant in one file, and at the end no instant is there twice, and none is missing.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from tenure import Tenure
from tenure.scheduler.job_key import JobKey
from tenure.scheduler.plan import month
from tenure.scheduler.skips import DISABLED
from tenure.testing import Server, wait_until

from .cli.terminal import Cli, Said
from .worker_process import WorkerProcess, end_all, start

rq_scheduler = pytest.importorskip("rq_scheduler")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

STEP = 3
"""Seconds between the instants of the cron job."""
RQ = ("migrate", "rq-scheduler")


@dataclass(frozen=True)
class Line:
    """A job that ran: on which side, of which schedule, for which planned instant and fired when (epoch seconds)."""

    side: str
    name: str
    planned: int
    fired: float


@dataclass
class Sides:
    """Both sides of a hand-over, and the file in which all their jobs note that they ran."""

    app: Tenure
    cli: Cli
    url: str
    folder: Path
    old: Any
    started: list[WorkerProcess] = field(default_factory=list[WorkerProcess])

    @property
    def file(self) -> Path:
        return self.folder / "ran.txt"

    def old_scheduler(self, queue: str) -> WorkerProcess:
        words = (
            "rq_scheduler.scripts.rqscheduler",
            "-i",
            "0.2",
            "-q",
            f"old_scheduler.{queue}",
            "-u",
            self.url,
        )
        return self._start(sys.executable, "-m", *words)

    def old_worker(self) -> WorkerProcess:
        warm = "import old_scheduler, rq.cli; rq.cli.main()"  # else each of its children imports it anew
        return self._start(sys.executable, "-c", warm, "worker", "-u", self.url, "default", "kept")

    def new(self) -> None:
        self._start(sys.executable, "-m", "tenure", "scheduler")
        self._start(sys.executable, "-m", "tenure", "worker", "--slots", "1", "--pool", "advance")

    def _start(self, *command: str) -> WorkerProcess:
        env = {**self.cli.env, "TENURE_APP": "old_scheduler:app", "TZ": "UTC"}
        self.started.append(start(self.folder, env, *command))
        return self.started[-1]

    def lines(self) -> list[Line]:
        text = self.file.read_text() if self.file.exists() else ""
        words = [line.split() for line in text.splitlines()]
        return [Line(side, name, int(planned), float(fired)) for side, name, planned, fired in words]

    def ran(self, side: str, name: str, many: int) -> None:
        """Wait until a side has run a job so many times more."""
        before = sum((line.side, line.name) == (side, name) for line in self.lines())
        wait_until(
            lambda: sum((line.side, line.name) == (side, name) for line in self.lines()) >= before + many,
            f"{many} of {name} on the {side} side",
        )

    def command(self, *words: str) -> Said:
        return self.cli(*RQ, *words, TENURE_APP="old_scheduler:app")

    def done(self, *words: str) -> Said:
        said = self.command(*words)
        assert said.code == 0, said.err
        return said


@pytest.fixture
def sides(
    tenure_server: Server, tenure_namespace: str, app: Tenure, old_url: str, tmp_path: Path
) -> Iterator[Sides]:
    redis = Redis.from_url(old_url)
    env = {
        "TENURE_REDIS_URL": tenure_server.url or "",
        "TENURE_NAMESPACE": tenure_namespace,
        "TENURE_RQ_URL": old_url,
        "TZ": "UTC",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        patch.delitem(sys.modules, "old_scheduler", raising=False)  # its application reads the settings anew
        patch.syspath_prepend(str(Path(__file__).parent))
        time.tzset()
        found = Sides(app, Cli(env, tmp_path), old_url, tmp_path, rq_scheduler.Scheduler(connection=redis))
        yield found
        end_all(found.started)
    time.tzset()
    redis.close()


def plan(sides: Sides, once: int) -> None:
    """One job for each of the next `once` seconds, one every two seconds, and one by cron."""
    now = int(time.time()) + 2
    path, tick = str(sides.file), "old_scheduler.tick"
    for number in range(once):
        at = datetime.fromtimestamp(now + number, UTC)
        sides.old.enqueue_at(at, tick, path, f"once-{number}", job_id=f"once-{number}")
    every = datetime.fromtimestamp(now, UTC)
    sides.old.schedule(every, tick, [path, "every"], interval=2, id="every")
    sides.old.cron(f"*/{STEP} * * * * * *", tick, args=[path, "cron"], id="cron")


def check(sides: Sides, made_up: set[tuple[str, int]], read_at: float, over_at: float) -> None:
    """Nothing was fired twice, nothing by nobody, and Tenure's records say the same."""
    lines = sides.lines()
    counted = [
        line for line in lines if line.side == "new" or line.fired > over_at
    ]  # what it did alone is its own
    many = Counter((line.name, line.planned) for line in lines)
    assert [line for line in counted if many[line.name, line.planned] > 1] == []
    last = max(line.planned for line in lines if line.name == "cron")
    once = {line.name for line in lines if line.name.startswith("once")}
    late = {line.name for line in lines if line.name.startswith("once") and line.planned <= last}
    assert late == {f"once-{number}" for number in range(len(late))}
    assert len(once) > 10
    fired = sorted((line for line in lines if line.name == "cron"), key=lambda line: line.planned)
    for one, other in pairwise(fired):
        between = range(one.planned + STEP, other.planned, STEP)
        lost = [
            at for at in between if one.side == "new" or at > one.fired
        ]  # the old one forgets what it has missed
        assert all(record(sides, at) == "coalesced" for at in lost), (one, other, lost)
    for line in fired:
        said = record(sides, line.planned)
        if line.side == "new":
            assert said == "fired" or ("cron", line.planned) in made_up, (line, said)
        elif line.planned > read_at + 1:
            assert said == DISABLED, (line, said)


def record(sides: Sides, planned: int) -> str:
    """What Tenure's fire record of an instant of the cron job says."""
    found = sides.app.schedules.of("default").records.at(JobKey("cron"), "default", planned * 1000)
    if found is None:
        return f"no record in {month(planned * 1000)}"
    return found.outcome if found.reason is None else found.reason


def instants(said: Said) -> set[tuple[str, int]]:
    return {
        (made["jobKey"], round(datetime.fromisoformat(made["fireTime"]).timestamp()))
        for made in said.json["madeUp"]
    }


def test_over_and_back_with_real_processes_fires_each_instant_once(sides: Sides) -> None:
    plan(sides, once=90)
    old = sides.old_scheduler("NotingQueue")
    sides.old_worker()
    sides.new()
    sides.ran("old", "cron", 1)

    sides.done()
    read_at = time.time()
    sides.ran("old", "cron", 2)
    wait_until(
        lambda: sides.app.schedules.logs("cron", month=month(round(time.time() * 1000))).items, "a skip"
    )
    assert {line.side for line in sides.lines()} == {"old"}
    refused = sides.command("over")
    assert refused.code == 4
    assert "an old scheduler lives" in refused.err

    assert old.stop() == 0, old.said()
    over = wait_until(
        lambda: said if (said := sides.command("over", "-o", "json")).code == 0 else None, "over"
    )
    made_up, over_at = instants(over), time.time()
    sides.ran("new", "cron", 2)
    sides.ran("new", "every", 1)

    again = sides.old_scheduler("NotingQueue")  # by mistake, say
    wait_until(lambda: "Lock already taken" in again.said(), "the old scheduler to be kept from firing")
    sides.ran("new", "cron", 1)

    handed = len(sides.lines())
    sides.done("back")
    sides.ran("old", "cron", 2)

    assert again.stop() == 0
    wait_until(lambda: not sides.old.connection.llen("rq:queue:default"), "the old worker to have run all")
    sides.ran("old", "cron", 0)
    check(sides, made_up, read_at, over_at)
    assert handed < len(sides.lines())


def test_behind_a_gate_the_old_scheduler_lives_on_for_other_jobs(sides: Sides) -> None:
    plan(sides, once=60)
    kept = [str(sides.file), "kept"]
    sides.old.cron("* * * * * * *", "old_scheduler.tick", args=kept, id="kept", queue_name="kept")
    bare = sides.old_scheduler("NotingQueue")
    sides.old_worker()
    sides.new()
    sides.done("--queue", "default")
    read_at = time.time()
    sides.ran("old", "cron", 1)
    refused = sides.command("over", "--gated")
    assert refused.code == 4
    assert "is not gated" in refused.err
    assert bare.stop() == 0

    sides.old_scheduler("NotingGate")
    sides.ran("old", "cron", 1)
    over = sides.done("over", "--gated", "-o", "json")
    path, over_at = str(sides.file), time.time()
    sides.old.cron(
        f"*/{STEP} * * * * * *", "old_scheduler.tick", args=[path, "cron"], id="cron"
    )  # as at each start
    sides.ran("new", "cron", 2)
    sides.ran("old", "kept", 2)
    assert "stay with the old scheduler" in over.err

    sides.done("back")
    sides.ran("old", "cron", 2)

    check(sides, instants(over), read_at, over_at)
