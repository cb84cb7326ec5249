"""How many jobs a tenant has, by state and by task: from its counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ..scripts.states import State


@dataclass(frozen=True, slots=True)
class Summary:
    """`states` has every state, `tasks` those tasks and states that have jobs."""

    tenant: str
    states: Mapping[State, int]
    tasks: Mapping[str, Mapping[State, int]]

    @property
    def total(self) -> int:
        return sum(self.states.values())


def summary(tenant: str, counts: Mapping[tuple[str, str], int]) -> Summary:
    """The counts of a ledger, summed up."""
    states: Counter[str] = Counter()
    tasks: dict[str, dict[State, int]] = {}
    for (task, state), number in sorted(counts.items()):
        states[state] += number
        tasks.setdefault(task, {})[State(state)] = number
    return Summary(tenant, {state: states[state] for state in State}, tasks)
