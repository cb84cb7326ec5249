"""Fire records, by trigger and UTC month: those that Redis has, and older ones in an archive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..lease.ledger import Ledger
from ..scripts import Call
from ..scripts.loader import texts
from .execution_log import check_month
from .fire_record import Fire, read_fire
from .history import History, is_whole
from .job_key import JobKey
from .plan import month

Mark = tuple[int, str]
"""A record's place: its instant (epoch ms) and its trigger. Of one instant, triggers stand by their names."""


class FireRecords:
    """The fire records of a tenant's schedules, stored and deleted."""

    def __init__(self, ledger: Ledger, history: History | None) -> None:
        self._ledger = ledger
        self._history = history

    def triggers(self, key: JobKey) -> Sequence[str]:
        """The triggers of which there are records, also those that the schedule has no more."""
        found = sorted(self._run("recorded", job_key=str(key)))
        if found or self._history is None:
            return found
        return self._history.triggers(self._ledger.tenant, str(key))

    def page(
        self, key: JobKey, triggers: Sequence[str], *, month: str, limit: int, after: Mark | None = None
    ) -> tuple[Sequence[Fire], Mark | None]:
        """At most `limit` of a month's, newest first, that come `after` one (None: from the newest on), and the one
        after which the next page begins, if there is one.
        """
        check_month(month)
        pages = [self._of(key, name, month, limit, _before(name, after)) for name in triggers]
        found = sorted(
            (one for page, _ in pages for one in page), key=lambda one: (-one.fire_time, one.trigger)
        )
        more = len(found) > limit or any(more for _, more in pages)
        found = found[:limit]
        return found, (found[-1].fire_time, found[-1].trigger) if more else None

    def at(self, key: JobKey, trigger: str, instant: int) -> Fire | None:
        """The record of one planned instant (epoch ms), by itself or in a range; None if there is none."""
        in_month = month(instant)
        record, now, born = self._run(
            "fire_at", job_key=str(key), trigger=trigger, month=in_month, instant=instant
        )
        if record or not self._history or is_whole(in_month, now, born):
            return read_fire(trigger, record) if record else None
        return self._history.fire_at(self._ledger.tenant, str(key), trigger, in_month, instant)

    def _of(
        self, key: JobKey, trigger: str, month: str, limit: int, before: int | None
    ) -> tuple[Sequence[Fire], bool]:
        """The newest of one trigger of before an instant (None: the newest), and whether there are older ones."""
        more, now, born, *records = self._run(
            "fires_read",
            job_key=str(key),
            trigger=trigger,
            month=month,
            before="" if before is None else before,
            limit=limit,
        )
        found = [read_fire(trigger, record) for record in records]
        if not more and self._history and not is_whole(month, now, born):
            last = found[-1].fire_time if found else before
            wanted = limit - len(found)
            older = self._history.fires(self._ledger.tenant, str(key), trigger, month, last, wanted + 1)
            found, more = [*found, *older[:wanted]], "1" if len(older) > wanted else ""
        return found, more != ""

    def _run(self, script: str, **args: Any) -> Sequence[str]:
        return self._ledger.scripts.run(Call(script, self._ledger.keys.home, args, texts))


def _before(trigger: str, after: Mark | None) -> int | None:
    """The instant before which a trigger's records come after `after`."""
    if after is None:
        return None
    instant, name = after
    return instant + 1 if trigger > name else instant
