"""The ledger of one tenant: its verbs, in the order of a job's life."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from ..scripts import Call, Keys, Scripts
from ..scripts.errors import NotFound, TenureError
from ..scripts.loader import Arg, item, texts
from . import views
from .batch_work import work_off
from .filters import Filters
from .ids import is_id, new_id
from .index import TenantIndex
from .jobs import BINDINGS, DUE, REAP, Claim, Enqueued, JobView, Lease, News, Page, Reported
from .listing import list_jobs
from .outcome import Fail, GiveBack, Lose, NextChunk, Outcome, SkipRest, Stopped, Succeed
from .payload import digest
from .retry import Retry
from .tasks import DEFAULT_POOL
from .walk import STEPS, go_on
from .who import check_token, check_word

T = TypeVar("T")
LEASE_MS = 60_000
GRACE_MS = 5_000
HISTORY = 100
"""How many of the things people did to a job are kept."""


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to make.

    `when` is None for now, "+N" for N ms from now, or epoch ms; `fields` are further fields of its row.
    """

    task: str
    args: bytes = b""
    pool: str = DEFAULT_POOL
    when: int | str | None = None
    idempotency_key: str | None = None
    unique_mode: str = "kept"
    fields: Mapping[str, Arg] = field(default_factory=dict[str, Arg])
    id: str = field(default_factory=new_id)

    def flat(self) -> list[Arg]:
        pairs: dict[str, Arg] = dict(self.fields)
        unique = same = ""
        if self.args:
            pairs["args"] = self.args
        if self.idempotency_key is not None:
            unique, same = digest(self.idempotency_key), digest(self.task, self.args)
            pairs["unique_key"] = self.idempotency_key
            if self.unique_mode != "kept":
                pairs["unique_mode"] = self.unique_mode
        when = "" if self.when is None else self.when
        head: list[Arg] = [self.id, self.task, self.pool, when, unique, same, len(pairs)]
        return head + [part for pair in pairs.items() for part in pair]


class Ledger:
    """All operations on the jobs of one tenant.

    Every one is a single script; a refused one changes nothing.
    """

    def __init__(self, scripts: Scripts, keys: Keys, index: TenantIndex, lease_ms: int = LEASE_MS) -> None:
        self.scripts = scripts
        self.keys = keys
        self.index = index
        self.lease_ms = lease_ms

    @property
    def tenant(self) -> str:
        return self.keys.tenant

    def at(self, now: int) -> Ledger:
        """The same ledger with a virtual clock; for tests."""
        scripts = self.scripts.at(now)
        return Ledger(scripts, self.keys, TenantIndex(scripts, self.keys.namespace), self.lease_ms)

    def enqueue(self, job: NewJob) -> Enqueued:
        """Make a job. Raises KeyReused when its idempotency key belongs to a job with other arguments."""
        answer = self.enqueue_many([job])[0]
        if isinstance(answer, TenureError):
            raise answer
        return answer

    def enqueue_many(self, jobs: Sequence[NewJob]) -> Sequence[Enqueued | TenureError]:
        """Make many jobs in one call; a refused one stands in the answer as the error it is."""
        self.index.register(self.tenant)
        answers, news = self.scripts.run(self.enqueue_call(jobs))
        self.index.put(news)
        return answers

    def enqueue_call(
        self, jobs: Sequence[NewJob]
    ) -> Call[tuple[Sequence[Enqueued | TenureError], Sequence[News]]]:
        """The enqueue, not yet sent. Sent again it makes no job twice."""
        return self._call("enqueue", {}, self._enqueued, [part for job in jobs for part in job.flat()])

    def claim(self, pool: str, worker: str, want: int = 1) -> Claim:
        """Lease up to `want` due jobs of `pool` to `worker`, or say why there are none."""
        claim = self.scripts.run(self.claim_call(pool, worker, want, new_token()))
        self.index.put(claim.all_news)
        return claim

    def claim_call(
        self,
        pool: str,
        worker: str,
        want: int,
        token: str,
        grace_ms: int = GRACE_MS,
        *,
        ahead: int = 0,
        unknown: Sequence[str] = (),
    ) -> Call[Claim]:
        """The claim, not yet sent. Sent again under the same `token` it answers the same leases.

        `ahead` of those wanted are for slots that are still busy: they are never of a concurrency key or a rate limit.
        `unknown` are tasks that the worker does not know.
        """
        args: dict[str, Arg] = {
            "pool": pool,
            "worker": worker,
            "token": token,
            "lease": self.lease_ms,
            "grace": grace_ms,
            "want": want,
            "ahead": ahead,
        }
        return self._call("claim", args, lambda reply: self._claim(pool, reply), unknown)

    def renew(self, leases: Iterable[Lease]) -> Sequence[int | TenureError]:
        """Prolong leases; for each its new expiry, or StaleFence when it was lost."""
        return self.scripts.run(self.renew_call([(lease.id, lease.fence) for lease in leases]))

    def renew_call(self, held: Iterable[tuple[str, int]]) -> Call[Sequence[int | TenureError]]:
        rest: list[Arg] = [part for pair in held for part in pair]
        return self._call("renew", {"lease": self.lease_ms}, _expiries, rest)

    def report(
        self,
        lease: Lease,
        *,
        cursor: bytes = b"",
        done: int | None = None,
        total: int | None = None,
        doing: int | None = None,
        message: str = "",
        lines: Sequence[str] = (),
        request: str = "",
        response: str = "",
        stage: str = "",
        warnings: int = 0,
        steps: int = 0,
        root: str = "",
    ) -> int:
        """Show progress; with a cursor, commit it. `request` and `response` are the attempt's notes, of any job.

        Answers the revision; raises StaleFence when the lease was lost.
        """
        call = self.report_call(
            lease.id,
            lease.fence,
            cursor=cursor,
            done=done,
            total=total,
            doing=doing,
            message=message,
            lines=lines,
            request=request,
            response=response,
            stage=stage,
            warnings=warnings,
            steps=steps,
            root=root,
        )
        return self.scripts.run(call).revision

    def report_call(
        self,
        job_id: str,
        fence: int,
        *,
        cursor: bytes = b"",
        done: int | None = None,
        total: int | None = None,
        doing: int | None = None,
        message: str = "",
        lines: Sequence[str] = (),
        request: str = "",
        response: str = "",
        stage: str = "",
        warnings: int = 0,
        skipped: int = 0,
        word: int | None = None,
        steps: int = 0,
        root: str = "",
    ) -> Call[Reported]:
        """The report, not yet sent. Sent again under the same `word` its lines, warnings and steps count once."""
        args: dict[str, Arg] = {
            "id": job_id,
            "fence": fence,
            "cursor": cursor,
            "done": _text(done),
            "total": _text(total),
            "doing": _text(doing),
            "message": message,
            "request": request,
            "response": response,
            "stage": stage,
            "warnings": warnings,
            "skipped": skipped,
            "word": _text(word),
            "steps": steps,
            "root": root,
        }
        return self._call("report", args, _reported, list(lines))

    def settle(self, lease: Lease, outcome: Outcome) -> None:
        """End the attempt.

        The same outcome twice is accepted once. Raises StaleFence when a later claim has taken over.
        """
        (refused,), news = self.scripts.run(self.settle_call([(lease.id, lease.fence, outcome)]))
        if refused:
            raise refused
        self.index.put(news)

    def settle_call(
        self, ends: Iterable[tuple[str, int, Outcome]]
    ) -> Call[tuple[Sequence[TenureError | None], Sequence[News]]]:
        rest = [part for id_, fence, outcome in ends for part in (id_, fence, *_outcome(outcome))]
        return self._call("settle", {}, self._settled, rest)

    def reap(self, limit: int = 100) -> Sequence[tuple[str, str]]:
        """Take back leases that ended, let go of jobs that nobody started in time: (id, state it went to). And bring
        jobs after the flag of their instance, and batches to their end, where whoever began that has not.

        Tells the index when to come again.
        """
        delays: list[Arg] = [Retry().backoff_ms(failures) for failures in range(1, 11)]
        call: Call[Any] = self._call("reap", {"limit": limit}, lambda reply: reply, delays)
        due, version, ended, news, walks, batches = self.scripts.run(call)
        self.index.put(
            [News(self.tenant, REAP, int(due) if due else None, int(version)), *views.news(self.tenant, news)]
        )
        for instance in walks:
            go_on(self, instance.decode(), steps=max(1, STEPS // len(walks)))
        for batch in batches:
            work_off(self, batch.decode())
        return [(id_.decode(), state.decode()) for id_, state in ended]

    def reschedule(
        self,
        job_id: str,
        *,
        when: int | str | None = None,
        priority: int | None = None,
        revision: int | None = None,
        token: str | None = None,
        reason: str = "",
        by: str = "",
    ) -> bool:
        """Give a pending job another due time ("+N" for N ms from now, or epoch ms), another priority, or both.

        Answers whether anything changed; the same again under the same `token` answers what it did. With `revision` it
        is refused with StalePlan if the job is at another one.
        """
        check_word(by, reason)
        args: dict[str, Arg] = {
            "id": job_id,
            "revision": _text(revision),
            "request": digest("reschedule", named(token), str(when), str(priority)),
            "when": "" if when is None else when,
            "priority": _text(priority),
            "reason": reason,
            "by": by,
        }
        return self._by_hand(job_id, "reschedule", args)

    def cancel(self, job_id: str, reason: str = "", by: str = "") -> str:
        """Cancel a job; answers the state it was in. A running one loses its right to write at once."""
        return self._cancel("cancel", job_id, reason, by)

    def skip(self, job_id: str, reason: str = "", by: str = "") -> str:
        """Cancel a job because it need not be done any more; its reason says `skipped`. Answers as `cancel`."""
        return self._cancel("skip", job_id, reason, by)

    def _cancel(self, verb: str, job_id: str, reason: str, by: str) -> str:
        check_word(by, reason)
        args: dict[str, Arg] = {"verb": verb, "id": job_id, "reason": reason, "by": by}
        before, news = self._of_job(job_id, "cancel", args)
        self.index.put(views.news(self.tenant, news))
        return str(before.decode())

    def retry(
        self,
        job_id: str,
        *,
        args: bytes | None = None,
        from_start: bool = False,
        when: int | str | None = None,
        generation: int | None = None,
        token: str | None = None,
        reason: str = "",
        by: str = "",
        force: bool = False,
    ) -> int:
        """Begin a new round of a job that failed, is dead or was canceled, with other arguments if `args` are given.
        It goes on from its last checkpoint, unless it gets others or is to begin from the start.

        Answers the generation that it began. The same call again under the same `token`, a name of the caller's for
        it, changes nothing and answers the same; without one it is another call. Raises WrongState for a job that
        cannot be retried as it stands, StalePlan if it is in another `generation` than the one that was seen,
        KeyReused when another job holds its idempotency key now, OutcomeUnknown and OutcomeHappened unless it is
        forced.
        """
        check_word(by, reason)
        edited = args is not None
        fields: dict[str, Arg] = {
            "id": job_id,
            "generation": _text(generation),
            "request": digest(
                "retry", named(token), str(when), str(edited), args or b"", *(["start"] if from_start else [])
            ),
            "when": "" if when is None else when,
            "edited": "1" if edited else "",
            "args": args or b"",
            "from_start": "1" if from_start else "",
            "reason": reason,
            "by": by,
            "force": "1" if force else "",
        }
        generation_begun, news = self._of_job(job_id, "retry", fields)
        self.index.put(views.news(self.tenant, news))
        return int(generation_begun)

    def confirm(self, job_id: str, happened: bool, note: str = "", by: str = "") -> bool:
        """Record whether the last outside call of a dead(`outcome_unknown`) job has happened; a later word counts.

        Answers whether that is news. One that has not happened may be retried, one that has is refused without force.
        Raises WrongState for a job of which no outcome is unknown.
        """
        check_word(by, note)
        args: dict[str, Arg] = {"id": job_id, "happened": "1" if happened else "0", "remark": note, "by": by}
        return self._by_hand(job_id, "confirm", args)

    def _by_hand(self, job_id: str, script: str, args: Mapping[str, Arg]) -> bool:
        changed, news = self._of_job(job_id, script, args)
        self.index.put(views.news(self.tenant, news))
        return bool(changed == b"1")

    def _of_job(self, job_id: str, script: str, args: Mapping[str, Arg]) -> tuple[Any, ...]:
        try:
            return self.scripts.run(self._call(script, args, tuple))
        except NotFound:
            raise self._not_found(job_id) from None

    def get(self, job_id: str, lines: int = 0) -> JobView:
        """One job, with its history and the newest `lines` log lines. Raises NotFound."""
        found = self.get_many([job_id], lines, HISTORY)
        if not found:
            raise self._not_found(job_id)
        return found[0]

    def get_many(self, job_ids: Sequence[str], lines: int = 0, deeds: int = 0) -> Sequence[JobView]:
        """Those of the jobs that exist, in the order asked, with so many log lines and entries of their history."""
        known = [job_id for job_id in job_ids if is_id(job_id)]
        if not known:
            return []
        args: dict[str, Arg] = {"lines": lines, "deeds": deeds}
        return self.scripts.run(self._call("read", args, lambda reply: views.jobs(self.tenant, reply), known))

    def list(
        self,
        *,
        status: str | None = None,
        task: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        **filters: Any,
    ) -> Page:
        """A page of jobs, newest first (pending ones by due time); for the other filters see `Filters`.

        Raises BadInput for a cursor that is not ours.
        """
        tasks = None if task is None else (task,)
        return list_jobs(self, Filters(status=status, tasks=tasks, **filters), limit=limit, cursor=cursor)

    def counts(self) -> dict[tuple[str, str], int]:
        """How many jobs there are by (task, state)."""
        flat = self.scripts.run(self._call("counts", {}, lambda reply: texts(reply[1])))
        return {
            (task, state): int(n) for key, n in views.pairs(flat) for task, _, state in [key.rpartition("|")]
        }

    def now(self) -> int:
        """The server's time, epoch ms."""
        return self.scripts.run(self._call("counts", {}, lambda reply: int(reply[0])))

    def background_tasks(self) -> Sequence[str]:
        """The tasks whose oldest or newest job is a background task."""
        return self.scripts.run(self._call("background_tasks", {}, texts))

    def standing(self) -> Sequence[News]:
        """What the index should know of this tenant, read from the ledger itself; the sweep puts it there."""
        return self.scripts.run(self.standing_call())

    def standing_call(self) -> Call[Sequence[News]]:
        return self._call("standing", {}, self._standing)

    def _call(
        self, script: str, args: Mapping[str, Arg], parse: Callable[[Any], T], rest: Sequence[Arg] = ()
    ) -> Call[T]:
        return Call(script, self.keys.home, args, parse, rest)

    def _not_found(self, job_id: str) -> NotFound:
        return NotFound(
            f"job {job_id!r:.40} is not in the ledger of tenant {self.tenant}", hint="tenure jobs list"
        )

    def _enqueued(self, reply: Any) -> tuple[Sequence[Enqueued | TenureError], Sequence[News]]:
        answers = [
            Enqueued(one[0].decode(), one[1] == b"1")
            if isinstance(one, list)
            else cast(TenureError, item(one))
            for one in reply[0]
        ]
        starts = [News(self.tenant, REAP, *map(int, reply[2]))] if reply[2] else []
        return answers, [*views.news(self.tenant, reply[1]), *starts]

    def _claim(self, pool: str, reply: Any) -> Claim:
        version, due, reason, expiry, look, *leased = reply
        leases = [views.lease(self.tenant, row) for row in leased]
        news = News(self.tenant, DUE + pool, int(due) if due else None, int(version))
        reap = News(self.tenant, REAP, int(expiry) if expiry else None, int(version))
        rows = News(self.tenant, BINDINGS, int(look), int(version)) if look else None
        return Claim(leases, reason.decode(), news, reap, rows)

    def _settled(self, reply: Any) -> tuple[Sequence[TenureError | None], Sequence[News]]:
        return [item(one) for one in reply[0]], views.news(self.tenant, reply[1])

    def _standing(self, reply: Any) -> Sequence[News]:
        version, *flat = texts(reply)
        return [News(self.tenant, queue, int(due), int(version)) for queue, due in views.pairs(flat)]


def new_token() -> str:
    """A name for one call, so that one sent twice is answered once."""
    return os.urandom(8).hex()


def named(token: str | None) -> str:
    """What a call is known by when it comes again: the caller's name for it, else one of its own, since a call whose
    connection breaks is sent again. Raises BadInput for what is no name.
    """
    return new_token() if token is None else check_token(token)


def _reported(reply: Any) -> Reported:
    return Reported(int(reply[0]), int(reply[1] or 0))


def _text(number: int | None) -> Arg:
    return "" if number is None else number


def _expiries(reply: list[bytes]) -> list[int | TenureError]:
    return [item(one) or int(one) for one in reply]


def _outcome(outcome: Outcome) -> tuple[Arg, ...]:
    """kind, cause, summary, stack, failure, payload, delay, done, total: as the script's header has them."""
    match outcome:
        case Succeed(result):
            return "succeed", "", "", "", "", result, 0, "", ""
        case SkipRest(reason):
            return "skip", "", reason, "", "", "", 0, "", ""
        case NextChunk(cursor, done, total, delay_ms, message):
            return "continue", "", message, "", "", cursor, delay_ms, _text(done), _text(total)
        case Fail(summary, cause, delay_ms, permanent, stack, failure):
            return "fail", cause, summary, stack, failure, "permanent" if permanent else "", delay_ms, "", ""
        case Lose(summary, cause):
            return "lose", cause, summary, "", "", "", 0, "", ""
        case GiveBack(started, delay_ms, unknown):
            how = "unknown" if unknown else "" if started else "unstarted"
            return "give_back", "released", "", "", "", how, delay_ms, "", ""
        case Stopped():
            return "stopped", "", "", "", "", "", 0, "", ""
