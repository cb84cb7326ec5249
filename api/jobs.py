"""The ledger's jobs: list them, look at one, ask why it waits; cancel, skip, retry or reschedule it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response

from ..lease.instants import parse_instant
from ..lease.jobs import JobView
from ..lease.ledger import Ledger
from ..lease.requests import due, edited_args
from ..lease.status import runtime_status
from ..lease.summary import summary
from ..lease.who import check_token
from ..lease.why import why_seen
from ..scheduler.history import find_job
from ..scripts.states import State
from . import views
from .fields import Fields
from .job_filters import query_of, read_page
from .needs import App
from .plain import Json, escaped
from .routing import answer
from .status_views import runtime_status as status_view
from .who import who

STOP = ("tenant", "reason")
RETRY = ("tenant", "reason", "from", "args", "kwargs", "runAt", "after", "generation", "token", "force")
RESCHEDULE = ("tenant", "reason", "runAt", "after", "priority", "revision", "token")
CONFIRM = ("tenant", "reason", "happened", "note")
MOST = 1 << 53
log = logging.getLogger("tenure.api")


class Jobs:
    def __init__(self, app: App) -> None:
        self._app = app

    def list(self, request: Request) -> Response:
        query = query_of(request.query_params.multi_items())
        task = query.text("task")
        found = read_page(self._app, query, None if task is None else (task,))
        return answer(views.jobs_page(found, self._view))

    def summary(self, request: Request) -> Response:
        ledger = ledger_of(self._app, request)
        return answer(views.summary(summary(ledger.tenant, ledger.counts())))

    def runtime_status(self, request: Request) -> Response:
        return answer(status_view(runtime_status(ledger_of(self._app, request))))

    def get(self, request: Request) -> Response:
        return answer(views.job_with_attempts(self._found(request), self._app.registry))

    def why(self, request: Request) -> Response:
        return answer(views.why(why_seen(ledger_of(self._app, request), self._found(request))))

    def _found(self, request: Request) -> JobView:
        return find_job(ledger_of(self._app, request), self._app.archive, request.path_params["id"])

    def cancel(self, request: Request, body: bytes) -> Response:
        """Cancel it; a canceled one stays as it is."""
        fields = Fields.of_body(body, STOP)
        reason = fields.reason() or ""
        by = who(request)
        return self._changed(
            request, fields, lambda ledger, job_id: ledger.cancel(job_id, reason, by) != State.CANCELED
        )

    def skip(self, request: Request, body: bytes) -> Response:
        """Cancel it because it need not be done any more; a canceled one stays as it is."""
        fields = Fields.of_body(body, STOP)
        reason = fields.reason() or ""
        by = who(request)
        return self._changed(
            request, fields, lambda ledger, job_id: ledger.skip(job_id, reason, by) != State.CANCELED
        )

    def retry(self, request: Request, body: bytes) -> Response:
        """Begin a new round; the same request again under the same token is answered as it was."""
        fields = Fields.of_body(body, RETRY)
        when, force, reason = read_when(fields), fields.flag("force"), fields.reason() or ""
        from_start = read_from(fields)
        generation = fields.optional_number("generation", 1, MOST)
        token = read_token(fields)
        edited = fields.given("args") or fields.given("kwargs")
        args, kwargs = fields.array("args"), fields.object("kwargs")
        if force and not reason:
            fields.refuse("reason", "must be given with force: how do you know that it has not happened?")

        def act(ledger: Ledger, job_id: str) -> bool:
            others = self._edited(ledger.get(job_id), fields, args, kwargs) if edited else None
            ledger.retry(
                job_id,
                args=others,
                from_start=from_start,
                when=when,
                generation=generation,
                token=token,
                reason=reason,
                by=who(request),
                force=force,
            )
            return True

        return self._changed(request, fields, act)

    def _edited(
        self, view: JobView, fields: Fields, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> bytes | None:
        others = None
        with fields.checking("args" if fields.given("args") else "kwargs"):
            others = edited_args(self._app.registry.get(view.task), args, kwargs)
        fields.done()
        return others

    def reschedule(self, request: Request, body: bytes) -> Response:
        """Give a pending job another due time, another priority, or both."""
        fields = Fields.of_body(body, RESCHEDULE)
        when, priority = read_when(fields), fields.optional_number("priority", 0, 9)
        revision, token = fields.optional_number("revision", 1, MOST), read_token(fields)
        reason = fields.reason() or ""
        if not any(map(fields.given, ("runAt", "after", "priority"))):
            fields.refuse(
                "runAt", 'nothing is asked for: give runAt (an instant, or "now"), after or priority'
            )
        return self._changed(
            request,
            fields,
            lambda ledger, job_id: ledger.reschedule(
                job_id,
                when=when,
                priority=priority,
                revision=revision,
                token=token,
                reason=reason,
                by=who(request),
            ),
        )

    def confirm(self, request: Request, body: bytes) -> Response:
        """Say whether its last outside call has happened, where the ledger cannot know it."""
        fields = Fields.of_body(body, CONFIRM)
        happened, note = fields.flag("happened"), fields.reason("note") or fields.reason() or ""
        if not fields.given("happened"):
            fields.refuse("happened", "must be given: true or false")
        by = who(request)
        return self._changed(
            request, fields, lambda ledger, job_id: ledger.confirm(job_id, happened, note, by)
        )

    def _changed(self, request: Request, fields: Fields, act: Callable[[Ledger, str], bool]) -> Response:
        """Do it, and answer the job as it then stands, and whether anything was to be done."""
        tenant, reason = fields.tenant(), fields.reason()
        fields.done()
        ledger, job_id = self._app.ledger(tenant), request.path_params["id"]
        verb = request.url.path.rpartition("/")[2]
        changed = act(ledger, job_id)
        done = verb if changed else f"{verb} changed nothing"
        log.info("%s of job %s: %s", done, job_id, escaped(reason or "no reason given"))
        return answer({**self._view(ledger.get(job_id)), "changed": changed})

    def _view(self, view: JobView) -> Json:
        return views.job(view, self._app.registry)


def read_token(fields: Fields) -> str | None:
    """The sender's name of a call, so that it can be sent again."""
    token = fields.text("token")
    if token is not None:
        with fields.checking("token"):
            check_token(token)
    return token


def read_from(fields: Fields) -> bool:
    """Whether a retry begins from the start, and not at the last checkpoint."""
    return fields.choice("from", ("checkpoint", "start"), "checkpoint") == "start"


def read_when(fields: Fields) -> int | str | None:
    """A due time as the ledger takes it: `runAt` is an instant or "now", `after` a duration."""
    run_at, after = fields.text("runAt"), fields.text("after")
    if run_at is not None and after is not None:
        fields.refuse("after", "stands beside runAt: a job has one due time; leave one out")
        return None
    with fields.checking("after" if run_at is None else "runAt"):
        if run_at == "now":
            return "+0"
        return due(after, None if run_at is None else parse_instant(run_at, what="runAt"))
    return None


def ledger_of(app: App, request: Request) -> Ledger:
    """The ledger of the tenant that a request without other parameters names."""
    query = Fields.of_query(request.query_params.multi_items(), ("tenant",))
    tenant = query.tenant()
    query.done()
    return app.ledger(tenant)
