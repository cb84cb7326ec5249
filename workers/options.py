"""How a worker works."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..lease.pools import check_slots, width_of
from ..lease.tasks import check_pool
from ..scripts.errors import BadInput


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    slots: int | None = None
    """Slots of each pool; None: as many as the pool declares, else 4."""
    lanes: Mapping[str, str] = field(default_factory=dict[str, str])
    """By pool, `exclusive` or `async(n)`: before what settings and code say."""
    grace_ms: int = 2_000
    """From telling a job to stop to killing it."""
    stop_grace_ms: int = 30_000
    """How long running jobs may go on after SIGTERM before they are handed back."""
    ahead_ms: int = 20
    """How much work is claimed ahead for each slot."""
    recycle_jobs: int = 20_000
    """A slot is replaced after so many jobs."""
    recycle_mb: int | None = None
    """A slot is replaced when it has ever had so much memory."""

    def __post_init__(self) -> None:
        if self.slots is not None:
            check_slots(self.slots)
        for pool, lane in self.lanes.items():
            check_pool(pool)
            width_of(lane)
        for name, least, most in (("grace_ms", 10, 60_000), ("recycle_jobs", 1, 10**9)):
            value = getattr(self, name)
            if not isinstance(value, int) or not least <= value <= most:
                raise BadInput(f"{name} is {value!r}: it must be from {least} to {most}")

    def with_slots(self, text: str) -> WorkerOptions:
        """The same with as many slots as `text` says."""
        if not text.isascii() or not text.isdigit():
            raise BadInput(f"slots is {text!r:.40}: it must be a whole number", hint="TENURE_SLOTS=4")
        return replace(self, slots=int(text))
