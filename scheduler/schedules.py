"""The schedules of one tenant: put, get, list, next, fires."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from ..lease import views
from ..lease.ledger import Ledger, new_token
from ..lease.payload import pack_args
from ..lease.rates import NO_RATE
from ..lease.requests import Options, row_fields
from ..lease.tasks import Task
from ..lease.views import pairs
from ..lease.who import check_word
from ..scripts import Call
from ..scripts.errors import BadInput, Conflict, NotFound, StalePlan, TenureError
from ..scripts.loader import Arg, texts
from .calendar_store import Calendars, calendars_of
from .calendars import Calendar
from .definition import Definition
from .due import Gate, Stored, Unread, instants, passed_over
from .execution_log import LONGEST, LogPage, check_month, check_position, read_entry
from .fire_record import Fire
from .fire_records import FireRecords, Mark
from .history import History, is_whole
from .job_key import JobKey
from .misfire import Misfire, read_misfire
from .plan import following, month
from .put import Put
from .times import Times
from .trigger import Trigger, names_of
from .upcoming import ClockChange, Upcoming, clock_changes, upcoming
from .visits import tell

_TRIGGER = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
MOST_RECORDS = 10_000
DEFAULT_TRIGGER = "default"
PUT_TRIES = 5
COMES_BACK = (
    "its code still declares it: it comes back with the next registration, when a scheduler starts. "
    "Take it out of the code, or pause it instead, which a registration leaves as it is"
)
"""What is said of a deleted schedule that code declares."""


@dataclass(frozen=True, slots=True)
class Paused:
    """Since when (epoch ms), by whom and why a schedule is paused."""

    since: int
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """A schedule as it stands; next and last fires by trigger, in epoch ms."""

    tenant: str
    job_key: JobKey
    revision: int
    definition: Definition
    next_fires: Mapping[str, int]
    last_fires: Mapping[str, int]
    code: Definition | None = None
    """What code declares under its name, if any does."""
    overridden: bool = False
    """Whether somebody has put something else in place of what code declares; that is what counts."""
    anchors: Mapping[str, int] = field(default_factory=dict[str, int])
    """From when its triggers count, of those that do."""
    paused: Paused | None = None
    decided: Mapping[str, int] = field(default_factory=dict[str, int])
    """Up to before when it is decided what becomes of planned instants, by trigger; later ones are owed."""
    disabled: bool = False
    """Whether scheduling of its tenant is disabled."""
    calendars: Mapping[str, Calendar] = field(default_factory=dict[str, Calendar])
    """The stored calendars that its triggers stand in, by name."""
    unread: Mapping[str, Unread] = field(default_factory=dict[str, Unread])
    """Its due triggers for which a scheduler came by that cannot read their zone, and none yet that can."""

    def times(self, trigger: Trigger) -> Times:
        """When one of its triggers fires. Raises BadInput for one that cannot be read here."""
        return trigger.times(self.anchors.get(trigger.name, 0), self.calendars)

    def upcoming(self, count: int) -> Sequence[Upcoming]:
        """The next planned fires of all its triggers, each with what the clocks do to it where they change."""
        planned = [
            fire
            for one in self.definition.triggers
            if (first := self.next_fires.get(one.name)) is not None
            for fire in islice(upcoming(one.name, self.times(one), first - 1), count)
        ]
        return sorted(planned, key=lambda fire: fire.fire_time)[:count]

    def clock_changes(self, now: int) -> Sequence[ClockChange]:
        """What changes of the clocks do to its triggers in the year from `now` (epoch ms) on."""
        triggers = [one for one in self.definition.triggers if one.name in self.next_fires]
        return [change for one in triggers for change in clock_changes(one.name, self.times(one), now)]

    @property
    def declared(self) -> bool:
        """Whether it is as code declares it."""
        return self.code is not None and not self.overridden

    @property
    def exhausted(self) -> bool:
        return not self.next_fires


@dataclass(frozen=True, slots=True)
class Revision:
    """What became of a schedule at `at` (epoch ms), by the verb `put`, `pause`, `resume` or `delete`; a definition only
    if that changed.
    """

    number: int
    at: int
    verb: str
    by: str
    reason: str
    definition: Definition | None


@dataclass(frozen=True, slots=True)
class Deleted:
    """A schedule was there and is deleted. What code declares (`declared`) is stored again when a scheduler starts, or
    whoever else registers it.
    """

    declared: bool


Rows = tuple[Gate, Sequence[tuple[str, Stored]]]
"""How the switch stands, and schedules by JobKey."""


class Schedules:
    """Operations on the schedules of one tenant."""

    def __init__(self, ledger: Ledger, history: History | None = None) -> None:
        self.ledger = ledger
        self.records = FireRecords(ledger, history)
        self._history = history

    def put(
        self,
        job_key: JobKey | str,
        task: Task,
        triggers: Sequence[Trigger],
        *,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: Options | None = None,
        misfire: object = "fire_once",
        overlap: str = "allow",
        expected_revision: int | None = None,
        enabled: bool | None = None,
        declared: bool = False,
        by: str = "",
        reason: str = "",
    ) -> Put:
        """Store a schedule. The same definition again changes nothing, also when it has fired for the last time. What
        is put in place of what code has declared stays, whatever code declares (`declared`) since. `enabled` says
        whether it is paused from now on (False) or not (True); None leaves that as it is.

        Raises BadInput for a trigger that never fires again, StalePlan when `expected_revision` is not the stored one.
        """
        key = JobKey.parse(job_key)
        check_triggers(triggers)
        definition = definition_of(
            task,
            triggers,
            args=args,
            kwargs=kwargs,
            options=options,
            misfire=read_misfire(misfire),
            overlap=overlap,
        )
        if declared:
            self.ledger.index.declared(add=[self._member(key)])
        return self.put_definition(
            key,
            definition,
            expected_revision=expected_revision,
            enabled=enabled,
            declared=declared,
            by=by,
            reason=reason,
        )

    def put_definition(
        self,
        key: JobKey,
        definition: Definition,
        *,
        expected_revision: int | None = None,
        enabled: bool | None = None,
        declared: bool = False,
        by: str = "",
        reason: str = "",
    ) -> Put:
        """Store a schedule that is made up already; see `put`."""
        for left in reversed(range(PUT_TRIES)):
            try:
                return self._put(key, definition, expected_revision, enabled, declared, by, reason)
            except StalePlan:
                # a first instant has passed since it was computed; or the revision is not the expected one
                if not left or expected_revision not in (None, self._revision(key)):
                    raise
        raise AssertionError("unreachable")

    def follow_code(self, job_key: JobKey | str, *, by: str = "", reason: str = "") -> Put:
        """Put back what code has declared, where somebody had put something else. Raises NotFound, Conflict when code
        declares nothing of that name.
        """
        key = JobKey.parse(job_key)
        view = self.get(key)
        if view.code is None:
            raise Conflict(f"schedule {key} is not declared in code", hint=f"tenure cron show {key}")
        return self._put(key, view.code, None, None, False, by, reason)

    def revisions(self, job_key: JobKey | str) -> Sequence[Revision]:
        """The newest 100 revisions of a schedule, newest first; of a deleted one, who deleted it, and why, as long as
        it has fire records. Raises NotFound.
        """
        key = JobKey.parse(job_key)
        call: Call[Any] = Call("revisions_read", self.ledger.keys.home, {"job_key": str(key)}, _as_is)
        found = sorted(
            (_revision(int(number), packed) for number, packed in pairs(self.ledger.scripts.run(call))),
            key=lambda one: -one.number,
        )
        if not found:
            self.get(key)
        return found

    def _put(
        self,
        key: JobKey,
        definition: Definition,
        expected_revision: int | None,
        enabled: bool | None,
        declared: bool,
        by: str,
        reason: str,
    ) -> Put:
        moment = self.ledger.index.now_ms()
        stored = self.stored(key)
        same = stored.fields.get("digest") == definition.digest.encode()
        anchors = self._anchors(stored, definition, moment)
        calendars = Calendars(self.ledger).named(names_of(definition.triggers))
        rest: list[str | int] = []
        for trigger in definition.triggers:
            anchor, calendar = anchors.get(trigger.name), calendars.get(trigger.named_calendar or "")
            times = trigger.times(moment if anchor is None else anchor, calendars)
            first = following(times, max(moment, stored.passed))
            if first is None and not same:
                raise BadInput(
                    f"trigger {trigger.name!r} of {key} never fires again: {trigger.rule!r}",
                    hint=f"tenure cron explain {trigger.cron!r}"
                    if trigger.cron
                    else "is its end, or its one time, past?",
                )
            rest += [trigger.name, "" if first is None else first, "" if anchor is None else anchor]
            rest += [calendar.name, calendar.revision] if calendar else ["", ""]
        skipped = "paused" if same and enabled is False else "superseded"
        self.ledger.index.register(self.ledger.tenant)
        revision, changed, earliest, version = self._run(
            "schedule_put",
            [*rest, *passed_over(stored, moment, skipped)],
            job_key=str(key),
            definition=definition.packed(),
            digest=definition.digest,
            expected="" if expected_revision is None else expected_revision,
            seen=stored.revision,
            declared="1" if declared else "",
            enabled="" if enabled is None else "1" if enabled else "0",
            month=month(moment),
            triggers=len(definition.triggers),
            group=key.group,
            by=" ".join(by.split()) or ("code" if declared else ""),
            reason=reason,
        )
        tell(self.ledger, earliest, version)
        return Put(int(revision), changed != "", changed == "new")

    def _anchors(self, stored: Stored, definition: Definition, moment: int) -> dict[str, int]:
        """From when each trigger counts that needs it: a trigger that stays as it is goes on counting."""
        old = (
            {trigger.name: trigger for trigger in Definition.unpacked(stored.fields["definition"]).triggers}
            if stored.fields
            else {}
        )
        known = stored.instants("anchor")
        return {
            one.name: known.get(one.name, moment) if old.get(one.name) == one else moment
            for one in definition.triggers
            if one.anchored
        }

    def delete(
        self,
        job_key: JobKey | str,
        *,
        expected_revision: int | None = None,
        by: str = "",
        reason: str = "",
    ) -> Deleted | None:
        """Delete a schedule; None if there was none. What it has fired stays, jobs and records, and with them who
        deleted it, and why (`revisions`).

        An instant that is due and not fired yet is recorded as skipped, `deleted`. Raises StalePlan when
        `expected_revision` is not the stored one.
        """
        key, token = JobKey.parse(job_key), new_token()
        check_word(by, reason)
        found, declared = self.change(
            key,
            "schedule_delete",
            "deleted",
            expected_revision,
            token=token,
            month=month(self.ledger.index.now_ms()),
            by=" ".join(by.split()),
            reason=reason,
        )
        self.ledger.index.declared(drop=[self._member(key)])
        return Deleted(declared == "1") if found == "1" else None

    def change(
        self, key: JobKey, script: str, skipped: str, expected_revision: int | None, **args: Arg
    ) -> Sequence[str]:
        """Run a script that changes a schedule and passes over what is due, as `skipped`; answers what it gives before
        the news. Worked out anew when the schedule has fired, or an instant has come due, since it was read.
        """
        for left in reversed(range(PUT_TRIES)):
            stored, now = self.stored(key), self.ledger.index.now_ms()
            expected: Arg = "" if expected_revision is None else expected_revision
            try:
                *found, earliest, version = self._run(
                    script, passed_over(stored, now, skipped), job_key=str(key), expected=expected, **args
                )
            except StalePlan:
                if not left or expected_revision not in (None, self._revision(key)):
                    raise
                continue
            tell(self.ledger, earliest, version)
            return found
        raise AssertionError("unreachable")

    def make(self, calls: Sequence[Call[Any]]) -> Sequence[tuple[str, bool]]:
        """Make jobs of a schedule by hand; answers their ids, and whether each was made by this call. Raises the first
        refusal, when all have been sent.
        """
        answers = self.ledger.scripts.run_all(calls)
        made = [answer for answer in answers if not isinstance(answer, TenureError)]
        self.ledger.index.put(item for _, told, _ in made for item in views.news(self.ledger.tenant, told))
        for answer in answers:
            if isinstance(answer, TenureError):
                raise answer
        return [(id_.decode(), new == b"1") for id_, _, new in made]

    def _revision(self, key: JobKey) -> int:
        return self.stored(key).revision

    def _member(self, key: JobKey) -> str:
        return f"{self.ledger.tenant}:{key}"

    def get(self, job_key: JobKey | str) -> ScheduleView:
        """One schedule. Raises NotFound."""
        name = str(JobKey.parse(job_key))
        found = self._read(f"[{name}", f"[{name}", 1)
        if not found:
            raise NotFound(
                f"schedule {name!r} is not stored in tenant {self.ledger.tenant}",
                hint="tenure cron list shows what is; what code declares is stored when a scheduler starts",
            )
        return found[0]

    def views(self, job_keys: Sequence[JobKey | str]) -> Sequence[ScheduleView]:
        """Those of these schedules that are stored, in one round trip."""
        names = [str(JobKey.parse(key)) for key in job_keys]
        calls = [self._rows_call(f"[{name}", f"[{name}", 1) for name in names]
        answers = self.ledger.scripts.run_all(calls)
        found: list[ScheduleView] = []
        for answer in answers:
            if isinstance(answer, TenureError):
                raise answer
            found += [_view(self.ledger.tenant, key, stored) for key, stored in answer[1]]
        return found

    def list(self, limit: int = 50, after: str | None = None) -> Sequence[ScheduleView]:
        """Schedules in the order of their names, from the one after `after` on."""
        return self._read(f"({after}" if after else "-", "+", limit)

    def next(self, job_key: JobKey | str, count: int = 5) -> Sequence[Upcoming]:
        """The next planned fires of all its triggers, each with what the clocks do to it where they change."""
        return self.get(job_key).upcoming(count)

    def fires(
        self,
        job_key: JobKey | str,
        *,
        trigger: str | None = None,
        month: str,
        limit: int = 50,
        after: Mark | None = None,
    ) -> tuple[Sequence[Fire], Mark | None]:
        """Fire records of a UTC month (YYYYMM), of one trigger or of all, newest first, `after` a record of before
        (None: from the newest on), and the record after which the next page begins, if there is one.

        Also those of a deleted schedule. Raises NotFound if there is nothing of that name.
        """
        key = JobKey.parse(job_key)
        _check_limit(limit, MOST_RECORDS)
        names = [trigger] if trigger else self.records.triggers(key)
        found, more = self.records.page(key, names, month=month, limit=limit, after=after)
        if not found:
            self.get(key)
        return found, more

    def logs(
        self, job_key: JobKey | str, *, month: str, limit: int = 50, cursor: str | None = None
    ) -> LogPage:
        """The execution log of a UTC month (YYYYMM, that of the planned instants), newest first; also of a deleted
        schedule. Raises NotFound if there is nothing of that name, BadInput.
        """
        key = JobKey.parse(job_key)
        _check_limit(limit, LONGEST)
        args: dict[str, Arg] = {
            "job_key": str(key),
            "month": check_month(month),
            "before": "" if cursor is None else check_position(cursor),
            "limit": limit,
        }
        more, now, born, *records = self.ledger.scripts.run(
            Call("logs_read", self.ledger.keys.home, args, list[bytes])
        )
        found = [read_entry(self.ledger.tenant, key, record) for record in records]
        if not more and self._history and not is_whole(month, now.decode(), born.decode()):
            last = found[-1].position if found else cursor
            wanted = limit - len(found)
            older = self._history.log(
                self.ledger.tenant, str(key), month, None if last is None else int(last), wanted + 1
            )
            found, more = [*found, *older[:wanted]], b"1" if len(older) > wanted else b""
        if not found and cursor is None:
            self.get(key)
        return LogPage(found, found[-1].position if more else None)

    def _run(self, script: str, rest: Sequence[Any] = (), **args: Any) -> Sequence[str]:
        return self.ledger.scripts.run(Call(script, self.ledger.keys.home, args, texts, rest))

    def _read(self, start: str, end: str, limit: int) -> Sequence[ScheduleView]:
        return [_view(self.ledger.tenant, key, stored) for key, stored in self._rows(start, end, limit)[1]]

    def stored(self, key: JobKey) -> Stored:
        """Its fields as they stand, damaged or not; none if it is not stored."""
        gate, rows = self._rows(f"[{key}", f"[{key}", 1)
        return rows[0][1] if rows else Stored(gate=gate)

    def _rows(self, start: str, end: str, limit: int) -> Rows:
        return self.ledger.scripts.run(self._rows_call(start, end, limit))

    def _rows_call(self, start: str, end: str, limit: int) -> Call[Rows]:
        args: dict[str, Arg] = {"from": start, "to": end, "limit": limit}
        return Call("schedules_read", self.ledger.keys.home, args, _read_rows)


def definition_of(
    task: Task,
    triggers: Sequence[Trigger],
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    options: Options | None = None,
    misfire: Misfire,
    overlap: str,
) -> Definition:
    """A schedule of a task, made up to be stored. Raises BadInput for arguments that the task does not take."""
    chosen = options or Options()
    fields = row_fields(task, replace(chosen, source="cron"))
    return Definition(
        task=task.key,
        args=packed_call(task, args, kwargs or {}),
        pool=chosen.pool or task.pool,
        fields={"task_rate": NO_RATE, **{name: str(value) for name, value in fields.items()}},
        triggers=tuple(triggers),
        misfire=misfire,
        overlap=overlap,
    )


def packed_call(task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
    """The arguments of each fire, as the task takes them."""
    bound_args, bound_kwargs = task.bind(tuple(args), dict(kwargs))
    return pack_args(
        bound_args, bound_kwargs, what=f"the arguments of {task.key}", names=task.parameter_names
    )


def check_triggers(triggers: Sequence[Trigger]) -> Sequence[Trigger]:
    """Return `triggers` if there are some and their names may stand side by side, else refuse them."""
    for trigger in triggers:
        if not isinstance(trigger, Trigger):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(f"{trigger!r:.60} is no trigger", hint="Trigger('default', '0 0 2 * * ?')")
    names = [trigger.name for trigger in triggers]
    for name in names:
        check_trigger_name(name)
    if not names or len(set(names)) < len(names):
        raise BadInput(
            f"triggers {names} must be at least one, with names of their own", hint="name them 'a', 'b', ..."
        )
    return triggers


def check_trigger_name(name: object) -> str:
    """Return `name` if a trigger may have it, else refuse it."""
    if not isinstance(name, str) or not _TRIGGER.fullmatch(name):
        raise BadInput(
            f"trigger name {name!r:.60} is not allowed: lower-case letters, digits, '_' and '-', at most 63",
            hint="leave it out for 'default'",
        )
    return name


def _read_rows(reply: Any) -> Rows:
    disabled, resumed, clock, deleted, calendars, *rows = reply
    gate = Gate(disabled == b"1", int(resumed), int(clock), int(deleted))
    known = calendars_of(calendars)
    return gate, [(key.decode(), _stored(flat, observed, gate, known)) for key, flat, observed in rows]


def _as_is(reply: Any) -> Any:
    return reply


def _stored(
    flat: Sequence[bytes], observed: Sequence[bytes], gate: Gate, calendars: Mapping[str, Calendar]
) -> Stored:
    fields = {name.decode(): value for name, value in pairs(flat)}
    seen = {name.decode(): int(value) for name, value in pairs(observed)}
    return Stored(fields, seen, gate, calendars)


def _next_fires(stored: Stored) -> Mapping[str, int]:
    """When each trigger fires next. What is stored is when it is to be visited: also where clocks change, and where its
    calendar has changed.
    """
    found: dict[str, int] = {}
    for trigger, visit in stored.instants("next").items():
        try:
            fire = stored.times(trigger).next_ms(visit - 1)
        except (TenureError, ValueError, TypeError):
            fire = visit  # what cannot be read here
        if fire is not None:
            found[trigger] = fire
    return found


def _view(tenant: str, job_key: str, stored: Stored) -> ScheduleView:
    fields = stored.fields
    return ScheduleView(
        tenant=tenant,
        job_key=JobKey.parse(job_key),
        revision=int(fields["revision"]),
        definition=Definition.unpacked(fields["definition"]),
        next_fires=_next_fires(stored),
        last_fires=instants(fields, "last"),
        code=Definition.unpacked(fields["declared"]) if "declared" in fields else None,
        overridden="override" in fields,
        anchors=instants(fields, "anchor"),
        paused=_paused(fields.get("paused")),
        decided=stored.decided,
        disabled=stored.gate.disabled,
        calendars=stored.calendars,
        unread={
            name: found for name in instants(fields, "next") if (found := stored.unread(name)) is not None
        },
    )


def _revision(number: int, packed: bytes) -> Revision:
    at, verb, by, reason, definition = packed.split(b"\n", 4)
    known = Definition.unpacked(definition) if definition else None
    return Revision(number, int(at), verb.decode(), by.decode(), reason.decode(), known)


def _check_limit(limit: int, most: int) -> None:
    if not 1 <= limit <= most:
        raise BadInput(f"limit {limit!r} is out of range: 1 to {most}", hint="the default is 50")


def _paused(packed: bytes | None) -> Paused | None:
    if packed is None:
        return None
    since, by, reason = packed.decode().split("\n", 2)
    return Paused(int(since), by, reason)
