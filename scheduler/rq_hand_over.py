"""The hand-over from rq-scheduler: its jobs become schedules, the two run side by side, the tenant is switched over, or
back. Who fires is no matter of timing: a job is either in the old scheduler's list, or parked out of its sight.

    read   the tenant is disabled, the jobs are stored as schedules; the old one fires, Tenure records skips
    over   under the old scheduler's lock its jobs are read anew and parked, in one transaction; then the tenant is
           enabled, and what came due since the old scheduler stopped is made up for
    back   the tenant is disabled; then the jobs are given back, each with the first instant that Tenure has not fired

A command that dies on its way is given again: it goes on where it was. Between its halves nobody fires, and what comes
due then is made up for too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from redis.exceptions import WatchError

from ..lease.tasks import Registry
from ..scripts.errors import Conflict, NotFound
from .backfill import by_hand_id
from .pausing import run_call
from .rq_job import OldJob
from .rq_moves import Move, Reading, moves
from .rq_store import Back, OldProcess, OldStore
from .schedules import DEFAULT_TRIGGER, Schedules, ScheduleView
from .switch import Scheduling
from .times import LAST_MS

TRIES = 5
PAGE = 500
REASON = "rq-scheduler is in charge"
AGAIN = "it was added again meanwhile, and is not fired twice"
Gated = Callable[[OldProcess], None]
"""Raises Conflict unless that process of the old scheduler is gated."""


@dataclass(frozen=True, slots=True)
class Read:
    """What reading found: moves, jobs of queues that are not wanted, and copies whose old job is gone."""

    moves: Sequence[Move]
    others: int
    gone: Sequence[str] = ()

    @property
    def refused(self) -> Sequence[Move]:
        return [move for move in self.moves if move.problem]


@dataclass(frozen=True, slots=True)
class Over:
    """What switching over did: which schedules Tenure fires now, and which instants it made up for."""

    schedules: Sequence[str]
    made_up: Sequence[tuple[str, int]]
    others: int


@dataclass(frozen=True, slots=True)
class Given:
    """What switching back did with a schedule: its next instant at the old scheduler, or why it has none."""

    job_id: str
    key: str
    due_ms: int | None
    why: str = ""


class HandOver:
    """The hand-over of one tenant."""

    def __init__(self, store: OldStore, schedules: Schedules, registry: Registry, by: str = "") -> None:
        self.store = store
        self.schedules = schedules
        self.registry = registry
        self._by = by
        self._switch = Scheduling(schedules.ledger)

    @property
    def state(self) -> str:
        """`read`, `parked` (on the way over), `over`; empty if nothing has been read."""
        return self.store.noted().get("state", "")

    @property
    def schedules_fire(self) -> bool:
        """Whether scheduling of the tenant is enabled."""
        return self._switch.get().enabled

    def plan(self, reading: Reading) -> Read:
        """What reading would do. Changes nothing."""
        return self._plan(reading, self.store.jobs())

    def read(self, reading: Reading) -> Read:
        """Store the old scheduler's jobs as schedules of the tenant, whose scheduling is disabled first. The same again
        brings the copies up to date. Raises Conflict, with nothing changed, when one of them cannot be taken over.
        """
        if self.state in ("parked", "over"):
            raise Conflict(
                f"tenant {self._tenant} has been switched over: there is nothing to read",
                hint=self._hint("back"),
            )
        found = self.plan(reading)
        self.take(found, reading)
        return found

    def take(self, found: Read, reading: Reading) -> None:
        """Store what a plan has found, as `read` does."""
        self._check_refused(found)
        self._check_free(found)
        self._disable()
        self.store.note(state="read", reading=reading.packed())
        self._copy(found)

    def over(self, gated: Gated | None = None) -> Over:
        """Let Tenure fire what the old scheduler did. Raises Conflict, with nothing changed: while an old scheduler
        lives or jobs of the fire before wait or run, unless it is `gated`; and when a job that was added since cannot
        be taken over.
        """
        state, reading = self.state, self._reading()
        if state == "over":
            raise Conflict(f"tenant {self._tenant} has been switched over already", hint=self._hint("back"))
        self._check_quiet(gated, reading)
        if state == "read" and self._switch.get().enabled:
            raise Conflict(
                f"scheduling of tenant {self._tenant} is enabled: both schedulers fire",
                hint=f"tenure tenants disable-scheduling {self._tenant}",
            )
        self.store.take_lock(patience_s=10.0 if gated else 0.0)
        try:
            others = self._park(reading, gated)
            resumed = self._enable()
            made_up = self._make_up(reading, resumed)
            self.store.note(state="over", resumed=str(resumed))
        finally:
            self.store.free_lock()
        return Over(sorted({str(job.key) for job in self.store.parked()}), made_up, others)

    def back(self) -> Sequence[Given]:
        """Let the old scheduler fire again. What Tenure has fired may end; what it had not is given back."""
        if self.state not in ("parked", "over"):
            raise Conflict(
                f"tenant {self._tenant} is not switched over: the old scheduler is in charge",
                hint=self._hint("over"),
            )
        self.store.take_lock(patience_s=10.0)
        resumed = self._resumed()
        self._disable()
        seen: set[str] = set()
        given: list[tuple[Given, Back]] = []
        for job in self.store.parked():
            given.append(self._given(job, resumed, twice=str(job.key) in seen))
            seen.add(str(job.key))
        ids = {back.id for _, back in given}
        again = [job for job in self.store.jobs() if str(job.key) in seen and job.id not in ids]
        self.store.give_back([back for _, back in given], [job.id for job in again])
        return [*(one for one, _ in given), *(Given(job.id, str(job.key), None, AGAIN) for job in again)]

    # -- reading ------------------------------------------------------------------------------------------------------

    def _plan(self, reading: Reading, jobs: Sequence[OldJob]) -> Read:
        wanted = [job for job in jobs if reading.wants(job)]
        return self.compared(moves(wanted, reading, self.registry), len(jobs) - len(wanted))

    def compared(self, found: Sequence[Move], others: int = 0) -> Read:
        """Moves, and what has been copied before and is gone."""
        keys = {str(move.key) for move in found}
        return Read(found, others, sorted(set(self._copies()) - keys))

    def _check_refused(self, found: Read) -> None:
        if found.refused:
            raise Conflict(
                f"{len(found.refused)} of {len(found.moves)} jobs cannot be taken over: "
                + "; ".join(f"{move.old.id} ({move.old.function}): {move.problem}" for move in found.refused),
                hint="the same command with --dry-run shows all of them",
            )

    def _check_free(self, found: Read) -> None:
        """Neither another schedule of that name is replaced, nor are other schedules of the tenant stopped unasked."""
        self._check_names(found)
        ours, after = set(self._copies()), None
        while self._switch.get().enabled and (page := self.schedules.list(100, after)):
            for key in (str(view.job_key) for view in page):
                if key not in ours:
                    raise Conflict(
                        f"tenant {self._tenant} has schedules that fire, {key} for one: they would stop with it",
                        hint="read into another tenant with --tenant, or first: tenure tenants disable-scheduling "
                        + self._tenant,
                    )
            after = str(page[-1].job_key)

    def _check_names(self, found: Read) -> None:
        for key in {str(move.key) for move in found.moves} - set(self._copies()):
            if self._stored(key) is not None:
                raise Conflict(
                    f"schedule {key} of tenant {self._tenant} is stored already, and not from rq-scheduler",
                    hint=f"tenure cron delete {key}, or read into another tenant: --tenant",
                )

    def _copy(self, found: Read) -> None:
        parked = self.store.parked()
        kept = {str(job.key) for job in parked}
        for number, move in enumerate(found.moves):
            if number % PAGE == 0:
                self.store.keep_lock()
            self._put(move)
        for key in set(found.gone) - kept:
            self.schedules.delete(key)
        jobs = [*parked, *(job for move in found.moves for job in move.jobs)]
        self.store.note(
            copies="\n".join(sorted({str(job.key) for job in jobs})),
            ids="\n".join(sorted({job.id for job in jobs})),
        )

    def _put(self, move: Move) -> None:
        assert move.task is not None
        if move.trigger is None or move.over_at(self.now()):
            # all its instants are due: the old scheduler fires it or it is made up for, and then it is over
            self.schedules.delete(move.key)
            return
        self.schedules.put(
            move.key,
            move.task,
            [move.trigger],
            args=move.old.args,
            kwargs=move.old.kwargs,
            options=move.options,
            by=self._by,
            reason=f"taken over from RQ: job {move.old.id}, queue {move.old.queue}",
        )

    # -- over ---------------------------------------------------------------------------------------------------------

    def _check_quiet(self, gated: Gated | None, reading: Reading) -> None:
        processes = self.store.processes()
        if gated is not None:
            if len(processes) > 1:
                raise Conflict(
                    f"{len(processes)} old schedulers live, and only one can be asked whether it is gated: "
                    + ", ".join(map(str, processes)),
                    hint="stop all but one",
                )
            for process in processes:
                gated(process)
            return
        running = [job for job in self._old_jobs(reading) if job.active]
        said = [f"an old scheduler lives: {process}" for process in processes]
        said += [f"job {job.id} ({job.function}) is {job.status} in queue {job.queue}" for job in running]
        if said:
            raise Conflict(
                "; ".join(said),
                hint="stop the old scheduler and let its jobs end; or start it with "
                "-q tenure.scheduler.rq_gate.GatedQueue, and switch over with --gated",
            )

    def _old_jobs(self, reading: Reading) -> Iterable[OldJob]:
        """What is planned, and what was when it was read and has fired since."""
        planned = [job for job in self.store.jobs() if reading.wants(job)]
        known = set(self.store.noted().get("ids", "").split("\n")) - {job.id for job in planned} - {""}
        return [*planned, *self.store.rows(sorted(known))]

    def _park(self, reading: Reading, gated: Gated | None) -> int:
        """Bring the copies up to date and park the old jobs; answers how many others stay."""
        for _ in range(TRIES):
            jobs = self.store.jobs()
            found = self._plan(reading, jobs)
            self._check_refused(found)
            if not found.moves and self.store.parked():
                return found.others  # it was on its way
            self._check_names(found)
            self._copy(found)
            try:
                self.store.park(
                    [job for move in found.moves for job in move.jobs],
                    seen=jobs,
                    lock_stays=gated is None and not found.others,
                )
            except WatchError:
                continue
            return found.others
        raise Conflict(
            "the old scheduler's jobs change all the time: nothing has been moved", hint="try again"
        )

    def _enable(self) -> int:
        """From when on Tenure fires: what is planned up to then is made up for."""
        stood = self._switch.get()
        if not stood.enabled:
            stood = self._switch.set(enabled=True, by=self._by, reason="switched over from rq-scheduler")
        assert stood.since is not None
        return stood.since

    def _make_up(self, reading: Reading, until: int) -> Sequence[tuple[str, int]]:
        """Make a job for each instant up to `until` that neither of the two has fired; the same however often."""
        made: list[tuple[str, int]] = []
        for move in moves(self.store.parked(), reading, self.registry):
            for instant in [] if move.problem else move.due(until):
                self._make(move, instant)
                made.append((str(move.key), instant))
        return made

    def _make(self, move: Move, instant: int) -> None:
        ledger, view = self.schedules.ledger, self._stored(str(move.key))
        if view is None:
            ledger.enqueue(move.job(self._tenant, instant))
            return
        id_ = by_hand_id(self._tenant, move.key, DEFAULT_TRIGGER, instant)
        call = run_call(self.schedules, move.key, view.definition, DEFAULT_TRIGGER, id_, instant, by=self._by)
        self.schedules.make([call])

    # -- back ---------------------------------------------------------------------------------------------------------

    def _resumed(self) -> int | None:
        """Up to when Tenure has fired nothing, and all is made up for; None if it has never come to fire."""
        if self.state == "over":
            return int(self.store.noted()["resumed"])
        stood = self._switch.get()
        if not stood.enabled or stood.since is None:
            return None
        self._make_up(self._reading(), stood.since)
        return stood.since

    def _given(self, job: OldJob, resumed: int | None, *, twice: bool) -> tuple[Given, Back]:
        key = str(job.key)
        view = self._stored(key)
        due = _next_of(view, resumed) if resumed is not None else _next_of_old(view, job)
        if twice:
            due, why = None, "it was planned more than once"
        elif view is not None and view.paused:
            due, why = None, "it is paused"
        else:
            why = "" if due is not None else "it has fired for the last time, or was deleted"
        left = None if due is None or view is None or job.repeat is None else _left(view, due)
        return Given(job.id, key, due, why), Back(job.id, key, due, left)

    # -- shared -------------------------------------------------------------------------------------------------------

    @property
    def _tenant(self) -> str:
        return self.schedules.ledger.tenant

    def _copies(self) -> Sequence[str]:
        """JobKeys of the schedules that reading has made."""
        return [key for key in self.store.noted().get("copies", "").split("\n") if key]

    def _reading(self) -> Reading:
        packed = self.store.noted().get("reading")
        if packed is None:
            raise Conflict(
                f"nothing of rq-scheduler has been read into tenant {self._tenant}",
                hint=f"tenure migrate rq-scheduler --tenant {self._tenant}",
            )
        return Reading.unpacked(packed)

    def _disable(self) -> None:
        if self._switch.get().enabled:
            self._switch.set(enabled=False, by=self._by, reason=REASON)

    def _stored(self, key: str) -> ScheduleView | None:
        try:
            return self.schedules.get(key)
        except NotFound:
            return None

    def now(self) -> int:
        """The server's clock, in epoch ms."""
        return self.schedules.ledger.index.now_ms()

    def _hint(self, verb: str) -> str:
        where = "" if self._tenant == "default" else f" --tenant {self._tenant}"
        return f"tenure migrate rq-scheduler {verb}{where}"


def _next_of(view: ScheduleView | None, resumed: int) -> int | None:
    """The first instant that Tenure has not fired. A trigger that has not moved since it was enabled still stands where
    it was before.
    """
    if view is None:
        return None
    found = [planned for planned in view.next_fires.values() if planned > resumed]
    if found or not view.next_fires:
        return min(found, default=None)
    return view.times(view.definition.triggers[0]).next_ms(resumed)


def _next_of_old(view: ScheduleView | None, job: OldJob) -> int | None:
    """Where the old scheduler was with it."""
    if not job.half_fired or job.cron is None:
        return job.next_ms if job.fires != 0 else None
    return None if view is None else view.times(view.definition.triggers[0]).next_ms(job.next_ms - 1)


def _left(view: ScheduleView, due: int) -> int:
    return view.times(view.definition.triggers[0]).count_ms(due, LAST_MS)
