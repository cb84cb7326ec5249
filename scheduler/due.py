"""What is due of a schedule, worked out from its stored fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..scripts.errors import TenureError
from .definition import Definition
from .plan import Passed, Plan, Skip, month, pass_over
from .times import Times


def instants(stored: Mapping[str, bytes], kind: str) -> Mapping[str, int]:
    """The instants of a schedule by trigger: its `next` fires, its `last` ones, or the `anchor`s it counts from."""
    return {
        name[len(kind) + 1 :]: int(value) for name, value in stored.items() if name.startswith(f"{kind}:")
    }


def times_of(stored: Mapping[str, bytes], trigger: str) -> Times:
    """When a trigger fires. Raises BadInput or what unpacking raises for one that cannot be read here."""
    definition = Definition.unpacked(stored["definition"])
    return definition.trigger(trigger).times(instants(stored, "anchor").get(trigger, 0))


def passed_over(stored: Mapping[str, bytes], now: int, reason: str) -> list[str | int]:
    """What is due of each trigger and does not fire, as the scripts' `read_due` has it.

    A trigger that is damaged, or of a zone that is unknown here, can be passed over all the same: its one planned
    instant is, and nothing comes after it.
    """
    rest: list[str | int] = []
    for trigger, planned in instants(stored, "next").items():
        if planned > now:
            continue
        try:
            found = pass_over(times_of(stored, trigger), planned, now, reason)
        except (TenureError, ValueError, TypeError, KeyError):
            found = Plan((Skip(reason, (Passed(month(planned), planned, planned, 1),)),), None)
        stretches = [part for step in found.steps if isinstance(step, Skip) for part in _flat(step)]
        following = "" if found.following is None else found.following
        rest += [trigger, planned, following, len(stretches) // 5, *stretches]
    return rest


def _flat(skip: Skip) -> Iterator[str | int]:
    for stretch in skip.stretches:
        yield skip.reason
        yield from stretch
