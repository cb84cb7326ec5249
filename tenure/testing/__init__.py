"""Test your tasks on a real server: a pytest plug-in with a namespace for each test, a clock in your hand, and faults.

    def test_a_report_is_made_once(app, ledger): ...

| fixture   | is                                                                                                       |
|-----------|----------------------------------------------------------------------------------------------------------|
| `app`     | an application without tasks, on the test's namespace, with the server's clock                           |
| `worker`  | `worker.run()` runs the application's due jobs here and now; `worker.run("31s")` what is due by then     |
| `ledger`  | the ledger of tenant `acme` at the instant `START`: time stands still until you say otherwise            |
| `at`      | `at(ms)` is the same ledger at another instant (epoch ms)                                                |
| `ledgers` | `ledgers.of(tenant)`: the ledgers of all tenants, at `START`                                             |
| `faults`  | `faults.lose_reply("claim")`, `die_before`, `die_after`: what goes wrong in the calls of these ledgers   |
| `tenure_server`, `tenure_namespace` | the process's server, and the prefix of all keys of this test                  |

The server is started once for each test process and ends with it; `--tenure-server` chooses another (see `servers`).
After each test the invariants are checked over all that it left in the store, and then its keys are removed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from ..app import Tenure
from ..lease.ledger import Ledger
from ..lease.ledgers import Ledgers
from ..scripts import Scripts
from ..settings import Settings
from . import servers
from .dump import difference, dump, wipe
from .faults import Died, Faults
from .invariants import Invariants
from .servers import Server
from .waiting import wait_until
from .worker import InlineWorker

__all__ = [
    "START",
    "Died",
    "Faults",
    "InlineWorker",
    "Invariants",
    "Server",
    "difference",
    "dump",
    "wait_until",
    "wipe",
]

START = 1_790_000_000_000
"""Where the tests' clock stands at first, in epoch milliseconds: a Monday in September 2026."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tenure-server",
        default="embedded",
        metavar="KIND|URL",
        help=f"the server Tenure's fixtures use: {', '.join(servers.KINDS)}, or a redis:// URL (default: embedded)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "store: uses Tenure's server (set by itself); -m store runs these alone"
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    if "tenure_server" in getattr(item, "fixturenames", ()):
        item.add_marker("store")


def pytest_report_header(config: pytest.Config) -> str:
    return f"tenure: server {config.getoption('--tenure-server')}"


@pytest.fixture(scope="session")
def tenure_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """The server of this test process."""
    kind = str(request.config.getoption("--tenure-server"))
    server = servers.start(kind, tmp_path_factory.mktemp("tenure") / "server")
    yield server
    server.close()


@pytest.fixture
def tenure_namespace(tenure_server: Server) -> Iterator[str]:
    """The prefix of all keys of this test. What is in it afterwards must be sound, and is removed."""
    namespace = f"t{os.urandom(4).hex()}"
    yield namespace
    broken = Invariants().broken(dump(tenure_server.redis, namespace))
    wipe(tenure_server.redis, namespace)
    if broken:
        pytest.fail("this test left a damaged store:\n  " + "\n  ".join(broken), pytrace=False)


@pytest.fixture
def faults() -> Faults:
    """What goes wrong in the calls of this test's ledgers; nothing, until it is told."""
    return Faults()


@pytest.fixture
def ledgers(tenure_server: Server, tenure_namespace: str, faults: Faults) -> Ledgers:
    """The ledgers of all tenants, with the clock at `START`."""
    return Ledgers(Scripts(tenure_server.redis, now=START, faults=faults), tenure_namespace)


@pytest.fixture
def ledger(ledgers: Ledgers) -> Ledger:
    """The ledger of tenant `acme`, with the clock at `START`."""
    return ledgers.of("acme")


@pytest.fixture
def at(ledger: Ledger) -> Callable[[int], Ledger]:
    """`at(ms)` is the ledger at that instant."""
    return ledger.at


@pytest.fixture
def app(tenure_server: Server, tenure_namespace: str) -> Iterator[Tenure]:
    """An application without tasks, on the test's namespace. It runs on the server's clock."""
    if tenure_server.url is None:
        pytest.skip(f"an application needs a server to connect to; this is {tenure_server.kind}")
    app = Tenure(Settings(redis_url=tenure_server.url, namespace=tenure_namespace))
    yield app
    app.close()


@pytest.fixture
def worker(app: Tenure) -> InlineWorker:
    """Runs the application's jobs in the test's own process."""
    return InlineWorker(app)
