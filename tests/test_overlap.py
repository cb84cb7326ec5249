"""Pieces of work that take turns: each in its own order, and what goes wrong with one is raised in that one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tenure.scheduler.overlap import Work, overlap
from tenure.scripts import Begun, Call, Scripts
from tenure.scripts.errors import StoreError


def call(name: str) -> Call[Any]:
    return Call(name, "", {}, list)


class Sending:
    """Notes what is begun, answered and dropped, by the script's name."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.fails: dict[str, Exception] = {}

    def begin(self, calls: Sequence[Call[Any]]) -> Begun:
        name = calls[0].script
        self._note("begin", name)

        def answers() -> list[Any]:
            self._note("answer", name)
            return [f"answer to {one.script}" for one in calls]

        return Begun(answers, lambda: self.notes.append(f"drop {name}"))

    def _note(self, what: str, name: str) -> None:
        self.notes.append(f"{what} {name}")
        if f"{what} {name}" in self.fails:
            raise self.fails[f"{what} {name}"]


@pytest.fixture
def sending() -> Sending:
    return Sending()


@pytest.fixture
def run(sending: Sending) -> Callable[..., None]:
    def run(*works: Work, many: int = 2) -> None:
        scripts: Any = sending
        overlapping: Callable[[Scripts, Sequence[Work], int], None] = overlap
        overlapping(scripts, works, many)

    return run


def work(name: str, heard: list[Any], steps: int = 2) -> Work:
    for nth in range(1, steps + 1):
        heard.append((yield [call(f"{name}{nth}")]))


def test_some_are_under_way_while_another_goes_on(sending: Sending, run: Callable[..., None]) -> None:
    heard: list[Any] = []

    run(work("a", heard), work("b", heard), work("c", heard, steps=1))

    assert sending.notes == [
        *("begin a1", "begin b1", "answer a1", "begin a2", "answer b1", "begin b2"),
        *("answer a2", "begin c1", "answer b2", "answer c1"),
    ]
    assert heard == [[f"answer to {name}"] for name in ("a1", "b1", "a2", "b2", "c1")]


@pytest.mark.parametrize("when", ["begin a1", "answer a1"])
def test_what_goes_wrong_is_raised_where_it_was_yielded_and_the_others_go_on(
    sending: Sending, run: Callable[..., None], when: str
) -> None:
    heard: list[Any] = []
    sending.fails[when] = StoreError("the disk is full")

    def careful() -> Work:
        try:
            yield [call("a1")]
        except StoreError as exc:
            heard.append(exc)
        yield [call("a2")]

    run(careful(), work("b", heard))

    assert sending.fails[when] in heard
    assert {"answer a2", "answer b2"} <= set(sending.notes)


def test_who_raises_ends_it_and_what_is_under_way_is_dropped(
    sending: Sending, run: Callable[..., None]
) -> None:
    sending.fails["answer a1"] = StoreError("gone")

    with pytest.raises(StoreError, match="gone"):
        run(work("a", []), work("b", []), work("c", []), work("d", []), many=3)

    assert sending.notes == ["begin a1", "begin b1", "begin c1", "answer a1", "drop b1", "drop c1"]
