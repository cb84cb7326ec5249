"""At three in the morning: why did it not fire at two?"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tenure.lease.ledger import Ledger
from tenure.lease.ledgers import Ledgers
from tenure.lease.tasks import Task
from tenure.lease.why import Why
from tenure.scheduler import pausing
from tenure.scheduler.calendar_store import Calendars
from tenure.scheduler.scheduler import Scheduler
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.skips import DISABLED
from tenure.scheduler.switch import Scheduling
from tenure.scheduler.trigger import Trigger
from tenure.scheduler.why import VERDICTS, why
from tenure.scripts.errors import BadInput, NotFound
from tenure.testing import START

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
FIRST = START + 40_000
TASK = Task("reports.daily", lambda: None)
KEY = "reports.daily"


class Night:
    """A schedule of every minute, and an operator who asks."""

    def __init__(self, ledgers: Ledgers) -> None:
        self.ledgers = ledgers

    def at(self, now: int) -> Ledgers:
        return Ledgers(self.ledgers.scripts.at(now), self.ledgers.namespace)

    def ledger(self, now: int) -> Ledger:
        return self.at(now).of("acme")

    def schedules(self, now: int) -> Schedules:
        return Schedules(self.ledger(now))

    def round(self, now: int) -> None:
        Scheduler(self.at(now), "one").round()

    def ask(self, now: int, at: int | None = None) -> Why:
        found = why(self.schedules(now), KEY, at=at)
        assert found.verdict in VERDICTS
        return found


@pytest.fixture
def night(ledgers: Ledgers) -> Night:
    found = Night(ledgers)
    found.schedules(START).put(KEY, TASK, [Trigger("default", "0 * * * * ?")])
    return found


def test_an_instant_that_fired_names_its_job_and_how_that_stands(night: Night) -> None:
    night.round(FIRST)

    found = night.ask(FIRST + 1, FIRST)

    (job,) = night.ledger(FIRST).list().items
    assert (found.verdict, found.by, found.since) == ("fired", "one", FIRST)
    assert f"job {job.id} is pending" in found.text
    assert f"tenure why {job.id} --tenant acme" in found.do


def test_an_instant_inside_a_range_is_found_in_it(night: Night) -> None:
    night.round(FIRST + 500 * MINUTE)

    found = night.ask(FIRST + 501 * MINUTE, FIRST + 123 * MINUTE)

    assert found.verdict == "skipped_coalesced"
    assert "one of 500 on one record" in found.text


def test_each_instant_of_a_long_list_is_found_by_its_own_record(night: Night) -> None:
    for minute in range(40):
        night.round(FIRST + minute * MINUTE)

    for minute in (0, 1, 17, 38, 39):
        assert night.ask(FIRST + 40 * MINUTE, FIRST + minute * MINUTE).since == FIRST + minute * MINUTE


def test_a_fire_that_a_gap_moved_names_the_time_that_the_clocks_left_out(ledgers: Ledgers) -> None:
    night, moved = Night(ledgers), START - START % DAY + 188 * DAY + HOUR
    before = datetime(2027, 3, 27, 12, tzinfo=UTC)
    night.schedules(START).put(KEY, TASK, [Trigger("default", "30 2 * * *", "Europe/Berlin", start=before)])
    night.round(moved)

    found, day_after = night.ask(moved + 1, moved), moved + DAY - 30 * MINUTE
    night.round(day_after)
    plain = night.ask(day_after, day_after)
    night.schedules(day_after).put(KEY, TASK, [Trigger("default", "0 0 5 * * ?", "Europe/Berlin")])
    changed = night.ask(day_after, moved)

    assert found.verdict == changed.verdict == plain.verdict == "fired"
    assert (
        "The clocks went forward and left out 02:30:00: it fired at the first instant after that, at 03:00:00."
        in found.text
    )
    assert "left out its time: it fired at the first instant after that." in changed.text
    assert "clocks" not in plain.text


def test_a_disabled_tenant_is_named_for_what_passed_and_for_what_comes(night: Night) -> None:
    Scheduling(night.ledger(START)).set(enabled=False, by="eve", reason="migration")
    night.round(FIRST)

    past, now = night.ask(FIRST + 1, FIRST), night.ask(FIRST + 1)

    assert past.verdict == f"skipped_{DISABLED}"
    assert (now.verdict, now.by) == ("disabled", "eve")
    assert "migration" in now.text
    assert now.do == ("tenure tenants enable-scheduling acme",)
    assert past.do == ("tenure tenants show acme", "tenure tenants enable-scheduling acme")


def test_no_run_by_hand_is_advised_while_it_would_be_refused(night: Night) -> None:
    night.round(FIRST + MINUTE)
    asked = (FIRST, FIRST - MINUTE, FIRST + 3 * MINUTE)
    before = [night.ask(FIRST + MINUTE + 1, at) for at in asked]
    Scheduling(night.ledger(FIRST + MINUTE + 1)).set(enabled=False)

    after = [night.ask(FIRST + MINUTE + 2, at) for at in asked]

    assert [one.verdict for one in before] == ["skipped_coalesced", "no_record", "not_due"]
    assert all(one.do[0].startswith(f"tenure cron run {KEY}") for one in before)
    assert all(one.do[0].endswith(" --tenant acme") for one in before)
    assert [one.do for one in after] == [("tenure tenants enable-scheduling acme",)] * 3


def test_a_command_for_the_default_tenant_names_none(night: Night) -> None:
    schedules = Schedules(night.at(START).of("default"))
    schedules.put(KEY, TASK, [Trigger("default", "0 * * * * ?")])

    assert why(schedules, KEY).do == (f"tenure cron next {KEY}", f"tenure cron run {KEY}")


def test_a_paused_schedule_says_since_when_by_whom_and_why(night: Night) -> None:
    pausing.pause(night.schedules(START + 1), KEY, by="eve", reason="too loud")

    found, past = night.ask(FIRST), night.ask(FIRST + 1, FIRST)

    assert (found.verdict, found.since, found.by) == ("paused", START + 1, "eve")
    assert "too loud" in found.text
    assert past.verdict == "paused"


def test_what_is_due_and_has_no_record_wants_a_scheduler(night: Night) -> None:
    at_once, later = night.ask(FIRST + 500, FIRST), night.ask(FIRST + MINUTE - 1)

    assert (at_once.verdict, later.verdict) == ("overdue", "overdue")
    assert "Is one running" not in at_once.text
    assert "Is one running" in later.text


def test_what_is_ahead_and_what_is_not_planned_say_so(night: Night) -> None:
    assert (night.ask(START).verdict, night.ask(START).next) == ("not_due", FIRST)
    assert night.ask(START, FIRST + MINUTE).next == FIRST + MINUTE
    odd = night.ask(START, FIRST + 1)
    assert odd.verdict == "not_planned"
    assert "2026-09-21T14:14:00.000Z" in odd.text
    assert night.ask(START, FIRST - MINUTE).verdict == "no_record"


def test_a_schedule_that_is_over_says_when_it_was_last(night: Night) -> None:
    night.schedules(START).put(KEY, TASK, [Trigger("default", at="2026-09-21T15:00:00Z")])
    night.round(START + 60 * MINUTE)

    found = night.ask(START + 70 * MINUTE)

    assert found.verdict == "exhausted"
    assert "2026-09-21T15:00:00.000Z" in found.text


def test_every_reason_of_a_record_has_its_words() -> None:
    reasons = {
        "SystemTaskSchedulingDisabled",
        "unobserved",
        "paused",
        "superseded",
        "deleted",
        "misfire",
        "coalesced",
    }

    assert {f"skipped_{reason}" for reason in reasons | {"overlap", "queue_full"}} <= set(VERDICTS)


def test_of_a_deleted_schedule_why_says_what_is_on_record(night: Night) -> None:
    night.schedules(START).put("weekly", TASK, [Trigger("a", "30 * * * * ?")])
    night.round(FIRST)
    night.schedules(FIRST + MINUTE + 1).delete(KEY)
    night.schedules(FIRST + MINUTE + 1).delete("weekly")
    later = night.schedules(FIRST + 5 * MINUTE)

    fired, passed = (why(later, KEY, at=at) for at in (FIRST, FIRST + MINUTE))
    of_a = why(later, "weekly", at=FIRST + MINUTE // 2)

    (job,) = (job for job in night.ledger(FIRST).list().items if job.fire_time == FIRST)
    assert (fired.verdict, passed.verdict, of_a.verdict) == ("fired", "skipped_deleted", "skipped_deleted")
    assert f"job {job.id} is pending" in fired.text
    assert passed.do == (f"tenure cron logs {KEY} --month 202609 --tenant acme",), "it cannot be run any more"
    for found in (fired, passed, of_a):
        assert "The schedule is deleted since: 2026-09-21T14:15:00.001Z." in found.text
        assert (found.checks[-1].name, found.checks[-1].state) == ("stored", "no")
    for at in (None, FIRST + 1, FIRST + 3 * MINUTE):
        with pytest.raises(NotFound):
            why(later, KEY, at=at)


@pytest.mark.parametrize("named", [True, False])
def test_an_instant_that_a_calendar_excludes_names_it(night: Night, named: bool) -> None:
    days = {"dates": ["2026-09-21"]}
    Calendars(night.ledger(START)).put("stocktaking", days)
    calendar = "stocktaking" if named else days
    night.schedules(START).put(KEY, TASK, [Trigger("default", "0 * * * * ?", calendar=calendar)])

    excluded, odd = night.ask(START, FIRST), night.ask(START, FIRST + 1)

    assert (excluded.verdict, odd.verdict) == ("not_planned", "not_planned")
    what = "calendar 'stocktaking'" if named else "the calendar in trigger 'default'"
    assert f"revision: {what} excludes it; near it are 2026-09-20T23:59:00.000Z, " in excluded.text
    assert ("tenure calendars show stocktaking --tenant acme" in excluded.do) == named
    assert "excludes" not in odd.text


def test_what_is_not_stored_is_not_found(night: Night) -> None:
    with pytest.raises(NotFound):
        why(night.schedules(START), "reports.weekly")
    with pytest.raises(BadInput, match="not one of the schedule's"):
        why(night.schedules(START), KEY, at=FIRST, trigger="other")
