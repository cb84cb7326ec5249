"""Which jobs a list shows, as the caller says it and as the scripts take it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields

from ..scripts.errors import BadInput
from ..scripts.loader import Arg
from ..scripts.states import State
from .context import Record, check_labels, check_record, check_text, check_trace, is_text, pack_record
from .instants import rfc3339
from .payload import digest

Q_LIMIT = 200
_FINGERPRINT = re.compile(r"[a-z0-9_]{1,40}")
FAILED = (State.DEAD, State.FAILED)
"""Whose errors are searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which jobs a list shows; None is any. Raises BadInput for a value that breaks a rule.

    All `labels` must be there. `created_from`, `created_to`, `ended_from` and `ended_to` are epoch ms, the second of
    each not included. `q` is the id of a job, its idempotency key (while it holds it, or is dead or failed), or words
    of the newest error of a dead or failed one, in any case of letters; `error` is only such words. `fingerprint` is
    what they died of; with `failed` only those that are dead or failed are meant.
    """

    status: str | None = None
    tasks: Collection[str] | None = None
    instance: str | None = None
    node: str | None = None
    trace: str | None = None
    record: Record | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    q: str | None = None
    created_from: int | None = None
    created_to: int | None = None
    ended_from: int | None = None
    ended_to: int | None = None
    fingerprint: str | None = None
    error: str | None = None
    failed: bool = False
    background: bool = False

    def __post_init__(self) -> None:
        if self.status is not None and self.status not in tuple(State):
            raise BadInput(f"status {self.status!r:.40} is not a state", hint=f"one of: {', '.join(State)}")
        for name, check in (
            ("instance", check_text("instance")),
            ("node", check_text("node")),
            ("trace", check_trace),
            ("record", check_record),
        ):
            if getattr(self, name) is not None:
                check(getattr(self, name))
        check_labels(self.labels)
        check_range("created_from", self.created_from, "created_to", self.created_to)
        check_range("ended_from", self.ended_from, "ended_to", self.ended_to)
        for name in ("q", "error"):
            words = getattr(self, name)
            if words is not None and not is_text(words, 1, Q_LIMIT):
                raise BadInput(
                    f"{name} {words!r:.60} is not allowed: text of 1 to {Q_LIMIT} bytes",
                    hint=f"{name}='timed out'",
                )
        if self.fingerprint is not None and not _FINGERPRINT.fullmatch(self.fingerprint):
            raise BadInput(
                f"fingerprint {self.fingerprint!r:.60} is none", hint="tenure failures list shows them"
            )

    @property
    def asked_states(self) -> frozenset[State] | None:
        """The states a job may be in; None: any."""
        asked = frozenset(State) if self.status is None else frozenset([State(self.status)])
        if self.failed or self.error is not None:
            return asked & frozenset(FAILED)
        return None if self.status is None else asked

    @property
    def states(self) -> frozenset[State] | None:
        """Those in which it can be found otherwise than by its id or its idempotency key."""
        asked = self.asked_states
        if self.q is None:
            return asked
        return frozenset(FAILED) if asked is None else asked & frozenset(FAILED)

    @property
    def error_words(self) -> str | None:
        """What must stand in its error, as the scripts read it: in lower case."""
        words = self.error if self.q is None else self.q
        return None if words is None else _lower(words)

    @property
    def shared(self) -> dict[str, tuple[str, str]]:
        """The (kind, value) pairs that have a list of their jobs each, by a name of their own."""
        record = None if self.record is None else pack_record(self.record)
        values = (
            ("instance", self.instance),
            ("node", self.node),
            ("trace", self.trace),
            ("record", record),
            ("fingerprint", self.fingerprint),
        )
        labels = {f"label:{name}": ("label", f"{name}={value}") for name, value in self.labels.items()}
        return {kind: (kind, value) for kind, value in values if value is not None} | labels

    def named(self) -> tuple[str, ...]:
        """What makes a list another one, for its cursors. The tasks of an application are no filter: they change with
        its code.
        """
        tasks = () if self.background and self.tasks is not None and len(self.tasks) > 1 else self.tasks
        given = {
            **{one.name: getattr(self, one.name) for one in fields(self)},
            "tasks": sorted(tasks or ()),
            "labels": sorted(self.labels.items()),
        }
        return tuple(f"{name}={value!r}" for name, value in given.items())

    def tests(self) -> list[Arg]:
        """What each job must pass, as the query script takes it; its state and `q` apart."""
        return [part for test in self._tests() for part in test]

    def words(self) -> list[Arg]:
        """What a job that `q` finds by its error must pass besides."""
        return [] if self.q is None else ["text", digest(self.q), _lower(self.q)]

    def _tests(self) -> Iterator[tuple[Arg, Arg, Arg]]:
        for task in self.tasks or ():
            yield "is", "task", task
        for kind, value in self.shared.values():
            yield ("label", "", value) if kind == "label" else ("is", kind, value)
        if self.created_from is not None:
            yield "since", "", self.created_from
        if self.created_to is not None:
            yield "before", "", self.created_to
        if self.ended_from is not None:
            yield "ended_since", "", self.ended_from
        if self.ended_to is not None:
            yield "ended_before", "", self.ended_to
        if self.background:
            yield "is", "background", "1"
        if self.error is not None:
            yield "error", "", _lower(self.error)  # costs most, so it comes last


def check_range(since: str, low: int | None, before: str, high: int | None) -> None:
    """Refuse a range of instants (epoch ms) that nothing can be in."""
    if low is not None and high is not None and low > high:
        raise BadInput(
            f"{since} {rfc3339(low)} is later than {before} {rfc3339(high)}: nothing can be between them",
            hint="exchange the two, or leave one out",
        )


def _lower(words: str) -> str:
    """As the scripts do it: of other alphabets the letters stay as they are."""
    return "".join(char.lower() if char.isascii() else char for char in words)
