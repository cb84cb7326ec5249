"""The diagnostic bundle of a chain: a zip of JSON without secrets, for somebody who shall find out what went wrong.

`manifest.json`, `versions.json`, `settings.json`, `chain.json`, and for each job `jobs/NNNN-ID.json`: the job, its
attempts with errors, stacks and notes, what people did to it, why it does not run. The entries stand in the order of
the chain, with one fixed time each: the same chain makes the same bytes.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from ..lease.chain import Chain
from ..lease.jobs import JobView
from ..lease.payload import unpack, unpack_args
from ..lease.redaction import MASK, Redaction
from ..lease.tasks import Registry, Task
from ..lease.why import why
from . import views
from .plain import Json, jsonable

MOST_BYTES = 16 << 20
"""Of all entries together, before they are packed; what is over it is named in the manifest and left out."""
FIRST, LAST = 5, 20
"""So many of a job's attempts are in it."""
TEXT_LIMIT, ITEMS = 16_000, 200
_THEN = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can say


def bundle(chain: Chain, registry: Registry, about: Mapping[str, Json]) -> bytes:
    """The zip. `about` are further entries by name: `versions`, `settings`."""
    redaction = Redaction()
    arguments = {job.id: _arguments(job, registry) for job in chain.jobs}
    for job in chain.jobs:
        for value in (*arguments[job.id], job.value, _cursor(job)):
            redaction.learn(value)
        if job.task not in registry:
            redaction.know(unpack_args(job.args)[0])  # any of them may be one
    entries = {
        name: redaction.masked(value) for name, value in {**about, "chain": views.chain(chain)}.items()
    }
    for number, link in enumerate(chain.links, start=1):
        job = link.job
        entries[f"jobs/{number:04}-{job.id}"] = _job(job, *arguments[job.id], redaction)
    written, omitted = _written(entries)
    manifest = {
        "format": 1,
        "trace": chain.trace,
        "jobs": len(chain.jobs),
        "moreJobs": chain.next_cursor is not None,
        "omitted": omitted,
        "masked": f"{MASK} stands for the values of names such as password, token, secret, authorization and api_key, "
        "for the same values elsewhere, for what looks like a credential, and for positional arguments of tasks that "
        "are not registered where this was made.",
    }
    return _zip({"manifest.json": _json(manifest), **written})


def _written(entries: Mapping[str, object]) -> tuple[dict[str, bytes], list[str]]:
    """The entries as files, in order, as far as there is room; and the names of the others."""
    written: dict[str, bytes] = {}
    omitted: list[str] = []
    left = MOST_BYTES
    for name, value in entries.items():
        data = _json(value)
        if len(data) > left:
            omitted.append(f"{name}.json")
        else:
            written[f"{name}.json"] = data
            left -= len(data)
    return written, omitted


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _job(job: JobView, args: object, kwargs: object, redaction: Redaction) -> object:
    kept = (
        job.attempts if len(job.attempts) <= FIRST + LAST else (*job.attempts[:FIRST], *job.attempts[-LAST:])
    )
    shown: Json = {
        **views.job_with_attempts(replace(job, attempts=kept)),
        "attemptsLeftOut": len(job.attempts) - len(kept),
        "progress": views.background_task(job) if job.background else None,
        "why": views.why(why(job)),
    }
    for attempt, entry in zip(kept, cast("list[Json]", shown["attemptList"]), strict=True):
        entry["stack"] = attempt.stack
    values = {"args": args, "kwargs": kwargs, "result": job.value, "cursor": _cursor(job)}
    masked = {name: jsonable(redaction.masked(value)) for name, value in values.items()}
    return _cut({**cast(Json, redaction.masked(shown)), **masked})


def _cursor(job: JobView) -> object:
    return unpack(job.cursor) if job.cursor else None


def _arguments(job: JobView, registry: Registry) -> tuple[object, object]:
    """Its arguments, the positional ones by the names of their parameters, which say what is a secret."""
    args, kwargs = unpack_args(job.args)
    task = registry.get(job.task) if job.task in registry else None
    if task is None:
        return [MASK for _ in args], kwargs
    return _named(task, args), kwargs


def _named(task: Task, args: Sequence[object]) -> list[object]:
    """Each as `{name: value}`; those that a `*args` takes have no name of their own."""
    names = [*task.parameter_names, *[""] * len(args)]
    return [{name: value} if name else value for name, value in zip(names, args, strict=False)]


def _cut(value: object) -> object:
    """`value` in a size that people read."""
    match value:
        case str():
            return value if len(value) <= TEXT_LIMIT else f"{value[:TEXT_LIMIT]}… ({len(value):,} characters)"
        case dict():
            named = list(cast("Mapping[str, object]", value).items())
            kept = {name: _cut(part) for name, part in named[:ITEMS]}
            return kept if len(named) <= ITEMS else {**kept, "…": f"{len(named) - ITEMS:,} more"}
        case list():
            items = cast("list[object]", value)
            cut = [_cut(part) for part in items[:ITEMS]]
            return cut if len(items) <= ITEMS else [*cut, f"… {len(items) - ITEMS:,} more"]
        case _:
            return value


def _zip(entries: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            entry = zipfile.ZipInfo(name, _THEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, data)
    return packed.getvalue()
