"""How long a tenant's jobs stay after they came to rest: stored with the tenant, so all processes go by one word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..scripts import Call
from ..scripts.errors import BadInput
from ..scripts.loader import Arg, texts
from ..scripts.states import State
from . import views
from .durations import Duration, duration_ms
from .jobs import REAP, News
from .ledger import Ledger

RESTING = (State.SUCCEEDED, State.CANCELED, State.FAILED, State.DEAD, State.PAUSED)
MOST = 10_000_000
FOREVER, DEFAULT = "forever", "default"


@dataclass(frozen=True, slots=True)
class Keep:
    """Jobs of a state go after so many ms, and the oldest when there are more than `most`; None is no such bound."""

    after_ms: int | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        for name, value, highest in (("after_ms", self.after_ms, 1 << 42), ("most", self.most, MOST)):
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= highest:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise BadInput(
                    f"{name} {value!r:.60} is out of range: a whole number from 1 to {highest:,}",
                    hint="leave it out for no such bound",
                )

    def packed(self) -> str:
        return f"{_written(self.after_ms)} {_written(self.most)}"


DEFAULTS: Mapping[State, Keep] = {
    State.SUCCEEDED: Keep(86_400_000, 100_000),
    State.CANCELED: Keep(86_400_000, 100_000),
}
"""Of the other states nothing goes by itself."""


class Retention:
    """The retention of one tenant."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def get(self) -> Mapping[State, Keep]:
        """What holds for each state in which a job can rest."""
        return self._run({})

    def set(self, states: Mapping[str, Keep | Duration]) -> Mapping[State, Keep]:
        """Change what holds for the states that are named, and answer what then holds for all.

        A duration alone leaves the number as it is by default; "forever" is no bound, "default" takes the word back.
        What is over its time then goes within a minute, a slice a second. Raises BadInput.
        """
        return self._run({_state(name): _packed(_state(name), keep) for name, keep in states.items()})

    def _run(self, states: Mapping[State, str]) -> Mapping[State, Keep]:
        rest: list[Arg] = [part for pair in states.items() for part in pair]
        call: Call[Any] = Call("retention", self._ledger.keys.home, {}, texts, rest)
        if rest:
            self._ledger.index.register(self._ledger.tenant)
        due, version, *kept = self._ledger.scripts.run(call)
        if due:
            self._ledger.index.put([News(self._ledger.tenant, REAP, int(due), int(version))])
        return {State(state): _read(packed) for state, packed in views.pairs(kept)}


def _state(name: str) -> State:
    if name not in RESTING:
        raise BadInput(f"{name!r:.40} is no state in which a job rests", hint=f"one of: {', '.join(RESTING)}")
    return State(name)


def _packed(state: State, keep: Keep | Duration) -> str:
    if isinstance(keep, Keep):
        return keep.packed()
    if keep in (FOREVER, DEFAULT):
        return Keep().packed() if keep == FOREVER else ""
    most = DEFAULTS[state].most if state in DEFAULTS else None
    return Keep(duration_ms(keep, what=f"retention of {state}", least_ms=1), most).packed()


def _written(number: int | None) -> str:
    return "-" if number is None else str(number)


def _read(packed: str) -> Keep:
    after, most = (None if part == "-" else int(part) for part in packed.split(" "))
    return Keep(after, most)
