"""The imitation of the server that the quick tests run on answers, call by call, as the real one does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ResponseError

from tenure.lease.ledgers import Ledgers
from tenure.scripts import Scripts
from tenure.testing import START, Server, dump, servers, wipe

from .simulation import World


class Recorder:
    """A client that notes each function call and library command with its reply."""

    def __init__(self, redis: Any) -> None:
        self._redis = redis
        self.log: list[tuple[tuple[Any, ...], Any]] = []

    def __getattr__(self, name: str) -> Any:
        if name in ("ask_all", "begin"):
            raise AttributeError(name)  # all goes through what stands here
        return getattr(self._redis, name)

    def execute_command(self, *command: Any) -> Any:
        reply = answer(self._redis, command)
        self.log.append((command, reply))
        if isinstance(reply, Exception):
            raise reply
        return reply

    def pipeline(self, **options: Any) -> Any:
        return Pipeline(self._redis.pipeline(**options), self.log)


class Pipeline:
    def __init__(self, pipeline: Any, log: list[tuple[tuple[Any, ...], Any]]) -> None:
        self._pipeline = pipeline
        self._log = log
        self._commands: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipeline, name)

    def execute_command(self, *command: Any) -> None:
        self._commands.append(command)
        self._pipeline.execute_command(*command)

    def execute(self, **options: Any) -> Any:
        replies = self._pipeline.execute(**options)
        self._log += zip(self._commands, replies, strict=False)
        return replies


def answer(redis: Any, command: tuple[Any, ...]) -> Any:
    """The reply; an error is an answer too."""
    try:
        return redis.execute_command(*command)
    except ResponseError as exc:
        return exc


UNORDERED = ("_counts", "_read", "_schedules_read", "_standing", "_index_sweep")


def said(command: tuple[Any, ...], reply: Any) -> Any:
    """The reply as it is to be compared: the order of the fields of a hash is nobody's promise."""
    if isinstance(reply, Exception):
        return f"refused: {reply}"
    return shuffled(reply) if command[0] == "FCALL" and command[1].endswith(UNORDERED) else reply


def shuffled(reply: Any) -> Any:
    return sorted(map(repr, map(shuffled, reply))) if isinstance(reply, list) else reply


@pytest.mark.parametrize("seed", range(3))
def test_a_recorded_life_is_answered_alike_by_both_servers(
    tenure_server: Server, ledgers: Ledgers, tmp_path: Path, seed: int
) -> None:
    if tenure_server.kind == "fakeredis":
        pytest.skip("this compares fakeredis with a real server")
    recorder: Any = Recorder(tenure_server.redis)
    namespace = f"{ledgers.namespace}-{seed}"
    world = World(Scripts(recorder, START), namespace, seed)
    world.strict = False
    fake = servers.start("fakeredis", tmp_path)

    world.scripts.load()
    world.run(150)
    real = dump(tenure_server.redis, namespace)
    wipe(tenure_server.redis, namespace)

    assert len(recorder.log) > 300
    for number, (command, reply) in enumerate(recorder.log):
        imitated = answer(fake.redis, command)
        assert said(command, imitated) == said(command, reply), f"call {number}: {command}"
    assert dump(fake.redis, namespace) == real
