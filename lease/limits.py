"""How many jobs may run side by side, and how many start in a time: the options that say so, each with its rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..scripts.errors import BadInput
from .context import is_text
from .rates import packed_rate

if TYPE_CHECKING:
    from .requests import Options
    from .tasks import Task

KEY_LIMIT = 200
MOST_HOLDERS = 1_000_000
_NOTHING = (None, None, None, None)


def key_fields(task: Task, options: Options) -> dict[str, str]:
    """The fields of a job's row that name its concurrency key; none if it has none. Raises BadInput."""
    asked = (options.concurrency_key, options.concurrency_limit, options.exclusive, options.rate)
    if asked == _NOTHING and task.concurrency_key is None and not task.exclusive:
        return {}
    key = task.concurrency_key if options.concurrency_key is None else options.concurrency_key
    exclusive = task.exclusive if options.exclusive is None else options.exclusive
    limit = task.concurrency_limit if options.concurrency_limit is None else options.concurrency_limit
    if exclusive and key is not None:
        raise BadInput(
            f"exclusive and concurrency_key {key!r:.60} are both given: a job has one of the two",
            hint="leave one out; exclusive=False where the task is exclusive",
        )
    if exclusive and not options.instance:
        raise BadInput(
            f"a job of {task.key} is to be exclusive in its instance, and has none",
            hint="instance='order-7', or exclusive=False",
        )
    for name, value in (("concurrency_limit", options.concurrency_limit), ("rate", options.rate)):
        if value is not None and key is None:
            raise BadInput(
                f"{name} {value!r:.60} is given without a concurrency_key",
                hint="concurrency_key='shop:7' says what it is of; a task's own rate is an option of the task",
            )
    if exclusive:
        return {"exclusive": "1"}
    if key is None:
        return {}
    rate = options.rate or (task.rate if task.concurrency_key is not None else None)
    fields = {"concurrency_key": key, "concurrency_limit": str(limit)}
    return fields if rate is None else {**fields, "key_rate": packed_rate(rate)}


def check_concurrency_key(key: object) -> None:
    """Return if `key` may be one, else refuse it."""
    if not is_text(key, 1, KEY_LIMIT):
        raise BadInput(
            f"concurrency_key {key!r:.60} is not allowed: text of 1 to {KEY_LIMIT} bytes",
            hint="concurrency_key='shop:7'",
        )


def check_concurrency_limit(limit: object) -> None:
    """Return if so many jobs may hold a key, else refuse it."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_HOLDERS:
        raise BadInput(
            f"concurrency_limit {limit!r:.60} is not allowed: a number from 1 to {MOST_HOLDERS:,}",
            hint="the default is 1",
        )


def check_exclusive(exclusive: object) -> None:
    """Return if it says whether a job is exclusive, else refuse it."""
    if not isinstance(exclusive, bool):
        raise BadInput(f"exclusive {exclusive!r:.60} is not a bool", hint="exclusive=True")
