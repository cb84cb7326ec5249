"""What all tests share. Most fixtures are those of `tenure.testing`, which users have too."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from redis import Redis

from tenure.testing import Server

from .given import Store
from .mutants import mutations

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tenure.archive import Archive

settings.register_profile("untimed", deadline=None)  # a busy machine is no mistake
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--mutant",
        metavar="ID",
        help="run with this mistake in the scripts; python -m tests.mutants --list shows all",
    )


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # a shell starts what runs in the background so, and the processes of tests would ignore Ctrl-C as well
        signal.signal(signal.SIGINT, signal.default_int_handler)
    wanted = config.getoption("--mutant")
    if wanted:
        found = [mutant for mutant in mutations.mutants() if mutant.id == wanted]
        if not found:
            raise pytest.UsageError(f"there is no mutant {wanted}: see python -m tests.mutants --list")
        mutations.install(found[0])


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    from . import postgres  # only who has a database loads SQLAlchemy

    binaries = postgres.find_binaries()
    if binaries is None:
        pytest.skip("there is no PostgreSQL on this machine (apt-get install postgresql)")
    with postgres.server(binaries) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/shop.db"
    return str(request.getfixturevalue("postgresql"))


@pytest.fixture
def archive(database: str) -> Iterator[Archive]:
    """An archive in a database of each kind, with its tables, empty."""
    from tenure.archive import Archive, tables

    archive = Archive.at(database)
    archive.create()
    with archive.engine.begin() as db:
        for table in tables.KEYS:
            db.execute(table.delete())
    yield archive
    archive.close()


@pytest.fixture
def store(tenure_server: Server, tenure_namespace: str) -> Store:
    """All that the test's namespace holds: `with store.unchanged(): ...`."""
    return Store(tenure_server.redis, tenure_namespace)


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    from sqlalchemy import create_engine

    engine = create_engine(database)
    yield engine
    engine.dispose()


@pytest.fixture
def fill(tenure_server: Server) -> Iterator[Callable[[], None]]:
    """Call it, and the server is full until the end of the test."""
    if tenure_server.kind not in ("embedded", "redis", "cluster"):
        pytest.skip("only a server of our own is filled")
    redis: Any = tenure_server.redis
    yield lambda: redis.config_set("maxmemory", 1)
    redis.config_set("maxmemory", 0)


@pytest.fixture(params=["room", "full"])
def memory(request: pytest.FixtureRequest) -> Callable[[], bool]:
    """The test runs twice. When it calls this the second time, the server is full from there on; it answers whether."""
    fill = request.getfixturevalue("fill") if request.param == "full" else None

    def is_full() -> bool:
        if fill:
            fill()
        return fill is not None

    return is_full


@pytest.fixture
def old_url(tenure_server: Server) -> Iterator[str]:
    """A database of its own on the test's server: the keys of rq-scheduler have no prefix to tell tests apart."""
    if tenure_server.kind not in ("embedded", "redis"):
        pytest.skip("rq-scheduler needs a plain server, and the tests one of their own")
    url = f"{tenure_server.url}?db=9"
    redis = Redis.from_url(url)
    redis.flushdb()
    yield url
    redis.flushdb()
    redis.close()
