"""A time zone that a scheduler's machine cannot read stops nobody else, is told, and each instant has its record."""

from __future__ import annotations

import logging
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest

from tenure import Settings, Tenure
from tenure.lease.jobs import FIRE
from tenure.lease.ledgers import Ledgers
from tenure.scheduler import cron_clock, pausing, wall, zones
from tenure.scheduler.dry_run import dry_run
from tenure.scheduler.plan import month
from tenure.scheduler.scheduler import AGAIN_MS, TRIGGERS, Scheduler
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.switch import Scheduling
from tenure.scheduler.trigger import Trigger
from tenure.scheduler.why import why
from tenure.scheduler.zones import NoZones, UnknownZone
from tenure.testing import START, Server, wait_until

from . import blind_scheduler
from .clockwork import FIRST, KEY, MINUTE, SECOND, TASK, Clockwork
from .given import Store

BASE = "Mars/Base"


class Machine:
    """Whose tz database has, or has not, the zone of a base on Mars, which goes by Berlin."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.sees = True
        self._load = zones._load
        patch.setattr(zones, "_load", lambda name: self.load(name))
        self._forget()

    def load(self, name: str) -> object:
        if name != BASE:
            return self._load(name)
        if not self.sees:
            raise UnknownZone(f"time zone {BASE!r} is unknown")
        return ZoneInfo("Europe/Berlin")

    def turn(self, sees: bool) -> None:
        self.sees = sees
        self._forget()

    def _forget(self) -> None:
        for cache in (zones.zone, cron_clock.clock, wall.wall):
            cache.cache_clear()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


@pytest.fixture
def clockwork(ledgers: Ledgers, machine: Machine) -> Clockwork:
    """Two schedules of every minute: one on Mars, one on the clock of all."""
    work = Clockwork(ledgers)
    work.put([Trigger("default", "0 * * * * ?", BASE)])
    work.schedules().put("plain", TASK, [Trigger("default", "0 * * * * ?")])
    return work


def minutes(work: Clockwork, key: str = KEY) -> list[tuple[int, int, str, str | None]]:
    """Of each record: its first and last minute, what became of it, and why."""
    found, _ = work.schedules().fires(key, month=month(FIRST), limit=1000)
    return [
        (
            (one.fire_time - FIRST) // MINUTE,
            ((one.until or one.fire_time) - FIRST) // MINUTE,
            one.outcome,
            one.reason,
        )
        for one in found[::-1]
    ]


def pass_blind(work: Clockwork, machine: Machine, first: int, last: int, late: int = 0) -> None:
    """A scheduler that cannot read the zone comes by at each of these minutes."""
    machine.turn(False)
    for minute in range(first, last + 1):
        work.fire(FIRST + minute * MINUTE + late, "blind")
    machine.turn(True)


def test_one_that_cannot_be_read_stops_no_other(clockwork: Clockwork, machine: Machine) -> None:
    pass_blind(clockwork, machine, 0, 3)

    assert [one[:3] for one in minutes(clockwork, "plain")] == [(n, n, "fired") for n in range(4)]
    assert minutes(clockwork) == []


def test_what_passes_after_a_pause_is_not_put_down_to_the_zone_any_more(
    clockwork: Clockwork, machine: Machine
) -> None:
    pass_blind(clockwork, machine, 0, 1)
    pausing.pause(clockwork.schedules(FIRST + MINUTE + SECOND), KEY)
    pausing.resume(clockwork.schedules(FIRST + MINUTE + 2 * SECOND), KEY)

    clockwork.fire(FIRST + 5 * MINUTE + SECOND)

    assert minutes(clockwork)[-2:] == [(2, 4, "skipped", "coalesced"), (5, 5, "fired", None)]


def test_a_scheduler_that_can_read_it_fires_in_time(clockwork: Clockwork, machine: Machine) -> None:
    for minute in range(3):
        pass_blind(clockwork, machine, minute, minute)
        clockwork.fire(FIRST + minute * MINUTE + SECOND, "sighted")

    assert minutes(clockwork) == [(n, n, "fired", None) for n in range(3)]


@pytest.mark.parametrize(
    ("misfire", "expected"),
    [
        ("fire_once", [(0, 5, "skipped", "zone_unavailable"), (10, 10, "misfired", "fire_once")]),
        ("skip", [(0, 10, "skipped", "zone_unavailable")]),
        (
            {"policy": "fire_all", "max": 2},
            [
                (0, 0, "skipped", "zone_unavailable"),
                (5, 5, "misfired", "fire_all"),
                (10, 10, "misfired", "fire_all"),
            ],
        ),
    ],
)
def test_what_passed_while_nobody_could_read_it_is_on_record_by_the_first_that_can(
    clockwork: Clockwork, machine: Machine, misfire: object, expected: list[object]
) -> None:
    minute = FIRST // MINUTE % 5
    clockwork.put([Trigger("default", f"0 {minute}/5 * * * ?", BASE)], START + 1, misfire=misfire)
    pass_blind(clockwork, machine, 0, 11)
    now = FIRST + 12 * MINUTE

    shown = dry_run(clockwork.schedules(now), KEY)[0].decisions
    clockwork.fire(now, "sighted", "another")

    assert minutes(clockwork) == expected
    assert [(one.outcome, one.reason) for one in shown] == [one[2:] for one in expected]
    clockwork.fire(FIRST + 15 * MINUTE, "sighted")
    assert minutes(clockwork)[-1] == (15, 15, "fired", None)
    assert clockwork.schedules().get(KEY).unread == {}


def test_what_no_scheduler_at_all_was_there_for_is_not_laid_on_the_zone(
    clockwork: Clockwork, machine: Machine
) -> None:
    pass_blind(clockwork, machine, 10, 12, late=SECOND)

    clockwork.fire(FIRST + 13 * MINUTE, "sighted")

    assert minutes(clockwork) == [
        (0, 10, "skipped", "coalesced"),
        (11, 12, "skipped", "zone_unavailable"),
        (13, 13, "fired", None),
    ]


def test_it_is_told_once_by_why_and_in_the_log(
    clockwork: Clockwork, machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.turn(False)
    scheduler = Scheduler(clockwork.at(FIRST), "blind")
    with caplog.at_level(logging.ERROR, "tenure.scheduler"):
        for second in range(3):
            scheduler.ledgers = clockwork.at(FIRST + second * SECOND)
            scheduler.round()

    said = why(clockwork.schedules(FIRST + 20 * SECOND), KEY)
    at = why(clockwork.schedules(FIRST + 20 * SECOND), KEY, at=FIRST)
    assert len(caplog.records) == 1
    assert (said.verdict, said.since, said.by) == ("zone_unavailable", FIRST, "blind")
    assert "scheduler blind cannot read the time zone 'Mars/Base' of trigger 'default'" in said.text
    assert "pip install tzdata" in said.do
    assert at.verdict == "zone_unavailable"
    assert "cannot be told here" in at.text
    machine.turn(True)
    assert why(clockwork.schedules(FIRST + 20 * SECOND), KEY, at=FIRST).verdict == "zone_unavailable"
    clockwork.fire(FIRST + 2 * MINUTE, "sighted")
    late = why(clockwork.schedules(FIRST + 2 * MINUTE), KEY, at=FIRST)
    assert late.verdict == "skipped_zone_unavailable"
    assert "no scheduler that came by could read the time zone" in late.text


def test_the_log_tells_it_too(clockwork: Clockwork, machine: Machine) -> None:
    pass_blind(clockwork, machine, 0, 1)
    clockwork.fire(FIRST + 2 * MINUTE, "sighted")

    assert clockwork.said() == [("Skipped", "zone_unavailable", False)]


def test_it_is_left_for_a_second_and_longer_if_many(clockwork: Clockwork, machine: Machine) -> None:
    """A tenant whose triggers stay at the head of its plan must not be visited round after round."""
    machine.turn(False)
    clockwork.fire(FIRST, "blind")
    for now, wait in ((FIRST, 1.0), (FIRST + 400, 0.6), (FIRST + SECOND, 1.0)):
        assert Scheduler(clockwork.at(now), "blind").round() == pytest.approx(wait)
    machine.turn(True)
    for n in range(TRIGGERS):
        clockwork.schedules(START).put(f"many.n{n}", TASK, [Trigger("default", "0 * * * * ?", BASE)])
    machine.turn(False)

    clockwork.fire(FIRST + 2 * SECOND, "blind")

    index = clockwork.at(FIRST + 2 * SECOND).index
    assert index.take(FIRE, 0).next_due_ms == FIRST + 2 * SECOND + 2 * AGAIN_MS


def test_the_note_is_written_once_and_moves_nothing(
    clockwork: Clockwork, machine: Machine, store: Store
) -> None:
    pass_blind(clockwork, machine, 0, 0)
    noted = clockwork.schedules().get(KEY)

    pass_blind(clockwork, machine, 0, 2)

    after = clockwork.schedules().get(KEY)
    assert (noted.unread["default"].since, noted.next_fires["default"]) == (FIRST, FIRST)
    assert (after.unread, after.next_fires, after.revision) == (noted.unread, noted.next_fires, 1)


def test_nothing_is_noted_of_a_disabled_tenant(clockwork: Clockwork, machine: Machine) -> None:
    Scheduling(clockwork.ledger(FIRST - SECOND)).set(enabled=False, reason="migration")

    pass_blind(clockwork, machine, 0, 2)

    assert clockwork.schedules().get(KEY).unread == {}
    clockwork.fire(FIRST + 3 * MINUTE, "sighted")
    assert {one[3] for one in minutes(clockwork)} == {"SystemTaskSchedulingDisabled"}


def test_a_pause_that_needs_the_zone_is_refused_and_takes_no_plan_away(
    clockwork: Clockwork, machine: Machine
) -> None:
    pass_blind(clockwork, machine, 0, 0)
    machine.turn(False)
    schedules = clockwork.schedules(FIRST + SECOND)
    schedules.put("default.other", TASK, [Trigger("default", "0 0 0 * * ?")])

    with pytest.raises(UnknownZone):
        pausing.pause(schedules, KEY)
    with pytest.raises(UnknownZone):
        pausing.pause_group(schedules, "reports")

    assert schedules.get(KEY).next_fires == {"default": FIRST}
    machine.turn(True)
    assert pausing.pause(clockwork.schedules(FIRST + MINUTE), KEY)
    assert minutes(clockwork) == [(0, 1, "skipped", "zone_unavailable")]


@pytest.mark.parametrize("sees", [True, False])
def test_what_is_deleted_or_changed_leaves_word_of_it(
    clockwork: Clockwork, machine: Machine, sees: bool
) -> None:
    pass_blind(clockwork, machine, 0, 1)
    machine.turn(sees)

    clockwork.put([Trigger("default", "0 0 * * * ?")], FIRST + MINUTE + SECOND)

    assert minutes(clockwork) == [(0, 1 if sees else 0, "skipped", "zone_unavailable")]
    assert clockwork.schedules().get(KEY).unread == {}


def test_a_changed_schedule_is_not_noted_by_what_was_read_before(
    clockwork: Clockwork, machine: Machine
) -> None:
    class Edits:
        """Somebody changes the schedule between the reading and the note."""

        def before(self, script: str) -> None:
            if script == "zone_unread":
                machine.turn(True)
                clockwork.put(
                    [Trigger("default", "0 * * * * ?", BASE), Trigger("b", "0 0 * * * ?")], FIRST + 1
                )
                machine.turn(False)

        def after(self, script: str) -> None: ...

    machine.turn(False)
    scripts = replace(clockwork.ledgers.scripts.at(FIRST), faults=Edits())
    Scheduler(Ledgers(scripts, clockwork.ledgers.namespace), "blind").round()

    assert clockwork.schedules().get(KEY).unread == {}


def test_an_instant_that_another_has_fired_meanwhile_is_not_noted(
    clockwork: Clockwork, machine: Machine
) -> None:
    class Fires:
        """A scheduler that can read the zone comes by between the reading and the note."""

        def before(self, script: str) -> None:
            if script == "zone_unread":
                machine.turn(True)
                at_first = clockwork.ledgers.scripts.at(FIRST)
                Scheduler(Ledgers(at_first, clockwork.ledgers.namespace), "sees").fire(["acme"])
                machine.turn(False)

        def after(self, script: str) -> None: ...

    machine.turn(False)
    scripts = replace(clockwork.ledgers.scripts.at(FIRST), faults=Fires())
    Scheduler(Ledgers(scripts, clockwork.ledgers.namespace), "blind").round()

    machine.turn(True)
    assert minutes(clockwork) == [(0, 0, "fired", None)]
    assert clockwork.schedules().get(KEY).unread == {}


def test_a_machine_without_any_zone_fires_what_needs_none(
    tenure_server: Server, tenure_namespace: str
) -> None:
    if tenure_server.url is None:
        pytest.skip("no other process can reach fakeredis")
    app = Tenure(Settings(redis_url=tenure_server.url, namespace=tenure_namespace))

    @app.task(KEY)
    def tick() -> None: ...

    app.schedules.put("berlin", task=KEY, cron="* * * * * ?", tz="Europe/Berlin", misfire="skip")
    app.schedules.put("plain", task=KEY, cron="* * * * * ?")
    blind = blind_scheduler.start(redis_url=tenure_server.url, namespace=tenure_namespace, name="blind")
    try:
        wait_until(lambda: app.schedules.get("plain").last_fires, "it fires what is in UTC")
        noted = wait_until(lambda: app.schedules.get("berlin").unread, "it says that it cannot read Berlin")
        since = noted["default"].since
        wait_until(lambda: app.ledgers().index.now_ms() > since + 3 * SECOND)
        assert app.schedules.why("berlin").verdict == "zone_unavailable"
    finally:
        blind.communicate()

    sighted = Scheduler(app.ledgers(), "sighted")
    wait_until(lambda: (sighted.round(), app.schedules.get("berlin").last_fires)[1], "another can")
    found = app.schedules.fires("berlin", month=month(since), limit=100)
    lost = [one for one in found if one.reason == "zone_unavailable"]
    assert sum(one.count for one in lost) >= 3
    assert min(one.fire_time for one in lost) == since
    app.close()


def test_the_error_says_which_of_the_two_it_is() -> None:
    assert issubclass(UnknownZone, ValueError)
    assert NoZones("x").code == "MISSING_EXTRA"


def test_a_group_is_paused_but_for_what_needs_the_zone(clockwork: Clockwork, machine: Machine) -> None:
    schedules = Schedules(clockwork.ledger(START + 2))
    schedules.put("reports.zz", TASK, [Trigger("default", "0 0 0 * * ?")])
    pass_blind(clockwork, machine, 0, 0)
    machine.turn(False)

    with pytest.raises(UnknownZone):
        pausing.pause_group(clockwork.schedules(FIRST + SECOND), "reports")

    assert schedules.get("reports.zz").paused
    assert not schedules.get(KEY).paused
