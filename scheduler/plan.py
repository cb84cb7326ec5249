"""Decide what a due trigger does now. Pure: the times come in, the decision goes out."""

from __future__ import annotations

from dataclasses import dataclass

from .definition import Trigger


@dataclass(frozen=True, slots=True)
class Plan:
    """Fire `instant`; `passed` planned instants before it, up to `passed_to`, are coalesced into it; then
    comes `following`.
    """

    instant: int
    following: int | None
    passed: int
    passed_to: int | None


def plan(trigger: Trigger, planned: int, now: int) -> Plan:
    """What becomes of a trigger whose next fire `planned` is due at `now` (epoch ms), under the policy
    `fire_once`.

    The newest due instant fires; older ones, overtaken by it, are coalesced into it and counted.
    """
    expression = trigger.expression()
    instant, passed, passed_to = planned, 0, None
    following = expression.next_ms(instant)
    while following is not None and following <= now:
        instant, passed, passed_to = following, passed + 1, instant
        following = expression.next_ms(instant)
    return Plan(instant, following, passed, passed_to)
