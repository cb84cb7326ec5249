"""What a misfire policy would do: the scheduler's own decision, shown and not made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
    """The decisions on one trigger at `at` (epoch ms), oldest first, and its next fire from then on."""

    trigger: str
    at: int
    decisions: Sequence[Decision]
    following: int | None


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

    With `misfire`, by that policy instead of its own. Overlap is judged when a fire is made, and not here.

    Raises NotFound, BadInput for a start that is not before the end.
    """
    key, now = JobKey.parse(job_key), schedules.ledger.index.now_ms()
    view, stored = schedules.get(key), schedules.stored(key)
    until, policy = now if end is None else end, misfire or view.definition.misfire
    if start is not None:
        check_outage(start, until)
    found: list[DryRun] = []
    for trigger in view.definition.triggers:
        times, jitter = view.times(trigger), jitter_ms(view.tenant, str(key), trigger)
        planned = stored.instants("next").get(trigger.name)
        if start is not None:
            found.append(of_outage(trigger, times, start, until, policy, jitter))
        elif planned is None or planned > now or view.paused or view.disabled:
            found.append(DryRun(trigger.name, now, (), view.next_fires.get(trigger.name)))
        else:
            observed, resumed = stored.observed.get(trigger.name, 0), stored.gate.resumed
            unread = stored.unread(trigger.name)
            since = unread.since if unread else None
            plan = resume(times, planned, observed, resumed, now, policy, MOST, since)
            found.append(_shown(trigger.name, plan, now, policy, jitter))
    return found


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
