"""What becomes of instants that were found too late: the misfire policies, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from ..lease.durations import duration_ms
from ..scripts.errors import BadInput

THRESHOLD_MS = 60_000
"""An instant older than this has misfired; so has one that a newer due instant of its trigger has overtaken."""
POLICIES = ("fire_once", "skip", "fire_all")
PARTS = ("policy", "max", "within", "rate", "priority")
LOWEST_PRIORITY = 9
MOST = 1_000

# Quartz's names, with and without their prefix.
_PREFIX = "MISFIRE_INSTRUCTION_"
_ALIASES = {
    "SMART_POLICY": "fire_once",
    "FIRE_ONCE_NOW": "fire_once",
    "FIRE_NOW": "fire_once",
    "RESCHEDULE_NOW_WITH_EXISTING_REPEAT_COUNT": "fire_once",
    "RESCHEDULE_NOW_WITH_REMAINING_REPEAT_COUNT": "fire_once",
    "DO_NOTHING": "skip",
    "RESCHEDULE_NEXT_WITH_REMAINING_COUNT": "skip",
    "RESCHEDULE_NEXT_WITH_EXISTING_COUNT": "skip",
    "IGNORE_MISFIRE_POLICY": "fire_all",
}


@dataclass(frozen=True, slots=True)
class Misfire:
    """`fire_once`: the newest missed instant runs, the others are coalesced into it. `skip`: none runs. `fire_all`:
    each runs, within a budget: at most `most` of them, none older than `within_ms`, `rate` a second, at `priority`
    (lower than live work, which the default of 9 is).
    """

    policy: str = "fire_once"
    most: int = 100
    within_ms: int | None = None
    rate: int = 10
    priority: int = LOWEST_PRIORITY

    @property
    def pace_ms(self) -> int:
        """How much later than the one before each of them is due."""
        return 1000 // self.rate

    def stored(self) -> str | dict[str, Any]:
        """As it is written in a schedule; `read_misfire` reads it back."""
        if self.policy != "fire_all":
            return self.policy
        within = {} if self.within_ms is None else {"within": f"{self.within_ms}ms"}
        return {
            "policy": self.policy,
            "max": self.most,
            **within,
            "rate": self.rate,
            "priority": self.priority,
        }


_PLAIN = {policy: Misfire(policy) for policy in POLICIES}


def read_misfire(value: object) -> Misfire:
    """A policy by its name or by a name of Quartz's, or `{"policy": "fire_all", "max": 50, "within": "6h", "rate": 5}`.

    Raises BadInput naming the part and the rule.
    """
    if isinstance(value, str) and value in _PLAIN:  # as most are stored
        return _PLAIN[value]
    parts = dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {"policy": value}
    for name in parts:
        if name not in PARTS:
            raise BadInput(f"misfire has no part {name!r:.40}", hint=f"its parts are: {', '.join(PARTS)}")
    policy = _policy(parts.get("policy"))
    if policy != "fire_all" and len(parts) > 1:
        raise BadInput(f"misfire {policy} takes no budget", hint='{"policy": "fire_all", "max": 50}')
    within: Any = parts.get("within")
    return Misfire(
        policy,
        _number(parts, "max", 100, 1, MOST),
        None if within is None else duration_ms(within, what="misfire within", least_ms=1),
        _number(parts, "rate", 10, 1, 200),
        _number(parts, "priority", LOWEST_PRIORITY, 0, LOWEST_PRIORITY),
    )


def _policy(name: object) -> str:
    if isinstance(name, str):
        known = _ALIASES.get(name.upper().removeprefix(_PREFIX), name)
        if known in POLICIES:
            return known
    raise BadInput(f"misfire {name!r:.60} is not a policy", hint=f"one of: {', '.join(POLICIES)}")


def _number(parts: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    value = parts.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadInput(
            f"misfire {name} {value!r:.40} is out of range: {least} to {most}",
            hint=f"the default is {default}",
        )
    return value
