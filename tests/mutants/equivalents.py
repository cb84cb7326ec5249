"""The mutants that no test can notice, because they do the same: listed in `equivalents.txt`, each with its reason.

    shared/base.lua
    - the line as it is
    + the line as a mutant has it
    + and as another has it
    = why nobody could tell the difference

They are found by their text, not by their line number, so that a change elsewhere in the file moves none. An entry
whose text is not there any more is told, and does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from .mutations import Mutant

FILE = Path(__file__).with_name("equivalents.txt")
Entry = tuple[str, str, str]
"""File, line before, line after."""


def entry(mutant: Mutant) -> Entry:
    return mutant.file, mutant.before, mutant.after


def shown(mutant: Mutant) -> str:
    """A mutant as the list has it, without a reason."""
    return f"{mutant.file}\n- {mutant.before}\n+ {mutant.after}"


def read(text: str) -> dict[Entry, str]:
    """All entries with their reasons. Raises a ValueError for one that is not whole."""
    found: dict[Entry, str] = {}
    for block in filter(None, (part.strip() for part in text.split("\n\n"))):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if not lines:
            continue
        marked = {mark: [line[2:].strip() for line in lines[1:] if line[0] == mark] for mark in "-+="}
        before, afters, why = marked["-"], marked["+"], " ".join(marked["="])
        if len(before) != 1 or not afters or not why or len(lines) != 1 + sum(map(len, marked.values())):
            raise ValueError(f"an entry needs a file, one line '-', some '+' and a reason '=':\n{block}")
        found.update({(lines[0], before[0], after): why for after in afters})
    return found


def without(mutants: Iterable[Mutant], known: Mapping[Entry, str]) -> list[Mutant]:
    """The mutants that a test is to notice."""
    return [mutant for mutant in mutants if entry(mutant) not in known]
