"""Join the shared Lua files: what only one of them uses stays in it, since Lua has room for 200 names in one place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_NO_NAMES = re.compile(r"--[^\n]*|'[^'\n]*'")
_NAME = re.compile(r"(?<![\w:])(?<![^.]\.)[A-Za-z_]\w*")
_DECLARED = re.compile(r"^local (?:function (\w+)|(\w+(?:, \w+)*))", re.MULTILINE)


def joined(files: Mapping[str, str], others: Iterable[str]) -> str:
    """The files in their order. Names that `others` or another file use are seen by all that comes after."""
    used = {name: _names(text) for name, text in files.items()}
    by_operations = _names("\n".join(others))
    blocks: list[str] = []
    for name, text in files.items():
        outside = by_operations.union(*(words for other, words in used.items() if other != name))
        blocks.append(_block(text, outside))
    return "\n".join(blocks)


def _names(text: str) -> set[str]:
    """All that may name a local: not what stands in comments and strings, nor fields."""
    return set(_NAME.findall(_NO_NAMES.sub(" ", text)))


def _block(text: str, outside: set[str]) -> str:
    shown: list[str] = []

    def declare(found: re.Match[str]) -> str:
        names = re.split(", ", found[1] or found[2])
        if not outside & set(names):
            return found[0]
        shown.extend(names)
        if found[1]:
            return f"function {found[1]}"
        return found[2] if _has_value(text, found.end()) else ""

    body = _DECLARED.sub(declare, text)
    declared = f"local {', '.join(shown)}\n" if shown else ""
    return f"{declared}do\n{body}\nend"


def _has_value(text: str, end: int) -> bool:
    return text[end:].split("\n", 1)[0].lstrip().startswith("=")
