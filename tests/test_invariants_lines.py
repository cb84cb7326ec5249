"""The invariants of lines, concurrency keys and gates have teeth: whatever is damaged, one of them says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tenure.lease.holds import Holds
from tenure.lease.ledger import Ledger, NewJob
from tenure.testing import Invariants, Server, dump, wipe

from .given import claim

KEY = {"concurrency_key": "shop"}


class Scene:
    """A key with a holder, one that lingers and two that wait; a held task with a job, and a limited one."""

    def __init__(self, ledger: Ledger) -> None:
        self.redis: Any = ledger.scripts.redis
        self.key = ledger.keys
        taken = ledger.enqueue(NewJob("work", fields=KEY | {"concurrency_limit": "2"}))
        self.fence = str(claim(ledger).fence)
        ledger.cancel(taken.id)
        self.holder = ledger.enqueue(NewJob("work", fields=KEY | {"concurrency_limit": "2"})).id
        self.holder_fence = str(claim(ledger).fence)
        self.hidden = [
            ledger.enqueue(NewJob("work", fields=KEY | {"concurrency_limit": "2"})).id for _ in range(2)
        ]
        self.shown = ledger.enqueue(NewJob("work", fields={"concurrency_key": "free"})).id
        Holds(ledger).add(task="report")
        self.held = ledger.enqueue(NewJob("report")).id
        self.plain = ledger.enqueue(NewJob("work")).id
        self.lingering = f"{self.fence} {taken.id} u:shop"

    def line(self, line: str = "advance") -> str:
        return self.key("queue", line=line)

    def waiters(self, key: str) -> str:
        return self.key("waiters", line="advance", key=key)

    def share(self, key: str = "u:shop") -> str:
        return self.key("share", key=key)


@pytest.fixture
def scene(ledger: Ledger, tenure_server: Server, tenure_namespace: str) -> Iterator[Scene]:
    yield Scene(ledger)
    wipe(tenure_server.redis, tenure_namespace)


Damage = Callable[[Scene], object]
DAMAGES: list[tuple[str, str, Damage]] = [
    ("a full key shown", "I3", lambda s: s.redis.zadd(s.line(), {s.hidden[0]: 1})),
    ("a free key not shown", "I3", lambda s: s.redis.zrem(s.line(), s.shown)),
    ("hidden and nowhere", "I3", lambda s: s.redis.zrem(s.key("hidden", pool="advance"), s.hidden[0])),
    ("hidden and not pending", "I3", lambda s: s.redis.zadd(s.key("hidden", pool="advance"), {s.holder: 1})),
    ("not waiting at its key", "I3", lambda s: s.redis.zrem(s.waiters("u:shop"), s.hidden[0])),
    ("waiting at another key", "I3", lambda s: s.redis.zadd(s.waiters("u:odd"), {s.plain: 1})),
    ("a holder forgotten", "I3", lambda s: s.redis.hdel(s.key("holders", key="u:shop"), s.holder_fence)),
    ("a holder too many", "I3", lambda s: s.redis.hset(s.key("holders", key="u:shop"), "7", s.hidden[0])),
    ("lingering under a fence that runs", "I7",
     lambda s: s.redis.zadd(s.key("lingering"), {f"{s.holder_fence} {s.holder} u:shop": 1})),
    ("lingering, and no holder", "I3", lambda s: s.redis.zadd(s.key("lingering"), {f"8 {s.plain} u:odd": 1})),
    ("a holder that nobody will end", "I3", lambda s: s.redis.zrem(s.key("lingering"), s.lingering)),
    ("another number shown", "I3", lambda s: s.redis.hset(s.share(), ">advance", 1)),
    ("a line it does not know", "I3", lambda s: s.redis.hdel(s.share(), ">advance")),
    ("a key remembered in vain", "I3", lambda s: s.redis.hset(s.share("u:nobody"), "limit", 5)),
    ("another limit", "I3", lambda s: s.redis.hset(s.share(), "limit", 3)),
    ("in the pool's line, and aside", "I3", lambda s: s.redis.zadd(s.line(), {s.held: 1})),
    ("aside by its row only", "I3", lambda s: s.redis.hset(s.key("row", id=s.plain), "ln", "1")),
    ("a line that no claim finds", "I43", lambda s: s.redis.hdel(s.key("meta"), "lines:advance")),
    ("gates that no claim asks for", "I43", lambda s: s.redis.hdel(s.key("meta"), "gates")),
    ("gates that there are not", "I43", lambda s: s.redis.delete(s.key("gates"))),
    ("due, and nobody is told", "I43", lambda s: s.redis.hdel(s.key("meta"), "due:advance")),
    ("due, and told for later", "I43", lambda s: s.redis.hset(s.key("meta"), "due:advance", 1 << 41)),
]  # fmt: skip


@pytest.mark.parametrize(("what", "number", "damage"), DAMAGES, ids=[what for what, _, _ in DAMAGES])
def test_a_damage_is_named(
    scene: Scene, tenure_namespace: str, what: str, number: str, damage: Damage
) -> None:
    assert Invariants().broken(dump(scene.redis, tenure_namespace)) == []

    damage(scene)

    broken = Invariants().broken(dump(scene.redis, tenure_namespace))
    assert any(said.startswith(f"{number} ") for said in broken), (what, broken)
