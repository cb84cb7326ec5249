"""The ledger with pools and concurrency keys, as plain Python: who may be claimed, and who holds a key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tenure.lease.outcome import Outcome
from tenure.scripts.states import State

from .model import EARLIEST_EVERY, Job, Model


@dataclass
class KeyedJob(Job):
    pool: str = "advance"
    needs: str | None = None
    """The concurrency key it needs."""
    limit: int = 1
    """What its maker said of that key."""


@dataclass
class KeyedModel(Model):
    limits: dict[str, int] = field(default_factory=dict[str, int])
    lingering: dict[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])
    """Fences of holders whose job was taken from them: the key, and when their lease ends."""
    turns: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, job: KeyedJob) -> None:
        answer = self.enqueue(job)
        if answer == (job.id, True) and job.needs is not None:
            self.limits[job.needs] = job.limit

    # -- who may be claimed ---------------------------------------------------------------------------------------

    def held(self, key: str) -> int:
        """How many hold a key: running jobs, and workers that have not said that they stopped."""
        running = sum(job.state is State.RUNNING and job.needs == key for job in self.keyed)
        return running + sum(needs == key for needs, _ in self.lingering.values())

    def has_room(self, job: KeyedJob) -> bool:
        return job.needs is None or self.held(job.needs) < self.limits[job.needs]

    def take(self, pool: str, want: int) -> list[str]:
        """The ids that a claim must lease, in order; they are running afterwards, under no fence yet."""
        left = sorted(
            (job for job in self.keyed if self._due(job, pool)),
            key=lambda job: (job.priority, job.run_at, job.id),
        )
        several = len({job.priority for job in left if self.has_room(job)}) > 1
        turn = self.turns.get(pool, 0) if several else 0
        chosen: list[str] = []
        while len(chosen) < want:
            left = [job for job in left if self.has_room(job)]
            if not left:
                break
            best = left[0]
            if (turn + len(chosen) + 1) % EARLIEST_EVERY == 0:
                heads = {job.priority: job for job in reversed(left)}
                best = min(heads.values(), key=lambda job: (job.run_at, job.priority))
            left.remove(best)
            best.state = State.RUNNING
            chosen.append(best.id)
        if several:
            self.turns[pool] = turn + len(chosen)
        return chosen

    def _due(self, job: KeyedJob, pool: str) -> bool:
        return job.state is State.PENDING and job.pool == pool and job.run_at <= self.now

    @property
    def keyed(self) -> list[KeyedJob]:
        return [job for job in self.jobs.values() if isinstance(job, KeyedJob)]

    # -- who holds a key ------------------------------------------------------------------------------------------

    def settle(self, job_id: str, fence: int, outcome: Outcome) -> bool:
        with self._forgetting_limits():
            return super().settle(job_id, fence, outcome)

    def stopped(self, fence: int) -> None:
        """A worker says that it has stopped working on what was taken from it."""
        with self._forgetting_limits():
            self.lingering.pop(fence, None)

    def reap(self) -> set[str]:
        with self._forgetting_limits():
            self.lingering = {
                fence: (key, until) for fence, (key, until) in self.lingering.items() if until > self.now
            }
            return super().reap()

    def cancel(self, job_id: str) -> str | None:
        job = self.jobs[job_id]
        assert isinstance(job, KeyedJob)
        with self._forgetting_limits():
            if job.state is State.RUNNING and job.needs is not None and job.fence is not None:
                self.lingering[job.fence] = job.needs, job.lease_until
            return super().cancel(job_id)

    def retry(self, job_id: str, args: bytes | None, generation: int | None, token: str | None) -> int | None:
        answer = super().retry(job_id, args, generation, token)
        job = self.jobs[job_id]
        assert isinstance(job, KeyedJob)
        if answer and job.needs is not None:
            self.limits.setdefault(job.needs, job.limit)
        return answer

    @contextmanager
    def _forgetting_limits(self) -> Iterator[None]:
        """A key that nobody waits for and nobody holds does not remember its limit."""
        yield
        for key in list(self.limits):
            waiting = any(job.state is State.PENDING and job.needs == key for job in self.keyed)
            if not waiting and not self.held(key):
                del self.limits[key]
