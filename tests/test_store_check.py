"""A server whose settings are changed while it runs is noticed within a minute, and said once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tenure import Tenure
from tenure.facts import ServerFacts
from tenure.scripts.errors import StoreError, StoreReadOnly, StoreUnreachable
from tenure.store_check import EVERY_S, StoreCheck
from tenure.testing import Server

FACTS = ServerFacts("the store", "Valkey", "8.0", "process", declared=False, cluster=False)
Said = list[tuple[str, str]]


def said(caplog: pytest.LogCaptureFixture) -> Said:
    return [(record.levelname, record.message) for record in caplog.records if record.name == "tenure.store"]


def check(*answers: ServerFacts | StoreError) -> None:
    """A check of a server that answers these, one in each round."""
    left = list(answers)

    def ask() -> ServerFacts:
        answer = left.pop(0)
        if isinstance(answer, StoreError):
            raise answer
        return answer

    duty = StoreCheck(FACTS, ask)
    for _ in answers:
        assert duty.round() == EVERY_S


def test_a_server_that_stays_as_it_was_is_not_talked_about(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    check(FACTS, FACTS, replace(FACTS, durability="disk"))

    assert said(caplog) == []


def test_what_turned_bad_is_said_once_and_so_is_that_it_is_good_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    bad = StoreReadOnly("the store is a replica", hint="point TENURE_REDIS_URL at the primary")

    check(FACTS, bad, bad, FACTS, FACTS, bad)

    error = ("ERROR", "the store is a replica (point TENURE_REDIS_URL at the primary)")
    assert said(caplog) == [error, ("INFO", "the store is fit to hold jobs again"), error]


def test_another_trouble_is_said_too(caplog: pytest.LogCaptureFixture) -> None:
    check(StoreReadOnly("a replica"), StoreUnreachable("away"), StoreUnreachable("away, still"))

    assert said(caplog) == [("ERROR", "a replica"), ("ERROR", "away")]


def test_a_server_that_keeps_jobs_less_safely_than_at_the_start_is_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    check(replace(FACTS, durability="memory"))

    ((level, text),) = said(caplog)
    assert level == "ERROR"
    assert "'memory' only, it was 'process'" in text


@pytest.fixture
def configure(tenure_server: Server) -> Iterator[Callable[[str, str], None]]:
    """Change a setting of the server until the end of the test."""
    if tenure_server.kind not in ("embedded", "redis", "cluster"):
        pytest.skip("only a server of our own is changed")
    redis: Any = tenure_server.redis
    before: dict[str, str] = {}

    def change(name: str, value: str) -> None:
        found = redis.config_get(name)
        before.setdefault(name, {str(key): str(text) for key, text in found.items()}[name])
        redis.config_set(name, value)

    yield change
    for name, value in before.items():
        redis.config_set(name, value)


@pytest.mark.parametrize(
    ("name", "bad", "good", "words"),
    [
        ("maxmemory-policy", "allkeys-lru", "noeviction", "maxmemory-policy allkeys-lru"),
        ("maxmemory", "1", "0", "maxmemory"),
        ("min-replicas-to-write", "3", "0", "too few replicas"),
    ],
)
def test_a_real_server_is_found_out(
    app: Tenure,
    configure: Callable[[str, str], None],
    caplog: pytest.LogCaptureFixture,
    name: str,
    bad: str,
    good: str,
    words: str,
) -> None:
    caplog.set_level(logging.INFO)
    duty = StoreCheck(app.store.facts, app.store.check)
    duty.round()

    configure(name, bad)
    duty.round()
    duty.round()
    configure(name, good)
    duty.round()

    assert [level for level, _ in said(caplog)] == ["ERROR", "INFO"]
    assert words in said(caplog)[0][1]


def test_an_answer_names_the_durability_that_was_found_last(
    app: Tenure, configure: Callable[[str, str], None], caplog: pytest.LogCaptureFixture
) -> None:
    @app.task("report")
    def report() -> None: ...

    configure("appendonly", "yes")
    before = report.enqueue().durability
    duty = next(loop._duty for loop in app.upkeep() if isinstance(loop._duty, StoreCheck))

    configure("appendonly", "no")
    duty.round()

    assert (before, report.enqueue().durability) == ("process", "memory")
    assert "'memory' only, it was 'process'" in said(caplog)[0][1]
