"""The call a body asks for: `task`, `args`, `kwargs`."""

from __future__ import annotations

from dataclasses import dataclass

from ..lease.tasks import Registry, Task
from .fields import Fields

CALL = ("task", "args", "kwargs")


@dataclass(frozen=True, slots=True)
class Call:
    task: Task
    args: list[object]
    kwargs: dict[str, object]


def read_call(fields: Fields, registry: Registry) -> Call | None:
    """The call, with its arguments checked against the task's signature; None if something about it is wrong."""
    key, args, kwargs = fields.needed_text("task"), fields.array("args"), fields.object("kwargs")
    if key:
        with fields.checking("task"):
            task = registry.get(key)
            if not (fields.fine("args") and fields.fine("kwargs")):
                return None
            with fields.checking("kwargs" if kwargs and not args else "args"):
                task.bind(tuple(args), kwargs)
                return Call(task, args, kwargs)
    return None
