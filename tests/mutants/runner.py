"""Asks the tests about every mutant: a plug-in that takes the place of pytest's own loop over the collected tests."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ResponseError

from tenure.scripts import loader
from tenure.testing import servers

from .children import Job, Say, run
from .coverage import Coverage, Point
from .mutations import Mutant, install

ROOT = Path(__file__).parents[2]
SLOW_S = 0.5
FEW = 30  # a slow test is asked only about what so few quick ones run
PATIENCE_S = 10.0
RECORD_S = 120.0
KEPT_KILLERS = 20


@dataclass(frozen=True, slots=True)
class Verdict:
    """`outcome` is "failed" (a test noticed), "late" (it came to no end), "alive" or "broken" (it does not load)."""

    mutant: Mutant
    outcome: str
    by: str = ""

    @property
    def noticed(self) -> bool:
        return self.outcome in ("failed", "late")


@dataclass
class Record:
    """What the tests do when nothing is wrong: their statements and seconds; those that fail are not asked."""

    points: dict[str, list[Point]] = field(default_factory=dict[str, list[Point]])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    failed: list[str] = field(default_factory=list[str])


class Runner:
    """`verdicts` is filled when pytest has run."""

    def __init__(
        self, mutants: Sequence[Mutant], folder: Path, *, slow: bool, told: Callable[[Verdict, int], None]
    ) -> None:
        self.mutants = mutants
        self.folder = folder
        self.slow = slow
        self.told = told
        self.verdicts: list[Verdict] = []
        self.record = Record()
        self._failure = ""
        self._kills: dict[str, Counter[str]] = defaultdict(Counter)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            return False
        self.items = {item.nodeid: item for item in session.items}
        self.record = self._recorded(session.config.cache)
        self.tests = self._tests_by_point()
        for mutant, said, late in run(self._jobs()):
            verdict = self._verdict(mutant, said, late)
            self.verdicts.append(verdict)
            if verdict.outcome == "failed":
                self._kills[mutant.file][verdict.by] += 1
            self.told(verdict, len(self.verdicts))
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self._failure:
            self._failure = report.nodeid

    # -- the record ---------------------------------------------------------------------------------------------------

    def _recorded(self, cache: Any) -> Record:
        """From the last time, if no file has changed since."""
        version = _version(self.items)
        kept = cache.get("mutants/record", {})
        if kept.get("version") != version:
            kept = {"version": version, "tests": self._record()}
            cache.set("mutants/record", kept)
        record = Record()
        for test, (seconds, points, failed) in kept["tests"].items():
            record.seconds[test] = seconds
            record.points[test] = [(file, number) for file, number in points]
            if failed:
                record.failed.append(test)
        return record

    def _record(self) -> dict[str, Any]:
        halves = [list(self.items.values())[half::2] for half in (0, 1)]
        found: dict[str, Any] = {}
        jobs = [
            Job(half, lambda say, half=half: self._take_notes(half, say), lambda _: RECORD_S)
            for half in halves
        ]
        for _, said, late in run(jobs):
            if late or "error" in said[-1]:
                raise RuntimeError(f"the tests could not be recorded: {said[-1]}")
            for words in said:
                found[words["test"]] = (words["seconds"], words["points"], words["failed"])
        return found

    def _take_notes(self, items: Sequence[pytest.Item], say: Say) -> None:
        coverage = Coverage()
        if not self._start_server():
            raise RuntimeError("the library that takes notes does not load")
        for item in self._run(items):
            say(
                {
                    "test": item.nodeid,
                    "seconds": round(self._seconds, 3),
                    "points": coverage.since(),
                    "failed": bool(self._failure),
                }
            )
            self._failure = ""

    def _tests_by_point(self) -> dict[Point, list[str]]:
        """The tests of each statement; under the number None all tests of a file."""
        quick: dict[Point, list[str]] = defaultdict(list)
        slow: dict[Point, list[str]] = defaultdict(list)
        for test in self.record.points.keys() - self.record.failed:
            found = quick if self.record.seconds[test] < SLOW_S else slow
            points = self.record.points[test]
            for point in {*points, *((file, None) for file, _ in points)}:
                found[point].append(test)
        for point, tests in slow.items():
            if self.slow or len(quick[point]) < FEW:
                quick[point] += tests
        return quick

    # -- one mutant ---------------------------------------------------------------------------------------------------

    def _jobs(self) -> Iterator[Job[Mutant]]:
        for mutant in self.mutants:
            tests = self._order(mutant)
            yield Job(
                mutant,
                lambda say, mutant=mutant, tests=tests: self._try(mutant, tests, say),
                self._patience,
            )

    def _patience(self, said: Any) -> float:
        return PATIENCE_S + 10 * self.record.seconds.get(said, 0) if isinstance(said, str) else PATIENCE_S

    def _order(self, mutant: Mutant) -> list[str]:
        """First the tests that noticed most mutants of this script so far, then the quickest."""
        kills, seconds = self._kills[mutant.file], self.record.seconds
        best = {test for test, _ in kills.most_common(KEPT_KILLERS)}
        tests = self.tests.get((mutant.file, mutant.statement), [])
        return sorted(tests, key=lambda test: (-kills[test] if test in best else 0, seconds[test], test))

    def _try(self, mutant: Mutant, tests: Iterable[str], say: Say) -> None:
        install(mutant)
        if not self._start_server():
            say({"outcome": "broken"})
            return
        items = [self.items[test] for test in tests]
        for _ in self._run(items, begin=lambda item: say(item.nodeid)):
            if self._failure:
                say({"outcome": "failed", "by": self._failure})
                return
        say({"outcome": "alive"})

    def _verdict(self, mutant: Mutant, said: list[Any], late: bool) -> Verdict:
        if late:
            return Verdict(mutant, "late", said[-1] if said else "")
        last = said[-1] if said else {}
        if isinstance(last, str) or "outcome" not in last:
            raise RuntimeError(f"the child of {mutant.id} ended before its time: {last}")
        return Verdict(mutant, last["outcome"], last.get("by", ""))

    # -- in a child ---------------------------------------------------------------------------------------------------

    def _start_server(self) -> bool:
        """Give this child's tests a server of its own; whether it takes the library."""
        server = servers.start("embedded", self.folder / f"{os.getpid()}")
        servers.start = lambda kind, folder: server
        try:
            server.redis.execute_command("FUNCTION LOAD", loader.library().source)
        except ResponseError:
            return False
        return True

    def _run(
        self, items: Sequence[pytest.Item], begin: Callable[[pytest.Item], object] = lambda item: None
    ) -> Iterator[pytest.Item]:
        for item, following in zip_longest(items, items[1:]):
            begin(item)
            start = time.monotonic()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self._seconds = time.monotonic() - start
            yield item


def _version(tests: Iterable[str]) -> str:
    """Changes whenever a test or anything it runs does."""
    digest = blake2b("\n".join(tests).encode(), digest_size=10)
    for folder in ("api", "lease", "scheduler", "scripts", "tenure", "tests", "workers"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".lua") and not path.is_symlink():
                digest.update(path.read_bytes())
    return digest.hexdigest()
