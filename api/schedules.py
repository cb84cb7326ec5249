"""Schedules by JobKey: see them, store one, delete one, what comes next, what was fired."""

from __future__ import annotations

import logging
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from ..lease import cursors
from ..lease.instants import parse_instant
from ..lease.requests import epoch_ms
from ..scheduler.backfill import FASTEST, RATE, backfill, backfill_plan
from ..scheduler.calendar_store import Calendars
from ..scheduler.dry_run import check_outage, dry_run
from ..scheduler.execution_log import LONGEST, check_month, check_position
from ..scheduler.fire_pages import Place, recent_fires
from ..scheduler.job_key import JobKey
from ..scheduler.pausing import pause, resume, run
from ..scheduler.plan import month
from ..scheduler.preview import preview
from ..scheduler.put import Put
from ..scheduler.schedules import COMES_BACK, Schedules, check_trigger_name
from ..scheduler.why import why
from ..scripts.errors import NotFound, StalePlan
from . import schedule_views, views
from .body import parse
from .fields import Fields
from .needs import App
from .paging import read_cursor
from .plain import escaped
from .preconditions import asked_for, etag, expected_revision, seen_revision
from .routing import answer, link
from .schedule_body import (
    LATER,
    PARTS,
    Wanted,
    patched,
    read_patched,
    read_policy,
    read_schedule,
    read_triggers,
)
from .who import who

PUT = (*PARTS, "tenant", "reason")
BACKFILL = ("from", "to", "trigger", "rate", "dryRun", "tenant", "reason")
PATCH_TRIES = 5
log = logging.getLogger("tenure.api")


class ScheduleResource:
    def __init__(self, app: App) -> None:
        self._app = app

    def list(self, request: Request) -> Response:
        query = Fields.of_query(request.query_params.multi_items(), ("tenant", "limit", "cursor"))
        tenant, limit = query.tenant(), query.number("limit", 50, 1, 100)
        of = ("schedules", tenant)
        after = read_cursor(query, of)
        query.done()
        listed = self._of(tenant).list(limit + 1, after)
        found, last = cursors.cut(listed, limit, lambda one: str(one.job_key))
        more = last and cursors.write(last, of)
        return answer(views.page([schedule_views.schedule(view) for view in found], more))

    def get(self, request: Request) -> Response:
        query = Fields.of_query(request.query_params.multi_items(), ("tenant",))
        tenant = query.tenant()
        query.done()
        view = self._of(tenant).get(_job_key(request))
        return answer(schedule_views.schedule(view), ETag=etag(view.revision))

    def put(self, request: Request, body: bytes) -> Response:
        """Store a schedule; the same again changes nothing."""
        key = _job_key(request)
        fields = Fields.of_body(body, PUT, later=LATER)
        tenant, reason = fields.tenant(), fields.reason() or ""
        if not fields.fine("tenant"):
            fields.done()
        wanted = read_schedule(fields, self._app.registry, lambda: self._calendars(tenant))
        schedules = self._of(tenant)
        with asked_for(request):
            expected = seen_revision(request, lambda: schedules.get(key).revision)
            put = self._store(request, schedules, key, wanted, expected, reason)
        return self._stored(request, schedules, key, 201 if put.created else 200)

    def patch(self, request: Request, body: bytes) -> Response:
        """Change what the body names of a stored schedule, by the rules of a JSON merge patch."""
        key, said = _job_key(request), parse(body)
        fields = Fields(said, PUT, later=LATER)
        tenant, reason = fields.tenant(), fields.reason() or ""
        if not fields.fine("tenant"):
            fields.done()
        schedules = self._of(tenant)
        with asked_for(request):
            for left in reversed(range(PATCH_TRIES)):
                try:
                    self._patch(request, schedules, key, said, reason)
                    break
                except StalePlan:
                    if not left or {"if-match", "if-none-match"} & set(request.headers):
                        raise  # else somebody changed it since it was read: the patch is of what stands now
        return self._stored(request, schedules, key, 200)

    def _patch(
        self, request: Request, schedules: Schedules, key: JobKey, said: dict[str, object], reason: str
    ) -> None:
        view = schedules.get(key)
        merged = Fields(patched(said, view.definition), PUT, later=LATER)
        merged.reason()
        registry, tenant = self._app.registry, view.tenant
        wanted = read_patched(merged, said, view.definition, registry, lambda: self._calendars(tenant))
        expected = seen_revision(request, lambda: view.revision)
        self._store(request, schedules, key, wanted, view.revision if expected is None else expected, reason)

    def _store(
        self,
        request: Request,
        schedules: Schedules,
        key: JobKey,
        wanted: Wanted,
        expected: int | None,
        reason: str,
    ) -> Put:
        put = schedules.put_definition(
            key,
            wanted.definition,
            expected_revision=expected,
            enabled=wanted.enabled,
            by=who(request),
            reason=reason,
        )
        log.info("schedule %s is at revision %s: %s", key, put.revision, escaped(reason or "no reason given"))
        return put

    def _stored(self, request: Request, schedules: Schedules, key: JobKey, status: int) -> Response:
        view = schedules.get(key)
        place = link(request, ("schedules", str(key)), {"tenant": view.tenant})
        return answer(schedule_views.schedule(view), status, ETag=etag(view.revision), location=place)

    def delete(self, request: Request) -> Response:
        """Delete a schedule; what it has fired stays. Of one that code declares, say that it comes back."""
        key = _job_key(request)
        query = Fields.of_query(request.query_params.multi_items(), ("tenant", "reason"))
        tenant, reason = query.tenant(), query.reason()
        query.done()
        with asked_for(request):
            deleted = self._of(tenant).delete(
                key, expected_revision=expected_revision(request), by=who(request), reason=reason or ""
            )
        if deleted is None:
            raise NotFound(f"schedule {str(key)!r} is not stored in tenant {tenant}", hint="GET /schedules")
        log.info("schedule %s is deleted: %s", key, escaped(reason or "no reason given"))
        if deleted.declared:
            return answer({"jobKey": str(key), "declared": True, "hint": COMES_BACK})
        return Response(status_code=204)

    def preview(self, request: Request, body: bytes) -> Response:
        """When triggers would fire, before anything is stored, and what a misfire policy would make of an outage.

        Those that count from when they are stored count from now, or from the beginning of the outage.
        """
        fields = Fields.of_body(body, ("triggers", "count", "tenant", "misfire", "outage"))
        tenant, count = fields.tenant(), fields.number("count", 5, 1, 100)
        if not fields.fine("tenant"):
            fields.done()
        triggers = read_triggers(fields, lambda: self._calendars(tenant))
        misfire, outage = read_policy(fields), _outage(fields)
        fields.done()
        found = preview(self._of(tenant), triggers, count, outage=outage, misfire=misfire)
        described = zip(triggers, found, strict=True)
        return answer({"items": [schedule_views.preview(trigger, one) for trigger, one in described]})

    def dry_run(self, request: Request, body: bytes) -> Response:
        """What its misfire policy, or another one, would make of an outage or of what is due now."""
        key, fields = _job_key(request), Fields.of_body(body, ("tenant", "misfire", "outage"))
        tenant, outage, misfire = fields.tenant(), _outage(fields), read_policy(fields)
        policy = misfire if fields.given("misfire") else None
        fields.done()
        start, end = outage or (None, None)
        found = dry_run(self._of(tenant), key, start=start, end=end, misfire=policy)
        return answer(views.page([schedule_views.dry_run(one) for one in found], None))

    def pause(self, request: Request, body: bytes) -> Response:
        """Nothing of it fires from now on; a paused one stays so."""
        return self._turned(request, body, pause)

    def resume(self, request: Request, body: bytes) -> Response:
        """It fires again what is planned after now; one that is not paused stays so."""
        return self._turned(request, body, resume)

    def _turned(self, request: Request, body: bytes, turn: Callable[..., bool]) -> Response:
        key, fields = _job_key(request), Fields.of_body(body, ("tenant", "reason"))
        tenant, reason = fields.tenant(), fields.reason() or ""
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
        reason = fields.reason() or ""
        if (text := fields.text("fireTime")) is not None:
            with fields.checking("fireTime"):
                at = epoch_ms(parse_instant(text, what="fireTime"), what="fireTime")
        fields.done()
        schedules = self._of(tenant)
        with asked_for(request):
            expected = seen_revision(request, lambda: schedules.get(key).revision)
            job_id = run(
                schedules, key, trigger=trigger, at=at, by=who(request), reason=reason, expected=expected
            )
        log.info("schedule %s is run by hand: %s", key, escaped(reason or "no reason given"))
        place = link(request, ("jobs", job_id), {"tenant": tenant})
        return answer(schedule_views.ran(key, job_id), 202, location=place)

    def backfill(self, request: Request, body: bytes) -> Response:
        """Make jobs for planned instants of the past that did not run; with `dryRun`, only say which those are."""
        key, fields = _job_key(request), Fields.of_body(body, BACKFILL)
        tenant, trigger, dry = fields.tenant(), fields.text("trigger"), fields.flag("dryRun")
        rate, reason = fields.number("rate", RATE, 1, FASTEST), fields.reason() or ""
        span = _span(fields, "from", "to")
        fields.done()
        assert span is not None
        schedules = self._of(tenant)
        if dry:
            plan = backfill_plan(schedules, key, *span, trigger=trigger)
            return answer(schedule_views.backfill_plan(plan))
        done = backfill(schedules, key, *span, trigger=trigger, rate=rate, by=who(request), reason=reason)
        log.info("schedule %s is backfilled: %s", key, escaped(reason or "no reason given"))
        return answer(schedule_views.backfilled(key, done), 202)

    def next(self, request: Request) -> Response:
        """Its next planned fires, and what changes of the clocks do to it in the year from now on."""
        query = Fields.of_query(request.query_params.multi_items(), ("tenant", "count"))
        tenant, count = query.tenant(), query.number("count", 5, 1, 100)
        query.done()
        view = self._of(tenant).get(_job_key(request))
        return answer(schedule_views.next_fires(view, count, self._app.ledgers().index.now_ms()))

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
        """Fire records, newest first, of one trigger if it is named; also of what is no more."""
        query = Fields.of_query(request.query_params.multi_items(), ("tenant", "trigger", "limit", "cursor"))
        tenant, limit = query.tenant(), query.number("limit", 50, 1, 100)
        trigger = query.text("trigger")
        if trigger is not None:
            with query.checking("trigger"):
                check_trigger_name(trigger)
        query.done()
        schedules, key = self._of(tenant), _job_key(request)
        of = ("fires", tenant, str(key), trigger or "")
        cursor = read_cursor(query, of)
        place = None if cursor is None else Place.parse(cursor)
        if cursor is not None and place is None:
            query.refuse("cursor", "is not one this list gave; start again without a cursor")
        query.done()
        found, more = recent_fires(schedules, key, trigger, limit, place)
        items = [schedule_views.fire(key, one) for one in found]
        return answer(views.page(items, None if more is None else cursors.write(str(more), of)))

    def logs(self, request: Request) -> Response:
        """The execution log of a UTC month (this one, if none is named), newest first; also of a deleted schedule."""
        query = Fields.of_query(request.query_params.multi_items(), ("tenant", "month", "limit", "cursor"))
        tenant, limit = query.tenant(), query.number("limit", 50, 1, LONGEST)
        key, wanted = _job_key(request), query.text("month")
        if wanted is not None:
            with query.checking("month"):
                check_month(wanted)
        query.done()
        wanted = wanted or month(self._app.ledgers().index.now_ms())
        of = ("logs", tenant, str(key), wanted)
        cursor = read_cursor(query, of)
        if cursor is not None:
            with query.checking("cursor"):
                check_position(cursor)
        query.done()
        page = self._of(tenant).logs(key, month=wanted, limit=limit, cursor=cursor)
        more = None if page.next_cursor is None else cursors.write(page.next_cursor, of)
        return answer(views.page([schedule_views.log_entry(one) for one in page.items], more))

    def _of(self, tenant: str) -> Schedules:
        return Schedules(self._app.ledger(tenant), self._app.archive)

    def _calendars(self, tenant: str) -> Calendars:
        return Calendars(self._app.ledger(tenant))


def _job_key(request: Request) -> JobKey:
    return JobKey.parse(request.path_params["job_key"])


def _outage(fields: Fields) -> tuple[int, int] | None:
    part = fields.part("outage", ("from", "until"))
    span = None if part is None else _span(part, "from", "until")
    if span:
        with fields.checking("outage"):
            check_outage(*span)
    return span


def _span(fields: Fields, first: str, last: str) -> tuple[int, int] | None:
    """Two instants; None if one is missing or wrong, which is noted."""
    found: list[int] = []
    for name in (first, last):
        if text := fields.needed_text(name):
            with fields.checking(name):
                found.append(epoch_ms(parse_instant(text, what=name), what=name))
    return (found[0], found[1]) if len(found) == 2 else None
