"""Background tasks: start one, see them, cancel one."""

from __future__ import annotations

import logging

from starlette.requests import Request
from starlette.responses import Response

from ..lease.context import Record, check_record
from ..lease.jobs import JobView
from ..lease.ledger import Ledger
from ..lease.limits import check_concurrency_key
from ..lease.requests import Options, check_idempotency_field, check_idempotency_key
from ..lease.tasks import Task
from ..scripts.errors import NotFound
from ..scripts.states import State
from . import views
from .calls import CALL, Call, read_call
from .fields import Fields
from .job_filters import query_of, read_page
from .jobs import MOST, read_from, read_token, read_when
from .needs import App
from .plain import Json, escaped
from .refusals import NotStartable
from .routing import answer, link
from .who import who

LOG_LINES = 100
START = (
    *CALL,
    "tenant",
    "idempotencyKey",
    "idempotencyFields",
    "concurrencyKey",
    "record",
    "binding",
    "reason",
)
RETRY = ("tenant", "reason", "from", "runAt", "after", "generation", "token")
log = logging.getLogger("tenure.api")


class Background:
    def __init__(self, app: App) -> None:
        self._app = app

    def start(self, request: Request, body: bytes) -> Response:
        """Start a task; asked again with the same idempotency key, answer the one that runs."""
        fields = Fields.of_body(body, START)
        call, reason = read_call(fields, self._app.registry), fields.reason()
        tenant, record, binding = fields.tenant(), _record(fields), fields.text("binding")
        key, by = _idempotency(fields, call)
        if binding is not None:
            with fields.checking("binding"):
                self._app.check_binding(binding)
            if not fields.given("record"):
                fields.refuse("record", 'must be given with a binding: {"type": "order", "id": "4711"}')
        concurrency_key = fields.text("concurrencyKey")
        if concurrency_key is not None:
            with fields.checking("concurrencyKey", hint=""):
                check_concurrency_key(concurrency_key)
        fields.done()
        options = Options(
            tenant=tenant,
            idempotency_key=key,
            idempotency_fields=by,
            concurrency_key=concurrency_key,
            record=record,
            binding=binding,
            by=who(request),
        )
        assert call
        started = self._app.enqueue(offered(call.task), call.args, call.kwargs, options)
        view = self._app.ledger(options.tenant).get(started.id)
        log.info("%s of %s started: %s", view.id, view.task, escaped(reason or "no reason given"))
        links = links_of(request, view)
        content = {"id": view.id, "created": started.created, "status": view.status, "links": links}
        return answer(content, 202 if started.created else 200, location=str(links["self"]))

    def list(self, request: Request) -> Response:
        """Those of the tasks registered here, newest first."""
        query = query_of(request.query_params.multi_items())
        known = {name for task in self._app.registry if task.background for name in (task.key, *task.aliases)}
        wanted = query.text("task")
        found = read_page(self._app, query, known if wanted is None else (wanted,), background=True)
        return answer(views.jobs_page(found, lambda view: views.background_task(view, log=False)))

    def cancel(self, request: Request, body: bytes) -> Response:
        """Cancel it, and answer it as it then stands; a canceled one stays as it is."""
        fields = Fields.of_body(body, ("tenant", "reason"))
        tenant, reason = fields.tenant(), fields.reason()
        fields.done()
        ledger = self._app.ledger(tenant)
        view = background_task(ledger, request.path_params["id"])
        before = ledger.cancel(view.id, reason or "", who(request))
        changed = before != State.CANCELED
        done = f"canceled, it was {before}" if changed else "cancel changed nothing"
        log.info("%s %s: %s", view.id, done, escaped(reason or "no reason given"))
        return answer({**views.background_task(background_task(ledger, view.id)), "changed": changed})

    def retry(self, request: Request, body: bytes) -> Response:
        """Begin a new round of it, at its last checkpoint or from the start, and answer it as it then stands."""
        fields = Fields.of_body(body, RETRY)
        tenant, reason, when = fields.tenant(), fields.reason() or "", read_when(fields)
        from_start, generation = read_from(fields), fields.optional_number("generation", 1, MOST)
        token = read_token(fields)
        fields.done()
        ledger = self._app.ledger(tenant)
        view = background_task(ledger, request.path_params["id"])
        began = ledger.retry(
            view.id,
            from_start=from_start,
            when=when,
            generation=generation,
            token=token,
            reason=reason,
            by=who(request),
        )
        log.info("%s retried, round %s: %s", view.id, began, escaped(reason or "no reason given"))
        return answer({**views.background_task(background_task(ledger, view.id)), "changed": True})


def _idempotency(fields: Fields, call: Call | None) -> tuple[str | None, list[str] | None]:
    """The idempotency key, or the names of the arguments of which it is made."""
    key, names = fields.text("idempotencyKey"), fields.texts("idempotencyFields")
    if key is not None:
        with fields.checking("idempotencyKey", hint=""):
            check_idempotency_key(key)
    if names is None or not fields.fine("idempotencyFields"):
        return key, names
    if fields.given("idempotencyKey"):
        fields.refuse("idempotencyFields", "stands beside idempotencyKey; leave one out")
    if not names:
        fields.refuse("idempotencyFields", "must name an argument of the task, or be left out")
    elif call:
        named = call.task.named(tuple(call.args), call.kwargs)
        for at, name in enumerate(names):
            with fields.checking("idempotencyFields", at=at):
                check_idempotency_field(call.task, name, named)
    return key, names


def _record(fields: Fields) -> Record | None:
    """The business record that `{type, id}` names."""
    named = fields.part("record", ("type", "id"))
    if named is None:
        return None
    record = (named.needed_text("type"), named.needed_text("id"))
    if all(record):
        with fields.checking("record", hint='{"type": "order", "id": "4711"}'):
            check_record(record)
    return record


def offered(task: Task) -> Task:
    """The task, if it may be started over HTTP. Raises NotStartable."""
    if not task.background:
        raise NotStartable(
            f"task {task.key} is no background task",
            hint="register it with @app.background to start it over HTTP",
        )
    if not task.startable:
        raise NotStartable(
            f"task {task.key} is not offered over HTTP",
            hint="register it with startable=True, or start it in Python or with `tenure background start`",
        )
    return task


def background_task(ledger: Ledger, job_id: str) -> JobView:
    """The background task of that id. Raises NotFound, also for another kind of job."""
    return of_background(ledger.get(job_id, lines=LOG_LINES))


def of_background(view: JobView) -> JobView:
    """The job, if it is a background task. Raises NotFound."""
    if not view.background:
        raise NotFound(f"job {view.id} is no background task", hint=f"GET /jobs/{view.id}")
    return view


def links_of(request: Request, view: JobView) -> Json:
    """Where to look next. Paths, not addresses: they hold under any mount and behind any host name."""
    tenant = {"tenant": view.tenant}
    task = ("background-tasks", view.id)
    return {
        "self": link(request, task, tenant),
        "events": link(request, (*task, "events"), tenant),
        "page": link(request, ("progress", "tasks", view.id, "page"), tenant),
    }
