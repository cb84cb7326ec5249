"""Pieces of work that take turns: while the server answers the calls of some, the next one is planned."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from typing import Any

from ..scripts import Begun, Call, Scripts

Calls = Sequence[Call[Any]]
Work = Generator[Calls, list[Any], None]
"""A piece of work: it yields calls that go out together, and is sent their answers. What goes wrong with them is raised
where it yielded.
"""


def overlap(scripts: Scripts, works: Iterable[Work], many: int) -> None:
    """Do all of it in one thread, each in its own order, with the calls of `many` under way at a time.

    Raises what one raises; the others are left where they are then.
    """
    coming, under_way = iter(works), deque[tuple[Work, Begun]]()

    def go_on(work: Work, step: Callable[[], Calls]) -> None:
        while True:
            try:
                calls = step()
            except StopIteration:
                return
            try:
                under_way.append((work, scripts.begin(calls)))
                return
            except Exception as exc:
                step = partial(work.throw, exc)

    try:
        while True:
            while len(under_way) < many and (work := next(coming, None)) is not None:
                go_on(work, partial(next, work))
            if not under_way:
                return
            work, begun = under_way.popleft()
            try:
                step = partial(work.send, begun.answers())
            except Exception as exc:
                step = partial(work.throw, exc)
            go_on(work, step)
    finally:
        for _, begun in under_way:
            begun.drop()
