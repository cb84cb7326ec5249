"""What `make mutants` stands on: Lua is read whole, and each mutant is one change that loads and is at work."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tenure.scripts import loader

from .mutants import equivalents
from .mutants.lua import read, tokens
from .mutants.mutations import Mutant, library_of, mutants, mutants_of, sources

LITTLE = """-- a guard, a condition, a loop; "if" in a comment is none
local a = {b = 1, [2] = 'if x then', "--"}
if not a or a.b == 2 then return nil end
if a.c then redis.call('HSET', a, 'x', [[ or ]]) else a.c = #a.b + 1 end
while a[1] <= 3 do drop(a) break end
return redis.call('DEL', a) > 0
"""


def changes(source: str, kind: str) -> list[tuple[str, str]]:
    return [(one.before, one.after) for one in mutants_of("x.lua", source) if one.id.split(":")[2] == kind]


def test_nothing_but_space_and_comments_lies_between_the_tokens() -> None:
    for source in sources().values():
        ends = [0, *(token.end for token in tokens(source))]
        starts = [*(token.start for token in tokens(source)), len(source)]
        for end, start in zip(ends, starts, strict=True):
            assert re.fullmatch(r"(\s|--[^\n]*\n)*", source[end:start]), source[end:start]


def test_each_kind_of_change_is_made_where_it_belongs_and_nowhere_else() -> None:
    guard, condition, loop = LITTLE.splitlines()[2:5]

    assert changes(LITTLE, "guard") == [(guard, "if false then return nil end")]
    assert [after[:14] for _, after in changes(LITTLE, "condition")] == [
        "if true then r",
        "if false then ",
        "if not (a.c) t",
        "while false do",
    ]
    assert [after for _, after in changes(LITTLE, "comparison")] == [
        guard.replace("==", "~="),
        loop.replace("<=", "<"),
        loop.replace("<=", ">="),
        "return redis.call('DEL', a) >= 0",
        "return redis.call('DEL', a) < 0",
    ]
    assert changes(LITTLE, "logic") == [(guard, guard.replace(" or ", " and "))]
    assert [after for _, after in changes(LITTLE, "call")] == [
        "if a.c then else a.c = #a.b + 1 end",
        "while a[1] <= 3 do break end",
        "return (0) > 0",
    ]
    assert changes(LITTLE, "assignment") == [(condition, condition.replace("a.c = #a.b + 1 ", ""))]
    assert len(changes(LITTLE, "number")) == 5, "the numbers in brackets say which, not how many"


@pytest.mark.parametrize("broken", ["if x then", "local = 1", "return 1 2", "x y", "'open", "for a do end"])
def test_what_is_not_lua_is_refused(broken: str) -> None:
    with pytest.raises(SyntaxError, match="line 1"):
        read(broken)


def test_ids_are_unique_and_the_same_each_time() -> None:
    ids = [mutant.id for mutant in mutants()]

    assert len(set(ids)) == len(ids) > 1000
    assert ids == [mutant.id for mutant in mutants()]


def test_each_mutant_is_another_library_that_loads() -> None:
    lua = pytest.importorskip("lupa.lua51").LuaRuntime()
    texts = sources()
    for mutant in mutants()[::25]:
        library = library_of(texts | {mutant.file: mutant.apply(texts[mutant.file])})
        assert library.version != loader.library().version
        lua.compile(library.source.partition("\n")[2])


def test_an_equivalent_is_found_by_its_text_and_has_a_reason() -> None:
    one, two, *_ = mutants_of("x.lua", LITTLE)
    listed = equivalents.read(f"# why this file\n\n{equivalents.shown(one)}\n= nobody\n= knows\n")

    assert listed == {equivalents.entry(one): "nobody knows"}
    assert equivalents.without([one, two], listed) == [two]
    with pytest.raises(ValueError, match="needs a file"):
        equivalents.read(equivalents.shown(two))


def test_the_list_of_equivalents_is_sound() -> None:
    assert equivalents.read(equivalents.FILE.read_text()) is not None


def first(file: str, before: str, kind: str) -> Mutant:
    return next(
        one for one in mutants() if one.file == file and before in one.before and f":{kind}:" in one.id
    )


def test_a_mutant_is_at_work_in_any_test_that_is_run_with_it() -> None:
    """With the guard of the claim gone, a worker gets what is not due."""
    guard = first("shared/blocker.lua", "'not_due'", "guard")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_why.py"]

    sound = subprocess.run(command, capture_output=True, text=True, check=False)
    mistaken = subprocess.run([*command, f"--mutant={guard.id}"], capture_output=True, text=True, check=False)

    assert sound.returncode == 0, sound.stdout
    assert mistaken.returncode == 1, mistaken.stdout
