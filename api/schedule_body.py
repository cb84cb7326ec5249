"""A schedule as a body says it: a whole one, or a merge patch (RFC 7396) of the one that is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from ..lease.payload import unpack_args
from ..lease.tasks import Registry
from ..scheduler.calendar_store import Calendars
from ..scheduler.definition import OVERLAPS, Definition
from ..scheduler.misfire import Misfire, read_misfire
from ..scheduler.schedules import DEFAULT_TRIGGER, check_triggers, definition_of, packed_call
from ..scheduler.trigger import BadTrigger, Trigger, names_of
from .calls import CALL, Call, read_call
from .fields import Fields

PARTS = (*CALL, "triggers", "misfire", "overlap", "enabled")
LATER = ("flow",)
# Of each field of a trigger its name here and in Python.
TRIGGER = {
    "name": "name",
    "cron": "cron",
    "every": "every",
    "repeat": "repeat",
    "at": "at",
    "calendarInterval": "calendar_interval",
    "dailyInterval": "daily_interval",
    "tz": "tz",
    "dst": "dst",
    "start": "start",
    "end": "end",
    "calendar": "calendar",
    "jitter": "jitter",
    "priority": "priority",
}
CalendarsOf = Callable[[], Calendars]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be stored, and whether it is to be paused (False), not paused (True) or as it was (None)."""

    definition: Definition
    enabled: bool | None


def read_schedule(fields: Fields, registry: Registry, calendars: CalendarsOf) -> Wanted:
    """A whole schedule; what is not said is as by default. Raises BadFields naming all that is wrong in `fields`."""
    call = read_call(fields, registry)
    triggers, misfire = read_triggers(fields, calendars), read_policy(fields)
    overlap, enabled = fields.choice("overlap", OVERLAPS, "allow"), _enabled(fields)
    fields.done()
    assert call
    definition = definition_of(
        call.task, triggers, args=call.args, kwargs=call.kwargs, misfire=misfire, overlap=overlap
    )
    return Wanted(definition, enabled)


def patched(patch: Mapping[str, object], stored: Definition) -> dict[str, object]:
    """What a whole body would say after the patch. An array is replaced whole, a null takes a field back."""
    args, kwargs = unpack_args(stored.args)
    base: dict[str, object] = {
        "task": stored.task,
        "args": args,
        "kwargs": kwargs,
        "triggers": [],
        "misfire": stored.misfire.stored(),
        "overlap": stored.overlap,
    }
    return cast("dict[str, object]", _merged(base, patch))


def read_patched(
    fields: Fields,
    named: Mapping[str, object],
    stored: Definition,
    registry: Registry,
    calendars: CalendarsOf,
) -> Wanted:
    """The schedule that `patched` gave; what the patch does not name stays as it is stored, whether or not this process
    knows its task. Raises BadFields naming all that is wrong in `fields`.
    """
    call = read_call(fields, registry) if set(CALL) & set(named) else None
    triggers = read_triggers(fields, calendars) if "triggers" in named else stored.triggers
    misfire = read_policy(fields)
    overlap, enabled = fields.choice("overlap", OVERLAPS, "allow"), _enabled(fields)
    fields.done()
    found = replace(stored, triggers=tuple(triggers), misfire=misfire, overlap=overlap)
    return Wanted(_called(found, call), enabled)


def _called(stored: Definition, call: Call | None) -> Definition:
    """The same with another call. Another task brings its own options, the same one keeps what was stored for it."""
    if call is None:
        return stored
    if call.task.key == stored.task:
        return replace(stored, args=packed_call(call.task, call.args, call.kwargs))
    return definition_of(
        call.task,
        stored.triggers,
        args=call.args,
        kwargs=call.kwargs,
        misfire=stored.misfire,
        overlap=stored.overlap,
    )


def read_triggers(fields: Fields, calendars: CalendarsOf) -> Sequence[Trigger]:
    """The triggers of a body, each checked in each of its fields."""
    read = [(one, _trigger(one)) for one in fields.objects("triggers", tuple(TRIGGER), most=100)]
    triggers = [trigger for _, trigger in read if trigger is not None]
    if len(triggers) == len(read):
        with fields.checking("triggers"):
            check_triggers(triggers)
    if names := set(names_of(triggers)):
        stored = calendars().named(names)
        for one, trigger in read:
            if trigger is not None:
                with one.checking("calendar"):
                    trigger.times(0, stored)
    return triggers


def read_policy(fields: Fields) -> Misfire:
    with fields.checking("misfire"):
        return read_misfire(fields.raw("misfire") or "fire_once")
    return Misfire()


def _trigger(one: Fields) -> Trigger | None:
    """One trigger; None if anything is wrong with it, which is said of each field."""
    values: dict[str, Any] = {python: one.raw(name) for name, python in TRIGGER.items() if one.given(name)}
    try:
        return Trigger(**{"name": DEFAULT_TRIGGER, **values})
    except BadTrigger as exc:
        names = {python: name for name, python in TRIGGER.items()}
        for field, error in exc.errors:
            with one.checking(names[field]):
                raise error from None
    return None


def _enabled(fields: Fields) -> bool | None:
    return fields.flag("enabled") if fields.given("enabled") else None


def _merged(base: object, patch: object) -> object:
    if not isinstance(patch, Mapping):
        return patch
    changes = cast("Mapping[str, object]", patch)
    found: dict[str, object] = dict(cast("Mapping[str, object]", base)) if isinstance(base, Mapping) else {}
    for name, value in changes.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = _merged(found.get(name), value)
    return found
