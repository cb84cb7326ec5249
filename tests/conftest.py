"""What all tests share. Most fixtures are those of `tenure.testing`, which users have too."""

from __future__ import annotations

import pytest

from tenure.testing import Server

from .given import Store
from .mutants import mutations


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--mutant",
        metavar="ID",
        help="run with this mistake in the scripts; python -m tests.mutants --list shows all",
    )


def pytest_configure(config: pytest.Config) -> None:
    wanted = config.getoption("--mutant")
    if wanted:
        found = [mutant for mutant in mutations.mutants() if mutant.id == wanted]
        if not found:
            raise pytest.UsageError(f"there is no mutant {wanted}: see python -m tests.mutants --list")
        mutations.install(found[0])


@pytest.fixture
def store(tenure_server: Server, tenure_namespace: str) -> Store:
    """All that the test's namespace holds: `with store.unchanged(): ...`."""
    return Store(tenure_server.redis, tenure_namespace)
