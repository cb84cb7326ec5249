"""What is planned of one trigger holds for all that look like it, and for no other."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tenure.scheduler.misfire import read_misfire
from tenure.scheduler.plan import resume
from tenure.scheduler.planner import Planner
from tenure.scheduler.trigger import Trigger
from tenure.testing import START

MINUTE = 60_000
LOOKS: list[dict[str, Any]] = [
    {},
    {"cron": "0 30 * * * ?"},
    {"tz": "Asia/Kolkata"},
    {"tz": "Europe/Berlin", "dst": "skip"},
    {"start": "2030-01-01T00:00:00Z"},
    {"end": "2030-01-01T00:00:00Z"},
    {"priority": 3, "jitter": "10s"},
]
AT = [(0, 0, 0), (90, 0, 0), (90, 30, 0), (90, 0, 45)]


@pytest.mark.parametrize("policy", ["fire_once", "skip", {"policy": "fire_all", "max": 3}])
def test_it_plans_as_if_nothing_were_kept(policy: object) -> None:
    planner, misfire = Planner(), read_misfire(policy)
    first = START - START % (60 * MINUTE) + 60 * MINUTE

    for look, at in [*product(LOOKS, AT)] * 2:
        late, observed, resumed = (minutes and first + minutes * MINUTE for minutes in at)
        given: dict[str, Any] = {"name": "default", "cron": "0 0 * * * ?", **look}
        trigger = Trigger(**given)
        asked = (first, observed, resumed, late or first, misfire)

        assert planner.plan(trigger, *asked) == resume(trigger.times(0), *asked)


def test_triggers_that_look_alike_are_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    planner, misfire, made = Planner(), read_misfire("fire_once"), list[str]()
    times = Trigger.times

    def noted(trigger: Trigger, anchor_ms: int) -> object:
        made.append(str(trigger.cron))
        return times(trigger, anchor_ms)

    monkeypatch.setattr(Trigger, "times", noted)
    for nth in range(5):
        planner.plan(Trigger(f"number-{nth}", "0 0 * * * ?"), START, 0, 0, START + nth // 4, misfire)

    assert made == ["0 0 * * * ?"]


@pytest.mark.parametrize("other", [{"every": "5m"}, {"cron": "0 0 * * * ?", "calendar": "holidays"}])
def test_triggers_whose_times_depend_on_more_are_not_for_it(other: dict[str, Any]) -> None:
    assert not Planner.takes(Trigger("default", **other))
