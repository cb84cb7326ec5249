"""How much the tests notice: each small mistake in the Lua scripts, one after the other, against the tests that run it.

    make mutants                             all of them
    make mutants ARGS="--sample 60"          60 of them, drawn by a seed
    make mutants ARGS="--only claim.lua"     those whose id begins so
    make mutants ARGS=--survivors            those that survived the last time
    make mutants ARGS="--survivors tests/test_ledger.py"    the same, against the tests of one file

A survivor is a hole in the tests, or does the same as what it replaced and belongs into `equivalents.txt`. To see one
at work: `python -m pytest --mutant=ID tests/...` runs any tests with it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from . import equivalents
from .mutations import Mutant, mutants
from .runner import Runner, Verdict

LAST = Path(".pytest_cache/mutants.txt")

# They start processes or another database, or wait for something: too slow to be asked a thousand times.
LEFT_OUT = (
    "tests/cli/test_cli_jobs.py",
    "tests/cli/test_cli_run.py",
    "tests/test_api/test_events.py",
    "tests/test_api/test_stopping.py",
    "tests/test_outbox.py",
    "tests/test_simulation.py",
    "tests/test_waits.py",
    "tests/test_worker.py",
    "tests/test_worker_chaos.py",
    "tests/test_worker_cluster.py",
    "tests/test_worker_outcomes.py",
    "tests/test_worker_rq.py",
    "tests/test_worker_stopped.py",
)


def main() -> int:
    options = _options()
    known = equivalents.read(equivalents.FILE.read_text())
    everything = mutants()
    chosen = _chosen(everything if options.equivalents else equivalents.without(everything, known), options)
    if options.list:
        print("\n".join(f"{mutant.id}\n- {mutant.before}\n+ {mutant.after}" for mutant in chosen))
        return 0
    start = time.monotonic()
    LAST.parent.mkdir(exist_ok=True)
    LAST.write_text("")

    def tell(verdict: Verdict, nth: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{nth} of {len(chosen)} ", end="", file=sys.stderr, flush=True)
        if verdict.outcome == "alive":
            print(f"\n{verdict.mutant.id}\n{equivalents.shown(verdict.mutant)}", flush=True)
            with LAST.open("a") as last:
                last.write(f"{equivalents.shown(verdict.mutant)}\n\n")

    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        runner = Runner(chosen, Path(folder), slow=options.slow, told=tell)
        arguments = ["-q", "-s", "-m", "store", "--no-header", f"--basetemp={folder}/tests", *options.tests]
        arguments += [
            "-W",
            "ignore::pytest.PytestAssertRewriteWarning",
        ]  # the plug-in is imported before pytest begins
        code = pytest.main([*arguments, *(f"--ignore={path}" for path in LEFT_OUT)], plugins=[runner])
    if code or len(runner.verdicts) < len(chosen):
        return int(code) or 2
    stale = known.keys() - {equivalents.entry(mutant) for mutant in everything}
    rate = _report(runner, time.monotonic() - start, len(everything) - len(chosen), sorted(stale))
    return 0 if rate >= options.at_least else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("tests", nargs="*", default=["tests"], help="which tests to ask (default: all)")
    parser.add_argument("--sample", type=int, metavar="N", help="only N of them")
    parser.add_argument("--seed", type=int, default=1, help="which N (default: 1)")
    parser.add_argument(
        "--only", action="append", metavar="ID", help="only those whose id begins so; may be given again"
    )
    parser.add_argument("--survivors", action="store_true", help="only those that survived the last time")
    parser.add_argument("--slow", action="store_true", help="ask the slow tests too")
    parser.add_argument("--equivalents", action="store_true", help="also those listed as equivalent")
    parser.add_argument("--list", action="store_true", help="show them, and do nothing")
    parser.add_argument(
        "--at-least", type=float, default=90, metavar="PERCENT", help="fail below (default: 90)"
    )
    return parser.parse_args()


def _chosen(found: Sequence[Mutant], options: argparse.Namespace) -> list[Mutant]:
    chosen = [mutant for mutant in found if mutant.id.startswith(tuple(options.only or [""]))]
    if options.survivors:
        last = set(LAST.read_text().split("\n\n")) if LAST.exists() else set()
        chosen = [mutant for mutant in chosen if equivalents.shown(mutant) in last]
    if options.sample:
        chosen = Random(options.seed).sample(chosen, min(options.sample, len(chosen)))
    return chosen


def _report(runner: Runner, seconds: float, left: int, stale: Sequence[equivalents.Entry]) -> float:
    """Print what came of it; the share of noticed ones in percent."""
    files = sorted({verdict.mutant.file for verdict in runner.verdicts})
    print(f"\n{'':30} {'mutants':>8} {'noticed':>8} {'by time':>8} {'alive':>8}")
    for file in [*files, ""]:
        group = [verdict for verdict in runner.verdicts if verdict.mutant.file == file or not file]
        numbers = [
            len(group),
            sum(verdict.noticed for verdict in group),
            *(sum(verdict.outcome == outcome for verdict in group) for outcome in ("late", "alive")),
        ]
        print(f"{file or 'all':30} {' '.join(f'{number:8}' for number in numbers)}")
    broken = [verdict.mutant.id for verdict in runner.verdicts if verdict.outcome == "broken"]
    if broken:
        print(f"not counted, because they do not load: {', '.join(broken)}")
    if runner.record.failed:
        print(f"not asked, because they fail without a mutant: {', '.join(runner.record.failed)}")
    for file, before, after in stale:
        print(f"listed as equivalent, but not there any more:\n{file}\n- {before}\n+ {after}")
    counted = [verdict for verdict in runner.verdicts if verdict.outcome != "broken"]
    rate = 100 * sum(verdict.noticed for verdict in counted) / max(1, len(counted))
    print(f"{rate:.1f} % of {len(counted)} noticed in {seconds:.0f} s; {left} others not tried")
    return rate


sys.exit(main())
