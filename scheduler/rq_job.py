"""One job of rq-scheduler, as its row and its place in the list say it; and the name by which it is known again here.

Nothing of it is run or imported: pickles are read by a reader that refuses every class.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from rq.utils import str_to_date

from ..lease.payload import digest
from ..scripts.errors import BadInput, BadPayload
from .job_key import LIMIT, JobKey
from .plain_pickle import inflated, read_pickle, write_pickle

ACTIVE = ("queued", "started", "deferred")
_RANDOM_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_SCHEDULE = ("cron_string", "use_local_timezone", "interval", "repeat", "queue_class_name")
"""What rq-scheduler keeps in a job's meta; the rest is the user's."""
_UNCARRIED = {
    "success_callback_name": "a callback on success",
    "failure_callback_name": "a callback on failure",
    "stopped_callback_name": "a callback when it is stopped",
    "dependency_ids": "jobs that it depends on",
    "webhooks": "webhooks",
}


@dataclass(frozen=True, slots=True)
class OldJob:
    """A job of the old scheduler. `due_ms` is its next planned instant (epoch ms); `problem` says why it cannot be
    taken over.
    """

    id: str
    key: JobKey
    due_ms: int
    queue: str = "default"
    status: str = ""
    function: str = ""
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    cron: str | None = None
    interval_s: int | None = None
    repeat: int | None = None
    timeout_s: int | None = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fired_ms: int = 0
    """When it was last put into a queue of RQ (epoch ms)."""
    problem: str = ""
    notes: tuple[str, ...] = ()

    @property
    def half_fired(self) -> bool:
        """Whether the old scheduler has enqueued it for `due_ms` already, and died before it noted the next instant."""
        return self.fired_ms >= self.due_ms > 0

    @property
    def fires(self) -> int | None:
        """How often it still fires; None: for ever."""
        if self.cron is None and self.interval_s is None:
            return 0 if self.half_fired else 1
        return None if self.repeat is None else max(0 if self.half_fired else 1, self.repeat)

    @property
    def next_ms(self) -> int:
        """The first instant at which it has not fired; of cron not before it."""
        if not self.half_fired:
            return self.due_ms
        return self.fired_ms // 1000 * 1000 + 1000 * (self.interval_s or 1)

    @property
    def says(self) -> str:
        """When it fires, in a few words."""
        times = "" if self.fires is None or self.fires == 1 else f", {self.fires} times"
        if self.cron is not None:
            return f"cron {self.cron}{times}"
        return "once" if self.interval_s is None else f"every {self.interval_s}s{times}"

    @property
    def active(self) -> bool:
        """Whether it waits in a queue of RQ or runs, from the fire before."""
        return self.status in ACTIVE


def read_job(job_id: str, row: Mapping[bytes, bytes], due_ms: int) -> OldJob:
    """A job from its row in Redis."""
    said = {name.decode(errors="replace"): value for name, value in row.items()}
    meta, problem = _meta(said.get("meta", b""))
    queue = said.get("origin", b"default").decode(errors="replace")
    when = {name: meta.get(name) for name in _SCHEDULE}
    function, args, kwargs, wrong = _call(said.get("data", b""))
    try:
        key = _key(job_id, queue, function, said.get("data", b""), when)
    except BadInput as exc:
        key, wrong = JobKey(f"rq-{digest(job_id)[:12]}"), wrong or str(exc)
    wrong = wrong or problem or _uncarried(said) or _odd(when)
    return OldJob(
        id=job_id,
        key=key,
        due_ms=due_ms,
        queue=queue,
        status=said.get("status", b"").decode(errors="replace"),
        function=function,
        args=args,
        kwargs=kwargs,
        cron=when["cron_string"] if isinstance(when["cron_string"], str) and not when["interval"] else None,
        interval_s=_whole(when["interval"]),
        repeat=None if when["repeat"] is None else _whole(when["repeat"]) or 0,
        timeout_s=_whole(said.get("timeout", b"").decode(errors="replace")),
        meta={name: value for name, value in meta.items() if name not in _SCHEDULE},
        fired_ms=_instant(said.get("enqueued_at", b"")),
        problem=wrong,
        notes=tuple(_notes(said, when)),
    )


def with_repeat(meta: bytes, left: int) -> bytes:
    """The meta of a row, with another number of fires left, as its serializer writes it. Raises BadPayload."""
    changed = {**cast("dict[str, Any]", _value(meta)), "repeat": left}
    return json.dumps(changed).encode() if _is_json(meta) else write_pickle(changed)


def _meta(data: bytes) -> tuple[Mapping[str, Any], str]:
    try:
        meta = _value(data) if data else {}
    except BadPayload as exc:
        return {}, f"its meta cannot be taken over: {exc}"
    if not isinstance(meta, dict):
        return {}, "its meta is no dict"
    return cast("dict[str, Any]", meta), ""


def _call(data: bytes) -> tuple[str, Sequence[Any], Mapping[str, Any], str]:
    """Function, arguments, and what is wrong with them."""
    try:
        function, instance, args, kwargs = _value(inflated(data))
        if instance is not None:
            return str(function), (), {}, "it is a method of an object, not a function"
        if not isinstance(function, str):
            return "", (), {}, "it names no function"
        return function, tuple(args), dict(kwargs), ""
    except BadPayload as exc:
        return "", (), {}, f"its arguments cannot be taken over: {exc}"
    except (TypeError, ValueError):
        return "", (), {}, "its data is not what RQ writes"


def _value(data: bytes) -> Any:
    """As one of RQ's two serializers has written it. Raises BadPayload."""
    if _is_json(data):
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as exc:
            raise BadPayload(f"it is no JSON: {exc!s:.80}") from None
    return read_pickle(data)


def _is_json(data: bytes) -> bool:
    return data[:1] in (b"[", b"{")


def _key(job_id: str, queue: str, function: str, data: bytes, when: Mapping[str, object]) -> JobKey:
    """A job with an id of its own has it as JobKey. One with a random id that fires again is known by what it does and
    when: an application that adds it at each start has added one schedule.
    """
    if not _RANDOM_ID.fullmatch(job_id):
        return JobKey.parse(job_id)
    rhythm = when["cron_string"] or when["interval"]
    mark = digest(queue, inflated(data), repr(rhythm)) if rhythm else digest(job_id)
    name = function if function and len(function) < LIMIT - 20 else "rq"
    return JobKey.parse(f"{name}-{mark[:10]}")


def _uncarried(said: Mapping[str, bytes]) -> str:
    found = [words for name, words in _UNCARRIED.items() if said.get(name, b"") not in (b"", b"[]")]
    return f"it has {' and '.join(found)}, which schedules here do not" if found else ""


def _odd(when: Mapping[str, object]) -> str:
    for name in ("interval", "repeat"):
        if when[name] is not None and _whole(when[name]) is None and when[name] != 0:
            return f"its {name} {when[name]!r:.40} is no number"
    if when["cron_string"] is not None and not isinstance(when["cron_string"], str):
        return f"its cron_string {when['cron_string']!r:.40} is no text"
    return ""


def _notes(said: Mapping[str, bytes], when: Mapping[str, object]) -> Sequence[str]:
    notes: list[str] = []
    if said.get("timeout", b"").startswith(b"-"):
        notes.append("it had no time limit; here it has that of its task")
    if when["queue_class_name"]:
        notes.append(
            f"it names a queue class of its own, {when['queue_class_name']!s:.60}: a gate does not see it"
        )
    return notes


def _instant(text: bytes) -> int:
    """Epoch ms of a time as RQ writes it; 0 for none."""
    try:
        return int(str_to_date(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0


def _whole(value: object) -> int | None:
    """A number above 0 as a whole one; None for all else."""
    try:
        number = int(cast(Any, value))
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number > 0 else None
