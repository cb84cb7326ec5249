"""What the lines of pending jobs must hold, worked out from the rows: who is in line, who is hidden behind a
concurrency key, who holds one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..scripts.states import State
from .compare import same

if TYPE_CHECKING:
    from .invariants import Row, Tenant

BAND = 1 << 42
NEVER = BAND - 1
SHOWN_AT_MOST = 16
SIXTIETHS = 60
Said = Iterator[tuple[str, str]]
Ranks = dict[str, float]


def lines_follow_from_rows(tenant: Tenant) -> Said:
    """A pending job stands in its line or behind its key, which shows as many of each priority as it has room for."""
    lines: dict[str, Ranks] = {}
    waiters: dict[tuple[str, str], Ranks] = {}
    hidden: dict[str, Ranks] = {}
    for row in tenant.rows:
        if row.state is State.PENDING:
            key, line = key_of(tenant, row), line_of(row)
            ranks = lines.setdefault(line, {}) if key is None else waiters.setdefault((line, key), {})
            ranks[row.id] = row.rank
    for (line, key), ranks in waiters.items():
        shown = _heads(ranks, _shown(tenant, key, line))
        lines.setdefault(line, {}).update({id_: _place(tenant, key, line, id_, ranks[id_]) for id_ in shown})
        rest = {id_: ranks[id_] for id_ in ranks if id_ not in shown}
        hidden.setdefault(line.split("/")[0], {}).update(rest)
    yield from same("I3", "lines", _found(tenant, "queue"), _named(lines))
    yield from same("I3", "waiting at keys", _found(tenant, "waiters"), waiters)
    yield from same("I3", "hidden behind keys", _found(tenant, "hidden"), _named(hidden))
    yield from _shares_follow(tenant, set(waiters))
    meta = _meta(tenant)
    for line in (line for line, ids in lines.items() if ids):
        pool, _, task = line.partition("/")
        if task and task not in meta.get(f"lines:{pool}", "").split():
            yield "I43", f"task {task} has a line of its own in pool {pool}, and no claim looks there"
    for pool in {line.split("/")[0] for line in [*lines, *hidden]}:
        if f"due:{pool}" not in meta:
            yield "I43", f"jobs are pending in pool {pool}, and nobody is told of the pool"


def due_work_is_advertised(tenant: Tenant) -> Said:
    """Else a pending job waits for the slow sweep, or for ever. What a gate keeps back is told of when that opens."""
    meta, gates = _meta(tenant), _gates(tenant)
    if bool(gates) != ("gates" in meta):
        yield "I43", f"gates are {gates or 'none'}, and meta says {meta.get('gates')}"
    clock = int(meta.get("clock", 0)) // 1000
    for (line,), queue in tenant.all("queue").items():
        pool, _, task = line.partition("/")
        opens = max(
            clock,
            _held_until(gates.get("hold tenant ")),
            _held_until(gates.get(f"hold pool {pool}")),
            _held_until(gates.get(f"hold task {task}")) if task else 0,
            _paced_until(gates.get(f"rate {task}"), gates.get(f"used {task}")) if task else 0,
        )
        earliest = min(score % BAND for score in queue.values())
        told = meta.get(f"due:{pool}")
        if told is None or int(told) > max(earliest, opens):
            yield "I43", f"line {line} has a job due at {earliest:.0f} and tells {told}"


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


def line_of(row: Row) -> str:
    """The line a pending job stands in: its pool's, or its task's own there."""
    pool = row.fields["pool"]
    return f"{pool}/{row.fields['task']}" if "own_line" in row.fields else pool


def _share(tenant: Tenant, key: str) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = tenant.all("share").get((key,), {})
    return found


def _shown(tenant: Tenant, key: str, line: str) -> int:
    """How many of each priority the line shows: as many as there is room for, or as the rate limit let start then."""
    share = _share(tenant, key)
    room = int(share.get(b"limit", 1)) - len(tenant.all("holders").get((key,), {}))
    many = max(0, min(room, SHOWN_AT_MOST))
    return min(many, int(share.get(f">{line}".encode(), 0))) if b"rate" in share else many


def _place(tenant: Tenant, key: str, line: str, id_: str, rank: float) -> float:
    """Where a head stands: at its rank, or, with a rate limit, where it is due when that lets it start."""
    place: float = tenant.all("queue").get((line,), {}).get(id_.encode(), rank)
    limited = b"rate" in _share(tenant, key) and rank <= place < rank // BAND * BAND + BAND
    return place if limited else rank


def _heads(ranks: Ranks, many: int) -> set[str]:
    bands: dict[float, list[tuple[float, str]]] = {}
    for id_, rank in ranks.items():
        bands.setdefault(rank // BAND, []).append((rank, id_))
    return {id_ for band in bands.values() for _, id_ in sorted(band)[:many]}


def _shares_follow(tenant: Tenant, waited: set[tuple[str, str]]) -> Said:
    """A key remembers how many each line shows of it, and nothing when nobody waits and nobody holds it."""
    for (key,), share in tenant.all("share").items():
        expected = {f">{line}": _shown(tenant, key, line) for line, name in waited if name == key}
        found = {
            name.decode(): int(value) for name, value in share.items() if name not in (b"limit", b"rate")
        }
        yield from same("I3", f"lines of key {key}", found, expected)
        if not expected and (key,) not in tenant.all("holders"):
            yield "I3", f"key {key} is remembered, and nobody uses it"
    for line, key in waited:
        if (key,) not in tenant.all("share"):
            yield "I3", f"jobs wait at key {key} in line {line}, and it does not know of them"


def _held_until(hold: str | None) -> int:
    return (int(hold.split(" ", 1)[0]) or NEVER) if hold else 0


def _paced_until(rate: str | None, used: str | None) -> int:
    """When the last start of a rate limit counts no more, at the latest."""
    if not rate or not used:
        return 0
    period = int(rate.split(" ")[1])
    width = math.ceil(period / SIXTIETHS)
    return max((int(start.split(":")[0]) + 1) * width + period for start in used.split())


def _meta(tenant: Tenant) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in tenant.one("meta", {}).items()}


def _gates(tenant: Tenant) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in tenant.one("gates", {}).items()}


def _named(lines: dict[str, Ranks]) -> dict[tuple[str, ...], Ranks]:
    return {(name,): ids for name, ids in lines.items() if ids}


def _found(tenant: Tenant, family: str) -> dict[tuple[str, ...], Ranks]:
    return {
        names: {id_.decode(): score for id_, score in members.items()}
        for names, members in tenant.all(family).items()
    }
