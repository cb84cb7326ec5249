"""The scheduler: finds due triggers over all tenants, plans them, and fires each by one script. Any number may run."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..lease import views
from ..lease.ids import fire_id
from ..lease.jobs import FIRE, News
from ..lease.ledger import Ledger
from ..lease.ledgers import Ledgers
from ..scripts import Call
from ..scripts.errors import Conflict, NotFound, StoreUnreachable, TenureError
from ..scripts.loader import Arg
from .calendar_store import calendars_of
from .calendars import Calendar
from .definition import Definition
from .due import Unread, stretches
from .jitter import jitter_ms
from .misfire import THRESHOLD_MS
from .overlap import Calls, Work, overlap
from .plan import Fire, Plan, Skip, month, observe, resume
from .planner import Planner
from .skips import DISABLED
from .times import Times
from .trigger import Trigger
from .visits import visit
from .zones import UNAVAILABLE

TENANTS = 16
TRIGGERS = 100
TOGETHER = 32
"""So many fires go out at a time: others who ask the server wait for no more."""
UNDER_WAY = 3
"""Of so many tenants calls are under way while another is planned."""
FOLLOWING = 500
STEPS = 10
FOLLOW = b"follow"
UNREAD = "zone_unread"
LONGEST_S = 1.0
AGAIN_MS = 1000
"""When a tenant is visited again for triggers that one scheduler cannot plan and another may; later if many."""
_log = logging.getLogger("tenure.scheduler")


class Scheduler:
    """One of any number of equal schedulers; `name` stands in the fire records it writes."""

    def __init__(self, ledgers: Ledgers, name: str, *, following: int = FOLLOWING) -> None:
        """`following` triggers of a disabled tenant are taken at a time to be observed."""
        self.ledgers = ledgers
        self._following = following
        self.name = "_".join(name.split()) or "-"  # it becomes one word of a fire record
        self._troubled: dict[str, str] = {}
        self._unplanned: dict[tuple[str, str, str], str] = {}
        self._planner = Planner()

    def round(self) -> float:
        """Fire what is due and answer when to come back, in seconds."""
        visit = self.ledgers.index.take(FIRE, TENANTS, revisit_ms=1000)
        self.fire(visit.tenants)
        if len(visit.tenants) == TENANTS:
            return 0.0
        soon = self.ledgers.index.take(FIRE, 0)
        if soon.next_due_ms is None:
            return LONGEST_S
        return min(LONGEST_S, max(0.0, (soon.next_due_ms - soon.now_ms) / 1000))

    def fire(self, tenants: Iterable[str]) -> None:
        """Fire what is due of these tenants: while the server fires for some, others are planned."""
        overlap(self.ledgers.scripts, map(self._visit, tenants), UNDER_WAY)

    def _visit(self, tenant: str) -> Work:
        """Fire a tenant's due triggers; one that cannot be read gets no new fires, and the others do not wait."""
        try:
            yield from self._fire_tenant(self.ledgers.of(tenant))
        except StoreUnreachable:
            raise
        except Exception as exc:
            if self._troubled.get(tenant) != str(exc):
                _log.exception("tenant %s gets no new fires until this is mended", tenant)
            self._troubled[tenant] = str(exc)
        else:
            self._troubled.pop(tenant, None)

    def _fire_tenant(self, ledger: Ledger) -> Work:
        """Fire the due triggers of one tenant, some at a time; tell the index when it is due again."""
        skip, steps = 0, 0
        while True:
            due: Call[Any] = Call("triggers_due", ledger.keys.home, {"skip": skip, "limit": TRIGGERS}, list)
            (page,) = yield [due]
            if isinstance(page, TenureError):
                raise page
            now, version, later, disabled, resumed, calendars, changed, *rows = page
            known = calendars_of(calendars)
            triggers = [Due.read(int(now), int(resumed), row, known) for row in rows]
            plans = [self._planned(ledger, trigger, bool(disabled)) for trigger in triggers]
            calls = [call for call in plans if call]
            stay = len(triggers) - sum(call.script != UNREAD for call in calls)
            calls += [_replan_call(ledger, name) for name in changed]
            if disabled == FOLLOW:
                calls.append(_follow_call(ledger, self._following))
                steps += 1
            skip += stay  # those stay where they are, at the head
            again = [int(now) + AGAIN_MS * (1 + skip // TRIGGERS)] * (skip > 0)
            soonest = min([*again, *([int(later)] if later else [])], default=None)
            told = yield from _told(calls)
            news = [News(ledger.tenant, FIRE, soonest, int(version)), *told]
            yield [ledger.index.put_call(one) for one in _latest(news)]
            if len(triggers) < TRIGGERS and (disabled != FOLLOW or steps == STEPS):
                return

    def _planned(self, ledger: Ledger, due: Due, disabled: bool) -> Call[list[News]] | None:
        """What moves a trigger on. One that cannot be planned here, because its zone cannot be read or its row is
        damaged, stays for another scheduler, and the other triggers do not wait for it.
        """
        trigger, call_of = (
            (ledger.tenant, due.key, due.name),
            self._observe_call if disabled else self._fire_call,
        )
        try:
            call = call_of(ledger, due, Definition.unpacked(due.packed))
        except (TenureError, ValueError, TypeError) as exc:
            if self._unplanned.get(trigger) != str(exc):
                self._unplanned[trigger] = str(exc)
                _log.error("schedule %s of tenant %s cannot be planned here: %s", due.key, ledger.tenant, exc)
            news = not disabled and not due.unread and isinstance(exc, UNAVAILABLE)
            return self._unread_call(ledger, due) if news else None
        self._unplanned.pop(trigger, None)
        return call

    def _unread_call(self, ledger: Ledger, due: Due) -> Call[list[News]]:
        """Leave word of a zone that cannot be read here: for `why`, and for whoever records what has passed by then."""
        in_time = due.now - due.planned <= THRESHOLD_MS
        args: dict[str, Arg] = {
            "job_key": due.key,
            "trigger": due.name,
            "revision": due.revision,
            "planned": due.planned,
            "since": due.planned if in_time else due.now,
            "scheduler": self.name,
        }
        return Call(UNREAD, ledger.keys.home, args, lambda _: [])

    def _fire_call(self, ledger: Ledger, due: Due, definition: Definition) -> Call[list[News]]:
        trigger, misfire = definition.trigger(due.name), definition.misfire
        unread = due.unread.since if due.unread else None
        if Planner.takes(trigger) and unread is None:
            decided = self._planner.plan(trigger, due.planned, due.observed, due.resumed, due.now, misfire)
        else:
            times = due.times(trigger)
            decided = resume(times, due.planned, due.observed, due.resumed, due.now, misfire, unread=unread)
        args: dict[str, Arg] = {
            **self._named(due, decided),
            "planned": due.planned,
            "made": due.now,
            "task": definition.task,
            "pool": definition.pool,
            "pace": misfire.pace_ms,
            "jitter": jitter_ms(ledger.tenant, due.key, trigger),
            "resumed": due.resumed,
            "overlap": definition.overlap,
        }
        items = [
            part
            for step in decided.steps
            for part in _items(step, ledger.tenant, due.key, definition, trigger)
        ]
        return Call("fire", ledger.keys.home, args, lambda reply: _news(ledger.tenant, reply), items)

    def _observe_call(self, ledger: Ledger, due: Due, definition: Definition) -> Call[list[News]]:
        """Of a disabled tenant: record what has passed, and move nothing."""
        times = due.times(definition.trigger(due.name))
        decided = observe(times, due.observed, due.now, DISABLED)
        passed = [part for step in decided.steps if isinstance(step, Skip) for part in stretches(step)]
        args: dict[str, Arg] = {**self._named(due, decided), "observed": due.observed}
        return Call("observe", ledger.keys.home, args, lambda reply: [visit(ledger.tenant, *reply)], passed)

    def _named(self, due: Due, decided: Plan) -> dict[str, Arg]:
        return {
            "job_key": due.key,
            "trigger": due.name,
            "revision": due.revision,
            "calendar": due.calendar.revision if due.calendar else "",
            "following": "" if decided.following is None else decided.following,
            "scheduler": self.name,
        }


@dataclass(frozen=True, slots=True)
class Due:
    """A trigger that is due, as the ledger has it; `observed` is 0 if its tenant was never disabled."""

    name: str
    key: str
    revision: str
    planned: int
    packed: bytes
    anchor: int
    observed: int
    resumed: int
    now: int
    calendar: Calendar | None
    """The stored calendar that it stands in."""
    unread: Unread | None
    """Whether a scheduler came by that cannot read its zone."""

    @classmethod
    def read(cls, now: int, resumed: int, row: list[bytes], calendars: Mapping[str, Calendar]) -> Due:
        name, key, revision, planned, packed, anchor, observed, calendar, unread = row
        return cls(
            name.decode(),
            key.decode(),
            revision.decode(),
            int(planned or 0),
            packed,
            int(anchor or 0),
            int(float(observed or 0)),
            resumed,
            now,
            calendars.get(calendar.decode()),
            Unread.read(unread),
        )

    def times(self, trigger: Trigger) -> Times:
        """When it fires. Raises BadInput for what cannot be read here."""
        return trigger.times(self.anchor, {self.calendar.name: self.calendar} if self.calendar else {})


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
        "log_month": month(step.instant),
        "repeat_rule": trigger.rule,
    }
    if definition.overlap == "queue" and not {"concurrency_key", "exclusive"} & fields.keys():
        fields["concurrency_key"] = f"schedule {key}"  # one after the other, whoever runs them
    if definition.args:
        fields["args"] = definition.args
    if trigger.priority is not None:
        fields["priority"] = trigger.priority
    if step.delay_ms is not None:
        fields["priority"] = definition.misfire.priority
    id_ = fire_id(tenant, key, trigger.name, step.instant)
    head: list[Arg] = [step.outcome, step.reason, month(step.instant), step.instant, step.instant, 1]
    pairs = [part for pair in fields.items() for part in pair]
    return [*head, id_, "" if step.delay_ms is None else step.delay_ms, len(fields), *pairs]


def _told(calls: Sequence[Call[list[News]]]) -> Generator[Calls, list[Any], list[News]]:
    """Send calls, `TOGETHER` at a time, and answer their news. Raises the first fault, when all have been sent."""
    news, fault = list[News](), None
    for at in range(0, len(calls), TOGETHER):
        for answer in (yield calls[at : at + TOGETHER]):
            if isinstance(answer, (Conflict, NotFound)):
                continue  # another scheduler fired it, or an operator changed it: both are fine
            if isinstance(answer, TenureError):
                fault = fault or answer
            else:
                news += answer
    if fault:
        raise fault
    return news


def _news(tenant: str, reply: Any) -> list[News]:
    _, told, earliest, version = reply
    return [visit(tenant, earliest, version), *views.news(tenant, told)]


def _latest(news: Iterable[News]) -> Iterable[News]:
    """The last word on each queue: all that was said before it is passed over."""
    return {one.queue: one for one in sorted(news, key=lambda one: one.version)}.values()


def _replan_call(ledger: Ledger, calendar: str) -> Call[list[News]]:
    """Go on with a calendar that has changed and whose triggers are not all planned anew yet."""
    return Call(
        "calendar_replan",
        ledger.keys.home,
        {"name": calendar},
        lambda reply: [visit(ledger.tenant, *reply[1:])],
    )


def _follow_call(ledger: Ledger, many: int) -> Call[list[News]]:
    """Have triggers observed of a tenant that was disabled, and which are not yet."""
    return Call(
        "switch_follow", ledger.keys.home, {"limit": many}, lambda reply: [visit(ledger.tenant, *reply)]
    )
