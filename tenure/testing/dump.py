"""All that a namespace holds, as plain Python: for the invariants, and to see that a refusal changed nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..scripts.loader import Client

Dump = dict[str, tuple[str, Any]]
"""Key name to (type, value). A string is bytes, a hash a dict, a zset a dict to scores, a list a list, a set a set."""

_READ: dict[str, Callable[[Any, str], Any]] = {
    "string": lambda pipeline, name: pipeline.get(name),
    "hash": lambda pipeline, name: pipeline.hgetall(name),
    "list": lambda pipeline, name: pipeline.lrange(name, 0, -1),
    "set": lambda pipeline, name: pipeline.smembers(name),
    "zset": lambda pipeline, name: pipeline.zrange(name, 0, -1, withscores=True),
}


def dump(redis: Client, namespace: str) -> Dump:
    """Read every key of the namespace. Times to live are left out: nothing depends on them (I12)."""
    names = _names(redis, namespace)
    types = [kind.decode() for kind in _many(redis, names, lambda pipeline, name: pipeline.type(name))]
    kinds = dict(zip(names, types, strict=True))
    values = _many(redis, names, lambda pipeline, name: _READ[kinds[name]](pipeline, name))
    return {
        name: (kinds[name], dict(value) if kinds[name] == "zset" else value)
        for name, value in zip(names, values, strict=True)
    }


def difference(before: Dump, after: Dump) -> dict[str, tuple[Any, Any]]:
    """The keys that differ, each with what it was and what it is; empty when the two are equal."""
    names = sorted(before.keys() | after.keys())
    return {name: pair for name in names if (pair := (before.get(name), after.get(name)))[0] != pair[1]}


def wipe(redis: Client, namespace: str) -> None:
    """Remove every key of the namespace."""
    _many(redis, _names(redis, namespace), lambda pipeline, name: pipeline.unlink(name))


def _names(redis: Client, namespace: str) -> list[str]:
    client: Any = redis
    return sorted({name.decode() for name in client.scan_iter(match=f"{namespace}:*", count=1000)})


def _many(redis: Client, names: list[str], ask: Callable[[Any, str], Any]) -> list[Any]:
    client: Any = redis
    pipeline = client.pipeline(transaction=False)
    for name in names:
        ask(pipeline, name)
    return list(pipeline.execute()) if names else []
