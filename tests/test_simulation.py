"""Whole seeded lives with deaths and lost replies at any call: nothing acknowledged is lost, nothing done twice."""

from __future__ import annotations

from collections import Counter

import pytest

from tenure.lease.ledgers import Ledgers
from tenure.testing import Server, wipe

from .simulation import TENANTS, World
from .soak.size import seeds

SEEDS = seeds(8, 500)
STEPS = 250


def live(server: Server, ledgers: Ledgers, seed: int) -> World:
    """Live through a seed; when something breaks, say how it came to it and how to see it again."""
    world = World(ledgers.scripts, f"{ledgers.namespace}-{seed}", seed)
    try:
        world.run(STEPS)
        check(world)
    except Exception as exc:
        story = "\n".join(world.events[-30:])
        again = f"TENURE_SEED={seed} python -m pytest tests/test_simulation.py"
        raise AssertionError(f"seed {seed}: {exc}\nthe last events:\n{story}\nsee it again: {again}") from exc
    finally:
        wipe(server.redis, world.namespace)
    return world


def check(world: World) -> None:
    """What must be true of any life, once it has come to rest."""
    for tenant in TENANTS:
        ledger = world.ledger(tenant)
        ids = [job_id for job_id, owner in world.acknowledged.items() if owner == tenant]
        found = {view.id: view for view in ledger.get_many(ids)}
        assert not set(ids) - set(found), "an acknowledged job is gone"
        assert not [view for view in found.values() if not view.ended], "a job has not ended"
        records = world.fires(tenant)
        spans = [(fire.fire_time, fire.until or fire.fire_time) for fire in records]
        planned = sum(fire.count for fire in records)
        assert planned == (spans[-1][1] - spans[0][0]) // 60_000 + 1 if spans else True, (
            "a planned instant has no record"
        )
    twice = [job_id for job_id, times in world.settled.items() if times > 1]
    assert not twice, f"jobs that ended well more than once: {twice}"


def test_nothing_is_lost_or_done_twice_whoever_dies(tenure_server: Server, ledgers: Ledgers) -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        seen += live(tenure_server, ledgers, seed).seen

    if len(SEEDS) == 1:
        return  # one that was asked for
    expected = {
        *(
            "death",
            "lost reply",
            "flush",
            "reaped",
            "cancel",
            "cancel refused",
            "skip",
            "retry",
            "retry refused",
            "batch",
            "reschedule",
            "pause",
            "pause refused",
            "resume",
            "end",
            "outcome refused",
            "renewal refused",
            "stopped",
        ),
        *("Succeed", "SkipRest", "NextChunk", "Fail", "Lose", "GiveBack"),
    }
    seen["cancel refused"] += seen.pop("skip refused", 0)  # they are one script
    assert not expected - set(+seen), "a simulation in which this never happens proves nothing about it"


def test_a_seed_is_one_life_the_same_each_time(tenure_server: Server, ledgers: Ledgers) -> None:
    """Else a failing seed could not be looked at again."""
    first, second = (live(tenure_server, ledgers, 1).events for _ in range(2))

    assert first == second


def test_without_a_reaper_lost_jobs_are_found_out(
    tenure_server: Server, ledgers: Ledgers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The simulation has teeth: with a reaper that does nothing, lost jobs stay running for ever."""
    monkeypatch.setattr(World, "reaper", lambda self, name: iter([None]))

    with pytest.raises(AssertionError, match=r"long after the last fault there is still work: .*running"):
        live(tenure_server, ledgers, 0)
