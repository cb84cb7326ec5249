"""What rq-scheduler keeps in Redis, read and moved: its jobs, its lock, its processes; and what is parked of it.

rq-scheduler's own keys are named as it names them, whatever prefix RQ has. What is handed over is moved out of its
sight in one transaction that fails if anything of it has changed since it was read:

| key                            | type | holds                                                                    |
|--------------------------------|------|--------------------------------------------------------------------------|
| `rq:tenure:scheduler:{tenant}` | hash | how the tenant's jobs were read, which are copied, whether they are over |
| `rq:tenure:parked:{tenant}`    | zset | jobs that are handed over, by the instant that was next                  |
| `rq:tenure:job:{id}`           | hash | the row of such a job                                                    |
| `rq:tenure:keys`               | hash | JobKeys that are handed over, and to which tenant: the gate asks it      |
| `rq:tenure:cron:{tenant}`      | hash | which schedules were read from a file of `rq cron`                       |
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from redis import Redis
from redis.exceptions import WatchError
from rq.defaults import RQ_KEY_PREFIX

from ..scripts.errors import Conflict
from .rq_job import OldJob, read_job, with_repeat
from .times import LAST_MS

SCHEDULED = "rq:scheduler:scheduled_jobs"
LOCK = "rq:scheduler_lock"
INSTANCES = "rq:scheduler_instance:"
HANDED = "rq:tenure:keys"
LOCK_S = 60
KEPT_S = 86_400
PAGE = 500


@dataclass(frozen=True, slots=True)
class OldProcess:
    """A process of the old scheduler that has not said that it ended. `gone_in_s`: if it is dead, its key goes then."""

    name: str
    since: int
    gone_in_s: int

    def __str__(self) -> str:
        return f"{self.name} (if it is dead, it is forgotten in {self.gone_in_s} s)"


@dataclass(frozen=True, slots=True)
class Back:
    """What is given back of a parked job: its next instant (epoch ms; None: none), and how often it still fires."""

    id: str
    key: str
    due_ms: int | None
    left: int | None


class OldStore:
    """The old scheduler's Redis, for one tenant that takes over."""

    def __init__(self, redis: Redis, tenant: str, book: str = "scheduler") -> None:
        self.redis: Any = redis
        self.tenant = tenant
        self.parked_key = f"rq:tenure:parked:{tenant}"
        self._book_key = f"rq:tenure:{book}:{tenant}"
        self._lock_value = f"tenure:{tenant}".encode()

    # -- the old scheduler's ------------------------------------------------------------------------------------------

    def jobs(self) -> Sequence[OldJob]:
        """All that it has planned, by when it is due. What it lists without a row it would pass over too."""
        return self._read(SCHEDULED, _row_key)

    def rows(self, ids: Iterable[str]) -> Sequence[OldJob]:
        """The jobs of these ids that still have a row, whether planned or not."""
        return self._of([(job_id, 0) for job_id in ids], _row_key)

    def processes(self) -> Sequence[OldProcess]:
        found: list[OldProcess] = []
        for key in self.redis.scan_iter(match=f"{INSTANCES}*", count=1000):
            birth, death = self.redis.hmget(key, "birth", "death")
            if birth is not None and death is None:
                name = key.decode()[len(INSTANCES) :]
                found.append(OldProcess(name, int(float(birth) * 1000), max(0, self.redis.ttl(key))))
        return sorted(found, key=lambda one: one.name)

    def take_lock(self, patience_s: float) -> None:
        """Keep every old scheduler from firing, for a minute. Raises Conflict when one is at it all that time."""
        until = time.monotonic() + patience_s
        while not self.redis.set(LOCK, self._lock_value, nx=True, ex=LOCK_S):
            if self.holds_lock():
                self.keep_lock()
                return
            if time.monotonic() > until:
                raise Conflict(
                    f"an old scheduler is at it: {LOCK} is taken, for {self.redis.ttl(LOCK)} s at most",
                    hint="try again then",
                )
            time.sleep(0.05)

    def keep_lock(self) -> None:
        """Hold it for another minute, unless it stays for good."""
        if self.holds_lock() and self.redis.ttl(LOCK) >= 0:
            self.redis.expire(LOCK, LOCK_S)

    def lock_is(self) -> str:
        """Who has the old schedulers' lock, in words."""
        if self.holds_lock():
            return "Tenure's: no old scheduler fires"
        return "an old scheduler's" if self.redis.exists(LOCK) else "free"

    def holds_lock(self) -> bool:
        """Whether no old scheduler fires, because of this tenant's hand-over or of one that is over for good."""
        value = cast("bytes | None", self.redis.get(LOCK))
        for_good = value is not None and value.startswith(b"tenure:") and self.redis.ttl(LOCK) < 0
        return value == self._lock_value or for_good

    def free_lock(self) -> None:
        """Let old schedulers fire again, unless the lock stays for good."""
        if self.holds_lock() and self.redis.ttl(LOCK) >= 0:
            self.redis.delete(LOCK)

    # -- what is noted and parked -------------------------------------------------------------------------------------

    def note(self, **fields: str) -> None:
        self.redis.hset(self._book_key, mapping=fields)

    def noted(self) -> Mapping[str, str]:
        return {name.decode(): value.decode() for name, value in self.redis.hgetall(self._book_key).items()}

    def parked(self) -> Sequence[OldJob]:
        """What has been handed over, as it was then."""
        return self._read(self.parked_key, _parked_key)

    def park(self, jobs: Sequence[OldJob], *, seen: Sequence[OldJob], lock_stays: bool) -> None:
        """Take jobs out of the old scheduler's sight, all or none; the lock stays for good, or stands for a minute.

        Raises WatchError if what the old scheduler has planned is no longer what was `seen`.
        """
        with self.redis.pipeline() as pipe:
            self._watch(pipe, [_row_key(job.id) for job in seen])
            if self.jobs() != seen:
                raise WatchError("the old scheduler's jobs have changed")
            pipe.multi()
            for job in jobs:
                pipe.zrem(SCHEDULED, job.id)
                pipe.rename(_row_key(job.id), _parked_key(job.id))
                pipe.zadd(self.parked_key, {job.id: job.due_ms // 1000}, lt=True)  # it may be parked already
                pipe.hset(HANDED, str(job.key), self.tenant)
            pipe.hset(self._book_key, "state", "parked")
            if lock_stays:
                pipe.set(LOCK, self._lock_value)
            pipe.execute()

    def give_back(self, jobs: Sequence[Back], again: Sequence[str]) -> None:
        """Put parked jobs back, all or none, and free the lock; one without a next instant only gets its row back.
        Those that were added `again` meanwhile go, after a day with their rows.
        """
        with self.redis.pipeline() as pipe:
            self._watch(pipe, [_parked_key(job.id) for job in jobs])
            metas = {
                job.id: self.redis.hget(_parked_key(job.id), "meta") for job in jobs if job.left is not None
            }
            pipe.multi()
            for job in jobs:
                pipe.rename(_parked_key(job.id), _row_key(job.id))
                pipe.zrem(self.parked_key, job.id)
                pipe.hdel(HANDED, job.key)
                if job.due_ms is None:
                    pipe.expire(_row_key(job.id), KEPT_S)
                    continue
                pipe.zadd(SCHEDULED, {job.id: job.due_ms // 1000})
                if job.left is not None and metas[job.id]:
                    pipe.hset(_row_key(job.id), "meta", with_repeat(metas[job.id], job.left))
            for job_id in again:
                pipe.zrem(SCHEDULED, job_id)
                pipe.expire(_row_key(job_id), KEPT_S)
            pipe.hset(self._book_key, "state", "read")
            pipe.delete(LOCK)
            pipe.execute()

    def _watch(self, pipe: Any, keys: Sequence[str]) -> None:
        pipe.watch(LOCK, SCHEDULED, self.parked_key, *keys)
        if not self.holds_lock():
            raise Conflict(
                f"{LOCK} was lost in the middle of it: nothing has been moved", hint="the same command again"
            )

    def _read(self, zset: str, key_of: Any) -> Sequence[OldJob]:
        listed = cast("list[tuple[bytes, float]]", self.redis.zrange(zset, 0, -1, withscores=True))
        return self._of(
            [(job_id.decode(errors="replace"), _due_ms(score)) for job_id, score in listed], key_of
        )

    def _of(self, listed: Sequence[tuple[str, int]], key_of: Any) -> Sequence[OldJob]:
        found: list[OldJob] = []
        for at in range(0, len(listed), PAGE):
            page = listed[at : at + PAGE]
            pipe = self.redis.pipeline(transaction=False)
            for job_id, _ in page:
                pipe.hgetall(key_of(job_id))
            rows = cast("list[dict[bytes, bytes]]", pipe.execute())
            found += [
                read_job(job_id, row, due) for (job_id, due), row in zip(page, rows, strict=True) if row
            ]
        return found


def _due_ms(score: float) -> int:
    """Whole seconds, as epoch ms; what is beyond all times is the end of them, and refused for that later."""
    return int(min(max(score, 0.0), LAST_MS / 1000)) * 1000


def _row_key(job_id: str) -> str:
    return f"{RQ_KEY_PREFIX}:job:{job_id}"


def _parked_key(job_id: str) -> str:
    return f"rq:tenure:job:{job_id}"
