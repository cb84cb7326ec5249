"""Faults at the boundaries of script calls: the process dies before a call or after it, or the reply is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..scripts.errors import StoreUnreachable


class Died(BaseException):
    """The process is gone: nobody handles this, and what comes next is another process."""


@dataclass
class Faults:
    """What a test has planned for the calls of the ledgers it made. `calls` are the scripts sent so far."""

    calls: list[str] = field(default_factory=list[str])
    after_each: Callable[[], None] | None = None
    """Called when a call has been applied, before its reply is read."""
    _planned: dict[tuple[str, str, int], Callable[[], BaseException]] = field(
        default_factory=dict[tuple[str, str, int], Callable[[], BaseException]]
    )
    _seen: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    def die_before(self, script: str, nth: int = 1) -> None:
        """The process dies just before it sends its `nth` call of `script` from now on."""
        self._plan("before", script, nth, Died)

    def die_after(self, script: str, nth: int = 1) -> None:
        """The process dies just after its `nth` call of `script` from now on was applied."""
        self._plan("after", script, nth, Died)

    def lose_reply(self, script: str, nth: int = 1) -> None:
        """The `nth` call of `script` from now on is applied; its sender gets a StoreUnreachable instead of a reply."""
        self._plan("after", script, nth, lambda: StoreUnreachable(f"the reply of {script} was lost"))

    def forget(self) -> None:
        """Nothing more goes wrong."""
        self._planned.clear()

    def before(self, script: str) -> None:
        self.calls.append(script)
        self._meet("before", script)

    def after(self, script: str) -> None:
        if self.after_each:
            self.after_each()
        self._meet("after", script)

    def _plan(self, when: str, script: str, nth: int, error: Callable[[], BaseException]) -> None:
        self._planned[when, script, self._seen.get((when, script), 0) + nth] = error

    def _meet(self, when: str, script: str) -> None:
        nth = self._seen[when, script] = self._seen.get((when, script), 0) + 1
        error = self._planned.pop((when, script, nth), None)
        if error:
            raise error()
