"""The ledger as plain Python: what each verb means, without a store, without scripts, without speed.

The scripts must answer as this does. It is the shortest full account of the rules, so read it beside the contract.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tenure.lease.ledger import GRACE_MS, LEASE_MS
from tenure.lease.outcome import Fail, GiveBack, Lose, NextChunk, Outcome, SkipRest, Succeed
from tenure.lease.retry import Retry
from tenure.scripts.states import ENDED, State

TIMEOUT_MS = 600_000
MAX_ATTEMPTS = 3
MAX_LOST = 3
EARLIEST_EVERY = 4


@dataclass
class Attempt:
    fence: int
    status: str = "running"
    cause: str | None = None
    chunks: int = 0

    def end(self, status: str, cause: str | None) -> None:
        if self.status == "running":
            self.status, self.cause = status, cause


@dataclass
class Instance:
    flag: str = ""


@dataclass
class Job:
    id: str
    run_at: int
    start_by: int | None = None
    priority: int = 5
    args: bytes = b""
    key: str | None = None
    mode: str = "kept"
    instance: Instance | None = None
    pausable: bool = False
    cleared: bool = False
    remaining: int | None = None
    state: State = State.PENDING
    dead_reason: str | None = None
    generation: int = 1
    failures: int = 0
    losses: int = 0
    fence: int | None = None
    lease_until: int = 0
    deadline: int = 0
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    result: bytes = b""
    cursor: bytes = b""
    chunk: int = 0

    @property
    def open_attempt(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts and self.attempts[-1].status == "running" else None

    key_args: bytes = b""
    """What the idempotency key stands for: an edit does not change it."""
    edit: int = 0
    asked: object = None

    def __post_init__(self) -> None:
        self.key_args = self.args

    def overdue(self, now: int) -> bool:
        """Whether it should have been started by now, and never was."""
        late = self.start_by is not None and self.start_by <= now
        return late and self.state is State.PENDING and not self.attempts

    def held_under(self, fence: int) -> bool:
        return self.state is State.RUNNING and self.fence == fence

    def admitted(self) -> State:
        """Where it comes to when it is to wait for a claim: its instance has the last word."""
        flag = self.instance.flag if self.instance else ""
        if flag == "suspended" and self.pausable:
            return State.PAUSED
        return State.CANCELED if flag == "ended" and self.cleared else State.PENDING

    def wait(self, run_at: int, now: int) -> None:
        self.state, self.run_at = self.admitted(), run_at
        self.remaining = max(0, run_at - now) if self.state is State.PAUSED else None

    def withdraw(self, state: State) -> None:
        """A person's word: whoever works on it has lost it."""
        if self.open_attempt:
            self.open_attempt.end("canceled", state)
        self.generation += 1
        self.state, self.remaining = state, None

    def follow(self, now: int) -> None:
        """Its instance has got another flag, or none."""
        to = self.admitted()
        if to is State.CANCELED and self.state not in ENDED:
            self.withdraw(to)
        elif to is State.PAUSED and self.state in (State.PENDING, State.RUNNING):
            self.run_at = now if self.state is State.RUNNING else self.run_at
            self.withdraw(to)
            self.remaining = max(0, self.run_at - now)
        elif to is State.PENDING and self.state is State.PAUSED:
            self.generation += 1
            self.wait(now + (self.remaining or 0), now)

    def bury(self, reason: str) -> None:
        self.state, self.dead_reason = State.DEAD, reason

    def fail(self, now: int, cause: str, delay_ms: int, permanent: bool = False) -> None:
        self.failures += 1
        self.attempts[-1].end("failed", cause)
        if permanent:
            self.bury("permanent_error")
        elif self.failures >= MAX_ATTEMPTS:
            self.bury("attempts_exhausted")
        else:
            self.wait(now + delay_ms, now)

    def lose(self, now: int, cause: str) -> None:
        self.losses += 1
        self.attempts[-1].end("failed", cause)
        if self.losses >= MAX_LOST:
            self.bury("lost_too_often")
        else:
            self.wait(now, now)


@dataclass
class Model:
    """One tenant, one pool, default limits."""

    now: int
    jobs: dict[str, Job] = field(default_factory=dict[str, Job])
    turn: int = 0

    def enqueue(self, job: Job) -> tuple[str, bool] | None:
        """(id, created); None when the key belongs to a job with other arguments."""
        holder = self._holder(job.key)
        if holder is None:
            job.wait(job.run_at, self.now)
            self.jobs[job.id] = job
            return job.id, True
        return (holder.id, False) if holder.key_args == job.args else None

    def _holder(self, key: str | None) -> Job | None:
        for job in self.jobs.values():
            if key is not None and job.key == key and not (job.mode == "active" and job.state in ENDED):
                return job
        return None

    def due(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.state is State.PENDING and job.run_at <= self.now]

    def claim(self, want: int) -> list[str]:
        """The ids that a claim must lease, in order: by priority, but each fourth the earliest of the best of each."""
        left = self._looked_at(want)
        several = len({job.priority for job in left}) > 1
        turn = self.turn if several else 0
        chosen: list[Job] = []
        while left and len(chosen) < want:
            heads = {job.priority: job for job in reversed(left)}
            best = left[0]
            if (turn + len(chosen) + 1) % EARLIEST_EVERY == 0:
                best = min(heads.values(), key=lambda job: (job.run_at, job.priority))
            left.remove(best)
            if best.overdue(self.now):
                best.bury("expired")
            else:
                chosen.append(best)
        if several:
            self.turn += len(chosen)
        return [job.id for job in chosen]

    def _looked_at(self, want: int) -> list[Job]:
        """The due jobs in their order; of each priority one more than is wanted."""
        left = sorted(self.due(), key=lambda job: (job.priority, job.run_at, job.id))
        bands: dict[int, list[Job]] = {}
        for job in left:
            bands.setdefault(job.priority, []).append(job)
        return [job for band in bands.values() for job in band[: want + 1]]

    def leased(self, job_id: str, fence: int) -> None:
        job = self.jobs[job_id]
        if job.open_attempt:
            job.open_attempt.fence = fence
        else:
            job.attempts.append(Attempt(fence))
        job.state, job.fence = State.RUNNING, fence
        job.deadline = self.now + TIMEOUT_MS + GRACE_MS
        job.lease_until = min(self.now + LEASE_MS, job.deadline)

    def renew(self, job_id: str, fence: int) -> int | None:
        """The new expiry; None is a refusal."""
        job = self.jobs[job_id]
        if not job.held_under(fence):
            return None
        job.lease_until = min(self.now + LEASE_MS, job.deadline)
        return job.lease_until

    def settle(self, job_id: str, fence: int, outcome: Outcome) -> bool:
        """Whether the outcome is accepted; an outcome that came before is accepted and changes nothing."""
        job = self.jobs[job_id]
        if not job.held_under(fence):
            return self._known(job, fence, outcome)
        attempt = job.attempts[-1]
        match outcome:
            case Succeed(result):
                attempt.end("succeeded", None)
                job.state, job.result = State.SUCCEEDED, result
            case SkipRest():
                attempt.end("skipped", None)
                job.state = State.SUCCEEDED
            case NextChunk(cursor, delay_ms=delay_ms):
                attempt.chunks += 1
                job.failures, job.cursor, job.chunk = 0, cursor, job.chunk + 1
                job.wait(self.now + delay_ms, self.now)
            case Fail(_, cause, delay_ms, permanent):
                job.fail(self.now, cause, delay_ms, permanent)
            case Lose(_, cause):
                job.lose(self.now, cause)
            case GiveBack(started, delay_ms):
                if started:
                    attempt.end("canceled", "released")
                elif not attempt.chunks:
                    job.attempts.pop()
                job.wait(self.now + delay_ms, self.now)
        return True

    def _known(self, job: Job, fence: int, outcome: Outcome) -> bool:
        for attempt in job.attempts:
            if attempt.fence == fence:
                match outcome:
                    case Succeed():
                        return attempt.status == "succeeded"
                    case SkipRest():
                        return attempt.status == "skipped"
                    case NextChunk():
                        return job.state is State.PENDING and attempt.status == "running"
                    case Fail(_, cause) | Lose(_, cause):
                        return (attempt.status, attempt.cause) == ("failed", cause)
                    case GiveBack():
                        return (attempt.status, attempt.cause) == ("canceled", "released")
        return False

    def reap(self) -> set[str]:
        """The jobs whose lease has ended, and those that nobody started in time."""
        late = [job for job in self.jobs.values() if job.overdue(self.now)]
        over = [
            job for job in self.jobs.values() if job.state is State.RUNNING and job.lease_until <= self.now
        ]
        for job in over:
            if job.deadline <= self.now:
                job.fail(self.now, "timeout", Retry().backoff_ms(job.failures + 1))
            else:
                job.lose(self.now, "lease_lost")
        for job in late:
            job.bury("expired")
        return {job.id for job in over + late}

    def reschedule(self, job_id: str, delay_ms: int | None, priority: int | None) -> bool | None:
        """Whether anything changed; None is a refusal."""
        job = self.jobs[job_id]
        if job.state is not State.PENDING:
            return None
        run_at = job.run_at if delay_ms is None else self.now + delay_ms
        if run_at <= self.now and job.run_at <= self.now:
            run_at = job.run_at
        if job.start_by is not None and not job.attempts and run_at >= job.start_by:
            return None
        changed = (run_at, priority) not in ((job.run_at, None), (job.run_at, job.priority))
        job.asked = None if changed else job.asked
        job.run_at = run_at
        job.priority = job.priority if priority is None else priority
        return changed

    def retry(self, job_id: str, args: bytes | None, generation: int | None, token: str | None) -> int | None:
        """The generation this call began, now or when it came first; None is a refusal."""
        job = self.jobs[job_id]
        if token is not None and job.asked is not None and job.asked[1:] == (token, args):
            return job.asked[0]
        refused = job.state not in (State.FAILED, State.DEAD, State.CANCELED)
        holder = self._holder(job.key)
        if refused or generation not in (None, job.generation) or (holder is not None and holder is not job):
            return None
        if job.admitted() is State.CANCELED:
            return None
        job.generation += 1
        job.asked = job.generation, token, args
        job.failures = job.losses = 0
        job.dead_reason = job.start_by = None
        if args is not None and args != job.args:
            job.edit += 1
            job.args, job.cursor, job.chunk = args, b"", 0
        job.wait(self.now, self.now)
        return job.generation

    def say(self, instance: Instance, flag: str) -> bool:
        """Whether it is accepted: an instance that has ended stays so."""
        if instance.flag == "ended" and flag != "ended":
            return False
        if instance.flag != flag:
            instance.flag = flag
            for job in self.jobs.values():
                if job.instance is instance:
                    job.follow(self.now)
        return True

    def cancel(self, job_id: str) -> str | None:
        """The state it was in; None is a refusal."""
        job = self.jobs[job_id]
        before = job.state
        if before is State.SUCCEEDED:
            return None
        if before is not State.CANCELED:
            job.withdraw(State.CANCELED)
        return before
