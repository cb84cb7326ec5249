"""What each code means and what to do about it: of errors, of dead jobs, of ended attempts."""

from __future__ import annotations

from dataclasses import dataclass

from ..api import refusals
from ..scheduler import cron_parse
from ..scripts import errors
from ..scripts.errors import TenureError
from ..scripts.states import Cause, DeadReason
from ..scripts.wording import exit_code
from . import serve


@dataclass(frozen=True, slots=True)
class Explanation:
    code: str
    kind: str
    means: str
    do: str
    exit: int | None = None


def explanations() -> list[Explanation]:
    """All codes there are. Raises KeyError for one that nobody has explained; a test asks for all."""
    return [
        *(Explanation(code, "error", *_ERRORS[code], _exit_of(kind)) for code, kind in _errors().items()),
        *(Explanation(reason, "dead job", *_DEAD[reason]) for reason in DeadReason),
        *(Explanation(cause, "attempt", *_CAUSES[cause]) for cause in Cause),
    ]


def _errors() -> dict[str, type[TenureError]]:
    """Every code, with the first of the classes that have it."""
    found: dict[str, type[TenureError]] = {}
    for module in (errors, cron_parse, refusals, serve):
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, TenureError):
                found.setdefault(kind.code, kind)
    return found


def _exit_of(kind: type[TenureError]) -> int | None:
    """The exit code of a command that ends with it; None for what only an answer over HTTP can be."""
    only_http = kind.__module__ == refusals.__name__ and not issubclass(kind, errors.BadInput)
    return None if only_http else exit_code(kind)


_ERRORS: dict[str, tuple[str, str]] = {
    "TENURE_ERROR": ("something Tenure refused", "read its sentence; it is the base of all others"),
    "BAD_INPUT": ("a value breaks a rule; nothing was changed", "correct the value its sentence names"),
    "BAD_PAYLOAD": (
        "a value cannot be stored exactly",
        "pass plain values: None, bool, int, float, str, bytes, list, dict",
    ),
    "PAYLOAD_TOO_LARGE": (
        "arguments or a cursor are over 256 KB; the message names the largest part",
        "store the data elsewhere and pass its name",
    ),
    "RESULT_TOO_LARGE": (
        "what a task returned is over 256 KB; the job is dead, for its work is done and would end so again",
        "store it elsewhere and return its name",
    ),
    "BAD_CRON": (
        "a cron expression breaks a rule",
        "look at the field and position named; tenure cron explain EXPRESSION tries it",
    ),
    "UNKNOWN_TASK": (
        "no task of that name is registered",
        "look at the spelling, and whether the application imports the module that registers it",
    ),
    "NOT_FOUND": (
        "there is no such job, schedule, calendar or lease in this tenant",
        "look at the id and the tenant (--tenant); tenure jobs list, tenure cron list",
    ),
    "CONFLICT": ("the state of things forbids it", "look how it stands now, then decide again"),
    "KEY_REUSED": (
        "the idempotency key belongs to a job of another task, or with other arguments",
        "use another key, or send the same task and arguments as the first time",
    ),
    "WRONG_STATE": (
        "a job in this state does not allow that; the sentence names the state",
        "failed, dead and canceled ones take retry, pending ones reschedule, all but succeeded ones cancel and skip",
    ),
    "STALE_PLAN": (
        "the schedule or job has changed since it was read",
        "read it again (tenure cron show, tenure jobs show), then repeat the change",
    ),
    "IN_USE": (
        "something is needed by others and cannot be deleted; the message names them",
        "change those that use it first (tenure calendars show NAME lists them)",
    ),
    "SCHEDULING_DISABLED": (
        "scheduling of the tenant is disabled, or its settings cannot be read: nothing fires, not even by hand",
        "tenure tenants show TENANT says since when and why; tenure tenants enable-scheduling TENANT enables it again",
    ),
    "INSTANCE_ENDED": (
        "the instance has ended: it is not suspended or resumed, and its canceled jobs are not retried",
        "nothing; for new work begin a new instance, and to try a job again make it anew without this one",
    ),
    "OUTCOME_UNKNOWN": (
        "the job ended inside an outside call that may or may not have happened",
        "find out on the other side, then tenure jobs confirm ID --happened or --not-happened",
    ),
    "OUTCOME_HAPPENED": (
        "a person has confirmed that the job's last outside call happened",
        "tenure jobs skip ID; to send it again all the same, tenure jobs retry ID --force with a reason",
    ),
    "STALE_FENCE": (
        "a later holder has taken over; this one may write nothing",
        "stop and write nothing: whoever holds it now goes on",
    ),
    "LEASE_LOST": (
        "the right to work has ended",
        "stop and write nothing; if it happens often, raise TENURE_LEASE_MS or look at the machine's load",
    ),
    "LEASE_TAKEN": ("somebody else holds the named lease", "wait longer (wait=...), or until it is released"),
    "CANCELED": ("a person canceled the job", "nothing: the task should clean up and end"),
    "JOB_FAILED": (
        "the job whose result was asked for did not succeed",
        "tenure jobs show ID has its errors",
    ),
    "MISSING_EXTRA": (
        "an optional package is needed and not installed",
        "install the extra its sentence names",
    ),
    "PORT_UNAVAILABLE": (
        "another process has the port, or this user may not have it",
        "choose another (--port), or end the process that has it: ss -ltnp",
    ),
    "STORE_ERROR": ("the server refused a call", "tenure status; and look at the server's log"),
    "STORE_UNREACHABLE": (
        "the server is away, still loading, or does not answer in time",
        "start it or correct TENURE_REDIS_URL; without that Tenure starts its own",
    ),
    "STORE_TOO_OLD": (
        "the server is older than 7.0",
        "use Redis or Valkey 7.0 or newer, or no TENURE_REDIS_URL",
    ),
    "STORE_READ_ONLY": (
        "the server takes no writes: it is a replica, or lacks replicas",
        "point TENURE_REDIS_URL at the primary",
    ),
    "STORE_FULL": (
        "the server is out of memory or cannot write to its disk",
        "raise maxmemory or free disk space; see the server's log",
    ),
    "ARCHIVE_UNREACHABLE": (
        "the archive's database does not answer as it should; what was asked for is not in Redis and may be there",
        "tenure archive check says what is wrong; archivers keep what is new in their spool meanwhile",
    ),
    "STORE_EVICTS": (
        "the server would throw jobs away when it is full",
        "redis-cli CONFIG SET maxmemory-policy noeviction, and the same in its configuration",
    ),
    "STORE_REFUSED": (
        "the server refused this user, or the folder of the embedded one is not private",
        "do what its sentence says: credentials in TENURE_REDIS_URL, rights at the server, or chmod 700",
    ),
    "BAD_JSON": (
        "the body of a request is not JSON as Tenure takes it",
        "correct it where its sentence points",
    ),
    "BODY_TOO_LARGE": ("the body of a request is too large", "store the data elsewhere and pass its name"),
    "BODY_TOO_SLOW": ("the body of a request did not arrive in time", "send it again"),
    "NOT_JSON": ("the body of a request is of another type", "set the header Content-Type: application/json"),
    "ENCODED": ("the body of a request is compressed", "send it as it is"),
    "LOOPBACK_ONLY": (
        "a request came from another machine",
        "ask from this machine: the API serves no other",
    ),
    "WRONG_HOST": ("a request named a host that is not this machine", "ask http://127.0.0.1:PORT"),
    "CROSS_ORIGIN": ("a page of another site sent a request", "send it from a page of this origin"),
    "UNKNOWN_BINDING": (
        "no binding of that name is registered, so no business row would follow the task",
        "register it with app.binding(NAME, ..., may=...), or correct the name",
    ),
    "NO_SUCH_ROW": (
        "the business row that a binding is to write is not there; the task goes on",
        "make the row, or correct the record: the binding tries again",
    ),
    "NOT_ALLOWED": (
        "the binding's `may` does not let this user start a task for that record: no task was made, no row touched",
        "start it as somebody who may, or for another record",
    ),
    "RIGHTS_UNKNOWN": (
        "the application's own `may` of a binding, or `authorize` of app.progress, raised an error: nothing was done",
        "mend what it asks, or the function itself; its sentence or the application's log has the error",
    ),
    "NOT_STARTABLE": (
        "the task is not offered over HTTP",
        "register it with @app.background(..., startable=True), or start it with tenure background start",
    ),
    "NO_SUCH_PATH": ("the API has nothing at this path", "GET /tasks is a beginning"),
    "METHOD_NOT_ALLOWED": ("the path does not have this method", "the header Allow says which it has"),
    "INTERNAL": ("a mistake of ours", "look for the traceId in the log of the API, and report it"),
    "DURABILITY_UNAVAILABLE": (
        "the server cannot keep jobs as safely as was asked",
        "turn appendonly on at the server, or lower TENURE_DURABILITY",
    ),
}

_DEAD: dict[DeadReason, tuple[str, str]] = {
    DeadReason.ATTEMPTS_EXHAUSTED: ("it failed as often as it may", "repair the cause: tenure jobs show ID"),
    DeadReason.PERMANENT_ERROR: (
        "it raised an error that trying again cannot cure, or its result was too large",
        "repair the input or the code: tenure jobs show ID",
    ),
    DeadReason.OUTCOME_UNKNOWN: (
        "it ended inside an outside call that may or may not have happened",
        "find out on the other side whether it happened, then tenure jobs confirm ID",
    ),
    DeadReason.LOST_TOO_OFTEN: (
        "its workers died or lost it too often: it may be what kills them",
        "look for out-of-memory kills and crashes on the workers of its attempts: tenure jobs show ID",
    ),
    DeadReason.EXPIRED: (
        "it was not started by its latest start time",
        "add workers or slots, or allow more time",
    ),
}

_CAUSES: dict[Cause, tuple[str, str]] = {
    Cause.RAISED: ("the task raised an error", "tenure jobs show ID has it"),
    Cause.LIMIT: (
        "the task crossed one of its budgets",
        "the error says which and what to change: smaller chunks, a recursion that ends, no cycle of tasks",
    ),
    Cause.TOO_LARGE: ("what it returned is too large to keep", "store it elsewhere and return its name"),
    Cause.REFUSED: ("the other side asked to come back later", "nothing: it is tried again then"),
    Cause.TIMEOUT: ("it ran longer than its time-out", "raise the task's timeout, or work in chunks"),
    Cause.LEASE_LOST: (
        "its worker did not renew in time",
        "look at that worker's load and network; it is tried again",
    ),
    Cause.KILLED: ("its process was killed", "look for an out-of-memory kill; it is tried again"),
    Cause.RELEASED: ("its worker stopped and handed it back", "nothing: another worker takes it"),
    Cause.CANCELED: ("a person canceled it", "nothing"),
    Cause.PAUSED: ("a person paused it", "nothing until it is resumed"),
}
