"""The last hour of a tenant, from the numbers that the scripts keep of each minute; see `hour.lua`.

It reaches from 60 minutes before this one to now, so it is an hour and a part of a minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..scripts.loader import texts
from ..scripts.waits import percentile

MINUTES = 61
MINUTES_A_CALL = 4


@dataclass(frozen=True, slots=True)
class Waits:
    """How long jobs had been due when an attempt began, by bucket.

    Percentiles are in ms, None without samples; `scripts.waits.percentile` says how exact they are.
    """

    buckets: Mapping[int, int] = field(default_factory=dict[int, int])

    @property
    def count(self) -> int:
        return sum(self.buckets.values())

    @property
    def p50(self) -> int | None:
        return percentile(self.buckets, 50)

    @property
    def p95(self) -> int | None:
        return percentile(self.buckets, 95)

    @property
    def p99(self) -> int | None:
        return percentile(self.buckets, 99)


@dataclass(frozen=True, slots=True)
class Ended:
    """Attempts that ended, however they did; `failed` of them raised, timed out or were lost."""

    count: int = 0
    failed: int = 0
    duration_ms: int = 0
    """Of all of them together."""

    @property
    def failure_rate(self) -> float | None:
        return self.failed / self.count if self.count else None

    @property
    def mean_duration_ms(self) -> int | None:
        return round(self.duration_ms / self.count) if self.count else None


@dataclass(frozen=True, slots=True)
class Hour:
    waits: Mapping[str, Waits]
    """By pool."""
    ended: Mapping[str, Ended]
    """By task."""

    @property
    def all_waits(self) -> Waits:
        buckets: Counter[int] = Counter()
        for waits in self.waits.values():
            buckets.update(waits.buckets)
        return Waits(buckets)

    @property
    def all_ended(self) -> Ended:
        found = self.ended.values()
        return Ended(
            sum(one.count for one in found),
            sum(one.failed for one in found),
            sum(one.duration_ms for one in found),
        )


def hour(sums: Iterable[list[bytes]]) -> Hour:
    """The answers of `status_hour.lua`, added up."""
    waits: dict[str, Counter[int]] = {}
    ended: dict[str, Counter[str]] = {}
    for flat in sums:
        words = texts(flat)
        for name, number in zip(words[::2], words[1::2], strict=True):
            kind, _, of = name.partition("|")
            if kind.isdigit():
                waits.setdefault(of, Counter())[int(kind)] += max(0, int(number))
            elif of:
                ended.setdefault(of, Counter())[kind] += int(number)
    return Hour(
        {pool: Waits(buckets) for pool, buckets in waits.items()},
        {task: Ended(sums["n"], sums["f"], sums["d"]) for task, sums in ended.items()},
    )
