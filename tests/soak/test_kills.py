"""A scheduler that dies at any call leaves no planned instant without exactly one record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import cast

from tenure.lease.ledgers import Ledgers
from tenure.lease.tasks import Task
from tenure.scheduler.plan import month
from tenure.scheduler.schedules import Fire, Schedules
from tenure.scheduler.switch import Scheduling
from tenure.scheduler.trigger import Trigger
from tenure.testing import Server

from ..clockwork import pages
from . import mortal
from .planned import KINDS, MINUTE
from .size import samples
from .strands import Strand
from .year import Year

SECOND = 1_000
TENANTS = ("acme", "other", "third")
TASK = Task("work", lambda: None)
KEYS = [f"work.k{nth}" for nth in range(8)]
PROCESSES = 3


def test_a_scheduler_that_dies_at_each_of_its_calls_in_turn_leaves_nothing_out(
    tenure_server: Server, ledgers: Ledgers
) -> None:
    """A minute passes, and one dies before the first call of its round; a minute later, before the second; and on."""
    year = Year(ledgers.scripts, ledgers.namespace, 0)
    for tenant in TENANTS[:2]:
        for nth, policy in enumerate(["fire_once", "skip", {"policy": "fire_all"}]):
            schedules = Schedules(year.ledgers.of(tenant))
            triggers = [KINDS[1].trigger("a"), KINDS[nth].trigger("b")]
            schedules.put(KEYS[nth], TASK, triggers, misfire=policy)
    boundary, died = 0, Counter[str]()
    for nth in range(samples(50, 1_000)):
        year.now += MINUTE
        if nth % 20 == 0:
            Scheduling(year.ledgers.of("acme")).set(enabled=nth % 40 == 0)
        victim, calls = Strand(year.schedulers[nth % 3].round), sum(year.seen.values())
        while not victim.ended and sum(year.seen.values()) - calls < boundary:
            victim.step()
        boundary = 0 if victim.ended else boundary + 1
        victim.kill()
        died[year.last_call] += 1
    year.settle()
    year.check_what_is_stored()

    assert {"index_take", "triggers_due", "fire", "observe", "index_put"} <= died.keys()


def test_schedulers_that_are_killed_with_9_again_and_again_leave_nothing_out(
    tenure_server: Server, ledgers: Ledgers
) -> None:
    """Three at a time, each started anew when it is dead; every schedule fires each second, at its own millisecond."""
    assert tenure_server.url is not None
    live = Ledgers(replace(ledgers.scripts, now=None), ledgers.namespace)
    chance = Random(3)
    first: dict[tuple[str, str], int] = {}
    for tenant in TENANTS:
        for key in KEYS:
            start = _instant(_now(tenure_server) - chance.randrange(SECOND))
            schedules = Schedules(live.of(tenant))
            schedules.put(key, TASK, [Trigger("default", every="1s", start=start)])
            first[tenant, key] = schedules.get(key).next_fires["default"]

    deaths = samples(8, 350)
    killers = [
        mortal.start(url=tenure_server.url, namespace=ledgers.namespace, seed=seed, deaths=deaths)
        for seed in range(PROCESSES)
    ]
    assert [killer.wait(60 + deaths) for killer in killers] == [0] * PROCESSES

    for (tenant, key), begins in first.items():
        schedules, until = Schedules(live.of(tenant)), _now(tenure_server)
        schedules.delete(key)
        records = _records(schedules, key, begins, until - SECOND)
        told = [at for one in records for at in _instants(one)]
        assert told == list(range(begins, told[-1] + 1, SECOND)), f"{tenant} {key}"
        assert told[-1] > until - SECOND, f"{tenant} {key} has no record of its last instants"
        made = [one.job_id for one in records if one.job_id is not None]
        assert len(schedules.ledger.get_many(made)) == len(made)


def _instant(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC)


def _now(server: Server) -> int:
    seconds, micros = cast("tuple[int, int]", server.redis.time())
    return seconds * 1000 + micros // 1000


def _in_month(schedules: Schedules, key: str, name: str) -> Iterator[Fire]:
    """All records of a month, newest first."""
    for page in pages(schedules, key, month=name, limit=10_000):
        yield from page


def _records(schedules: Schedules, key: str, begins: int, until: int) -> list[Fire]:
    """All that was recorded, oldest first."""
    months = sorted({month(begins), month(until)})
    return [one for name in months for one in reversed([*_in_month(schedules, key, name)])]


def _instants(fire: Fire) -> range:
    found = range(fire.fire_time, (fire.until or fire.fire_time) + 1, SECOND)
    assert len(found) == fire.count
    return found
