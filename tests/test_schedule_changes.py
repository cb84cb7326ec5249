"""A schedule is changed as it was when the change was worked out: what has happened since is not passed over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tenure.lease.ledger import Ledger
from tenure.lease.ledgers import Ledgers
from tenure.lease.tasks import Task
from tenure.scheduler.pausing import pause_group
from tenure.scheduler.plan import month
from tenure.scheduler.scheduler import Scheduler
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.trigger import Trigger
from tenure.scripts import Call
from tenure.scripts.errors import StalePlan
from tenure.scripts.loader import texts
from tenure.testing import START

from .given import Store

MINUTE = 60_000
FIRST = START + 40_000
KEY = "reports.daily"
TASK = Task(KEY, print)
EVERY_MINUTE = [Trigger("default", "0 * * * * ?")]
HALF_PAST = [Trigger("default", "30 * * * * ?")]


class Prepared(BaseException):
    """Thrown instead of the call that changes a schedule."""


def prepared(
    monkeypatch: pytest.MonkeyPatch, script: str, act: Callable[[], object]
) -> Callable[..., Sequence[str]]:
    """The call of a script as `act` works it out, to be sent when the test says so, or with other arguments."""
    kept: list[Call[Any]] = []
    real = Schedules._run

    def run(schedules: Schedules, name: str, rest: Sequence[Any] = (), **args: Any) -> Sequence[str]:
        if name != script:
            return real(schedules, name, rest, **args)
        kept.append(Call(name, schedules.ledger.keys.home, args, texts, rest))
        raise Prepared

    with monkeypatch.context() as patch:
        patch.setattr(Schedules, "_run", run)
        with pytest.raises(Prepared):
            act()
    (call,) = kept

    def send(ledger: Ledger, **changed: Any) -> Sequence[str]:
        answer: Sequence[str] = ledger.scripts.run(replace(call, args={**call.args, **changed}))
        return answer

    return send


def at(ledgers: Ledgers, now: int) -> Ledgers:
    return Ledgers(ledgers.scripts.at(now), ledgers.namespace)


@pytest.fixture
def stored(ledger: Ledger) -> Schedules:
    """A schedule that fires each minute, from `FIRST` on."""
    schedules = Schedules(ledger)
    schedules.put(KEY, TASK, EVERY_MINUTE)
    return schedules


# -- put --------------------------------------------------------------------------------------------------------------


def test_a_put_that_saw_another_revision_is_stale(
    ledger: Ledger, stored: Schedules, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = prepared(monkeypatch, "schedule_put", lambda: stored.put(KEY, TASK, HALF_PAST))

    for seen in (0, 2):
        with store.unchanged(), pytest.raises(StalePlan, match=f"is at revision 1, and was at {seen}"):
            put(ledger, seen=seen)

    assert put(ledger)[:2] == ["2", "changed"]


def test_a_put_is_stale_when_its_first_instant_has_come(
    ledger: Ledger, stored: Schedules, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_ms = START + 10_000
    put = prepared(monkeypatch, "schedule_put", lambda: stored.put(KEY, TASK, HALF_PAST))

    with store.unchanged(), pytest.raises(StalePlan, match=f"first fire at {first_ms}"):
        put(ledger.at(first_ms))

    assert put(ledger.at(first_ms - 1))[:3] == ["2", "changed", str(first_ms)]


def test_a_put_is_stale_when_its_first_instant_has_fired_before_the_clock_went_back(
    ledger: Ledger, ledgers: Ledgers, stored: Schedules, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = Schedules(ledger.at(FIRST - 1))
    both = [Trigger("default", "0 * * * * ?"), Trigger("other", "0 * * * * ?")]
    put = prepared(monkeypatch, "schedule_put", lambda: back.put(KEY, TASK, both, args=["monday"]))
    Scheduler(at(ledgers, FIRST), "one").round()

    with store.unchanged(), pytest.raises(StalePlan, match=f"trigger default of .* first fire at {FIRST}"):
        put(ledger.at(FIRST - 1))


def test_nothing_begins_at_an_instant_that_the_tenant_has_lived_through(
    ledger: Ledger, ledgers: Ledgers, stored: Schedules
) -> None:
    Scheduler(at(ledgers, FIRST), "one").round()

    Schedules(ledger.at(FIRST - 1)).put(KEY, TASK, [Trigger("other", "0 * * * * ?")])

    assert stored.get(KEY).next_fires == {"other": FIRST + MINUTE}


def test_a_put_is_stale_when_an_instant_of_the_old_definition_has_come_due(
    ledger: Ledger, stored: Schedules, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = [Trigger("default", "10 * * * * ?")]
    put = prepared(monkeypatch, "schedule_put", lambda: stored.put(KEY, TASK, later))

    with store.unchanged(), pytest.raises(StalePlan, match=f"trigger default .* due at {FIRST}.* for none"):
        put(ledger.at(FIRST))


def test_a_put_leaves_of_the_old_definition_what_has_fired_and_nothing_else(
    ledger: Ledger, ledgers: Ledgers, store: Store
) -> None:
    schedules = Schedules(ledger)
    old = [Trigger("a", every="60s"), Trigger("b", "0 * * * * ?")]
    schedules.put(KEY, TASK, old)
    Scheduler(at(ledgers, FIRST), "one").round()

    Schedules(ledger.at(FIRST + 1)).put(KEY, TASK, [Trigger("c", "0 0 * * * ?")])

    fields = {name for name in texts(store.redis.hkeys(ledger.keys("schedule", job_key=KEY))) if ":" in name}
    assert fields == {"last:b", "next:c"}
    assert texts(store.redis.zrange(ledger.keys("triggers"), 0, -1)) == [f"c:{KEY}"]


# -- delete -----------------------------------------------------------------------------------------------------------


def test_a_deletion_is_stale_when_an_instant_has_come_due(
    ledger: Ledger, stored: Schedules, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = prepared(monkeypatch, "schedule_delete", lambda: stored.delete(KEY))

    with store.unchanged(), pytest.raises(StalePlan, match=f"due at {FIRST}.* for none"):
        delete(ledger.at(FIRST))

    assert delete(ledger.at(FIRST - 1))[0] == "1"


def test_a_deletion_is_stale_when_another_instant_has_come_due(
    ledger: Ledger, stored: Schedules, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Schedules(ledger.at(FIRST))
    delete = prepared(monkeypatch, "schedule_delete", lambda: late.delete(KEY))

    with store.unchanged(), pytest.raises(StalePlan, match=f"due at {FIRST}.* for {FIRST}"):
        delete(ledger.at(FIRST + MINUTE))

    assert delete(ledger.at(FIRST + MINUTE - 1))[0] == "1"
    (record,), _ = stored.fires(KEY, month=month(START))
    assert (record.fire_time, record.outcome, record.reason) == (FIRST, "skipped", "deleted")


def test_a_deletion_is_stale_when_the_trigger_has_fired_since(
    ledger: Ledger, ledgers: Ledgers, stored: Schedules, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Schedules(ledger.at(FIRST))
    delete = prepared(monkeypatch, "schedule_delete", lambda: late.delete(KEY))
    Scheduler(at(ledgers, FIRST), "one").round()

    with store.unchanged(), pytest.raises(StalePlan, match=f"due at {FIRST + MINUTE}.* for {FIRST}"):
        delete(ledger.at(FIRST + MINUTE))


def test_nothing_is_left_of_a_deleted_schedule_but_its_records(
    ledger: Ledger, ledgers: Ledgers, stored: Schedules, store: Store
) -> None:
    Scheduler(at(ledgers, FIRST), "one").round()

    Schedules(ledger.at(FIRST + 1)).delete(KEY)

    left = {name.split(":")[2] for name in store.dump() if KEY in name}
    assert left == {"f", "rt", "log", "sr"}, "its fire records, by trigger, its task's jobs, and its end"
    assert [one.verb for one in Schedules(ledger).revisions(KEY)] == ["delete"]
    assert 0 < store.redis.ttl(ledger.keys("revisions", job_key=KEY)) <= 400 * 86_400
    assert not store.redis.exists(ledger.keys("triggers"))
    assert not store.redis.exists(ledger.keys("schedules"))


# -- enabled ----------------------------------------------------------------------------------------------------------


def test_stored_paused_it_does_not_fire_and_its_instants_are_recorded(
    ledger: Ledger, ledgers: Ledgers
) -> None:
    Schedules(ledger).put(KEY, TASK, EVERY_MINUTE, enabled=False, by="ada", reason="not yet")
    Scheduler(at(ledgers, FIRST), "one").round()

    Schedules(ledger.at(FIRST + 1)).put(KEY, TASK, EVERY_MINUTE, enabled=True)

    Scheduler(at(ledgers, FIRST + MINUTE), "one").round()
    found, _ = Schedules(ledger).fires(KEY, month=month(START))
    assert [(one.fire_time, one.reason) for one in found] == [(FIRST + MINUTE, None), (FIRST, "paused")]
    said = [(one.number, one.verb, one.by) for one in Schedules(ledger).revisions(KEY)]
    assert said == [(2, "resume", ""), (1, "put", "ada")]


def test_what_is_due_when_it_is_stored_paused_is_recorded_as_that(ledger: Ledger, stored: Schedules) -> None:
    put = Schedules(ledger.at(FIRST + 1)).put(KEY, TASK, EVERY_MINUTE, enabled=False)

    found, _ = stored.fires(KEY, month=month(START))
    assert [(one.fire_time, one.reason) for one in found] == [(FIRST, "paused")]
    assert (put.revision, put.changed, put.created) == (2, True, False)
    assert [one.verb for one in stored.revisions(KEY)] == ["pause", "put"]


def test_the_newest_hundred_revisions_are_kept(ledger: Ledger, stored: Schedules) -> None:
    for nth in range(104):
        stored.put(KEY, Task("reports.daily", lambda: None, priority=nth % 2), EVERY_MINUTE)

    assert [one.number for one in stored.revisions(KEY)] == [*range(105, 5, -1)]


def test_enabled_as_it_is_changes_nothing(ledger: Ledger, stored: Schedules, store: Store) -> None:
    with store.unchanged():
        stored.put(KEY, TASK, EVERY_MINUTE, enabled=True)
    stored.put(KEY, TASK, EVERY_MINUTE, enabled=False)

    with store.unchanged():
        stored.put(KEY, TASK, EVERY_MINUTE, enabled=False)
        stored.put(KEY, TASK, EVERY_MINUTE)


def test_another_definition_may_pause_and_resume_with_it(ledger: Ledger, stored: Schedules) -> None:
    stored.put(KEY, TASK, HALF_PAST, enabled=False, by="ada")
    assert (stored.get(KEY).paused or pytest.fail("it is not paused")).by == "ada"

    stored.put(KEY, TASK, EVERY_MINUTE, enabled=False, by="eve")
    assert (stored.get(KEY).paused or pytest.fail("it is not paused")).by == "ada", "paused since the first"

    stored.put(KEY, TASK, HALF_PAST, enabled=True)
    assert stored.get(KEY).paused is None


def test_enabled_is_stronger_than_a_paused_group(ledger: Ledger) -> None:
    pause_group(Schedules(ledger), "reports")

    Schedules(ledger).put(KEY, TASK, EVERY_MINUTE, enabled=True)
    Schedules(ledger).put("reports.weekly", TASK, EVERY_MINUTE)

    assert Schedules(ledger).get(KEY).paused is None
    assert Schedules(ledger).get("reports.weekly").paused is not None


def test_a_schedule_that_has_fired_for_the_last_time_may_be_paused(ledger: Ledger, ledgers: Ledgers) -> None:
    once = [Trigger("default", at="2026-09-21T14:14:00Z")]
    Schedules(ledger).put(KEY, TASK, once)
    Scheduler(at(ledgers, FIRST), "one").round()

    put = Schedules(ledger.at(FIRST + 1)).put(KEY, TASK, once, enabled=False)

    assert (put.revision, put.changed) == (2, True)


def test_an_operator_who_pauses_what_code_declares_overrides_nothing(ledger: Ledger) -> None:
    Schedules(ledger).put(KEY, TASK, EVERY_MINUTE, declared=True)

    Schedules(ledger).put(KEY, TASK, EVERY_MINUTE, enabled=False)

    view = Schedules(ledger).get(KEY)
    assert (view.declared, view.overridden, view.paused is None) == (True, False, False)
