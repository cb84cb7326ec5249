"""What the policies for misfires and overlap would do: the scheduler's own decision, shown and not made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..lease.jobs import JobView
from ..scripts.errors import BadInput
from .jitter import jitter_ms
from .job_key import JobKey
from .misfire import MOST, Misfire
from .plan import Fire, Plan, Skip, following, resume
from .schedules import Schedules
from .times import Times
from .trigger import Trigger


@dataclass(frozen=True, slots=True)
class Decision:
    """What would become of a planned instant, or of `count` of them from `fire_time` to `until` (epoch ms).

    One that fires gets a job that is due at `due_at`, with a `priority` if it is not that of live work.
    """

    fire_time: int
    until: int | None
    count: int
    outcome: str
    reason: str
    due_at: int | None = None
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class DryRun:
    """The decisions on one trigger at `at` (epoch ms), oldest first, and its next fire from then on. The `note` names
    the job of the schedule's last fire, if that has not ended and its overlap policy has to do with it.
    """

    trigger: str
    at: int
    decisions: Sequence[Decision]
    following: int | None
    note: str | None = None


def of_outage(
    trigger: Trigger, times: Times, start: int, end: int, misfire: Misfire, jitter: int = 0
) -> DryRun:
    """No scheduler ran from `start` to `end` (epoch ms), and then one comes by."""
    planned = following(times, start - 1)
    if planned is None or planned > end:
        return DryRun(trigger.name, end, (), times.next_ms(end))
    return _shown(trigger.name, resume(times, planned, 0, 0, end, misfire, MOST), end, misfire, jitter)


def dry_run(
    schedules: Schedules,
    job_key: JobKey | str,
    *,
    start: int | None = None,
    end: int | None = None,
    misfire: Misfire | None = None,
) -> Sequence[DryRun]:
    """What would become of each trigger of a schedule after an outage; without one, of what is due now.

    With `misfire`, by that policy instead of its own. Overlap is judged by the job of the last fire as it stands now,
    as if no job began or ended before all is decided.

    Raises NotFound, BadInput for a start that is not before the end.
    """
    key, now = JobKey.parse(job_key), schedules.ledger.index.now_ms()
    view, stored = schedules.get(key), schedules.stored(key)
    until, policy = now if end is None else end, misfire or view.definition.misfire
    if start is not None:
        check_outage(start, until)
    runs: list[tuple[int, DryRun]] = []
    for trigger in view.definition.triggers:
        times, jitter = view.times(trigger), jitter_ms(view.tenant, str(key), trigger)
        planned = stored.instants("next").get(trigger.name)
        if start is not None:
            run = of_outage(trigger, times, start, until, policy, jitter)
            planned = following(times, start - 1)
        elif planned is None or planned > now or view.paused or view.disabled:
            run = DryRun(trigger.name, now, (), view.next_fires.get(trigger.name))
        else:
            observed, resumed = stored.observed.get(trigger.name, 0), stored.gate.resumed
            unread = stored.unread(trigger.name)
            since = unread.since if unread else None
            plan = resume(times, planned, observed, resumed, now, policy, MOST, since)
            run = _shown(trigger.name, plan, now, policy, jitter)
        runs.append((planned or 0, run))
    job_id = stored.fields.get("job", b"").decode()
    last = next(iter(schedules.ledger.get_many([job_id])), None)
    return _with_overlap(runs, view.definition.overlap, last)


def check_outage(start: int, end: int) -> None:
    if start >= end:
        raise BadInput(
            f"an outage from {start} to {end} has no length", hint="give a start that is before the end"
        )


def _shown(trigger: str, plan: Plan, now: int, misfire: Misfire, jitter: int) -> DryRun:
    return DryRun(trigger, now, tuple(_decisions(plan, now, misfire, jitter)), plan.following)


def _decisions(plan: Plan, now: int, misfire: Misfire, jitter: int) -> Iterator[Decision]:
    for step in plan.steps:
        if isinstance(step, Skip):
            for one in step.stretches:
                until = one.last if one.many > 1 else None
                yield Decision(one.first, until, one.many, "skipped", step.reason)
        else:
            yield _fire(step, now, misfire, jitter)


def _fire(step: Fire, now: int, misfire: Misfire, jitter: int) -> Decision:
    if step.delay_ms is None:
        return Decision(step.instant, None, 1, step.outcome, step.reason, now + jitter)
    return Decision(step.instant, None, 1, step.outcome, step.reason, now + step.delay_ms, misfire.priority)


Last = Literal["ended", "waits", "begun"]
"""How the job of the last fire stands: one that `waits` was never begun."""


def _with_overlap(runs: Sequence[tuple[int, DryRun]], overlap: str, job: JobView | None) -> Sequence[DryRun]:
    """The runs of triggers, each with its planned instant, less the fires that find the job of the one before in their
    way: whichever trigger made that, for schedulers take them by their planned instants.
    """
    last, found = _standing(job), {run.trigger: run for _, run in runs}
    stands = job is not None and last != "ended" and overlap != "allow"
    for _, run in sorted(runs, key=lambda one: (one[0], f"{one[1].trigger}:")):  # as Redis orders them
        name = run.trigger
        decided: list[Decision] = []
        for one in found[name].decisions:
            if one.due_at is None:
                decided.append(one)
            elif way := _in_the_way(overlap, last):
                decided.append(replace(one, outcome="skipped", reason=way, due_at=None, priority=None))
            else:
                decided.append(one)
                last = "waits"
        note = (
            f"overlap {overlap!r}: job {job.id} of the last fire is {job.status}" if job and stands else None
        )
        found[name] = replace(found[name], decisions=tuple(decided), note=note)
    return list(found.values())


def _standing(job: JobView | None) -> Last:
    if job is None or job.ended:
        return "ended"
    return "waits" if job.status == "pending" and not job.attempts else "begun"


def _in_the_way(overlap: str, last: Last) -> str | None:
    """Why the job of the last fire stands in the way of the next one, or None: what the script `fire` decides."""
    if overlap == "skip" and last != "ended":
        return "overlap"
    return "queue_full" if overlap == "queue" and last == "waits" else None
