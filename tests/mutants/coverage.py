"""Which test runs which statement of the scripts: before each statement stands one that notes it was here."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

from redis.exceptions import RedisError

from tenure.scripts import loader

from .lua import read
from .mutations import replace, sources

Point = tuple[str, int | None]
"""A script and the number of a statement in it."""

_NOTES = "local HIT = {}\n"
_ANSWER = """
redis.register_function('tenure_hits', function()
  local hits = {}
  for at in pairs(HIT) do hits[#hits + 1] = at end
  HIT = {}
  return hits
end)
"""


class Coverage:
    """Puts a library that takes notes in the place of ours; `since()` gives the statements run since it was asked."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        noted = {file: self._noted(file, text) for file, text in sources().items()}
        shared = [file for file in noted if file.startswith("shared/")]
        noted[shared[0]] = _NOTES + noted[shared[0]]
        noted[shared[-1]] += _ANSWER
        replace(noted)
        self._hits: set[int] = set()
        answers = loader.Scripts._answers

        def answers_and_ask(scripts: loader.Scripts, *given: Any) -> list[Any]:
            """Ask after every trip: a test may make its server forget the library, and the notes with it."""
            try:
                return answers(scripts, *given)
            finally:
                if scripts.library is loader.library():
                    self._ask(scripts)

        loader.Scripts._answers = answers_and_ask  # type: ignore[method-assign]

    def since(self) -> list[Point]:
        hits, self._hits = self._hits, set()
        return [self.points[at] for at in sorted(hits)]

    def _noted(self, file: str, source: str) -> str:
        pieces, last = [], 0
        for number, (start, in_function) in enumerate(read(source).statements):
            if in_function or not file.startswith(
                "shared/"
            ):  # else it runs but once, when the library is loaded
                pieces += [source[last:start], f"HIT[{len(self.points)}] = true; "]
                last = start
                self.points.append((file, number))
        return "".join([*pieces, source[last:]])

    def _ask(self, scripts: loader.Scripts) -> None:
        with suppress(RedisError):  # the test's server may be gone, or without the library
            self._hits.update(cast(Any, scripts.redis).execute_command("FCALL", "tenure_hits", 0))
