"""What the lines of pending jobs must hold, worked out from the rows: who is in line, who is hidden behind a
concurrency key, who holds one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..scripts.states import State
from .compare import same

if TYPE_CHECKING:
    from .invariants import Row, Tenant

SHOWN_AT_MOST = 16
Said = Iterator[tuple[str, str]]
Ranks = dict[str, float]


def lines_follow_from_rows(tenant: Tenant) -> Said:
    """A pending job stands in its line or behind its key, which shows as many of each priority as it has room for."""
    lines: dict[str, Ranks] = {}
    waiters: dict[tuple[str, str], Ranks] = {}
    hidden: dict[str, Ranks] = {}
    for row in tenant.rows:
        if row.state is State.PENDING:
            key, pool = key_of(tenant, row), row.fields["pool"]
            ranks = lines.setdefault(pool, {}) if key is None else waiters.setdefault((pool, key), {})
            ranks[row.id] = row.rank
    for (line, key), ranks in waiters.items():
        shown = _heads(tenant, ranks, _room(tenant, key))
        lines.setdefault(line, {}).update({id_: ranks[id_] for id_ in shown})
        hidden.setdefault(line, {}).update({id_: ranks[id_] for id_ in ranks if id_ not in shown})
    yield from same(
        "I3", "lines", _found(tenant, "queue"), {(line,): ids for line, ids in lines.items() if ids}
    )
    yield from same("I3", "waiting at keys", _found(tenant, "waiters"), waiters)
    yield from same(
        "I3",
        "hidden behind keys",
        _found(tenant, "hidden"),
        {(pool,): ids for pool, ids in hidden.items() if ids},
    )
    yield from _shares_follow(tenant, set(waiters))


def keys_are_held_by_those_who_run(tenant: Tenant) -> Said:
    """A holder is a running job's fence, or one that was taken from its worker and has not stopped; nobody else."""
    expected: dict[tuple[str, ...], dict[str, str]] = {}
    for row in tenant.rows:
        key = key_of(tenant, row)
        if key is not None and row.state is State.RUNNING:
            expected.setdefault((key,), {})[row.fields["fence"]] = row.id
    for member in tenant.one("lingering", {}):
        fence, id_, key = member.decode().split(" ", 2)
        if fence in expected.get((key,), {}):
            yield "I7", f"{id_} lingers under fence {fence}, under which a job runs"
        expected.setdefault((key,), {})[fence] = id_
    found = {
        names: {fence.decode(): id_.decode() for fence, id_ in holders.items()}
        for names, holders in tenant.all("holders").items()
    }
    yield from same("I3", "holders of keys", found, expected)


def key_of(tenant: Tenant, row: Row) -> str | None:
    """The concurrency key of a job, as the scripts name it."""
    if "concurrency_key" in row.fields:
        return f"u:{tenant.long(row, 'concurrency_key')}"
    return f"i:{tenant.long(row, 'instance')}" if "exclusive" in row.fields else None


def _room(tenant: Tenant, key: str) -> int:
    limit = int(tenant.all("share").get((key,), {}).get(b"limit", 1))
    return limit - len(tenant.all("holders").get((key,), {}))


def _heads(tenant: Tenant, ranks: Ranks, room: int) -> set[str]:
    bands: dict[float, list[tuple[float, str]]] = {}
    for id_, rank in ranks.items():
        bands.setdefault(rank // (1 << 42), []).append((rank, id_))
    return {id_ for band in bands.values() for _, id_ in sorted(band)[: max(0, min(room, SHOWN_AT_MOST))]}


def _shares_follow(tenant: Tenant, waited: set[tuple[str, str]]) -> Said:
    """A key remembers how many each line shows of it, and nothing when nobody waits and nobody holds it."""
    for (key,), share in tenant.all("share").items():
        expected = {
            f">{line}": max(0, min(_room(tenant, key), SHOWN_AT_MOST)) for line, name in waited if name == key
        }
        found = {name.decode(): int(value) for name, value in share.items() if name != b"limit"}
        yield from same("I3", f"lines of key {key}", found, expected)
        if not expected and (key,) not in tenant.all("holders"):
            yield "I3", f"key {key} is remembered, and nobody uses it"
    for line, key in waited:
        if (key,) not in tenant.all("share"):
            yield "I3", f"jobs wait at key {key} in line {line}, and it does not know of them"


def _found(tenant: Tenant, family: str) -> dict[tuple[str, ...], Ranks]:
    return {
        names: {id_.decode(): score for id_, score in members.items()}
        for names, members in tenant.all(family).items()
    }
