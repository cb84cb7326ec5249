"""Schedules are paused and resumed, one or a whole group; and run by hand."""

from __future__ import annotations

from typing import Any

from ..lease.ids import new_id
from ..lease.who import check_word
from ..scripts import Call
from ..scripts.errors import BadInput, NotFound
from ..scripts.loader import Arg
from .definition import Definition
from .job_key import JobKey
from .schedules import Schedules
from .zones import UNAVAILABLE

PAGE = 100


def pause(
    schedules: Schedules,
    job_key: JobKey | str,
    *,
    by: str = "",
    reason: str = "",
    expected: int | None = None,
) -> bool:
    """Nothing of the schedule fires from now on; answers whether it did before. Raises NotFound, StalePlan."""
    return _turn(schedules, job_key, True, by, reason, expected)


def resume(
    schedules: Schedules,
    job_key: JobKey | str,
    *,
    by: str = "",
    reason: str = "",
    expected: int | None = None,
) -> bool:
    """It fires again what is planned after now; answers whether it was paused. Raises NotFound, StalePlan."""
    return _turn(schedules, job_key, False, by, reason, expected)


def pause_group(schedules: Schedules, group: str, *, by: str = "", reason: str = "") -> int:
    """Pause all schedules of a group, and those that are stored in it later; answers how many were not paused."""
    return _turn_group(schedules, group, True, by, reason)


def resume_group(schedules: Schedules, group: str, *, by: str = "", reason: str = "") -> int:
    """Resume all schedules of a group, also those that were paused by themselves; answers how many were paused."""
    return _turn_group(schedules, group, False, by, reason)


def run(
    schedules: Schedules,
    job_key: JobKey | str,
    *,
    trigger: str | None = None,
    at: int | None = None,
    by: str = "",
    reason: str = "",
    expected: int | None = None,
) -> str:
    """Make a job of the schedule now, for the planned instant `at` (epoch ms) of a trigger or, without one, for this
    moment; answers its id. It leaves the plan and the fire records as they are.

    Raises NotFound, BadInput for an instant that is not planned, SchedulingDisabled, StalePlan when `expected` is not
    the stored revision.
    """
    check_word(by, reason)
    key = JobKey.parse(job_key)
    view = schedules.get(key)
    names = [one.name for one in view.definition.triggers]
    if trigger is not None and trigger not in names:
        raise BadInput(
            f"trigger {trigger!r:.60} is not one of the schedule's", hint=f"they are: {', '.join(names)}"
        )
    chosen = view.definition.trigger(trigger or names[0])
    if at is not None and view.times(chosen).next_ms(at - 1) != at:
        raise BadInput(
            f"{at} is no planned instant of trigger {chosen.name!r} of {key}", hint=f"tenure cron next {key}"
        )
    seen = "" if expected is None else expected
    call = run_call(
        schedules, key, view.definition, chosen.name, new_id(), at, by=by, reason=reason, expected=seen
    )
    ((id_, _),) = schedules.make([call])
    return id_


def run_call(
    schedules: Schedules,
    key: JobKey,
    definition: Definition,
    trigger: str,
    job_id: str,
    at: int | None,
    *,
    by: str,
    reason: str = "",
    expected: Arg = "",
    decided: bool = False,
    after_ms: int = 0,
    priority: int | None = None,
) -> Call[Any]:
    """The making of one job of a schedule by hand, not yet sent; sent again it is the same job. With `decided` it is
    refused as StalePlan while the scheduler still owes the instant `at`.
    """
    fields: dict[str, Arg] = {**definition.fields, "fire": f"{trigger}:{key}"}
    if definition.args:
        fields["args"] = definition.args
    if priority is not None:
        fields["priority"] = priority
    args: dict[str, Arg] = {
        "job_key": str(key),
        "id": job_id,
        "instant": "" if at is None else at,
        "after": after_ms,
        "task": definition.task,
        "pool": definition.pool,
        "by": by,
        "reason": reason,
        "expected": expected,
        "decided": trigger if decided else "",
    }
    rest = [part for pair in fields.items() for part in pair]
    return Call("schedule_run", schedules.ledger.keys.home, args, tuple, rest)


def _turn(
    schedules: Schedules, job_key: JobKey | str, pause: bool, by: str, reason: str, expected: int | None
) -> bool:
    key = JobKey.parse(job_key)
    args: dict[str, Arg] = {"pause": "1" if pause else "", "by": _line(by), "reason": reason}
    _revision, changed = schedules.change(key, "schedule_pause", "paused", expected, **args)
    return changed == "1"


def _turn_group(schedules: Schedules, group: str, pause: bool, by: str, reason: str) -> int:
    JobKey("x", group)  # else refused
    ledger = schedules.ledger
    args: dict[str, Arg] = {"group": group, "pause": "1" if pause else "", "by": _line(by), "reason": reason}
    ledger.index.register(ledger.tenant)
    ledger.scripts.run(Call("group_pause", ledger.keys.home, args, int))
    turned, after, refused = 0, None, None
    while page := schedules.list(PAGE, after):
        for view in page:
            if view.job_key.group == group:
                try:
                    turned += _turn(schedules, view.job_key, pause, by, reason, None)
                except NotFound:
                    continue  # deleted since
                except UNAVAILABLE as exc:
                    refused = refused or exc  # the others need not wait for a zone
        after = str(page[-1].job_key)
    if refused:
        raise refused
    return turned


def _line(text: str) -> str:
    return " ".join(text.split())
