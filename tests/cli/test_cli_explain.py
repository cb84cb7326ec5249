"""Every code there is has an explanation."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import tenure
from tenure.cli.codes import explanations
from tenure.scripts.errors import TenureError
from tenure.scripts.states import Cause, DeadReason

from .terminal import Cli


def every_error() -> Iterator[type[TenureError]]:
    """All classes of all modules, also those that no command has loaded yet."""
    for module in pkgutil.walk_packages(tenure.__path__, "tenure."):
        if not module.name.startswith("tenure.testing") and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    waiting = [TenureError]
    while waiting:
        kind = waiting.pop()
        yield kind
        waiting += kind.__subclasses__()


def test_every_code_has_an_explanation() -> None:
    codes = [one.code for one in explanations()]
    errors = {kind.code for kind in every_error() if kind.__module__.startswith("tenure.")}

    assert set(codes) == errors | set(DeadReason) | set(Cause)
    assert len(codes) == len(set(codes))


def test_every_explanation_says_something_on_one_line() -> None:
    for one in explanations():
        assert one.means.strip(), one
        assert one.do.strip(), one
        assert "\n" not in one.means + one.do


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("STALE_FENCE", "STALE_FENCE"),
        ("StaleFence", "STALE_FENCE"),
        ("stale-fence", "STALE_FENCE"),
        ("LEASE_LOST", "LEASE_LOST"),
        ("lease_lost", "lease_lost"),
        ("LeaseLost", "LEASE_LOST"),
        ("attempts_exhausted", "attempts_exhausted"),
    ],
)
def test_a_code_is_found_however_it_is_written(cli: Cli, written: str, found: str) -> None:
    said = cli("explain", written, "-o", "json")

    assert (said.code, said.json["code"]) == (0, found)


def test_an_errors_exit_code_is_told(cli: Cli) -> None:
    exits = {one["code"]: one["exit"] for one in cli("explain", "-o", "json").json}

    assert (exits["JOB_FAILED"], exits["BAD_CRON"], exits["NOT_FOUND"]) == (1, 2, 3)
    assert (exits["RIGHTS_UNKNOWN"], exits["BAD_JSON"], exits["NOT_STARTABLE"]) == (1, 2, None)
    assert (exits["KEY_REUSED"], exits["STORE_EVICTS"], exits["STORE_UNREACHABLE"]) == (4, 4, 5)
