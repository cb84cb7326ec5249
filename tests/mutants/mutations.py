"""What a mutant is, and all mutants of our scripts: always the same, in the same order, under the same names.

| kind       | the change                                                                                    |
|------------|-----------------------------------------------------------------------------------------------|
| guard      | an `if` whose body returns at once is dropped                                                 |
| condition  | any other condition is always true, never true, or turned round; a loop is passed or run once |
| comparison | `<` and `<=`, `>` and `>=`, `==` and `~=` change places, or the direction is turned           |
| logic      | `and` and `or` change places                                                                  |
| call       | a call that stands alone is skipped; a write whose answer is used answers 0 instead           |
| assignment | an assignment is skipped                                                                      |
| number     | a number is one more; a large one, which is a measure and no count, is doubled                |
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tenure.scripts import loader

from .lua import Place, Reading, read

COMPARISONS = {
    "<": ("<=", ">"),
    "<=": ("<", ">="),
    ">": (">=", "<"),
    ">=": (">", "<="),
    "==": ("~=",),
    "~=": ("==",),
}
LARGE = 1000
WRITES = re.compile(
    r"redis\.call\('([SHZ]?(SET|DEL|ADD|REM|INCRBY)|ZPOPMIN|[LR]PUSH|[LR]POP|LTRIM|UNLINK|P?EXPIRE)'"
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one script: `start` to `end` of `file` becomes `new`."""

    id: str
    """file:line:kind:n, the nth of its kind in that line."""
    file: str
    statement: int | None
    """The number of the statement it is in; None in one that runs when the library is loaded."""
    start: int
    end: int
    new: str
    before: str
    """The line as it is, without space around it; from the first to the last when the change spans several."""
    after: str
    """The same as the mutant has it."""

    def apply(self, source: str) -> str:
        return source[: self.start] + self.new + source[self.end :]


def sources() -> dict[str, str]:
    """All scripts by file name below `lua/`: "claim.lua", "shared/row.lua"."""
    operations, shared = loader.sources()
    return {f"{name}.lua": text for name, text in sorted(operations.items())} | {
        f"shared/{name}.lua": text for name, text in shared.items()
    }


def library_of(texts: Mapping[str, str]) -> loader.Library:
    """The library that these sources make; names as `sources` gives them."""
    return loader.Library(*_by_folder(texts))


def replace(texts: Mapping[str, str]) -> None:
    """From now on, in this process, the library is made of these sources. To be called before anything uses it."""
    parts = _by_folder(texts)
    loader.sources = lambda: parts
    loader.library.cache_clear()


def mutants() -> list[Mutant]:
    """All mutants of all scripts."""
    return [mutant for file, source in sources().items() for mutant in mutants_of(file, source)]


def mutants_of(file: str, source: str) -> Iterator[Mutant]:
    """All mutants of one script, in the order of its places."""
    found = read(source)
    called = not file.startswith("shared/")
    seen: Counter[tuple[int, str]] = Counter()
    for place in sorted(found.places, key=lambda place: (place.start, -place.end)):
        first = source.rfind("\n", 0, place.start) + 1
        last = (source + "\n").index("\n", place.end)
        for kind, new in _changes(found, place):
            line = found.line(place.start)
            seen[line, kind] += 1
            yield Mutant(
                id=f"{file}:{line}:{kind}:{seen[line, kind]}",
                file=file,
                statement=place.statement if called or place.in_function else None,
                start=place.start,
                end=place.end,
                new=new,
                before=_one_line(source[first:last]),
                after=_one_line(source[first : place.start] + new + source[place.end : last]),
            )


def install(mutant: Mutant) -> None:
    """From now on, in this process, the library is the one with this mutant."""
    texts = sources()
    replace(texts | {mutant.file: mutant.apply(texts[mutant.file])})


def _by_folder(texts: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    operations = {name[:-4]: text for name, text in texts.items() if not name.startswith("shared/")}
    shared = {name[7:-4]: text for name, text in texts.items() if name.startswith("shared/")}
    return operations, shared


def _changes(found: Reading, place: Place) -> Iterator[tuple[str, str]]:
    text = found.text(place)
    if place.kind == "guard":
        yield "guard", "false"
    elif place.kind == "if":
        yield from (("condition", "true"), ("condition", "false"), ("condition", f"not ({text})"))
    elif place.kind == "while":
        yield "condition", "false"
    elif place.kind == "until":
        yield "condition", "true"
    elif place.kind == "operator" and text in COMPARISONS:
        yield from (("comparison", other) for other in COMPARISONS[text])
    elif place.kind == "operator" and text in ("and", "or"):
        yield "logic", "or" if text == "and" else "and"
    elif place.kind == "call":
        yield "call", ""
    elif place.kind == "inner call" and WRITES.match(text):
        yield "call", "(0)"
    elif place.kind == "assign":
        yield "assignment", ""
    elif place.kind == "number":
        number = int(text)
        yield "number", str(number + 1 if number < LARGE else 2 * number)


def _one_line(text: str) -> str:
    return " ".join(text.split())
