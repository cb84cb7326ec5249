"""The scheduler: finds due triggers over all tenants, plans them, and fires each by one script. Any number may run."""

from __future__ import annotations

import logging
from typing import Any

from ..lease import views
from ..lease.ids import fire_id
from ..lease.jobs import FIRE, News
from ..lease.ledger import Ledger
from ..lease.ledgers import Ledgers
from ..lease.payload import digest
from ..scripts import Call
from ..scripts.errors import Conflict, NotFound, StoreUnreachable, TenureError
from ..scripts.loader import Arg
from .definition import Definition
from .plan import Fire, Skip, month, plan
from .trigger import Trigger

TENANTS = 32
TRIGGERS = 100
LONGEST_S = 1.0
_log = logging.getLogger("tenure.scheduler")


class Scheduler:
    """One of any number of equal schedulers; `name` stands in the fire records it writes."""

    def __init__(self, ledgers: Ledgers, name: str) -> None:
        self.ledgers = ledgers
        self.name = "_".join(name.split()) or "-"  # it becomes one word of a fire record
        self._troubled: dict[str, str] = {}

    def round(self) -> float:
        """Fire what is due and answer when to come back, in seconds."""
        visit = self.ledgers.index.take(FIRE, TENANTS, revisit_ms=1000)
        for tenant in visit.tenants:
            self._visit(tenant)
        if len(visit.tenants) == TENANTS:
            return 0.0
        soon = self.ledgers.index.take(FIRE, 0)
        if soon.next_due_ms is None:
            return LONGEST_S
        return min(LONGEST_S, max(0.0, (soon.next_due_ms - soon.now_ms) / 1000))

    def _visit(self, tenant: str) -> None:
        """Fire a tenant's due triggers; one that cannot be read gets no new fires, and the others do not wait."""
        try:
            self._fire_tenant(self.ledgers.of(tenant))
        except StoreUnreachable:
            raise
        except Exception as exc:
            if self._troubled.get(tenant) != str(exc):
                _log.exception("tenant %s gets no new fires until this is mended", tenant)
            self._troubled[tenant] = str(exc)
        else:
            self._troubled.pop(tenant, None)

    def _fire_tenant(self, ledger: Ledger) -> None:
        """Fire the due triggers of one tenant, in scripts sent together; tell the index when it is due again."""
        skip = 0
        while True:
            due: Call[Any] = Call("triggers_due", ledger.keys.home, {"skip": skip, "limit": TRIGGERS}, list)
            now, version, later, *triggers = ledger.scripts.run(due)
            calls = [call for trigger in triggers if (call := self._fire_call(ledger, int(now), *trigger))]
            news = [News(ledger.tenant, FIRE, int(later) if later else None, int(version))]
            for answer in ledger.scripts.run_all(calls):
                if isinstance(answer, (Conflict, NotFound)):
                    continue  # another scheduler fired it, or an operator changed it: both are fine
                if isinstance(answer, TenureError):
                    raise answer
                news += answer
            ledger.index.put(news)
            skip += len(triggers) - len(calls)  # those stay where they are, at the head
            if len(triggers) < TRIGGERS:
                return

    def _fire_call(
        self,
        ledger: Ledger,
        now: int,
        trigger: bytes,
        job_key: bytes,
        revision: bytes,
        planned: bytes,
        packed: bytes,
        anchor: bytes,
    ) -> Call[list[News]] | None:
        name, key = trigger.decode(), job_key.decode()
        try:
            definition = Definition.unpacked(packed)
            one = definition.trigger(name)
            decided = plan(one.times(int(anchor or 0)), int(planned), now, definition.misfire)
        except (
            ValueError,
            TypeError,
        ) as exc:  # an unknown zone, a damaged row: the others must not wait for it
            _log.error("schedule %s of tenant %s cannot be planned here: %s", key, ledger.tenant, exc)
            return None
        args: dict[str, Arg] = {
            "job_key": key,
            "trigger": name,
            "revision": revision,
            "planned": int(planned),
            "following": "" if decided.following is None else decided.following,
            "made": now,
            "scheduler": self.name,
            "task": definition.task,
            "pool": definition.pool,
            "pace": 1000 // definition.misfire.rate,
            "jitter": jitter_ms(ledger.tenant, key, one),
            "overlap": definition.overlap,
        }
        items = [part for step in decided.steps for part in _items(step, ledger.tenant, key, definition, one)]
        return Call("fire", ledger.keys.home, args, lambda reply: _news(ledger.tenant, reply), items)


def jitter_ms(tenant: str, job_key: str, trigger: Trigger) -> int:
    """How much later the jobs of a trigger are due: the same for each of its fires, spread over the schedules."""
    if not trigger.jitter_ms:
        return 0
    return int(digest(tenant, job_key, trigger.name), 16) % (trigger.jitter_ms + 1)


def _items(step: Skip | Fire, tenant: str, key: str, definition: Definition, trigger: Trigger) -> list[Arg]:
    """One step of a plan, as the script has it."""
    if isinstance(step, Skip):
        return [
            part
            for one in step.stretches
            for part in ("skipped", step.reason, one.month, one.first, one.last, one.many, "", "", 0)
        ]
    fields: dict[str, Arg] = {
        **definition.fields,
        "fire": f"{trigger.name}:{key}",
        "fire_time": step.instant,
        "repeat_rule": trigger.rule,
    }
    if definition.args:
        fields["args"] = definition.args
    if trigger.priority is not None:
        fields["priority"] = trigger.priority
    if step.paced:
        fields["priority"] = definition.misfire.priority
    id_ = fire_id(tenant, key, trigger.name, step.instant)
    head: list[Arg] = [step.outcome, step.reason, month(step.instant), step.instant, step.instant, 1]
    pairs = [part for pair in fields.items() for part in pair]
    return [*head, id_, "1" if step.paced else "", len(fields), *pairs]


def _news(tenant: str, reply: Any) -> list[News]:
    _, told, earliest, version = reply
    return [
        News(tenant, FIRE, int(earliest) if earliest else None, int(version)),
        *views.news(tenant, told),
    ]
