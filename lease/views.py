"""Turn the scripts' replies into the values of `jobs`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..scripts.fields import DEFAULTS
from ..scripts.loader import texts
from ..scripts.states import State
from .context import WORKFLOW, unpack_labels, unpack_record
from .instance_view import InstanceFlag, InstanceState
from .jobs import DUE, Attempt, BoundTo, Deed, JobView, Lease, News, Progress


def news(tenant: str, reply: Any) -> list[News]:
    """What a script's `news` says of pools."""
    return [
        News(tenant, DUE + pool.decode(), int(due) if due else None, int(version))
        for pool, due, version in reply
    ]


def pairs(flat: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(flat[::2], flat[1::2], strict=True)


def lease(tenant: str, row: list[bytes]) -> Lease:
    """The order is that of `reply_of` in claim.lua."""
    return Lease(
        tenant=tenant,
        id=row[0].decode(),
        task=row[1].decode(),
        fence=int(row[2]),
        attempt=int(row[3]),
        expires_at=int(row[4]),
        deadline=int(row[5]),
        generation=int(row[6]),
        failures=int(row[7]),
        chunk=int(row[8]),
        edit=int(row[9]),
        created_at=int(row[10]),
        run_at=int(row[11]),
        background=bool(row[12]),
        fire=row[13].decode(),
        fire_time=int(row[14]) if row[14] else None,
        max_attempts=int(row[15]),
        trace=row[16].decode() or row[0].decode(),
        args=row[17],
        cursor=row[18],
        alone=bool(row[19]),
        keyed=bool(row[20]),
        lineage=row[21].decode(),
        spent=int(row[22] or 0),
    )


def jobs(tenant: str, reply: list[Any]) -> list[JobView]:
    read_at = int(reply[0])
    return [_job(tenant, read_at, one) for one in reply[1:] if one]


def _job(tenant: str, read_at: int, one: list[Any]) -> JobView:
    flat, packed, lease_until, errors, progress, lines, blocker, facts, said_of_instance, deeds = one
    row = {name.decode(): value for name, value in pairs(flat)}
    said = {name: value.decode() for name, value in row.items() if name not in ("args", "result", "cursor")}
    text = {**DEFAULTS, **said}
    attempts = _attempts(dict(pairs(texts(packed))), dict(pairs(texts(errors))))
    state = State(text["state"])
    running = state is State.RUNNING
    background = bool(text.get("background"))
    return JobView(
        tenant=tenant,
        id=text["id"],
        task=text["task"],
        status=state,
        pool=text["pool"],
        priority=int(text["priority"]),
        created_at=int(text["created"]),
        run_at=int(text.get("run_at") or text["created"]),
        start_by=_int(text.get("start_by")),
        started_at=_int(text.get("started")),
        finished_at=_int(text.get("finished")) if state is not State.PENDING and not running else None,
        generation=int(text["generation"]),
        revision=int(text["revision"]),
        fence=_int(text.get("fence")),
        lease_until=_int(lease_until.decode()) if running and lease_until else None,
        worker=attempts[-1].worker if running and attempts else None,
        failures=int(text["failures"]),
        losses=int(text["losses"]),
        max_attempts=int(text["max_attempts"]),
        max_lost=int(text["max_lost"]),
        timeout_ms=int(text["timeout"]),
        chunk=int(text["chunk"]),
        edit=int(text["edit"]),
        args=row.get("args", b""),
        result=row.get("result", b""),
        cursor=row.get("cursor", b""),
        dead_reason=text.get("dead_reason"),
        fingerprint=text.get("fingerprint"),
        confirmed=text["confirmed"] == "1" if "confirmed" in text else None,
        reason=text.get("reason"),
        idempotency_key=text.get("unique_key"),
        source=text["source"],
        trace=text.get("trace") or text["id"],
        parent=text.get("parent"),
        **{name: text.get(name) for name in WORKFLOW},
        record=unpack_record(text.get("record")),
        labels=unpack_labels(text.get("labels")),
        flag=flag(said_of_instance) if state is State.PAUSED or said_of_instance else None,
        remaining_ms=_int(text.get("remaining")),
        concurrency_key=text.get("concurrency_key"),
        exclusive=bool(text.get("exclusive")),
        fire=text.get("fire"),
        fire_time=_int(text.get("fire_time")),
        background=background,
        attempts=attempts,
        history=tuple(_deed(deed) for deed in texts(deeds)),
        progress=_progress(dict(pairs(texts(progress))), texts(lines), text.get("unit"))
        if background
        else None,
        bound=_bound(text["binding"], dict(pairs(texts(progress)))) if "binding" in text else None,
        blocker=blocker.decode() or None,
        facts=tuple(texts(facts)),
        read_at=read_at,
    )


def flag(flat: list[Any]) -> InstanceFlag:
    """What is stored of an instance; nothing of a normal one."""
    said = dict(pairs(texts(flat)))
    state = InstanceState(said.get("state", InstanceState.NORMAL))
    return InstanceFlag(
        state=state,
        since=_int(said.get("since")) if state is not InstanceState.NORMAL else None,
        by=said.get("by"),
        reason=said.get("reason"),
        walking="walk" in said,
    )


def _attempts(packed: dict[str, str], errors: dict[str, str]) -> tuple[Attempt, ...]:
    numbers = sorted(int(name[1:]) for name in packed if name[0] == "a")
    return tuple(_attempt(number, packed, errors) for number in numbers)


def _attempt(number: int, packed: dict[str, str], errors: dict[str, str]) -> Attempt:
    generation, status, cause, fence, start, length, chunks = packed[f"a{number}"].split(" ")
    return Attempt(
        number=number,
        generation=int(generation),
        status=status,
        cause=None if cause == "-" else cause,
        fence=int(fence),
        worker=packed.get(f"w{number}", ""),
        started_at=int(start),
        ended_at=None if status == "running" else int(start) + int(length),
        chunks=int(chunks),
        error=errors.get(str(number)),
        stack=errors.get(f"{number}s"),
        request=errors.get(f"{number}q"),
        response=errors.get(f"{number}p"),
    )


def _deed(entry: str) -> Deed:
    revision, at, verb, by, reason = entry.split("\n", 4)
    return Deed(int(revision), int(at), verb, by or None, reason)


def _progress(fields: dict[str, str], lines: list[str], unit: str | None) -> Progress:
    last = int(fields.get("lines", 0))
    numbered = enumerate(lines, start=last - len(lines) + 1)
    samples = (sample.split(":") for sample in fields.get("samples", "").split())
    return Progress(
        done=_int(fields.get("done")),
        total=_int(fields.get("total")),
        doing=_int(fields.get("doing")),
        message=fields.get("message", ""),
        busy_ms=int(fields.get("busy", 0)),
        running_since=_int(fields.get("since")),
        updated_at=_int(fields.get("updated")),
        samples=tuple((int(ms), int(done)) for ms, done in samples),
        lines=tuple(
            (number, int(ms), text) for number, line in numbered for ms, _, text in [line.partition(" ")]
        ),
        stage=fields.get("stage"),
        unit=unit,
        warnings=int(fields.get("warnings", 0)),
    )


def _bound(binding: str, fields: dict[str, str]) -> BoundTo:
    return BoundTo(
        binding=binding,
        revision=_int(fields.get("bind_rev")),
        written_at=_int(fields.get("bind_at")),
        error=fields.get("bind_error"),
        tries=int(fields.get("bind_tries", 0)),
        superseded="bind_over" in fields,
    )


def _int(text: str | None) -> int | None:
    return int(text) if text else None
