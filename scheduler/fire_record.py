"""The record of what became of a planned instant, as the scripts write it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fire:
    """The record of one planned instant, or of `count` of them from `fire_time` to `until` (epoch ms)."""

    trigger: str
    fire_time: int
    outcome: str
    reason: str | None
    job_id: str | None
    at: int
    scheduler: str | None
    until: int | None
    count: int


def read_fire(trigger: str, record: str) -> Fire:
    instant, outcome, reason, job_id, at, scheduler, until, count = (
        None if part == "-" else part for part in record.split(" ")
    )
    return Fire(
        trigger=trigger,
        fire_time=int(instant or 0),
        outcome=outcome or "",
        reason=reason,
        job_id=job_id,
        at=int(at or 0),
        scheduler=scheduler,
        until=int(until) if until else None,
        count=int(count or 1),
    )
