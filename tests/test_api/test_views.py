"""What clients see, from values alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tenure.api.plain import escaped, instant, jsonable
from tenure.api.progress import eta, percent
from tenure.api.views import background_task, error, job, job_with_attempts
from tenure.lease.jobs import Attempt, JobView, Progress
from tenure.lease.payload import pack, pack_args
from tenure.scripts.states import State

NOW = 1_790_000_000_000

PROGRESS = Progress(
    done=None,
    total=None,
    doing=None,
    message="",
    busy_ms=0,
    running_since=None,
    updated_at=None,
    samples=(),
    lines=(),
)
ATTEMPT = Attempt(
    number=1,
    generation=1,
    status="running",
    cause=None,
    fence=7,
    worker="w1",
    started_at=NOW - 2000,
    ended_at=None,
    chunks=0,
    error=None,
    stack=None,
)
VIEW = JobView(
    tenant="acme",
    id="01J00000000000000000000000",
    task="orders.sync",
    status=State.RUNNING,
    pool="advance",
    priority=5,
    created_at=NOW - 5000,
    run_at=NOW - 5000,
    start_by=None,
    started_at=NOW - 2000,
    finished_at=None,
    generation=1,
    revision=4,
    fence=7,
    lease_until=NOW + 60_000,
    worker="w1",
    failures=0,
    losses=0,
    max_attempts=3,
    max_lost=3,
    timeout_ms=600_000,
    chunk=0,
    edit=0,
    args=b"",
    result=b"",
    cursor=b"",
    dead_reason=None,
    fingerprint=None,
    confirmed=None,
    reason=None,
    idempotency_key=None,
    source="api",
    trace="01J00000000000000000000000",
    instance=None,
    fire=None,
    fire_time=None,
    background=True,
    attempts=(ATTEMPT,),
    history=(),
    progress=PROGRESS,
    blocker=None,
    read_at=NOW,
)


def seen(status: State = State.RUNNING, run_at: int = NOW - 5000, **progress: Any) -> JobView:
    return replace(VIEW, status=status, run_at=run_at, progress=replace(PROGRESS, **progress))


@pytest.mark.parametrize(
    ("status", "done", "total", "expected"),
    [
        (State.RUNNING, 53, 100, 53.0),
        (State.RUNNING, 1, 3, 33.3),
        (State.RUNNING, None, 100, 0.0),
        (State.RUNNING, 53, None, None),
        (State.RUNNING, 53, 0, None),
        (State.RUNNING, 53, -1, None),
        (State.RUNNING, 9996, 10_000, 99.9),
        (State.RUNNING, 100, 100, 99.9),
        (State.RUNNING, 10**400, 100, 99.9),
        (State.RUNNING, -5, 100, 0.0),
        (State.PENDING, 100, 100, 99.9),
        (State.DEAD, 53, 100, 53.0),
        (State.DEAD, 100, 100, 99.9),
        (State.CANCELED, 100, 100, 99.9),
        (State.SUCCEEDED, 100, 100, 100.0),
        (State.SUCCEEDED, 95, 100, 100.0),
        (State.SUCCEEDED, 95, None, None),
    ],
)
def test_percent_is_committed_work_and_100_only_with_succeeded(
    status: State, done: int | None, total: int | None, expected: float | None
) -> None:
    assert percent(seen(status, done=done, total=total)) == expected


STEADY = tuple((1000 * at, 10 * at) for at in range(1, 9))


def test_eta_is_an_instant_between_a_low_and_a_high() -> None:
    known = eta(seen(done=80, total=100, samples=STEADY, busy_ms=8000, running_since=NOW))

    assert known is not None
    assert known["state"] == "known"
    assert known["at"] == instant(NOW + 2000)
    assert NOW < NOW + 2000
    assert str(known["low"]) < str(known["at"]) < str(known["high"])


@pytest.mark.parametrize(
    "view",
    [
        seen(done=80, total=None, samples=STEADY),
        seen(done=10, total=100, samples=STEADY[:1]),
        seen(),
        seen(State.PAUSED, done=80, total=100, samples=STEADY, busy_ms=8000),
    ],
)
def test_eta_says_estimating_while_it_deserves_no_number(view: JobView) -> None:
    assert eta(view) == {"state": "estimating", "at": None, "low": None, "high": None}


@pytest.mark.parametrize("status", [State.SUCCEEDED, State.DEAD, State.CANCELED, State.FAILED])
def test_eta_is_null_once_the_task_has_ended(status: State) -> None:
    assert eta(seen(status, done=80, total=100, samples=STEADY)) is None


def test_eta_between_chunks_counts_from_when_the_next_is_due() -> None:
    waiting = seen(State.PENDING, NOW + 60_000, done=80, total=100, samples=STEADY, busy_ms=68_000)

    known = eta(waiting)

    assert known is not None
    assert known["at"] == instant(NOW + 61_000), "a second of it is the usual one between two commits"


def test_a_background_task_has_the_fields_of_the_contract() -> None:
    assert list(background_task(VIEW)) == [
        *(
            "id",
            "tenant",
            "task",
            "status",
            "deadReason",
            "stage",
            "done",
            "doing",
            "total",
            "unit",
            "percent",
        ),
        *("message", "warnings", "chunk", "attempt", "eta", "record", "binding", "log", "error", "result"),
        *("createdAt", "startedAt", "updatedAt", "finishedAt", "revision"),
    ]


def test_a_job_has_the_fields_of_the_contract() -> None:
    assert list(job(VIEW)) == [
        *(
            "id",
            "tenant",
            "task",
            "source",
            "status",
            "deadReason",
            "fingerprint",
            "confirmed",
            "pool",
            "priority",
            "runAt",
            "startBy",
            "createdAt",
            "startedAt",
        ),
        *(
            "finishedAt",
            "generation",
            "fence",
            "leaseUntil",
            "worker",
            "timeoutMs",
            "attempts",
            "args",
            "kwargs",
            "result",
        ),
        *(
            "error",
            "traceId",
            "parentId",
            "instanceId",
            "remainingMs",
            "nodeId",
            "nodeName",
            "definitionId",
            "definitionVersion",
        ),
        *("executionId", "workItemId", "repeatRule", "record", "labels", "idempotencyKey", "concurrencyKey"),
        "exclusive",
        *("operationKey", "revision"),
    ]
    (attempt,) = job_with_attempts(VIEW)["attemptList"]  # type: ignore[misc, attr-defined]
    assert list(attempt) == [
        *("number", "generation", "status", "cause", "chunk", "fence", "worker", "startedAt", "endedAt"),
        *("durationMs", "error", "limitCode", "callPath", "request", "response"),
    ]


def test_log_lines_and_messages_cannot_steer_a_terminal_or_a_log() -> None:
    odd = '\x1b[2J\r\n{"level": 1}\u202egnp.exe\x9b31m'

    view = background_task(seen(message=odd, lines=((7, NOW, odd),)))

    safe = '\\x1b[2J\\r\\n{"level": 1}\\u202egnp.exe\\x9b31m'
    assert view["message"] == safe
    assert view["log"] == [{"n": 7, "at": instant(NOW), "text": safe}]


def test_ordinary_text_of_any_script_stays_as_it_is() -> None:
    for text in ("naïve café", "导入订单\u3000第一批", "שלום", "👩‍🚀 \u00a0", "<b>&amp;"):
        assert escaped(text) == text


@pytest.mark.parametrize(
    ("summary", "cause", "expected"),
    [
        ("ValueError: bad row\n  7", "raised", {"type": "ValueError", "message": "bad row\n  7"}),
        ("KeyError", "raised", {"type": "KeyError", "message": ""}),
        ("RetryAfter: later", "refused", {"type": "RetryAfter", "message": "later"}),
        ("Slot: died", "killed", {"type": None, "message": "Slot: died"}),
        (
            "result cannot be stored: no",
            "too_large",
            {"type": None, "message": "result cannot be stored: no"},
        ),
    ],
)
def test_an_error_names_the_class_of_what_was_raised(
    summary: str, cause: str, expected: dict[str, Any]
) -> None:
    failed = replace(ATTEMPT, status="failed", cause=cause, ended_at=NOW, error=summary)

    assert error(replace(VIEW, attempts=(failed,))) == {**expected, "attempt": 1}


def test_an_error_that_was_overcome_is_not_the_jobs_error() -> None:
    failed = replace(ATTEMPT, status="failed", cause="raised", ended_at=NOW, error="ValueError: once")

    assert error(replace(VIEW, status=State.SUCCEEDED, attempts=(failed,))) is None


def test_values_that_json_lacks_have_a_form_of_their_own() -> None:
    value = {
        1: b"\x00\xff",
        "far": float("inf"),
        "none": float("nan"),
        "big": 2**63 - 1,
        "list": (1.5, None, True),
    }

    view = job(replace(VIEW, status=State.SUCCEEDED, result=pack(value, what="result")))

    assert view["result"] == {
        "1": {"base64": "AP8="},
        "far": "inf",
        "none": "nan",
        "big": 9223372036854775807,
        "list": [1.5, None, True],
    }


def test_arguments_are_shown_as_they_were_given() -> None:
    view = job(replace(VIEW, args=pack_args([130775545883395173, "{x}"], {"after": [1e-7]})))

    assert (view["args"], view["kwargs"]) == ([130775545883395173, "{x}"], {"after": [1e-7]})


def test_an_instant_is_rfc_3339_in_utc_with_milliseconds() -> None:
    assert instant(1_790_000_000_007) == "2026-09-21T14:13:20.007Z"
    assert instant(0) == "1970-01-01T00:00:00.000Z"
    assert instant(None) is None


def test_jsonable_leaves_nothing_that_json_cannot_hold() -> None:
    assert jsonable(object) == "<class 'object'>"
