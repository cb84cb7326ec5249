"""Which jobs a query string asks for, and the page of them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from ..lease.context import check_labels, check_record, check_text, check_trace
from ..lease.filters import Q_LIMIT, Filters, check_range
from ..lease.instants import parse_instant, to_ms
from ..lease.jobs import Page
from ..scheduler.job_pages import find_jobs
from ..scripts.states import State
from .fields import Fields
from .needs import App

CURSOR_LIMIT = 16_000
FILTERS = (
    "tenant",
    "status",
    "task",
    "instance",
    "node",
    "trace",
    "record",
    "label",
    "q",
    "createdFrom",
    "createdTo",
    "fingerprint",
    "limit",
    "cursor",
)


def query_of(pairs: list[tuple[str, str]]) -> Fields:
    """The fields of a query string that asks for jobs; `label` may stand several times."""
    return Fields.of_query(pairs, FILTERS, many=("label",))


def read_page(app: App, query: Fields, tasks: Collection[str] | None, *, background: bool = False) -> Page:
    """The page of jobs of `tasks` (None: of all) that a query string asks for."""
    tenant, status = query.tenant(), query.choice("status", tuple(State), None)
    limit, cursor = query.number("limit", 50, 1, 100), query.text("cursor", CURSOR_LIMIT)
    found = {
        "status": status,
        "tasks": tasks,
        "instance": _checked(query, "instance", str, check_text("instance")),
        "node": _checked(query, "node", str, check_text("node")),
        "trace": _checked(query, "trace", str, check_trace),
        "record": _checked(query, "record", _record, check_record),
        "labels": _labels(query),
        "q": query.text("q", Q_LIMIT),
        "created_from": _instant(query, "createdFrom"),
        "created_to": _instant(query, "createdTo"),
        "fingerprint": _checked(query, "fingerprint", str, lambda value: Filters(fingerprint=value)),
        "background": background,
    }
    with query.checking("createdTo"):
        check_range("createdFrom", found["created_from"], "createdTo", found["created_to"])
    query.done()
    filters: Filters | None = None
    with query.checking("q"):  # all others have been checked
        filters = Filters(**found)
    query.done()
    assert filters
    return find_jobs(app.ledger(tenant), app.archive, filters, limit=limit, cursor=cursor)


def _checked(query: Fields, name: str, read: Callable[[str], Any], check: Callable[[Any], object]) -> Any:
    text = query.text(name)
    if text is None:
        return None
    value = read(text)
    with query.checking(name):
        check(value)
    return value


def _record(text: str) -> tuple[str, str]:
    kind, _, name = text.partition(":")
    return kind, name


def _labels(query: Fields) -> dict[str, str]:
    """Each `label` is name=value."""
    pairs = [text.partition("=") for text in query.texts("label") or ()]
    labels = {name: value for name, _, value in pairs}
    if len(labels) < len({(name, value) for name, _, value in pairs}):
        query.refuse("label", "names one label with two values: no job has both")
    with query.checking("label"):
        check_labels(labels)
    return labels


def _instant(query: Fields, name: str) -> int | None:
    text = query.text(name)
    if text is not None:
        with query.checking(name):
            return to_ms(parse_instant(text, what=name), what=name)
    return None
