"""The tenant's switch and the pause of a schedule: nothing fires, nothing moves, every instant has its record."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tenure.lease.instants import rfc3339
from tenure.lease.ledger import Ledger
from tenure.lease.ledgers import Ledgers
from tenure.lease.tasks import Task
from tenure.scheduler import pausing
from tenure.scheduler.fire_record import Fire
from tenure.scheduler.job_key import JobKey
from tenure.scheduler.plan import month
from tenure.scheduler.scheduler import Scheduler
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.skips import DISABLED
from tenure.scheduler.switch import Scheduling
from tenure.scheduler.trigger import Trigger
from tenure.scripts import Call
from tenure.scripts.errors import BadInput, NotFound, SchedulingDisabled, StalePlan, StoreUnreachable
from tenure.testing import START, Died, Faults, difference

from .given import Store

SECOND, MINUTE, DAY = 1000, 60_000, 86_400_000
FIRST = START + 40 * SECOND
EVERY_MINUTE = [Trigger("default", "0 * * * * ?")]
TASK = Task("reports.daily", lambda: None)
KEY = "reports.daily"


class Clockwork:
    """One tenant's schedules, schedulers and switch, at whatever time the test says."""

    def __init__(self, ledgers: Ledgers) -> None:
        self.ledgers = ledgers

    def at(self, now: int) -> Ledgers:
        return Ledgers(self.ledgers.scripts.at(now), self.ledgers.namespace)

    def ledger(self, now: int) -> Ledger:
        return self.at(now).of("acme")

    def schedules(self, now: int) -> Schedules:
        return Schedules(self.ledger(now))

    def switch(self, now: int) -> Scheduling:
        return Scheduling(self.ledger(now))

    def round(self, now: int, *names: str) -> None:
        for name in names or ("one",):
            Scheduler(self.at(now), name).round()

    def follow(self, now: int, many: int) -> None:
        """One step in which triggers begin to be observed."""
        ledger = self.ledger(now)
        ledger.scripts.run(Call("switch_follow", ledger.keys.home, {"limit": many}, list))

    def minutes(self, start: int, many: int, *names: str) -> None:
        for minute in range(many):
            self.round(start + minute * MINUTE, *names)

    def records(self, *months: str) -> list[Fire]:
        found: list[Fire] = []
        for name in months or (month(START),):
            page, more = self.schedules(START).fires(KEY, month=name, limit=10_000)
            assert more is None
            found += page[::-1]
        return found

    def said(self) -> list[tuple[str, str | None, int]]:
        return [(one.outcome, one.reason, one.count) for one in self.records()]

    def jobs(self) -> list[int]:
        found = self.ledger(START).list(limit=100).items
        return sorted(job.fire_time for job in found if job.fire_time is not None)


@pytest.fixture
def clockwork(ledgers: Ledgers) -> Clockwork:
    work = Clockwork(ledgers)
    work.schedules(START).put(KEY, TASK, EVERY_MINUTE)
    return work


# -- the switch -------------------------------------------------------------------------------------------------------


def test_a_disabled_tenant_fires_nothing_and_nothing_it_planned_moves(
    clockwork: Clockwork, store: Store
) -> None:
    clockwork.round(FIRST)
    clockwork.switch(FIRST + SECOND).set(enabled=False, by="eve", reason="migration")
    planned = {name: value for name, value in store.dump().items() if ":t" in name[-2:] or ":s:" in name}

    clockwork.minutes(FIRST + MINUTE, 5, "one", "two", "three")

    assert clockwork.jobs() == [FIRST]
    assert clockwork.said() == [("fired", None, 1), *[("skipped", DISABLED, 1)] * 5]
    assert {
        name: value for name, value in store.dump().items() if ":t" in name[-2:] or ":s:" in name
    } == planned
    assert len(planned) == 2


def test_enabled_again_it_goes_on_with_the_first_instant_after_that_moment(clockwork: Clockwork) -> None:
    clockwork.switch(START + SECOND).set(enabled=False)
    clockwork.minutes(FIRST, 3)
    clockwork.switch(FIRST + 2 * MINUTE + 30 * SECOND).set(enabled=True)

    clockwork.minutes(FIRST + 3 * MINUTE, 2)

    assert clockwork.jobs() == [FIRST + 3 * MINUTE, FIRST + 4 * MINUTE]
    assert clockwork.said() == [*[("skipped", DISABLED, 1)] * 3, *[("fired", None, 1)] * 2]


def test_what_no_scheduler_observed_is_one_range_when_it_is_enabled(clockwork: Clockwork) -> None:
    clockwork.switch(START + SECOND).set(enabled=False)
    clockwork.minutes(FIRST, 2)
    clockwork.switch(FIRST + 20 * MINUTE + 30 * SECOND).set(enabled=True)

    clockwork.round(FIRST + 21 * MINUTE)
    clockwork.round(FIRST + 21 * MINUTE + SECOND)

    assert clockwork.said() == [
        *[("skipped", DISABLED, 1)] * 2,
        ("skipped", "unobserved", 19),
        ("fired", None, 1),
    ]
    assert clockwork.jobs() == [FIRST + 21 * MINUTE]


def test_instants_after_it_was_enabled_and_missed_follow_the_misfire_policy(clockwork: Clockwork) -> None:
    clockwork.switch(START + SECOND).set(enabled=False)
    clockwork.switch(FIRST + 3 * MINUTE).set(enabled=True)

    clockwork.round(FIRST + 10 * MINUTE)

    assert clockwork.said() == [
        ("skipped", "unobserved", 4),
        ("skipped", "coalesced", 6),
        ("fired", None, 1),
    ]


def test_a_switch_with_an_end_ends_by_itself(clockwork: Clockwork) -> None:
    clockwork.switch(START + SECOND).set(enabled=False, until=FIRST + 2 * MINUTE + 1)

    clockwork.minutes(FIRST, 5)

    assert clockwork.jobs() == [FIRST + 3 * MINUTE, FIRST + 4 * MINUTE]
    assert clockwork.switch(FIRST + 5 * MINUTE).get().enabled
    said = f"until {rfc3339(FIRST)} is not after now ({rfc3339(FIRST + 1)})"
    with pytest.raises(BadInput, match=re.escape(said)):
        clockwork.switch(FIRST + 1).set(enabled=False, until=FIRST)


def test_seconds_are_observed_as_ranges_and_a_long_gap_in_two_parts(clockwork: Clockwork) -> None:
    clockwork.schedules(START).put(KEY, TASK, [Trigger("default", "0/10 * * * * ?")])
    clockwork.switch(START + SECOND).set(enabled=False)
    clockwork.round(START + MINUTE)
    (seconds,) = clockwork.records()
    assert (seconds.reason, seconds.count) == (DISABLED, 6)

    clockwork.schedules(START + MINUTE).put(KEY, TASK, EVERY_MINUTE)
    clockwork.round(START + MINUTE + 600 * MINUTE)

    found = clockwork.records()[1:]
    assert [one.count for one in found] == [500, *[1] * 100]
    assert {one.reason for one in found} == {DISABLED}


def test_seconds_that_are_seen_one_by_one_are_a_record_a_minute(clockwork: Clockwork) -> None:
    """Or a month of a disabled tenant's seconds would fill the store; each is on record at once all the same."""
    clockwork.schedules(START).put(KEY, TASK, [Trigger("default", "0/10 * * * * ?")])
    clockwork.switch(START + SECOND).set(enabled=False)

    for second in range(10, 140, 10):
        clockwork.round(START + second * SECOND, "one", "two")
        assert sum(one.count for one in clockwork.records()) == second // 10

    found = clockwork.records()
    assert [one.count for one in found] == [3, 6, 4], "START is twenty seconds past the minute"
    assert [one.until for one in found] == [one.fire_time + (one.count - 1) * 10 * SECOND for one in found]
    logged = clockwork.schedules(START).logs(KEY, month=month(START)).items
    assert [(one.fire_time, one.until, one.count) for one in logged[::-1]] == [
        (one.fire_time, one.until, one.count) for one in found
    ]
    assert len({one.event_id for one in logged}) == 3
    at = START + 50 * SECOND
    record = clockwork.schedules(START).records.at(JobKey.parse(KEY), "default", at)
    assert record is not None
    assert record.fire_time <= at <= (record.until or 0)


def test_schedulers_that_observe_the_same_instant_write_one_record(
    clockwork: Clockwork, faults: Faults
) -> None:
    """A scheduler dies at every call of its round, applied or not; the others go on."""
    clockwork.switch(START + SECOND).set(enabled=False)
    minute = FIRST
    for script in ("index_take", "triggers_due", "observe", "index_put"):
        for die in (faults.die_before, faults.die_after):
            die(script)
            with pytest.raises(Died):
                clockwork.round(minute)
            clockwork.round(minute + 2 * SECOND, "two", "three")
            minute += MINUTE

    assert clockwork.said() == [("skipped", DISABLED, 1)] * 8


def test_the_switch_is_read_again_by_the_script_that_commits_a_fire(
    clockwork: Clockwork, faults: Faults
) -> None:
    def disable() -> None:
        if faults.calls[-1] == "triggers_due":
            clockwork.switch(FIRST).set(enabled=False)

    faults.after_each = disable
    clockwork.round(FIRST)

    assert clockwork.jobs() == []


def test_a_fire_planned_before_a_switch_off_and_on_is_refused(clockwork: Clockwork, faults: Faults) -> None:
    def blink() -> None:
        if faults.calls[-1] == "triggers_due":
            clockwork.switch(FIRST).set(enabled=False)
            clockwork.switch(FIRST + 1).set(enabled=True)

    faults.after_each = blink
    clockwork.round(FIRST)
    faults.after_each = None

    assert clockwork.jobs() == []
    clockwork.round(FIRST + 2 * SECOND)
    assert clockwork.said() == [("skipped", "unobserved", 1)]


@pytest.mark.parametrize("change", ["delete", "put", "pause"])
def test_a_change_that_was_worked_out_before_an_observation_records_nothing_twice(
    clockwork: Clockwork, faults: Faults, change: str
) -> None:
    clockwork.switch(START + SECOND).set(enabled=False)
    now = FIRST + 2 * MINUTE

    def observe() -> None:
        if faults.calls[-1] == "schedules_read":
            faults.after_each = None
            clockwork.round(now)

    faults.after_each = observe
    schedules = clockwork.schedules(now)
    {
        "delete": lambda: schedules.delete(KEY),
        "put": lambda: schedules.put(KEY, TASK, [Trigger("default", "30 * * * * ?")]),
        "pause": lambda: pausing.pause(schedules, KEY),
    }[change]()

    assert [(one.fire_time, one.reason, one.count) for one in clockwork.records()] == [
        (FIRST + nth * MINUTE, DISABLED, 1) for nth in range(3)
    ]


def test_a_change_that_was_worked_out_before_the_switch_says_what_is_true_now(
    clockwork: Clockwork, faults: Faults
) -> None:
    def disable() -> None:
        if faults.calls[-1] == "schedules_read":
            faults.after_each = None
            clockwork.switch(FIRST).set(enabled=False)

    faults.after_each = disable
    clockwork.schedules(FIRST).delete(KEY)

    assert clockwork.said() == [("skipped", DISABLED, 1)]


def enable(clockwork: Clockwork) -> None:
    clockwork.switch(FIRST).set(enabled=True)


def damage(clockwork: Clockwork) -> None:
    clockwork.ledgers.scripts.redis.hset(clockwork.ledger(START).keys("scheduling"), "state", "perhaps")


def edit(clockwork: Clockwork) -> None:
    clockwork.schedules(FIRST).put(KEY, TASK, [Trigger("default", "30 * * * * ?")])


def delete(clockwork: Clockwork) -> None:
    clockwork.schedules(FIRST).delete(KEY)


def observe_first(clockwork: Clockwork) -> None:
    clockwork.round(FIRST + 2 * SECOND, "two")


@pytest.mark.parametrize("meanwhile", [enable, damage, edit, delete, observe_first])
def test_an_observation_that_was_overtaken_is_refused_and_writes_nothing(
    clockwork: Clockwork,
    faults: Faults,
    store: Store,
    caplog: pytest.LogCaptureFixture,
    meanwhile: Callable[[Clockwork], None],
) -> None:
    """What changes between the look and the record counts: the instant has the record that the change gave it."""
    clockwork.switch(START + SECOND).set(enabled=False)
    clockwork.round(START + SECOND)  # which has it observed
    after: dict[str, Any] = {}

    def overtake() -> None:
        if faults.calls[-1] == "triggers_due" and not after:
            after["dump"] = {}
            meanwhile(clockwork)
            after["dump"] = store.dump()
        elif faults.calls[-1] == "observe" and after["dump"]:
            assert difference(after["dump"], store.dump()) == {}
            after["refused"] = True

    faults.after_each = overtake
    clockwork.round(FIRST)
    faults.after_each = None

    assert after["refused"]
    assert caplog.messages == [], "nothing is wrong with that"
    if meanwhile is damage:
        clockwork.ledgers.scripts.redis.hset(clockwork.ledger(START).keys("scheduling"), "state", "disabled")


def test_nothing_is_observed_before_it_has_passed(clockwork: Clockwork, store: Store) -> None:
    clockwork.switch(START + SECOND).set(enabled=False)
    clockwork.round(START + SECOND)  # which has it observed
    ledger = clockwork.ledger(FIRST - 1)
    args: dict[str, Any] = {
        "job_key": KEY,
        "trigger": "default",
        "revision": "1",
        "calendar": "",
        "observed": FIRST,
        "following": FIRST + MINUTE,
        "scheduler": "one",
    }
    call: Call[Any] = Call("observe", ledger.keys.home, args, list, [DISABLED, month(FIRST), FIRST, FIRST, 1])

    with store.unchanged(), pytest.raises(StalePlan, match="has not passed"):
        ledger.scripts.run(call)


@pytest.mark.parametrize(
    "settings",
    [
        {"state": "perhaps", "layout": "1", "since": "1"},
        {"state": "disabled", "layout": "1", "since": "yesterday"},
        {"state": b"\xff" * 100, "layout": "1", "since": "1"},
        {"state": "enabled", "layout": "1", "since": "1"},
        {"state": "enabled", "layout": "old", "since": "1", "resumed": "0"},
        {"state": "enabled", "since": "1", "resumed": "0"},
        {"state": "disabled", "layout": "1", "since": "1", "until": "soon", "revision": "many"},
    ],
)
def test_settings_that_cannot_be_understood_close_that_tenant_only(
    clockwork: Clockwork, settings: dict[str, Any]
) -> None:
    other = Schedules(clockwork.at(START).of("beta"))
    other.put(KEY, TASK, EVERY_MINUTE)
    key = clockwork.ledger(START).keys("scheduling")
    clockwork.ledgers.scripts.redis.hset(key, mapping=settings)

    clockwork.round(FIRST)

    assert clockwork.jobs() == []
    assert [job.fire_time for job in other.ledger.list().items] == [FIRST]
    assert not clockwork.switch(FIRST).get().enabled
    assert "acme cannot be read: " in clockwork.switch(FIRST).get().trouble
    with pytest.raises(SchedulingDisabled, match="cannot be read"):
        pausing.run(clockwork.schedules(FIRST), KEY)

    clockwork.switch(FIRST + SECOND).set(enabled=True)
    clockwork.minutes(FIRST + MINUTE, 1)
    assert clockwork.jobs() == [FIRST + MINUTE]


@pytest.mark.parametrize("kind", ["text", "list"])
@pytest.mark.parametrize("enabled", [True, False])
def test_settings_of_another_type_close_that_tenant_only_and_a_persons_word_mends_them(
    clockwork: Clockwork, kind: str, enabled: bool
) -> None:
    other = Schedules(clockwork.at(START).of("beta"))
    other.put(KEY, TASK, EVERY_MINUTE)
    key, redis = clockwork.ledger(START).keys("scheduling"), clockwork.ledgers.scripts.redis
    redis.set(key, "garbage") if kind == "text" else redis.rpush(key, "garbage")

    clockwork.round(FIRST)

    assert [job.fire_time for job in other.ledger.list().items] == [FIRST]
    found = clockwork.switch(FIRST).get()
    assert not found.enabled
    assert f"{key}: WRONGTYPE" in found.trouble
    assert "tenure tenants enable-scheduling acme" in found.trouble
    assert [view.job_key for view in clockwork.schedules(FIRST).list()] == [JobKey.parse(KEY)]
    with pytest.raises(SchedulingDisabled, match="cannot be read") as refused:
        pausing.run(clockwork.schedules(FIRST), KEY)
    assert "enable-scheduling acme" in refused.value.hint

    set_ = clockwork.switch(FIRST + SECOND).set(enabled=enabled, by="eve", reason="mended")
    assert (set_.enabled, set_.since, set_.trouble, set_.revision) == (enabled, FIRST + SECOND, "", 1)
    assert clockwork.switch(FIRST + SECOND).get() == set_
    clockwork.round(FIRST + MINUTE)
    assert clockwork.jobs() == ([FIRST + MINUTE] if enabled else [])
    assert sum(one.count for one in clockwork.records()) == 2


@pytest.mark.parametrize(
    "settings", [{"layout": "99"}, {"state": "enabled", "layout": "2", "since": "1", "resumed": "0"}]
)
def test_settings_of_a_newer_tenure_close_the_tenant_and_are_not_overwritten(
    clockwork: Clockwork, store: Store, settings: dict[str, str]
) -> None:
    key = clockwork.ledger(START).keys("scheduling")
    clockwork.ledgers.scripts.redis.hset(key, mapping=settings)
    clockwork.round(FIRST)

    for enabled in (True, False):
        with store.unchanged(), pytest.raises(SchedulingDisabled, match=settings["layout"]) as refused:
            clockwork.switch(FIRST).set(enabled=enabled)
        assert "upgrade Tenure" in refused.value.hint

    assert clockwork.jobs() == []
    assert "upgrade Tenure" in clockwork.switch(FIRST).get().trouble


def test_a_switch_that_cannot_be_asked_is_told_in_a_glance(clockwork: Clockwork, faults: Faults) -> None:
    def down() -> None:
        raise StoreUnreachable("its slot is down")

    faults.after_each = down
    found = clockwork.switch(START).glance()

    assert (found.tenant, found.enabled) == ("acme", False)
    assert "its slot is down" in found.trouble


def test_a_switch_that_ended_by_itself_says_so(clockwork: Clockwork) -> None:
    until = FIRST + MINUTE
    clockwork.switch(START + SECOND).set(enabled=False, by="eve", reason="migration", until=until)

    found = clockwork.switch(until).get()
    same = clockwork.switch(until + SECOND).set(enabled=True, by="bob")

    assert (found.enabled, found.since, found.until, found.by) == (True, until, None, "")
    assert found.reason == "ended by itself; it was disabled by eve: migration"
    assert same == found


def test_a_new_reason_is_taken_while_the_switch_stands(clockwork: Clockwork) -> None:
    clockwork.switch(START + SECOND).set(enabled=False, by="eve", reason="migration")
    clockwork.round(FIRST)

    again = clockwork.switch(FIRST).set(enabled=False, by="bob", reason="it takes longer")
    without = clockwork.switch(FIRST + SECOND).set(enabled=False, by="al")

    assert (again.by, again.reason, again.since) == ("bob", "it takes longer", START + SECOND)
    assert without == again, "who gives no reason says nothing new"
    clockwork.round(FIRST + MINUTE)
    assert clockwork.said() == [("skipped", DISABLED, 1)] * 2


@pytest.mark.parametrize("ended", ["by hand", "by itself", "never disabled"])
def test_a_new_reason_for_what_is_enabled_resumes_nothing_anew(clockwork: Clockwork, ended: str) -> None:
    if ended != "never disabled":
        until = START + 2 * SECOND
        clockwork.switch(START + SECOND).set(enabled=False, until=until if ended == "by itself" else None)
        clockwork.switch(until).set(enabled=True)
    before = clockwork.switch(START + 3 * SECOND).get()

    after = clockwork.switch(FIRST).set(enabled=True, by="bob", reason="all is well")

    assert (after.enabled, after.by, after.reason) == (True, "bob", "all is well")
    assert after.since == before.since
    clockwork.round(FIRST)
    assert clockwork.jobs() == [FIRST], "the instant at which the reason came is not passed over"


def test_a_switch_is_one_write_whatever_is_stored_and_the_triggers_follow_in_steps(
    clockwork: Clockwork, store: Store
) -> None:
    """The trigger at which a step ended may be gone when the next begins, or stand elsewhere."""
    schedules = clockwork.schedules(START)
    for nth in range(6):
        schedules.put(f"several.k{nth}", TASK, [*EVERY_MINUTE, Trigger("late", f"{10 * nth} 5 * * * ?")])
    ledger = clockwork.ledger(START + SECOND)
    observed, planned = ledger.keys("observed"), ledger.keys("triggers")

    clockwork.switch(START + SECOND).set(enabled=False)
    sizes = [store.redis.zcard(observed)]
    for nth in range(8):
        clockwork.follow(START + SECOND, 2)
        sizes.append(store.redis.zcard(observed))
        if nth == 1:
            clockwork.schedules(START + SECOND).delete("several.k1")
            clockwork.schedules(START + SECOND).put("several.k2", TASK, [Trigger("late", "0 6 * * * ?")])

    assert sizes[:3] == [0, 2, 4]
    assert store.redis.zrange(observed, 0, -1, withscores=True) == store.redis.zrange(
        planned, 0, -1, withscores=True
    )
    assert store.redis.hget(ledger.keys("scheduling"), "follow") is None


def test_a_trigger_that_was_observed_before_goes_on_from_there_when_it_is_disabled_again(
    clockwork: Clockwork,
) -> None:
    clockwork.switch(START + SECOND).set(enabled=False)
    clockwork.minutes(FIRST, 2)
    clockwork.switch(FIRST + MINUTE + SECOND).set(enabled=True)
    clockwork.switch(FIRST + MINUTE + 2 * SECOND).set(enabled=False)
    clockwork.minutes(FIRST + 2 * MINUTE, 2)

    assert clockwork.said() == [("skipped", DISABLED, 1)] * 4


def test_what_does_not_follow_yet_when_scheduling_is_enabled_was_not_observed(clockwork: Clockwork) -> None:
    clockwork.switch(START + SECOND).set(enabled=False)
    clockwork.switch(FIRST + MINUTE).set(enabled=True)
    clockwork.round(FIRST + 2 * MINUTE)

    assert clockwork.said() == [("skipped", "unobserved", 2), ("fired", None, 1)]


def test_what_stands_so_already_changes_nothing(clockwork: Clockwork, store: Store) -> None:
    first = clockwork.switch(START).set(enabled=False, by="eve", reason="migration")
    with store.unchanged():
        again = clockwork.switch(FIRST).set(enabled=False, by="eve", reason="migration")
    assert (first, first.revision) == (again, 1)

    clockwork.switch(FIRST).set(enabled=True)
    with store.unchanged():
        clockwork.switch(FIRST + MINUTE).set(enabled=True)


def test_a_tenant_that_was_never_touched_has_its_switch_on(clockwork: Clockwork) -> None:
    found = clockwork.switch(START).get()

    assert (found.enabled, found.since, found.revision) == (True, None, 0)


def test_the_same_job_key_in_another_tenant_is_another_schedule(clockwork: Clockwork) -> None:
    other = Schedules(clockwork.at(START).of("beta"))
    other.put(KEY, TASK, EVERY_MINUTE)
    clockwork.switch(START).set(enabled=False)

    clockwork.round(FIRST)

    assert clockwork.jobs() == []
    assert [job.fire_time for job in other.ledger.list().items] == [FIRST]


def test_an_edit_and_a_deletion_while_disabled_leave_no_instant_without_its_one_record(
    clockwork: Clockwork,
) -> None:
    clockwork.switch(START + SECOND).set(enabled=False)
    clockwork.minutes(FIRST, 2)

    clockwork.schedules(FIRST + 5 * MINUTE + SECOND).put(KEY, TASK, [Trigger("default", "30 * * * * ?")])
    clockwork.round(FIRST + 6 * MINUTE)
    clockwork.schedules(FIRST + 8 * MINUTE).delete(KEY)

    found = Counter({one.fire_time: one.count for one in clockwork.records()})
    assert sum(found.values()) == 6 + 3
    assert {one.reason for one in clockwork.records()} == {DISABLED}


# -- the pause --------------------------------------------------------------------------------------------------------


def test_a_paused_schedule_fires_nothing_and_resumed_only_what_comes_after(clockwork: Clockwork) -> None:
    """Trials 054 and 056: the instants of the pause are one record, and nothing runs because of the resume."""
    clockwork.round(FIRST)
    assert pausing.pause(clockwork.schedules(FIRST + SECOND), KEY, by="eve", reason="too loud")
    clockwork.minutes(FIRST + MINUTE, 3)
    paused = clockwork.schedules(FIRST).get(KEY)

    assert pausing.resume(clockwork.schedules(FIRST + 3 * DAY + SECOND), KEY)
    clockwork.round(FIRST + 3 * DAY + MINUTE)

    assert paused.paused is not None
    assert (paused.paused.since, paused.paused.by, paused.paused.reason) == (
        FIRST + SECOND,
        "eve",
        "too loud",
    )
    assert paused.next_fires == {"default": FIRST + MINUTE}
    assert clockwork.said() == [("fired", None, 1), ("skipped", "paused", 4320), ("fired", None, 1)]
    assert clockwork.jobs() == [FIRST, FIRST + 3 * DAY + MINUTE]


def test_what_is_due_at_a_pause_is_recorded_by_it(clockwork: Clockwork) -> None:
    pausing.pause(clockwork.schedules(FIRST + 2 * MINUTE), KEY)

    assert clockwork.said() == [("skipped", "paused", 3)]
    assert clockwork.schedules(FIRST).get(KEY).next_fires == {"default": FIRST + 3 * MINUTE}


def test_pausing_twice_and_resuming_twice_change_nothing(clockwork: Clockwork, store: Store) -> None:
    schedules = clockwork.schedules(START)
    assert pausing.pause(schedules, KEY, reason="first")
    with store.unchanged():
        assert not pausing.pause(clockwork.schedules(FIRST), KEY, reason="second")
    assert pausing.resume(schedules, KEY)
    with store.unchanged():
        assert not pausing.resume(schedules, KEY)


def test_a_pause_is_a_revision_and_is_refused_for_another_one(clockwork: Clockwork, store: Store) -> None:
    pausing.pause(clockwork.schedules(START), KEY, expected=1)

    assert clockwork.schedules(START).get(KEY).revision == 2
    with store.unchanged(), pytest.raises(StalePlan, match="at revision 2, not 1"):
        pausing.resume(clockwork.schedules(START), KEY, expected=1)


def test_an_edit_leaves_a_schedule_paused(clockwork: Clockwork) -> None:
    pausing.pause(clockwork.schedules(START), KEY)
    clockwork.schedules(FIRST + MINUTE).put(KEY, TASK, [Trigger("default", "30 * * * * ?")])

    clockwork.round(FIRST + 5 * MINUTE)

    assert clockwork.jobs() == []
    assert clockwork.said() == [("skipped", "paused", 2)]


def test_a_paused_group_pauses_what_is_stored_in_it_later(clockwork: Clockwork) -> None:
    schedules = clockwork.schedules(START)
    schedules.put("reports.weekly", TASK, EVERY_MINUTE)
    schedules.put("reports.eu.daily", TASK, EVERY_MINUTE)

    assert pausing.pause_group(schedules, "reports", by="eve") == 2
    schedules.put("reports.monthly", TASK, EVERY_MINUTE)
    clockwork.round(FIRST)

    assert [(str(one.job_key), one.paused is not None) for one in schedules.list()] == [
        ("reports.daily", True),
        ("reports.eu.daily", False),
        ("reports.monthly", True),
        ("reports.weekly", True),
    ]
    assert len(clockwork.jobs()) == 1
    assert pausing.resume_group(schedules, "reports") == 3
    schedules.put("reports.yearly", TASK, EVERY_MINUTE)
    assert schedules.get(JobKey("yearly", "reports")).paused is None


# -- a clock that steps back ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("anew", [False, True])
def test_what_is_edited_after_the_clock_stepped_back_goes_on_after_what_has_its_record(
    clockwork: Clockwork, anew: bool
) -> None:
    now = FIRST + 5 * MINUTE
    pausing.pause(clockwork.schedules(now), KEY)
    pausing.resume(clockwork.schedules(now), KEY)
    earlier = clockwork.schedules(now - MINUTE)
    if anew:
        earlier.delete(KEY)
    earlier.put(KEY, TASK, EVERY_MINUTE, overlap="skip")

    assert earlier.get(KEY).next_fires == {"default": now + MINUTE}
    assert clockwork.said() == [("skipped", "paused", 6)]


def test_what_was_observed_before_the_clock_stepped_back_is_not_planned_again(clockwork: Clockwork) -> None:
    clockwork.switch(START).set(enabled=False)
    clockwork.minutes(FIRST, 3)
    now = FIRST + MINUTE + SECOND
    clockwork.switch(now).set(enabled=True)
    pausing.pause(clockwork.schedules(now), KEY)
    pausing.resume(clockwork.schedules(now), KEY)

    assert clockwork.schedules(now).get(KEY).next_fires == {"default": FIRST + 3 * MINUTE}


def test_a_pause_after_the_clock_stepped_back_keeps_what_was_observed(clockwork: Clockwork) -> None:
    clockwork.switch(START).set(enabled=False)
    clockwork.minutes(FIRST, 3)
    pausing.pause(clockwork.schedules(FIRST - SECOND), KEY)
    pausing.resume(clockwork.schedules(FIRST + 3 * MINUTE), KEY)

    assert clockwork.said() == [*[("skipped", DISABLED, 1)] * 3, ("skipped", "paused", 1)]


def test_what_is_enabled_before_the_clock_steps_back_leaves_no_instant_without_a_record(
    clockwork: Clockwork,
) -> None:
    clockwork.switch(START).set(enabled=False)
    clockwork.switch(FIRST + 2 * MINUTE).set(enabled=True)
    clockwork.round(FIRST + MINUTE)
    clockwork.minutes(FIRST + 2 * MINUTE, 2)

    assert clockwork.said() == [
        ("skipped", "unobserved", 2),
        ("skipped", "unobserved", 1),
        ("fired", None, 1),
    ]


def test_a_change_that_was_prepared_before_the_clock_stepped_back_tells_of_nothing_ahead(
    clockwork: Clockwork, faults: Faults
) -> None:
    def step_back() -> None:
        if faults.calls[-1] == "index_take":
            faults.after_each = None
            object.__setattr__(schedules.ledger, "scripts", clockwork.ledgers.scripts.at(FIRST + SECOND))

    faults.after_each = step_back
    schedules = clockwork.schedules(FIRST + MINUTE)
    with pytest.raises(StalePlan, match="has not passed"):
        pausing.pause(schedules, KEY)

    assert clockwork.said() == []


# -- by hand ----------------------------------------------------------------------------------------------------------


def test_a_run_by_hand_is_a_job_and_no_fire(clockwork: Clockwork) -> None:
    schedules = clockwork.schedules(START)

    now = pausing.run(schedules, KEY, by="eve")
    named = pausing.run(schedules, KEY, at=FIRST + 3 * MINUTE)

    assert schedules.ledger.get(now).fire_time == START
    assert [schedules.ledger.get(job).reason for job in (now, named)] == ["run by hand by eve", "run by hand"]
    assert schedules.ledger.get(named).fire_time == FIRST + 3 * MINUTE
    assert clockwork.said() == []
    assert schedules.get(KEY).next_fires == {"default": FIRST}


def test_an_instant_that_is_not_planned_is_not_run(clockwork: Clockwork, store: Store) -> None:
    with store.unchanged(), pytest.raises(BadInput, match="no planned instant"):
        pausing.run(clockwork.schedules(START), KEY, at=FIRST + 1)


def test_a_schedule_deleted_since_is_not_run(clockwork: Clockwork, faults: Faults) -> None:
    def delete_it() -> None:
        if faults.calls[-1] == "schedules_read":
            faults.after_each = None
            delete(clockwork)

    faults.after_each = delete_it
    with pytest.raises(NotFound, match="is not stored"):
        pausing.run(clockwork.schedules(START), KEY)

    assert clockwork.ledger(START).counts() == {}


def test_a_run_by_hand_passes_the_switch_too(clockwork: Clockwork, store: Store) -> None:
    clockwork.switch(START).set(enabled=False)

    with store.unchanged(), pytest.raises(SchedulingDisabled, match="disabled") as refused:
        pausing.run(clockwork.schedules(START), KEY)
    assert "tenure tenants show acme" in refused.value.hint


# -- all of it at random ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_done_to_a_schedule_each_planned_instant_has_one_record(
    clockwork: Clockwork, seed: int
) -> None:
    """I22 and I25 to I31: edits, pauses, switches, deletions, schedulers, at instants and a millisecond beside them."""
    chance = random.Random(seed)
    rules = ["0 * * * * ?", "30 * * * * ?", "0 0/2 * * * ?"]
    planned: Counter[int] = Counter()
    rule, since, there = rules[0], START, True

    def close(until: int) -> None:
        if there:
            planned.update(_walk(Trigger("default", rule).times(0), since, until))

    now = START
    for _ in range(120):
        now += chance.choice([1, 999, 20_000, 30_000, 60_000, 150_000])
        if chance.random() < 0.5:  # to an instant, or just beside it
            now = now // 30_000 * 30_000 + 30_000 + chance.choice([-1, 0, 1])
        schedules = clockwork.schedules(now)
        match chance.randrange(8):
            case 0:
                close(now)
                rule, since, there = chance.choice(rules), now, True
                schedules.put(KEY, TASK, [Trigger("default", rule)])
            case 1:
                if there:
                    pausing.pause(schedules, KEY)
            case 2:
                if there:
                    pausing.resume(schedules, KEY)
            case 3:
                clockwork.switch(now).set(enabled=False)
            case 4:
                clockwork.switch(now).set(enabled=True)
            case 5 if chance.random() < 0.3:
                close(now)
                schedules.delete(KEY)
                there = False
            case _:
                clockwork.round(now, *chance.sample(["one", "two", "three"], chance.randint(1, 3)))
    now += 1
    close(now)
    clockwork.schedules(now).delete(KEY)

    found: Counter[int] = Counter()
    for one in clockwork.records():
        times = [one.fire_time] if one.until is None else None
        if times is None:
            times = _any_rule(rules, planned, one)
        found.update(times)
    assert found == planned


def _walk(times: Any, after: int, until: int) -> list[int]:
    found: list[int] = []
    at = times.next_ms(after)
    while at is not None and at <= until:
        found.append(at)
        at = times.next_ms(at)
    return found


def _any_rule(rules: list[str], planned: Counter[int], record: Fire) -> list[int]:
    """The planned instants that a range stands for; it counts as many as it says."""
    assert record.until is not None
    inside = [at for at in planned if record.fire_time <= at <= record.until]
    assert len(inside) == record.count, (record, rules)
    return inside
