"""Budgets: what one chunk of a task may use. Crossing one is an error of the retry policy that says what to change."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from ..scripts.errors import BadInput
from .durations import Duration, duration_ms
from .reports import check_count

_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?) ?(KB|MB|GB|KiB|MiB|GiB)")
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


class Limit(StrEnum):
    """Which budget was crossed: the `limitCode` of an attempt."""

    TIMEOUT = "TIMEOUT"
    MEMORY = "MEMORY"
    DEPTH = "DEPTH"
    RECURSION = "RECURSION"
    STEPS = "STEPS"
    CALL_TREE = "CALL_TREE"


ADVICE = {
    Limit.TIMEOUT: "Make the chunks smaller: return Continue(...) earlier, or ctx.track(..., every=...)",
    Limit.MEMORY: "Make the chunks smaller: hold fewer rows at a time",
    Limit.DEPTH: "Look for a cycle: a task that enqueues one of those above it",
    Limit.RECURSION: "Fix the recursion: give it an end, or make a loop of it",
    Limit.STEPS: "Make the chunks smaller: return Continue(...) earlier",
    Limit.CALL_TREE: "Look for a cycle, or for jobs that make more and more of each other, along this path",
}
_PATH = "\ncall path: "
_CROSSED = re.compile(rf"({'|'.join(Limit)}): ")


class LimitCrossed(Exception):
    """A budget is used up. Raised in the task; the attempt ends by it even if the task goes on."""

    def __init__(self, limit: Limit, found: str, path: tuple[str, ...]) -> None:
        super().__init__(f"{found}. {ADVICE[limit]}{_PATH}{' > '.join(path)}")
        self.limit = limit
        self.path = path

    @property
    def summary(self) -> str:
        """As an attempt keeps it: `limit_of` and `path_of` read it."""
        return f"{self.limit}: {self}"


def limit_of(summary: str) -> Limit | None:
    """Which budget an attempt of that error has crossed."""
    found = _CROSSED.match(summary)
    return Limit(found[1]) if found else None


def path_of(summary: str) -> tuple[str, ...]:
    """The tasks that led to it, its own the last."""
    return tuple(summary.rpartition(_PATH)[2].split(" > ")) if _PATH in summary else ()


@dataclass(frozen=True, kw_only=True)
class Budgets:
    """What one chunk of a task may use; 0, the default, is no budget.

    `time` is told, then killed. `memory` is the most that its process has in memory while the chunk runs: bytes, or
    "500MB". `recursion` is how deep its functions may call each other, `steps` what it counts itself by `ctx.step(n)`.
    `depth` is how many levels of jobs may stand below its own: those that it enqueues are the first. `tree` is how many
    steps its job and all jobs below it may count together, each step once; of two in a tree the upper one is in force.
    What others have counted is known within a second.

    Raises BadInput for what is no budget.
    """

    time: Duration = 0
    memory: int | str = 0
    depth: int = 0
    recursion: int = 0
    steps: int = 0
    tree: int = 0

    def __post_init__(self) -> None:
        duration_ms(self.time, what="time")
        size(self.memory)
        for name in ("depth", "recursion", "steps", "tree"):
            value = getattr(self, name)
            if value is None:
                raise BadInput(f"{name} None is no budget", hint="0, or leave it out, for none")
            check_count(value, name)

    @cached_property
    def time_s(self) -> float:
        """Infinite without a budget."""
        return duration_ms(self.time) / 1000 or float("inf")

    @cached_property
    def memory_kb(self) -> int:
        return size(self.memory) // 1024

    @cached_property
    def needs_process(self) -> bool:
        """Whether it can only be measured in a process that runs nothing else."""
        return bool(self.memory_kb or self.recursion)


def size(value: object) -> int:
    """A number of bytes from "500MB" and the like. Raises BadInput."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise BadInput(f"memory {value!r:.60} is no size", hint="memory='500MB', or a number of bytes")
    return round(float(found[1]) * _UNITS[found[2]])


NONE = Budgets()


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a job has of those above it in its call tree."""

    path: tuple[str, ...] = ()
    """The tasks above it."""
    levels: int | None = None
    """How many levels of jobs may stand below this one; None: any number."""
    root: str = ""
    """The job whose budget counts the steps of all below it; "" if none does."""
    tree: int = 0
    """That budget."""

    @classmethod
    def of(cls, packed: str) -> Lineage:
        """As `pack` has it; of "" one of a job that stands at the top, or under no budget."""
        if not packed:
            return cls()
        root, tree, levels, path = packed.split(" ", 3)
        return cls(
            tuple(path.split(" > ")),
            None if levels == "-" else int(levels),
            "" if root == "-" else root,
            int(tree),
        )

    def pack(self) -> str:
        """For the row of a job; "" where no budget is in force."""
        if self.levels is None and not self.root:
            return ""
        levels = "-" if self.levels is None else self.levels
        return f"{self.root or '-'} {self.tree} {levels} {' > '.join(self.path)}"

    def of_job(self, job_id: str, key: str, budgets: Budgets) -> Lineage:
        """The same with the job's own task on the path, and its own budgets."""
        own = [level for level in (self.levels, budgets.depth or None) if level is not None]
        top = (self.root, self.tree) if self.root or not budgets.tree else (job_id, budgets.tree)
        return Lineage((*self.path, key), min(own, default=None), *top)

    def below(self) -> Lineage:
        """What a job that this one enqueues has. Raises LimitCrossed where none may be."""
        if self.levels == 0:
            raise LimitCrossed(
                Limit.DEPTH, f"{self.path[-1]} may enqueue no job: it stands on the last level", self.path
            )
        return replace(self, levels=None if self.levels is None else self.levels - 1)
