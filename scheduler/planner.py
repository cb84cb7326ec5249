"""What is planned of one trigger is planned of all that look like it: thousands are due at the same times."""

from __future__ import annotations

from functools import lru_cache

from .cron import Dst
from .misfire import Misfire
from .plan import Plan, resume
from .times import Times
from .trigger import Trigger

KEPT = 256


class Planner:
    """Plans cron triggers that no calendar changes, as `plan.resume` does; it keeps the latest plans and times."""

    def __init__(self) -> None:
        self._times = lru_cache(KEPT)(_times)
        self._kept = lru_cache(KEPT)(self._plan)

    @staticmethod
    def takes(trigger: Trigger) -> bool:
        return trigger.cron is not None and trigger.calendar is None

    def plan(
        self, trigger: Trigger, planned: int, observed: int, resumed: int, now: int, misfire: Misfire
    ) -> Plan:
        """Raises BadInput for times that cannot be read here."""
        assert trigger.cron is not None
        looks = (trigger.cron, trigger.tz, trigger.dst, _text(trigger.start), _text(trigger.end))
        return self._kept(looks, planned, observed, resumed, now, misfire)

    def _plan(
        self, looks: Looks, planned: int, observed: int, resumed: int, now: int, misfire: Misfire
    ) -> Plan:
        return resume(self._times(*looks), planned, observed, resumed, now, misfire)


Looks = tuple[str, str, Dst, str | None, str | None]


def _times(cron: str, tz: str, dst: Dst, start: str | None, end: str | None) -> Times:
    stored = {"name": "cron", "cron": cron, "tz": tz, "dst": dst, "start": start, "end": end}
    return Trigger.restored(stored).times(0)


def _text(instant: object) -> str | None:
    return None if instant is None else str(instant)
