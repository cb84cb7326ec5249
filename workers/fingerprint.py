"""What an error has in common with others of its kind: its type, where it came from, its message without what varies.

Made where the attempt fails, while the traceback is at hand; the ledger gathers the jobs that die of one kind.
"""

from __future__ import annotations

import site
import sysconfig
from collections.abc import Iterator
from functools import cache
from types import FrameType, TracebackType

from ..lease.payload import digest
from ..lease.reports import cut, storable
from .masking import LOOK, template

NAME_LIMIT = 200
OURS = __name__.partition(".")[0]


def failure(kind: str, frame: str, message: str) -> str:
    """A failure as it travels: its fingerprint, and then the type, the frame and the template that it is made of."""
    parts = [_name(kind), _name(frame), template(storable(message[:LOOK]))]
    return "\n".join([digest(*parts), *parts])


def own_frame(trace: TracebackType | None, home: str) -> str:
    """The innermost function of the user's own code, as `shop.orders.sync`: no line, so that an edit above it, or
    another folder, makes no new kind. `home` is a package that is the user's own wherever it is installed.

    The innermost one that is not ours if there is none of their own, and empty if there is none at all.
    """
    own = other = ""
    for frame in _frames(trace):
        module = frame.f_globals.get("__name__")
        module = module if isinstance(module, str) else "?"
        package = module.partition(".")[0]
        name = f"{module}.{frame.f_code.co_qualname}"
        if package == home or (package != OURS and _is_theirs(frame.f_code.co_filename)):
            own = name
        elif package != OURS:
            other = name
    return own or other


def _frames(trace: TracebackType | None) -> Iterator[FrameType]:
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _is_theirs(filename: str) -> bool:
    """Whether a file belongs neither to Python nor to an installed package."""
    return not filename.startswith(("<", *_installed()))


@cache
def _installed() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple({*folders, *site.getsitepackages(), site.getusersitepackages()})


def _name(text: str) -> str:
    return cut("".join(char for char in storable(text[:LOOK]) if char.isprintable()), NAME_LIMIT)
