"""Calendars by name: what one excludes never fires, what it frees fires from the change on, however it races."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tenure.lease.ledger import Ledger
from tenure.lease.ledgers import Ledgers
from tenure.lease.tasks import Task
from tenure.scheduler import pausing
from tenure.scheduler.calendar_store import Calendars
from tenure.scheduler.calendars import BadCalendar
from tenure.scheduler.fire_record import Fire
from tenure.scheduler.plan import month
from tenure.scheduler.scheduler import Scheduler
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.skips import DISABLED
from tenure.scheduler.switch import Scheduling
from tenure.scheduler.trigger import Trigger
from tenure.scripts.errors import BadInput, InUse, NotFound, PayloadTooLarge, StalePlan
from tenure.testing import START, Died, Faults

from .given import Store

SECOND, MINUTE = 1000, 60_000
FIRST = START + 40 * SECOND  # 14:14 in UTC; the clock starts 40 seconds before
KEY = "reports.daily"
TASK = Task(KEY, lambda: None)
EVERY_MINUTE = [Trigger("default", "0 * * * * ?", calendar="quiet")]


def leaving_out(*minutes: int) -> dict[str, Any]:
    """A calendar without these minutes, counted from the first fire."""
    return {"cron": [f"* {14 + minute} 14 * * ?" for minute in minutes] or ["* * * 31 12 ?"]}


class Clockwork:
    """One tenant's schedules, calendars and schedulers, at whatever time the test says."""

    def __init__(self, ledgers: Ledgers) -> None:
        self.ledgers = ledgers

    def at(self, now: int) -> Ledgers:
        return Ledgers(self.ledgers.scripts.at(now), self.ledgers.namespace)

    def ledger(self, now: int) -> Ledger:
        return self.at(now).of("acme")

    def schedules(self, now: int) -> Schedules:
        return Schedules(self.ledger(now))

    def calendar(self, now: int, *minutes: int) -> bool:
        return Calendars(self.ledger(now)).put("quiet", leaving_out(*minutes)).changed

    def round(self, now: int, *names: str) -> None:
        for name in names or ("one",):
            Scheduler(self.at(now), name).round()

    def minutes(self, first: int, last: int) -> None:
        """A scheduler comes by at each of these minutes."""
        for minute in range(first, last + 1):
            self.round(FIRST + minute * MINUTE)

    def records(self) -> list[Fire]:
        found, _ = self.schedules(START).fires(KEY, trigger="default", month=month(START), limit=10_000)
        return list(found[::-1])

    def fired(self) -> list[int]:
        """The minutes that have a job."""
        return [(one.fire_time - FIRST) // MINUTE for one in self.records() if one.job_id]

    def said(self) -> list[tuple[int, str | None]]:
        return [((one.fire_time - FIRST) // MINUTE, one.reason) for one in self.records()]


@pytest.fixture
def clockwork(ledgers: Ledgers) -> Clockwork:
    """A schedule of every minute in a calendar that leaves out the second one."""
    work = Clockwork(ledgers)
    work.calendar(START, 1)
    work.schedules(START).put(KEY, TASK, EVERY_MINUTE)
    return work


@pytest.fixture
def calendars(ledger: Ledger) -> Calendars:
    return Calendars(ledger)


# -- stored by name ---------------------------------------------------------------------------------------------------


def test_a_calendar_is_stored_seen_and_deleted(calendars: Calendars) -> None:
    put = calendars.put("holidays", {"dates": ["2026-12-25"]}, by="ada", reason="new year's plan")

    found = calendars.get("holidays")
    assert (put.revision, put.changed, put.created) == (1, True, True)
    assert (found.data, found.by, found.reason) == ({"dates": ["2026-12-25"]}, "ada", "new year's plan")
    assert (found.stored, found.used_by) == (START, [])
    assert calendars.delete("holidays")
    assert not calendars.delete("holidays")
    with pytest.raises(NotFound):
        calendars.get("holidays")


def test_the_same_calendar_again_changes_nothing(calendars: Calendars, store: Store) -> None:
    calendars.put("holidays", {"dates": ["2026-12-25"], "tz": "UTC"})

    with store.unchanged():
        put = calendars.put("holidays", {"tz": "UTC", "dates": ["2026-12-25"]}, by="eve")

    assert (put.revision, put.changed) == (1, False)


def test_no_revision_of_a_calendar_comes_again(calendars: Calendars) -> None:
    calendars.put("holidays", {"dates": ["2026-12-25"]})
    calendars.delete("holidays")

    assert calendars.put("holidays", {"dates": ["2026-12-25"]}).revision == 2


def test_a_change_of_another_revision_is_refused(calendars: Calendars, store: Store) -> None:
    calendars.put("holidays", {"dates": ["2026-12-25"]})

    with store.unchanged():
        for expected in (0, 2):
            with pytest.raises(StalePlan, match=f"at revision 1, not {expected}"):
                calendars.put("holidays", {"dates": ["2026-12-26"]}, expected_revision=expected)
            with pytest.raises(StalePlan, match=f"at revision 1, not {expected}"):
                calendars.delete("holidays", expected_revision=expected)
        with pytest.raises(StalePlan, match="at revision 0, not 1"):
            calendars.put("others", {"dates": ["2026-12-26"]}, expected_revision=1)

    assert calendars.put("holidays", {"dates": ["2026-12-26"]}, expected_revision=1).revision == 2
    assert calendars.delete("holidays", expected_revision=2)


def test_calendars_are_listed_in_the_order_of_their_names(calendars: Calendars) -> None:
    for name in ("c", "a", "b"):
        calendars.put(name, {"weekdays": ["SUN"]})

    assert [one.name for one in calendars.list()] == ["a", "b", "c"]
    assert [one.name for one in calendars.list(1, "a")] == ["b"]


def test_all_that_is_wrong_with_a_calendar_is_said_at_once(calendars: Calendars, store: Store) -> None:
    wrong = {
        "dates": ["2026-02-30"],
        "weekdays": ["Someday"],
        "window": "night",
        "cron": "99 * * * * ?",
        "x": 1,
    }

    with store.unchanged(), pytest.raises(BadCalendar) as refused:
        calendars.put("holidays", wrong)

    assert sorted(part for part, _ in refused.value.errors) == ["cron", "dates", "weekdays", "window", "x"]


@pytest.mark.parametrize(
    ("name", "data", "error", "says"),
    [
        ("Holidays", {"weekdays": ["SUN"]}, BadInput, "calendar name 'Holidays'"),
        ("a:b", {"weekdays": ["SUN"]}, BadInput, "calendar name 'a:b'"),
        ("holidays", {}, BadInput, "is not a calendar"),
        ("holidays", {"tz": "Europe/Berlin"}, BadInput, "excludes nothing"),
        ("holidays", {"dates": ["2026-12-25"], "tz": "Mars/Base"}, BadInput, "Mars/Base"),
        (
            "holidays",
            {"cron": ["0 0 0 1 1 ? " + ",".join(map(str, range(2027, 2073)))] * 300},
            PayloadTooLarge,
            "65,536",
        ),
    ],
)
def test_a_bad_calendar_is_refused(
    calendars: Calendars, store: Store, name: str, data: dict[str, Any], error: type[BadInput], says: str
) -> None:
    with store.unchanged(), pytest.raises(error, match=says):
        calendars.put(name, data)


def test_a_calendar_that_is_used_is_not_deleted_and_names_who_uses_it(
    clockwork: Clockwork, store: Store
) -> None:
    twice = [Trigger(name, "0 0 1 * * ?", calendar="quiet") for name in ("y", "z")]
    clockwork.schedules(START).put("backup", TASK, twice)
    calendars = Calendars(clockwork.ledger(START))

    with store.unchanged(), pytest.raises(InUse, match=r"used by backup, reports\.daily"):
        calendars.delete("quiet")

    assert calendars.get("quiet").used_by == ["backup", KEY]
    clockwork.schedules(START).delete("backup")
    clockwork.schedules(START).put(KEY, TASK, [Trigger("default", "0 * * * * ?")])
    assert calendars.delete("quiet")


def test_of_many_that_use_a_calendar_ten_are_named(clockwork: Clockwork) -> None:
    for nth in range(12):
        clockwork.schedules(START).put(f"a{nth:02}", TASK, EVERY_MINUTE)

    with pytest.raises(InUse, match=r"used by a00, .*, a09 and others, 13 triggers in all"):
        Calendars(clockwork.ledger(START)).delete("quiet")


def test_a_schedule_in_a_calendar_that_is_not_stored_is_refused(ledger: Ledger, store: Store) -> None:
    with store.unchanged(), pytest.raises(BadInput, match="names the calendar 'quiet', which is not stored"):
        Schedules(ledger).put(KEY, TASK, EVERY_MINUTE)


def test_the_same_name_in_another_tenant_is_another_calendar(clockwork: Clockwork) -> None:
    other = clockwork.at(START).of("beta")

    Calendars(other).put("quiet", leaving_out(0, 1, 2))
    clockwork.minutes(0, 2)

    assert clockwork.fired() == [0, 2]


# -- what it excludes, and what it frees -------------------------------------------------------------------------------


def test_an_excluded_instant_is_no_planned_one(clockwork: Clockwork) -> None:
    clockwork.minutes(0, 3)

    assert clockwork.said() == [(0, None), (2, None), (3, None)]


def test_what_a_change_excludes_fires_no_more_and_the_next_instant_is_planned(clockwork: Clockwork) -> None:
    clockwork.calendar(START + SECOND, 0, 2)

    assert clockwork.schedules(START).get(KEY).next_fires == {"default": FIRST + MINUTE}
    clockwork.minutes(0, 3)
    assert clockwork.said() == [(1, None), (3, None)]


def test_what_a_change_frees_fires(clockwork: Clockwork) -> None:
    clockwork.round(FIRST)
    clockwork.calendar(FIRST + SECOND)

    assert clockwork.schedules(START).get(KEY).next_fires == {"default": FIRST + MINUTE}
    clockwork.minutes(1, 2)
    assert clockwork.said() == [(0, None), (1, None), (2, None)]


def test_a_change_brings_the_scheduler_at_once(clockwork: Clockwork) -> None:
    """What is freed may come long before the instant that the index knew."""
    clockwork.schedules(START).put(KEY, TASK, [Trigger("default", "0 14 14 * * ?", calendar="quiet")])
    clockwork.calendar(START + 1, 0)

    clockwork.calendar(START + 2, 7)
    clockwork.round(FIRST)

    assert clockwork.fired() == [0]


def test_what_was_due_at_the_change_fires_unless_it_is_excluded(clockwork: Clockwork) -> None:
    other = Trigger("other", "30 * * * * ?", calendar="quiet")
    clockwork.schedules(START).put(KEY, TASK, [*EVERY_MINUTE, other])

    clockwork.calendar(FIRST + 31 * SECOND, 1, 2)
    clockwork.round(FIRST + 32 * SECOND)

    assert clockwork.fired() == [0]
    assert [job.fire_time for job in clockwork.ledger(START).list().items] == [FIRST, FIRST + 30 * SECOND]

    clockwork.calendar(FIRST + MINUTE + 1, 1, 2, 3)
    clockwork.calendar(FIRST + 3 * MINUTE + 1, 1, 2, 3, 4)
    clockwork.round(FIRST + 3 * MINUTE + 2)
    assert clockwork.said() == [(0, None)]


def test_what_was_excluded_when_it_passed_stays_so(clockwork: Clockwork) -> None:
    clockwork.minutes(0, 1)

    clockwork.calendar(FIRST + MINUTE + 1)
    clockwork.minutes(1, 2)

    assert clockwork.said() == [(0, None), (2, None)]


def test_a_schedule_without_a_time_left_comes_back_when_one_is_freed(clockwork: Clockwork) -> None:
    clockwork.schedules(START).put(KEY, TASK, [Trigger("default", "0 14-15 14 * * ? 2026", calendar="quiet")])
    clockwork.calendar(START + 1, 0, 1)
    clockwork.schedules(START).put(
        KEY, TASK, [Trigger("default", at="2026-09-21T14:17:00Z", calendar="quiet")]
    )
    clockwork.calendar(START + 2, 3)
    clockwork.round(START + 3)
    assert clockwork.schedules(START).get(KEY).exhausted

    clockwork.calendar(START + 4, 4)

    assert clockwork.schedules(START).get(KEY).next_fires == {"default": FIRST + 3 * MINUTE}
    clockwork.minutes(0, 3)
    assert clockwork.fired() == [3]


def test_a_clock_that_went_back_fires_nothing_again(clockwork: Clockwork) -> None:
    clockwork.minutes(0, 3)

    clockwork.calendar(FIRST + MINUTE, 7)
    clockwork.minutes(1, 5)

    assert clockwork.fired() == [0, 2, 3, 4, 5]


# -- races ------------------------------------------------------------------------------------------------------------


def test_a_fire_planned_by_another_revision_is_refused(clockwork: Clockwork, faults: Faults) -> None:
    def exclude() -> None:
        if faults.calls[-1] == "triggers_due":
            clockwork.calendar(FIRST, 0)

    faults.after_each = exclude
    clockwork.round(FIRST)
    faults.after_each = None

    assert clockwork.said() == []
    clockwork.round(FIRST + SECOND)
    assert clockwork.schedules(START).get(KEY).next_fires == {"default": FIRST + MINUTE}


def test_an_observation_worked_out_by_another_revision_is_refused(
    clockwork: Clockwork, faults: Faults
) -> None:
    Scheduling(clockwork.ledger(START + 1)).set(enabled=False)

    def exclude() -> None:
        if faults.calls[-1] == "triggers_due":
            clockwork.calendar(FIRST, 0)

    faults.after_each = exclude
    clockwork.round(FIRST)
    faults.after_each = None

    clockwork.minutes(0, 1)
    assert clockwork.said() == [(1, DISABLED)]


@pytest.mark.parametrize("act", ["put", "pause", "delete"])
def test_a_change_of_a_schedule_that_saw_another_calendar_is_worked_out_anew(
    clockwork: Clockwork, faults: Faults, act: str
) -> None:
    """The instant that was due when the schedule was read is excluded when the change is made: it has no record."""

    def exclude() -> None:
        if faults.calls[-1] in ("schedules_read", "calendars_read"):
            faults.after_each = None
            clockwork.calendar(FIRST, 0)

    schedules = clockwork.schedules(FIRST)
    faults.after_each = exclude
    if act == "put":
        schedules.put(KEY, TASK, EVERY_MINUTE, misfire="skip")
    elif act == "pause":
        pausing.pause(schedules, KEY)
    else:
        schedules.delete(KEY)

    records = clockwork.ledger(FIRST).keys("fires", month=month(FIRST), trigger="default", job_key=KEY)
    assert not clockwork.ledgers.scripts.redis.exists(records)


def test_a_put_that_saw_another_calendar_plans_by_the_new_one(clockwork: Clockwork, faults: Faults) -> None:
    def exclude() -> None:
        if faults.calls[-1] == "calendars_read":
            faults.after_each = None
            clockwork.calendar(START, 0, 1, 2)

    faults.after_each = exclude
    clockwork.schedules(START).put(KEY, TASK, EVERY_MINUTE, misfire="skip")

    assert clockwork.schedules(START).get(KEY).next_fires == {"default": FIRST + 3 * MINUTE}


def test_of_a_calendar_with_many_triggers_a_scheduler_plans_the_rest_when_the_caller_dies(
    clockwork: Clockwork, faults: Faults
) -> None:
    for nth in range(502):
        clockwork.schedules(START).put(
            f"many.a{nth:03}", TASK, [Trigger("default", "0 15,20 14 * * ? 2026", calendar="quiet")]
        )
    faults.die_after("calendar_put")
    with pytest.raises(Died):
        clockwork.calendar(START + 1, 5)

    clockwork.round(FIRST)
    clockwork.round(FIRST + SECOND)

    planned = [
        view.next_fires["default"]
        for view in clockwork.schedules(START).list(1000)
        if view.job_key.group == "many"
    ]
    assert set(planned) == {FIRST + MINUTE}
    assert len(planned) == 502


def test_the_caller_plans_many_triggers_anew_by_itself(clockwork: Clockwork, faults: Faults) -> None:
    for nth in range(502):
        clockwork.schedules(START).put(f"many.a{nth:03}", TASK, EVERY_MINUTE)
    faults.calls.clear()

    clockwork.calendar(START + 1, 0)

    assert faults.calls.count("calendar_replan") == 1
    assert not clockwork.calendar(START + 1, 0)


# -- pause and switch -------------------------------------------------------------------------------------------------


def test_a_paused_schedule_is_planned_anew_and_resumed_by_the_new_calendar(clockwork: Clockwork) -> None:
    pausing.pause(clockwork.schedules(START + 1), KEY)
    clockwork.calendar(START + 2, 0, 3)

    assert clockwork.schedules(START).get(KEY).next_fires == {"default": FIRST + MINUTE}
    clockwork.minutes(0, 2)
    pausing.resume(clockwork.schedules(FIRST + 2 * MINUTE + 1), KEY)
    clockwork.minutes(3, 4)
    assert [(one.count, one.reason) for one in clockwork.records()] == [(2, "paused"), (1, None)]


def test_a_disabled_tenant_observes_by_the_new_calendar_and_fires_nothing(clockwork: Clockwork) -> None:
    Scheduling(clockwork.ledger(START + 1)).set(enabled=False)
    clockwork.minutes(0, 0)
    clockwork.calendar(FIRST + 1, 2)
    clockwork.minutes(1, 3)
    clockwork.calendar(FIRST + 3 * MINUTE + 1)
    clockwork.calendar(FIRST + 3 * MINUTE + 2, 5)
    Scheduling(clockwork.ledger(FIRST + 3 * MINUTE + 3)).set(enabled=True)
    clockwork.minutes(4, 6)

    assert clockwork.said() == [(0, DISABLED), (1, DISABLED), (3, DISABLED), (4, None), (6, None)]


@pytest.mark.parametrize("seed", range(6))
def test_whatever_becomes_of_a_calendar_each_instant_is_decided_once_by_how_it_stood_then(
    clockwork: Clockwork, faults: Faults, seed: int
) -> None:
    """Changes between any two calls of schedulers: what stands when a fire is committed decides."""
    chance = random.Random(seed)
    stood = [{1}]

    def change(now: int) -> None:
        stood.append(set(chance.sample(range(40), chance.randrange(30))))
        clockwork.calendar(now, *stood[-1])

    for minute in range(40):
        now = FIRST + minute * MINUTE
        stood = stood[-1:]
        if chance.random() < 0.4:
            change(now - chance.choice([1, 20_000]))
            stood = stood[-1:]
        moment = chance.choice(["none", "none", "triggers_due", "fire", "index_take"])

        def act(now: int = now, moment: str = moment) -> None:
            if faults.calls[-1] == moment and chance.random() < 0.5:
                faults.after_each = None
                change(now)

        faults.after_each = act
        clockwork.round(now, *chance.sample(["one", "two"], chance.randint(1, 2)))
        faults.after_each = None
        clockwork.round(now + SECOND)
        excluded = [minute in calendar for calendar in stood]
        assert all(excluded) or (minute, None) in clockwork.said() or (any(excluded) and len(stood) > 1)
        assert not all(excluded) or (minute, None) not in clockwork.said()

    assert len(set(clockwork.said())) == len(clockwork.said())
