"""What the execution log must hold, worked out from the fire records and the rows of the fired jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..lease.ids import fire_id
from ..scheduler.execution_log import LogEntry, read_entry
from ..scheduler.job_key import JobKey
from ..scheduler.plan import month
from ..scheduler.skips import UNOBSERVED
from ..scripts.states import ENDED
from .compare import same

if TYPE_CHECKING:
    from .invariants import Tenant

Said = Iterator[tuple[str, str]]
_Skipped = tuple[str, str, int, int, int, str]


def the_log_tells_of_fires(tenant: Tenant) -> Said:
    """Each record of what was skipped has its entry, and so has each fired job that ended; no entry is there twice."""
    entries = [entry for found in _entries(tenant).values() for entry in found]
    for (of_month, job_key), found in _entries(tenant).items():
        yield from _stand_in_order(tenant, of_month, job_key, found)
    for event, many in Counter(entry.event_id for entry in entries).items():
        if many > 1:
            yield "I22", f"{many} entries of the log are event {event}"
    records = list(_records(tenant))
    skipped = Counter(_skip(entry) for entry in entries if entry.status == "Skipped")
    expected = Counter(
        (key, trigger, *span, reason)
        for key, trigger, *span, outcome, reason, _ in records
        if outcome == "skipped" and reason != UNOBSERVED
    )
    yield from same("I22", "log of what was skipped", skipped, expected)
    yield from _ends_are_told(tenant, entries, {job for *_, job in records})


def _stand_in_order(tenant: Tenant, of_month: str, job_key: str, found: list[LogEntry]) -> Said:
    clock = int(tenant.one("meta", {}).get(b"clock", 0))
    places = [int(entry.position) for entry in found]
    if places != sorted(set(places)):
        yield "I22", f"entries of {job_key} in {of_month} do not stand in the order of the clock"
    for entry in found:
        if int(entry.position) > clock:
            yield "I8", f"entry {entry.position} of {job_key} is ahead of the tenant clock"
        if month(entry.fire_time) != of_month:
            yield "I22", f"the log of {job_key} in {of_month} tells of {entry.fire_time}"


def _ends_are_told(tenant: Tenant, entries: list[LogEntry], fired: set[str]) -> Said:
    told = Counter(entry.job_id for entry in entries if entry.job_id)
    for job_id in told.keys() - fired:
        yield "I22", f"the log tells of job {job_id}, and no fire record does"
    for row in tenant.rows:
        if "log_month" not in row.fields:
            continue
        key, fire_time = tenant.long(row, "fire").partition(":")[::2], int(row.fields["fire_time"])
        if row.id != fire_id(tenant.name, key[1], key[0], fire_time):
            yield "I22", f"{row.id} says that it is a planned fire of {':'.join(key)}, and is not"
        newest = max((entry.round for entry in entries if entry.job_id == row.id), default=0)
        if row.state in ENDED and not newest:
            yield "I22", f"{row.id} is {row.state}, and the log does not tell of it"
        if newest > row.number("generation"):
            yield (
                "I22",
                f"the log tells of round {newest} of {row.id}, which is in {row.number('generation')}",
            )
        if row.state not in ENDED and newest == row.number("generation"):
            yield "I22", f"the log tells the end of {row.id}, which is {row.state}"


def _entries(tenant: Tenant) -> dict[tuple[str, str], list[LogEntry]]:
    return {
        (of_month, job_key): [read_entry(tenant.name, JobKey.parse(job_key), one) for one in entries]
        for (of_month, job_key), entries in tenant.all("entries").items()
    }


def _skip(entry: LogEntry) -> _Skipped:
    until = entry.fire_time if entry.until is None else entry.until
    return (
        str(entry.job_key),
        entry.trigger,
        entry.fire_time,
        until,
        entry.count,
        entry.reason or "",
    )


def _records(tenant: Tenant) -> Iterator[tuple[Any, ...]]:
    """(JobKey, trigger, first, last, count, outcome, reason, job) of each fire record."""
    for (_month, trigger, job_key), records in tenant.all("fires").items():
        for record in records:
            instant, outcome, reason, job, _at, _scheduler, until, count = record.decode().split(" ")
            last = int(instant) if until == "-" else int(until)
            yield job_key, trigger, int(instant), last, int(count), outcome, reason, job


def books_are_known(tenant: Tenant) -> Said:
    """Each list that records were added to is known by name, and stands at a clock that has been."""
    books = {name.decode(): score for name, score in tenant.one("books", {}).items()}
    lists = {f"f:{':'.join(name)}" for name in tenant.all("fires")}
    lists |= {f"xl:{':'.join(name)}" for name in tenant.all("entries")}
    for name in lists - books.keys():
        yield "I43", f"nobody knows of the book {name}"
    clock = int(tenant.one("meta", {}).get(b"clock", 0))
    for name, written in books.items():
        if written > clock:
            yield "I8", f"book {name} was written ahead of the tenant clock"
