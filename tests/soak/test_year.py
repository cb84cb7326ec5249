"""Whole virtual years: each planned instant has exactly one record, and it is the one that the contract says."""

from __future__ import annotations

from collections import Counter

import pytest

from tenure.lease.ledgers import Ledgers
from tenure.testing import Server, wipe

from .size import seeds
from .year import Year


def live(server: Server, ledgers: Ledgers, seed: int, *, back: bool = False) -> Counter[str]:
    """Live through a year; when something is wrong, say how it came to it and how to see it again."""
    year = Year(ledgers.scripts, f"{ledgers.namespace}-{seed}", seed, back=back)
    try:
        year.live()
    except Exception as exc:
        story = "\n".join(year.events[-40:])
        again = f"TENURE_SEED={seed} python -m pytest tests/soak/test_year.py"
        raise AssertionError(f"seed {seed}: {exc}\nthe last events:\n{story}\nsee it again: {again}") from exc
    finally:
        wipe(server.redis, year.namespace)
    return year.seen


@pytest.mark.parametrize("seed", seeds(2, 300))
def test_a_year_of_changes_and_switches_is_told_instant_by_instant(
    tenure_server: Server, ledgers: Ledgers, seed: int
) -> None:
    live(tenure_server, ledgers, seed)


@pytest.mark.parametrize("seed", seeds(1, 100))
def test_a_clock_that_steps_back_a_minute_fires_nothing_twice_and_leaves_nothing_out(
    tenure_server: Server, ledgers: Ledgers, seed: int
) -> None:
    live(tenure_server, ledgers, seed, back=True)
