"""Schedules: put by JobKey, fired once for each planned instant however many schedulers race, die and come back."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tenure.lease.ids import fire_id
from tenure.lease.ledger import Ledger
from tenure.lease.ledgers import Ledgers
from tenure.lease.payload import unpack_args
from tenure.lease.tasks import Task
from tenure.scheduler.definition import Definition
from tenure.scheduler.fire_record import Fire as Record
from tenure.scheduler.misfire import Misfire
from tenure.scheduler.plan import Fire, Passed, Plan, Skip, month, plan
from tenure.scheduler.put import Put
from tenure.scheduler.scheduler import Scheduler
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.trigger import Trigger
from tenure.scripts import Call
from tenure.scripts.errors import BadInput, NotFound, StalePlan, StoreUnreachable
from tenure.scripts.loader import Arg
from tenure.testing import START, Died, Faults, Server

from .clockwork import pages
from .given import Store

MINUTE = 60_000
FIRST = START + 40_000  # the clock starts at 20 seconds past a minute
EVERY_MINUTE = [Trigger("default", "0 * * * * ?")]


def report(day: str = "today") -> None:
    """The task of these schedules."""


TASK = Task("reports.daily", report)


def at(ledgers: Ledgers, now: int) -> Ledgers:
    return Ledgers(ledgers.scripts.at(now), ledgers.namespace)


def round_at(ledgers: Ledgers, now: int, name: str = "one") -> float:
    """One round of a scheduler that has just started."""
    return Scheduler(at(ledgers, now), name).round()


def fires(schedules: Schedules, job_key: str = "reports.daily", instant: int = START) -> list[Record]:
    """The fire records of the month, oldest first."""
    found, more = schedules.fires(job_key, month=month(instant), limit=10_000)
    assert more is None
    return found[::-1]


def jobs(ledger: Ledger) -> list[str]:
    return [job.id for job in ledger.list(limit=100).items]


@pytest.fixture
def schedules(ledger: Ledger) -> Schedules:
    return Schedules(ledger)


# -- put --------------------------------------------------------------------------------------------------------------


def test_a_stored_schedule_says_when_it_fires_next(schedules: Schedules) -> None:
    answer = schedules.put("reports.daily", TASK, EVERY_MINUTE, args=["monday"])

    found = schedules.get("reports.daily")
    assert (answer.revision, answer.changed) == (1, True)
    assert found.next_fires == {"default": FIRST}
    assert unpack_args(found.definition.args) == (["monday"], {})
    assert [one.fire_time for one in schedules.next("reports.daily", 3)] == [
        FIRST + n * MINUTE for n in range(3)
    ]


def test_the_same_definition_again_changes_nothing(schedules: Schedules, store: Store) -> None:
    schedules.put("reports.daily", TASK, EVERY_MINUTE)

    with store.unchanged():
        answer = schedules.put("reports.daily", TASK, EVERY_MINUTE)

    assert (answer.revision, answer.changed) == (1, False)


def test_sixteen_processes_that_register_one_schedule_make_one(schedules: Schedules) -> None:
    def register(cron: str) -> None:
        threads = [
            threading.Thread(target=schedules.put, args=("reports.daily", TASK, [Trigger("default", cron)]))
            for _ in range(16)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    for _ in range(3):
        register("0 * * * * ?")
    assert schedules.get("reports.daily").revision == 1

    register("0 30 * * * ?")
    assert schedules.get("reports.daily").revision == 2
    assert len(schedules.next("reports.daily", 1)) == 1


def test_another_definition_is_a_new_revision_from_now_on(schedules: Schedules, ledgers: Ledgers) -> None:
    schedules.put("reports.daily", TASK, EVERY_MINUTE)

    later = Schedules(at(ledgers, FIRST + 10 * MINUTE).of("acme"))
    later.put("reports.daily", TASK, [Trigger("default", "30 * * * * ?")])

    assert later.get("reports.daily").next_fires == {"default": FIRST + 10 * MINUTE + 30_000}
    assert [(fire.fire_time, fire.outcome, fire.reason) for fire in fires(later)] == [
        (FIRST, "skipped", "superseded")
    ]
    round_at(ledgers, FIRST + 10 * MINUTE)
    assert jobs(later.ledger) == []


def test_a_trigger_left_out_of_the_new_definition_fires_no_more(
    schedules: Schedules, ledgers: Ledgers
) -> None:
    schedules.put("reports.daily", TASK, [Trigger("a", "0 * * * * ?"), Trigger("b", "30 * * * * ?")])

    schedules.put("reports.daily", TASK, [Trigger("b", "30 * * * * ?")])
    round_at(ledgers, FIRST + MINUTE)

    assert schedules.get("reports.daily").next_fires.keys() == {"b"}
    assert [job.fire for job in schedules.ledger.list().items] == ["b:reports.daily"]


def test_a_put_made_from_an_old_revision_is_refused(schedules: Schedules, store: Store) -> None:
    schedules.put("reports.daily", TASK, EVERY_MINUTE)
    schedules.put("reports.daily", TASK, [Trigger("default", "0 0 * * * ?")], expected_revision=1)

    with store.unchanged(), pytest.raises(StalePlan, match="at revision 2, not 1"):
        schedules.put("reports.daily", TASK, EVERY_MINUTE, expected_revision=1)


@pytest.mark.parametrize(
    ("triggers", "rule"),
    [
        (list, "at least one"),
        (lambda: [Trigger("a", "0 * * * * ?"), Trigger("a", "0 0 * * * ?")], "names of their own"),
        (lambda: [Trigger("A b", "0 * * * * ?")], "trigger name"),
        (lambda: [Trigger("a", "0 0 20 19 8 ? 2019")], "never fires again"),
        (lambda: [Trigger("a", at="2019-08-19T20:00:00Z")], "never fires again"),
        (lambda: [Trigger("a", "0 0 0 30 2 ?")], "never fires"),
        (lambda: [Trigger("a", "61 * * * * ?")], "61"),
        (lambda: [Trigger("a", "0 * * * * ?", tz="Mars/Olympus")], "Mars/Olympus"),
    ],
)
def test_a_schedule_that_cannot_fire_is_not_stored(
    schedules: Schedules, store: Store, triggers: Callable[[], list[Trigger]], rule: str
) -> None:
    with store.unchanged(), pytest.raises(BadInput, match=rule):
        schedules.put("reports.daily", TASK, triggers())


def test_schedules_are_listed_in_the_order_of_their_names(schedules: Schedules) -> None:
    for name in ("b.two", "a.one", "one", "b.one"):
        schedules.put(name, TASK, EVERY_MINUTE)

    names = [str(view.job_key) for view in schedules.list(limit=3)]

    assert names == ["a.one", "b.one", "b.two"]
    assert [str(view.job_key) for view in schedules.list(after=names[-1])] == ["one"]
    with pytest.raises(NotFound, match=r"c\.one"):
        schedules.get("c.one")


# -- fire -------------------------------------------------------------------------------------------------------------


def test_a_fire_is_a_record_and_a_job_of_a_computed_id(schedules: Schedules, ledgers: Ledgers) -> None:
    schedules.put("reports.daily", TASK, EVERY_MINUTE, args=["monday"])

    round_at(ledgers, FIRST, "one")

    (fire,) = fires(schedules)
    job = schedules.ledger.get(fire_id("acme", "reports.daily", "default", FIRST))
    assert (fire.fire_time, fire.outcome, fire.job_id, fire.scheduler) == (FIRST, "fired", job.id, "one")
    assert (job.task, job.status, job.source, job.fire_time) == ("reports.daily", "pending", "cron", FIRST)
    assert job.repeat_rule == EVERY_MINUTE[0].cron
    assert unpack_args(job.args) == (["monday"], {})
    view = schedules.get("reports.daily")
    assert (view.next_fires, view.last_fires) == ({"default": FIRST + MINUTE}, {"default": FIRST})


def test_nothing_fires_a_millisecond_before_its_time(schedules: Schedules, ledgers: Ledgers) -> None:
    schedules.put("reports.daily", TASK, EVERY_MINUTE)

    delay = round_at(ledgers, FIRST - 1)

    assert fires(schedules) == []
    assert delay == pytest.approx(0.001)


def test_the_planned_instant_is_kept_however_late_it_runs(schedules: Schedules, ledgers: Ledgers) -> None:
    schedules.put("reports.daily", TASK, EVERY_MINUTE)

    round_at(ledgers, FIRST + 55_000)

    (fire,) = fires(schedules)
    assert (fire.fire_time, fire.at) == (FIRST, FIRST + 55_000)


def test_instants_overtaken_while_no_scheduler_ran_are_coalesced_into_the_newest(
    schedules: Schedules, ledgers: Ledgers
) -> None:
    schedules.put("reports.daily", TASK, EVERY_MINUTE)

    round_at(ledgers, FIRST + 10 * MINUTE)

    coalesced, fired = fires(schedules)
    assert (coalesced.outcome, coalesced.reason, coalesced.count) == ("skipped", "coalesced", 10)
    assert (coalesced.fire_time, coalesced.until) == (FIRST, FIRST + 9 * MINUTE)
    assert (fired.outcome, fired.fire_time) == ("fired", FIRST + 10 * MINUTE)
    assert len(jobs(schedules.ledger)) == 1


def test_a_scheduler_restarted_twenty_times_a_minute_fires_once_a_minute(
    schedules: Schedules, ledgers: Ledgers
) -> None:
    schedules.put("reports.daily", TASK, EVERY_MINUTE)

    for minute in range(10):
        for second in range(20):
            round_at(ledgers, FIRST + minute * MINUTE + second * 1_000)

    assert [fire.fire_time for fire in fires(schedules)] == [FIRST + n * MINUTE for n in range(10)]
    assert len(jobs(schedules.ledger)) == 10


def test_a_day_of_minutes_with_four_schedulers_is_one_job_a_minute(
    schedules: Schedules, ledgers: Ledgers
) -> None:
    schedules.put("reports.daily", TASK, EVERY_MINUTE)
    minutes = 24 * 60

    for minute in range(minutes):
        for name in "abcd":
            round_at(ledgers, FIRST + minute * MINUTE, name)

    assert [fire.fire_time for fire in fires(schedules)] == [FIRST + n * MINUTE for n in range(minutes)]
    assert schedules.ledger.counts() == {("reports.daily", "pending"): minutes}


def test_four_schedulers_in_threads_fire_each_instant_once(schedules: Schedules, ledgers: Ledgers) -> None:
    for number in range(20):
        schedules.put(f"group.job-{number}", TASK, EVERY_MINUTE)
    errors: list[BaseException] = []

    def run(name: str) -> None:
        try:
            for minute in range(5):
                round_at(ledgers, FIRST + minute * MINUTE, name)
        except BaseException as exc:
            errors.append(exc)

    threads = [threading.Thread(target=run, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    for number in range(20):
        found = fires(schedules, f"group.job-{number}")
        assert sum(fire.count for fire in found) == 5
        assert found[-1].fire_time == FIRST + 4 * MINUTE


def test_a_trigger_without_a_next_instant_fires_once_and_is_exhausted(
    ledgers: Ledgers, faults: Faults
) -> None:
    planned = round(datetime(2019, 8, 19, 20, tzinfo=UTC).timestamp() * 1000)
    before = Schedules(at(ledgers, planned - MINUTE).of("acme"))
    before.put("once", TASK, [Trigger("default", "0 0 20 19 8 ? 2019")])

    for late in range(5):
        round_at(ledgers, planned + late * 1_000)

    assert [fire.fire_time for fire in fires(before, "once", planned)] == [planned]
    assert len(jobs(before.ledger)) == 1
    assert before.get("once").exhausted


def test_schedules_of_many_tenants_fire_in_one_round(ledgers: Ledgers) -> None:
    tenants = [f"tenant-{number}" for number in range(40)]
    for tenant in tenants:
        Schedules(ledgers.of(tenant)).put("reports.daily", TASK, EVERY_MINUTE)

    rounds = 0
    while round_at(ledgers, FIRST) == 0.0:
        rounds += 1

    assert rounds <= 2
    assert all(ledgers.of(tenant).counts() == {("reports.daily", "pending"): 1} for tenant in tenants)


# -- races and faults -------------------------------------------------------------------------------------------------

BOUNDARIES = ["index_take", "triggers_due", "fire", "index_put"]


@pytest.mark.parametrize("script", BOUNDARIES)
@pytest.mark.parametrize("when", ["die_before", "die_after"])
def test_a_scheduler_that_dies_anywhere_loses_and_doubles_nothing(
    schedules: Schedules, ledgers: Ledgers, faults: Faults, script: str, when: str
) -> None:
    schedules.put("reports.daily", TASK, EVERY_MINUTE)
    getattr(faults, when)(script)
    with pytest.raises(Died):
        round_at(ledgers, FIRST, "the dying one")

    for late in (500, 1_000, 1_500, 2_500):
        round_at(ledgers, FIRST + late, "another")

    assert [(fire.fire_time, fire.outcome) for fire in fires(schedules)] == [(FIRST, "fired")]
    assert len(jobs(schedules.ledger)) == 1
    assert schedules.get("reports.daily").next_fires == {"default": FIRST + MINUTE}


def test_a_fire_whose_reply_was_lost_is_one_fire(
    schedules: Schedules, ledgers: Ledgers, faults: Faults
) -> None:
    schedules.put("reports.daily", TASK, EVERY_MINUTE)
    faults.lose_reply("fire")
    with pytest.raises(StoreUnreachable):
        round_at(ledgers, FIRST)

    round_at(ledgers, FIRST + 2_000)

    assert len(fires(schedules)) == len(jobs(schedules.ledger)) == 1


def test_a_schedule_changed_between_plan_and_fire_does_not_fire_its_old_plan(
    schedules: Schedules, ledgers: Ledgers, faults: Faults
) -> None:
    schedules.put("reports.daily", TASK, EVERY_MINUTE)

    def change() -> None:
        if faults.calls[-1] == "triggers_due":
            later = Schedules(at(ledgers, FIRST + 1).of("acme"))
            later.put("reports.daily", TASK, [Trigger("default", "30 * * * * ?")])

    faults.after_each = change
    round_at(ledgers, FIRST)
    faults.after_each = None

    assert [(fire.outcome, fire.reason) for fire in fires(schedules)] == [("skipped", "superseded")]
    assert jobs(schedules.ledger) == []


@pytest.mark.parametrize("finishes", [1, 2, 3], ids="{} more".format)
def test_schedulers_that_planned_the_same_instant_fire_it_once(
    schedules: Schedules, ledgers: Ledgers, faults: Faults, finishes: int
) -> None:
    """All read the due trigger, then all try to fire: one moves it, the others are told that their plan is stale."""
    schedules.put("reports.daily", TASK, EVERY_MINUTE)
    running: list[str] = []

    def nest() -> None:
        if faults.calls[-1] == "triggers_due" and len(running) < finishes:
            running.append("another")
            Scheduler(at(ledgers, FIRST), f"number {len(running)}").fire(["acme"])

    faults.after_each = nest
    round_at(ledgers, FIRST)
    faults.after_each = None

    assert len(running) == finishes
    (fire,) = fires(schedules)
    assert fire.scheduler == f"number_{finishes}"
    assert len(jobs(schedules.ledger)) == 1


def test_one_schedule_that_cannot_be_planned_does_not_hold_up_the_others(
    schedules: Schedules, ledgers: Ledgers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A zone that this host does not know."""
    schedules.put("broken", TASK, [Trigger("default", "0 * * * * ?", tz="Europe/Berlin")])
    schedules.put("sound", TASK, EVERY_MINUTE)
    known = Trigger.expression

    def unknown(trigger: Trigger) -> object:
        if trigger.tz == "Europe/Berlin":
            raise BadInput("time zone Europe/Berlin is not known here")
        return known(trigger)

    monkeypatch.setattr(Trigger, "expression", unknown)
    round_at(ledgers, FIRST)

    assert [job.fire for job in schedules.ledger.list().items] == ["default:sound"]


# -- delete -----------------------------------------------------------------------------------------------------------


def test_a_deleted_schedule_fires_no_more_and_its_records_stay(
    schedules: Schedules, ledgers: Ledgers, store: Store
) -> None:
    schedules.put("reports.daily", TASK, EVERY_MINUTE)
    schedules.put("another", TASK, EVERY_MINUTE)
    round_at(ledgers, FIRST)

    assert Schedules(at(ledgers, FIRST + 1).of("acme")).delete("reports.daily")
    round_at(ledgers, FIRST + MINUTE)

    with pytest.raises(NotFound):
        schedules.get("reports.daily")
    assert [str(view.job_key) for view in schedules.list()] == ["another"]
    assert [(fire.fire_time, fire.outcome) for fire in fires(schedules)] == [(FIRST, "fired")]
    assert [fire.outcome for fire in fires(schedules, "another")] == ["fired", "fired"]
    assert len(jobs(schedules.ledger)) == 3, "the job that it fired stays"
    assert not [name for name in store.dump() if ":s:reports.daily" in name]


def test_what_is_due_at_a_deletion_is_recorded_as_deleted(schedules: Schedules, ledgers: Ledgers) -> None:
    schedules.put(
        "reports.daily",
        TASK,
        [Trigger("a", "0 * * * * ?"), Trigger("b", "30 20 14 * * ?"), Trigger("c", "0 0 15 * * ?")],
    )

    Schedules(at(ledgers, FIRST + 10 * MINUTE + 1).of("acme")).delete("reports.daily")

    (range_,), _ = schedules.fires("reports.daily", trigger="a", month=month(START))
    (one,), _ = schedules.fires("reports.daily", trigger="b", month=month(START))
    assert (range_.fire_time, range_.until, range_.count) == (FIRST, FIRST + 10 * MINUTE, 11)
    assert (one.fire_time, one.until, one.count) == (START + 430_000, None, 1)
    assert {(fire.outcome, fire.reason) for fire in (range_, one)} == {("skipped", "deleted")}
    with pytest.raises(NotFound):
        schedules.fires("reports.daily", trigger="c", month=month(START))
    assert jobs(schedules.ledger) == []


def test_one_due_instant_is_one_record(schedules: Schedules, ledgers: Ledgers) -> None:
    schedules.put("reports.daily", TASK, EVERY_MINUTE)

    Schedules(at(ledgers, FIRST).of("acme")).delete("reports.daily")

    assert [(fire.fire_time, fire.reason, fire.until, fire.count) for fire in fires(schedules)] == [
        (FIRST, "deleted", None, 1)
    ]


def test_deleting_what_is_not_there_changes_nothing(schedules: Schedules, store: Store) -> None:
    schedules.put("another", TASK, EVERY_MINUTE)

    with store.unchanged():
        assert not schedules.delete("reports.daily")
        assert not schedules.delete("reports.daily", expected_revision=3)


def test_a_deletion_made_from_an_old_revision_is_refused(schedules: Schedules, store: Store) -> None:
    schedules.put("reports.daily", TASK, EVERY_MINUTE)
    schedules.put("reports.daily", TASK, EVERY_MINUTE, args=["monday"])

    with store.unchanged(), pytest.raises(StalePlan, match="at revision 2, not 1"):
        schedules.delete("reports.daily", expected_revision=1)

    assert schedules.delete("reports.daily", expected_revision=2)


def test_a_deletion_sent_twice_is_one_and_spares_what_was_stored_between(
    schedules: Schedules, faults: Faults
) -> None:
    schedules.put("reports.daily", TASK, EVERY_MINUTE)
    sent: list[Call[Any]] = []
    run = type(schedules.ledger.scripts).run

    def keep(scripts: Any, call: Call[Any]) -> Any:
        if call.script == "schedule_delete":
            sent.append(call)
        return run(scripts, call)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(schedules.ledger.scripts), "run", keep)
        assert schedules.delete("reports.daily")
    schedules.put("reports.daily", TASK, EVERY_MINUTE)

    assert schedules.ledger.scripts.run(sent[0])[0] == "1"

    assert schedules.get("reports.daily").revision == 2


def test_a_deletion_overtaken_by_a_fire_is_made_again(
    schedules: Schedules, ledgers: Ledgers, faults: Faults
) -> None:
    schedules.put("reports.daily", TASK, EVERY_MINUTE)
    late = Schedules(at(ledgers, FIRST).of("acme"))
    fired: list[str] = []

    def fire() -> None:
        if faults.calls[-1] == "index_take" and not fired:
            fired.append("now")
            round_at(ledgers, FIRST)

    faults.after_each = fire
    assert late.delete("reports.daily")
    faults.after_each = None

    assert [(fire.fire_time, fire.outcome) for fire in fires(schedules)] == [(FIRST, "fired")]
    assert len(jobs(schedules.ledger)) == 1


def test_an_instant_that_comes_due_during_a_deletion_has_its_record(
    schedules: Schedules, ledgers: Ledgers
) -> None:
    schedules.put("reports.daily", TASK, EVERY_MINUTE)
    early, late = at(ledgers, FIRST - 1).of("acme"), at(ledgers, FIRST + MINUTE).of("acme")
    prepared: list[Call[Any]] = []

    def keep(call: Call[Any]) -> Any:
        prepared.append(call)
        return ["1", "", "", "0"]

    for moment in (early, at(ledgers, FIRST).of("acme")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                Schedules,
                "_run",
                lambda self, script, rest=(), **args: keep(
                    Call(script, self.ledger.keys.home, args, list, rest)
                ),
            )
            Schedules(moment).delete("reports.daily")

    for call in prepared:
        with pytest.raises(StalePlan, match="is due at"):
            late.scripts.run(call)
    assert Schedules(late).delete("reports.daily")
    assert [fire.count for fire in fires(schedules)] == [2]


def test_a_plan_made_before_a_deletion_does_not_fit_what_is_stored_anew(
    schedules: Schedules, ledgers: Ledgers, faults: Faults
) -> None:
    """The same name, the same instant, another task: what was planned of the old one must not be fired."""
    schedules.put("reports.daily", TASK, EVERY_MINUTE, args=["old"])

    def replace() -> None:
        if faults.calls[-1] == "triggers_due":
            faults.after_each = None
            before = Schedules(at(ledgers, FIRST - 1).of("acme"))
            before.delete("reports.daily")
            before.put("reports.daily", TASK, EVERY_MINUTE, args=["new"])

    faults.after_each = replace
    round_at(ledgers, FIRST)
    assert jobs(schedules.ledger) == []

    round_at(ledgers, FIRST + 1_000)

    (job,) = schedules.ledger.list().items
    assert unpack_args(job.args) == (["new"], {})
    assert schedules.get("reports.daily").revision == 2


def test_what_is_stored_anew_fires_no_instant_of_the_deleted_one_again(
    schedules: Schedules, ledgers: Ledgers
) -> None:
    """Also when the server's clock has stepped back in between."""
    schedules.put("reports.daily", TASK, EVERY_MINUTE)
    round_at(ledgers, FIRST)
    schedules.delete("reports.daily")

    assert schedules.put("reports.daily", TASK, EVERY_MINUTE).created
    assert schedules.get("reports.daily").next_fires == {"default": FIRST + MINUTE}


def test_a_damaged_schedule_can_be_deleted(
    schedules: Schedules, ledgers: Ledgers, tenure_server: Server
) -> None:
    schedules.put("reports.daily", TASK, EVERY_MINUTE)
    key = schedules.ledger.keys("schedule", job_key="reports.daily")
    tenure_server.redis.hset(key, "definition", b"\xc1garbage")

    assert Schedules(at(ledgers, FIRST).of("acme")).delete("reports.daily")

    assert schedules.list() == []
    assert [fire.reason for fire in fires(schedules)] == ["deleted"]


# -- the plan alone ---------------------------------------------------------------------------------------------------


def coalesced(first: int, many: int) -> Skip:
    return Skip("coalesced", (Passed(month(first), first, first + (many - 1) * MINUTE, many),))


@pytest.mark.parametrize(
    ("late", "expected"),
    [
        (0, Plan((Fire(FIRST),), FIRST + MINUTE)),
        (MINUTE - 1, Plan((Fire(FIRST),), FIRST + MINUTE)),
        (MINUTE, Plan((coalesced(FIRST, 1), Fire(FIRST + MINUTE)), FIRST + 2 * MINUTE)),
        (5 * MINUTE, Plan((coalesced(FIRST, 5), Fire(FIRST + 5 * MINUTE)), FIRST + 6 * MINUTE)),
    ],
)
def test_the_newest_due_instant_fires_and_takes_the_older_ones_with_it(late: int, expected: Plan) -> None:
    assert plan(EVERY_MINUTE[0].times(0), FIRST, FIRST + late, Misfire()) == expected


# -- records of several triggers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 100])
def test_the_records_of_all_triggers_are_one_list_newest_first(ledgers: Ledgers, limit: int) -> None:
    """A page may end between two that fired at the same instant."""
    schedules = Schedules(at(ledgers, START).of("acme"))
    triggers = [Trigger("b", "0 * * * * ?"), Trigger("a", "0 * * * * ?"), Trigger("c", "30 * * * * ?")]
    schedules.put("reports.daily", TASK, triggers)
    for minute in range(4):
        round_at(ledgers, START + minute * 60_000 + 50_000)

    found = [
        one for page in pages(schedules, "reports.daily", month=month(START), limit=limit) for one in page
    ]

    assert len(found) == 12
    assert [(one.fire_time, one.trigger) for one in found] == sorted(
        {(one.fire_time, one.trigger) for one in found}, key=lambda one: (-one[0], one[1])
    )
    assert Counter(one.trigger for one in found) == {"a": 4, "b": 4, "c": 4}


def test_records_of_a_trigger_that_is_no_more_are_read_and_go_by_themselves(
    ledgers: Ledgers, store: Store
) -> None:
    ledger = at(ledgers, START).of("acme")
    Schedules(ledger).put(
        "reports.daily", TASK, [Trigger("old", "0 * * * * ?"), Trigger("new", "30 * * * * ?")]
    )
    round_at(ledgers, START + 70_000)

    Schedules(ledger.at(START + 71_000)).put("reports.daily", TASK, [Trigger("new", "30 * * * * ?")])

    assert {one.trigger for one in fires(Schedules(ledger))} == {"old", "new"}
    lives = {name.rsplit(":", 2)[1]: store.redis.ttl(name) for name in store.dump() if ":f:" in name}
    assert lives["new"] == -1
    assert 396 * 86_400 < lives["old"] <= 400 * 86_400


# -- what goes wrong beside it ----------------------------------------------------------------------------------------


def test_a_first_instant_that_has_passed_is_refused(schedules: Schedules, store: Store) -> None:
    definition = Definition("reports.daily", b"", "advance", {}, tuple(EVERY_MINUTE))
    args: dict[str, Arg] = {
        "job_key": "reports.daily",
        "definition": definition.packed(),
        "digest": definition.digest,
        "expected": "",
        "seen": "0",
        "declared": "",
        "enabled": "",
        "month": month(START),
        "triggers": 1,
        "group": "reports",
        "by": "",
        "reason": "",
    }
    call = Call("schedule_put", schedules.ledger.keys.home, args, list, ["default", START, "", "", ""])

    with store.unchanged(), pytest.raises(StalePlan, match="not after now"):
        schedules.ledger.scripts.run(call)


def test_a_put_overtaken_by_its_own_instant_is_made_again(
    schedules: Schedules, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Schedules._put
    tries: list[int] = []

    def overtaken_once(*args: Any) -> Put:
        tries.append(1)
        if len(tries) == 1:
            raise StalePlan("its first instant has passed")
        return put(*args)

    monkeypatch.setattr(Schedules, "_put", overtaken_once)

    assert schedules.put("reports.daily", TASK, EVERY_MINUTE).changed
    assert len(tries) == 2


def test_a_schedule_changed_after_its_last_fire_does_not_fire_that_instant_again(
    schedules: Schedules, ledgers: Ledgers
) -> None:
    """Also when the server's clock has stepped back to before it."""
    schedules.put("reports.daily", TASK, EVERY_MINUTE)
    round_at(ledgers, FIRST)

    schedules.put("reports.daily", TASK, EVERY_MINUTE, args=["changed"])

    assert schedules.get("reports.daily").next_fires == {"default": FIRST + MINUTE}


def test_a_tenant_that_cannot_be_read_does_not_hold_up_the_others(
    ledgers: Ledgers, tenure_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    for tenant in ("t1", "t2", "t3"):
        Schedules(ledgers.of(tenant)).put("reports.daily", TASK, EVERY_MINUTE)
    broken = ledgers.of("t2").keys("triggers")
    tenure_server.redis.set(broken, "garbage")
    scheduler = Scheduler(at(ledgers, FIRST), "one")

    for _ in range(3):
        scheduler.round()

    assert [len(jobs(ledgers.of(tenant))) for tenant in ("t1", "t3")] == [1, 1]
    assert len([record for record in caplog.records if "t2" in record.getMessage()]) == 1
    tenure_server.redis.delete(broken)
    tenure_server.redis.delete(ledgers.of("t2").keys("schedule", job_key="reports.daily"))
    tenure_server.redis.delete(ledgers.of("t2").keys("schedules"))


def test_a_damaged_schedule_does_not_hold_up_the_others_of_its_tenant(
    schedules: Schedules, ledgers: Ledgers, tenure_server: Server
) -> None:
    schedules.put("a.damaged", TASK, EVERY_MINUTE)
    schedules.put("b.good", TASK, EVERY_MINUTE)
    key = schedules.ledger.keys("schedule", job_key="a.damaged")
    kept = tenure_server.redis.hget(key, "definition")
    tenure_server.redis.hset(key, "definition", b"\xc1garbage")

    round_at(ledgers, FIRST)
    tenure_server.redis.hset(key, "definition", kept)

    assert len(fires(schedules, "b.good")) == 1
    assert fires(schedules, "a.damaged") == []
