"""Schedules by JobKey: see them, store one, delete one, what comes next, what was fired."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ..lease.instants import parse_instant
from ..lease.jobs import FIRE
from ..lease.requests import Options, epoch_ms
from ..scheduler.calendar_store import Calendars
from ..scheduler.cron_words import Language
from ..scheduler.definition import OVERLAPS
from ..scheduler.execution_log import LONGEST, check_month, check_position
from ..scheduler.job_key import JobKey
from ..scheduler.misfire import read_misfire
from ..scheduler.pausing import pause, resume, run
from ..scheduler.plan import month
from ..scheduler.schedules import DEFAULT_TRIGGER, Schedules, check_triggers
from ..scheduler.times import Times
from ..scheduler.trigger import BadTrigger, Trigger, names_of
from ..scheduler.why import why
from ..scripts.errors import NotFound
from . import schedule_views, views
from .calls import CALL, read_call
from .fields import Fields
from .needs import App
from .paging import read_cursor, write_cursor
from .plain import Json, escaped, instant
from .preconditions import asked_for, etag, expected_revision, seen_revision
from .recent_fires import read_place, recent_fires, write_place
from .routing import answer, link
from .who import who

PUT = (*CALL, "triggers", "misfire", "overlap", "tenant", "reason")
PUT_LATER = ("flow", "enabled")
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
LANGUAGES: tuple[Language, ...] = ("en", "zh")
log = logging.getLogger("tenure.api")


class ScheduleResource:
    def __init__(self, app: App) -> None:
        self._app = app

    def list(self, request: Request) -> Response:
        query = Fields.of_query(request.query_params.multi_items(), ("tenant", "limit", "cursor"))
        tenant, limit, after = query.tenant(), query.number("limit", 50, 1, 100), read_cursor(query)
        query.done()
        found = self._of(tenant).list(limit + 1, after)
        more = write_cursor(str(found[limit - 1].job_key)) if len(found) > limit else None
        return answer(views.page([schedule_views.schedule(view) for view in found[:limit]], more))

    def get(self, request: Request) -> Response:
        query = Fields.of_query(request.query_params.multi_items(), ("tenant",))
        tenant = query.tenant()
        query.done()
        view = self._of(tenant).get(_job_key(request))
        return answer(schedule_views.schedule(view), ETag=etag(view.revision))

    def put(self, request: Request, body: bytes) -> Response:
        """Store a schedule; the same again changes nothing."""
        key = _job_key(request)
        fields = Fields.of_body(body, PUT, later=PUT_LATER)
        call = read_call(fields, self._app.registry)
        tenant, reason = fields.tenant(), fields.text("reason")
        triggers = self._triggers(fields, tenant)
        with fields.checking("misfire"):
            read_misfire(fields.raw("misfire") or "fire_once")
        overlap = fields.choice("overlap", OVERLAPS, "allow")
        fields.done()
        assert call
        schedules = self._of(tenant)
        with asked_for(request):
            put = schedules.put(
                key,
                call.task,
                triggers,
                args=call.args,
                kwargs=call.kwargs,
                options=Options(tenant=tenant),
                misfire=fields.raw("misfire") or "fire_once",
                overlap=overlap,
                expected_revision=seen_revision(request, lambda: schedules.get(key).revision),
                by=who(request),
                reason=reason or "",
            )
        log.info("schedule %s is at revision %s: %s", key, put.revision, escaped(reason or "no reason given"))
        view = schedules.get(key)
        place = link(request, ("schedules", str(key)), {"tenant": tenant})
        return answer(
            schedule_views.schedule(view),
            201 if put.created else 200,
            ETag=etag(view.revision),
            location=place,
        )

    def delete(self, request: Request) -> Response:
        """Delete a schedule; what it has fired stays."""
        key = _job_key(request)
        query = Fields.of_query(request.query_params.multi_items(), ("tenant", "reason"))
        tenant, reason = query.tenant(), query.text("reason")
        query.done()
        with asked_for(request):
            found = self._of(tenant).delete(key, expected_revision=expected_revision(request))
        if not found:
            raise NotFound(f"schedule {str(key)!r} is not stored in tenant {tenant}", hint="GET /schedules")
        log.info("schedule %s is deleted: %s", key, escaped(reason or "no reason given"))
        return Response(status_code=204)

    def preview(self, request: Request, body: bytes) -> Response:
        """When triggers would fire, before anything is stored; those that count from when they are stored, from now."""
        fields = Fields.of_body(body, ("triggers", "count", "tenant"))
        tenant, count = fields.tenant(), fields.number("count", 5, 1, 100)
        triggers = self._triggers(fields, tenant)
        fields.done()
        calendars = Calendars(self._app.ledger(tenant)).named(names_of(triggers))
        now = self._app.ledgers().index.take(FIRE, 0).now_ms
        return answer({"items": [_previewed(one, one.times(now, calendars), now, count) for one in triggers]})

    def pause(self, request: Request, body: bytes) -> Response:
        """Nothing of it fires from now on; a paused one stays so."""
        return self._turned(request, body, pause)

    def resume(self, request: Request, body: bytes) -> Response:
        """It fires again what is planned after now; one that is not paused stays so."""
        return self._turned(request, body, resume)

    def _turned(self, request: Request, body: bytes, turn: Callable[..., bool]) -> Response:
        key, fields = _job_key(request), Fields.of_body(body, ("tenant", "reason"))
        tenant, reason = fields.tenant(), fields.text("reason") or ""
        fields.done()
        schedules = self._of(tenant)
        with asked_for(request):
            turn(
                schedules,
                key,
                by=who(request),
                reason=reason,
                expected=seen_revision(request, lambda: schedules.get(key).revision),
            )
        view = schedules.get(key)
        log.info("schedule %s is %s: %s", key, "paused" if view.paused else "not paused", escaped(reason))
        return answer(schedule_views.schedule(view), ETag=etag(view.revision))

    def run(self, request: Request, body: bytes) -> Response:
        """Make a job of it by hand, now or for a planned instant."""
        key, fields = _job_key(request), Fields.of_body(body, ("tenant", "reason", "trigger", "fireTime"))
        tenant, trigger, at = fields.tenant(), fields.text("trigger"), None
        fields.text("reason")
        if (text := fields.text("fireTime")) is not None:
            with fields.checking("fireTime"):
                at = epoch_ms(parse_instant(text, what="fireTime"), what="fireTime")
        fields.done()
        job_id = run(self._of(tenant), key, trigger=trigger, at=at, by=who(request))
        place = link(request, ("jobs", job_id), {"tenant": tenant})
        return answer({"jobId": job_id, "jobKey": str(key)}, 202, location=place)

    def next(self, request: Request) -> Response:
        query = Fields.of_query(request.query_params.multi_items(), ("tenant", "count"))
        tenant, count = query.tenant(), query.number("count", 5, 1, 100)
        query.done()
        planned = self._of(tenant).next(_job_key(request), count)
        return answer(views.page([schedule_views.planned(name, ms) for name, ms in planned], None))

    def why(self, request: Request) -> Response:
        """Why it did or did not fire at an instant, or when it fires next."""
        query = Fields.of_query(request.query_params.multi_items(), ("tenant", "trigger", "at"))
        tenant, trigger, at = query.tenant(), query.text("trigger"), None
        if (text := query.text("at")) is not None:
            with query.checking("at"):
                at = epoch_ms(parse_instant(text.replace(" ", "+"), what="at"), what="at")
        query.done()
        return answer(views.why(why(self._of(tenant), _job_key(request), at=at, trigger=trigger)))

    def fires(self, request: Request) -> Response:
        """Fire records of one trigger (the first, if none is named), newest first."""
        query = Fields.of_query(request.query_params.multi_items(), ("tenant", "trigger", "limit", "cursor"))
        tenant, limit = query.tenant(), query.number("limit", 50, 1, 100)
        query.done()
        schedules = self._of(tenant)
        view = schedules.get(_job_key(request))
        names = [one.name for one in view.definition.triggers]
        trigger = query.choice("trigger", names, names[0])
        before = read_place(query)
        query.done()
        found, more = recent_fires(schedules, view.job_key, trigger, limit, before)
        items = [schedule_views.fire(view.job_key, one) for one in found]
        return answer(views.page(items, write_place(more)))

    def logs(self, request: Request) -> Response:
        """The execution log of a UTC month (this one, if none is named), newest first; also of a deleted schedule."""
        query = Fields.of_query(request.query_params.multi_items(), ("tenant", "month", "limit", "cursor"))
        tenant, limit = query.tenant(), query.number("limit", 50, 1, LONGEST)
        wanted, cursor = query.text("month"), read_cursor(query)
        for name, value, check in (("month", wanted, check_month), ("cursor", cursor, check_position)):
            if value is not None:
                with query.checking(name):
                    check(value)
        query.done()
        wanted = wanted or month(self._app.ledgers().index.take(FIRE, 0).now_ms)
        page = self._of(tenant).logs(_job_key(request), month=wanted, limit=limit, cursor=cursor)
        more = None if page.next_cursor is None else write_cursor(page.next_cursor)
        return answer(views.page([schedule_views.log_entry(one) for one in page.items], more))

    def _of(self, tenant: str) -> Schedules:
        return Schedules(self._app.ledger(tenant))

    def _triggers(self, fields: Fields, tenant: str) -> Sequence[Trigger]:
        """The triggers of a body, each checked in each of its fields."""
        read = [(one, _trigger(one)) for one in fields.objects("triggers", tuple(TRIGGER), most=100)]
        triggers = [trigger for _, trigger in read if trigger is not None]
        if len(triggers) == len(read):
            with fields.checking("triggers"):
                check_triggers(triggers)
        if fields.fine("tenant") and (names := set(names_of(triggers))):
            stored = Calendars(self._app.ledger(tenant)).named(names)
            for one, trigger in read:
                if trigger is not None:
                    with one.checking("calendar"):
                        trigger.times(0, stored)
        return triggers


def _job_key(request: Request) -> JobKey:
    return JobKey.parse(request.path_params["job_key"])


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


def _previewed(trigger: Trigger, times: Times, now: int, count: int) -> Json:
    at, fires = now, list[str | None]()
    while len(fires) < count and (found := times.next_ms(at)) is not None:
        fires.append(instant(found))
        at = found
    words = None if trigger.cron is None else {one: trigger.expression().describe(one) for one in LANGUAGES}
    return {"trigger": trigger.name, "nextFires": fires, "description": words}
