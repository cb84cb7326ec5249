"""Schedules that stand in the code, from one start of a scheduler to the next."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tenure import Ctx, JobKey, Tenure
from tenure.lease.who import whoami
from tenure.scheduler.plan import month
from tenure.scheduler.scheduler import Scheduler
from tenure.scheduler.trigger import Trigger
from tenure.scripts.errors import Conflict, StoreUnreachable
from tenure.scripts.loader import Scripts

MINUTE = 60_000
YEAR = datetime.now().year


def report(ctx: Ctx) -> None: ...


def another(app: Tenure) -> Tenure:
    """A new version of the code, in another process."""
    return Tenure(app.settings)


def started(app: Tenure, at: int | None = None) -> dict[str, Any]:
    """What a scheduler's start made of each declared schedule."""
    real = app.ledger
    if at is not None:
        app.ledger = lambda tenant="default": real(tenant).at(at)  # type: ignore[method-assign]
    answer = {str(one.job_key): one.put or str(one.problem) for one in app.schedules.declare()}
    app.ledger = real  # type: ignore[method-assign]
    return answer


def fire_at(app: Tenure, now: int) -> None:
    from tenure.lease.ledgers import Ledgers

    ledgers = app.ledgers()
    Scheduler(Ledgers(ledgers.scripts.at(now), ledgers.namespace), "one").round()


def test_a_one_shot_that_has_fired_is_left_alone_at_every_later_start(app: Tenure) -> None:
    app.cron("once", f"0 0 12 1 6 ? {YEAR + 1}")(report)
    app.cron("daily", "@daily")(report2)
    app.schedules.declare()
    (due,) = app.schedules.get("once").next_fires.values()
    fire_at(app, due)
    assert app.schedules.get("once").exhausted

    for _ in range(2):
        later = another(app)
        later.cron("once", f"0 0 12 1 6 ? {YEAR + 1}")(report)
        later.cron("daily", "@daily")(report2)
        puts = started(later, at=due + MINUTE)

        assert [(put.revision, put.changed) for put in puts.values()] == [(1, False), (1, False)]
        later.close()


def report2(ctx: Ctx) -> None: ...


def test_a_declared_schedule_that_is_over_is_told_and_holds_up_no_other(app: Tenure) -> None:
    app.cron("long.ago", "0 0 12 1 6 ? 2019")(report)
    app.cron("daily", "@daily")(report2)

    puts = started(app)

    assert "never fires again: '0 0 12 1 6 ? 2019'" in puts["long.ago"]
    assert puts["daily"].created
    assert [str(view.job_key) for view in app.schedules.list()] == ["daily"]


def test_an_exhausted_schedule_that_the_code_changes_is_told(app: Tenure) -> None:
    app.cron("once", f"0 0 12 1 6 ? {YEAR + 1}")(report)
    app.schedules.declare()
    (due,) = app.schedules.get("once").next_fires.values()
    fire_at(app, due)
    later = another(app)
    later.cron("once", f"0 0 12 1 6 ? {YEAR + 1}", tz="Europe/Berlin")(report)

    assert "never fires again" in started(later, at=due + MINUTE)["once"]
    assert app.schedules.get("once").revision == 1
    later.close()


def test_whatever_is_wrong_with_one_stops_none_of_the_others(
    app: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.cron("damaged", "@daily")(report)
    app.cron("daily", "@daily")(report2)
    known = Trigger.expression

    def unknown(trigger: Trigger) -> object:
        return known(trigger) if trigger.tz == "UTC" else fail()

    def fail() -> object:
        raise ValueError("no such zone here")

    del app.schedules._declared["default", JobKey("damaged")]
    app.cron("damaged", "@hourly", tz="Europe/Berlin")(report)
    monkeypatch.setattr(Trigger, "expression", unknown)

    answers = app.schedules.declare()

    assert {str(one.job_key): (one.put is None, str(one.problem)) for one in answers} == {
        "daily": (False, "None"),
        "damaged": (True, "no such zone here"),
    }


def test_a_store_that_is_away_is_no_fault_of_a_schedule(app: Tenure, monkeypatch: pytest.MonkeyPatch) -> None:
    app.cron("daily", "@daily")(report)
    app.ledgers()

    def away(*_: Any) -> Any:
        raise StoreUnreachable("away")

    monkeypatch.setattr(Scripts, "run", away)

    with pytest.raises(StoreUnreachable):
        app.schedules.declare()


# -- what is not declared any more ------------------------------------------------------------------------------------


def test_what_is_stored_as_declared_and_not_in_this_code_is_found(app: Tenure) -> None:
    app.cron("a.kept", "@daily")(report)
    app.cron("b.removed", "@daily")(report2)
    app.cron("c.removed", "@daily", tenant="acme")(lambda: None)
    app.task("manual")(lambda: None)
    app.schedules.put("by.hand", task="manual", cron="@daily")
    app.schedules.declare()
    assert app.schedules.undeclared() == []
    later = another(app)
    later.cron("a.kept", "@daily")(report)
    later.schedules.declare()

    assert later.schedules.undeclared() == [
        ("acme", JobKey.parse("c.removed")),
        ("default", JobKey.parse("b.removed")),
    ]

    assert later.schedules.delete("c.removed", "acme")
    assert later.schedules.undeclared() == [("default", JobKey.parse("b.removed"))]
    later.close()


def test_a_schedule_that_somebody_puts_anew_is_no_longer_the_codes(app: Tenure) -> None:
    app.cron("daily", "@daily")(report)
    app.schedules.declare()
    assert app.schedules.get("daily").declared

    later = another(app)
    later.task("manual")(lambda: None)
    later.schedules.put("daily", task="manual", cron="@hourly")

    assert not app.schedules.get("daily").declared
    assert later.schedules.undeclared() == []
    assert later.ledgers().index.declared() == [], "what is found stale is forgotten"
    later.close()


def test_a_schedule_stored_by_hand_becomes_the_codes_without_a_new_revision(app: Tenure) -> None:
    app.cron("daily", "@daily")(report)
    app.schedules.put("daily", task="daily", cron="@daily")

    (answer,) = app.schedules.declare()

    assert answer.put
    assert (answer.put.revision, answer.put.changed) == (1, False)
    assert app.schedules.get("daily").declared


def test_a_deleted_schedule_that_the_code_still_declares_is_stored_again(app: Tenure) -> None:
    app.cron("daily", "@daily")(report)
    app.schedules.declare()
    app.schedules.delete("daily")

    (answer,) = app.schedules.declare()

    assert answer.put
    assert (answer.put.created, answer.put.revision) == (True, 2)


def test_the_records_of_a_deleted_schedule_can_be_read(app: Tenure) -> None:
    app.cron("daily", "@daily")(report)
    app.schedules.declare()
    (due,) = app.schedules.get("daily").next_fires.values()
    fire_at(app, due)
    app.schedules.delete("daily")

    (fire,) = app.schedules.fires("daily", month=month(due))

    assert (fire.fire_time, fire.outcome) == (due, "fired")


# -- declared, overridden, in force -----------------------------------------------------------------------------------


def test_what_somebody_puts_in_place_of_the_codes_outlives_every_start(app: Tenure) -> None:
    app.cron("daily", "@daily")(report)
    app.schedules.declare()
    app.schedules.put("daily", task="daily", cron="@hourly")

    for _ in range(2):
        (answer,) = app.schedules.declare()
        assert answer.put
        assert not answer.put.changed

    view = app.schedules.get("daily")
    assert view.code is not None
    assert (view.overridden, view.declared) == (True, False)
    assert (view.code.triggers[0].cron, view.definition.triggers[0].cron) == ("@daily", "@hourly")


def test_a_new_declaration_under_an_override_is_known_and_not_in_force(app: Tenure) -> None:
    app.cron("daily", "@daily")(report)
    app.schedules.declare()
    app.schedules.put("daily", task="daily", cron="@hourly")
    later = another(app)
    later.cron("daily", "@weekly")(report)

    later.schedules.declare()

    view = later.schedules.get("daily")
    assert view.code is not None
    assert (view.code.triggers[0].cron, view.definition.triggers[0].cron) == ("@weekly", "@hourly")
    put = later.schedules.follow_code("daily", by="eve")
    assert (put.revision, later.schedules.get("daily").overridden) == (3, False)
    assert later.schedules.get("daily").definition.triggers[0].cron == "@weekly"
    later.close()


def test_putting_by_hand_what_code_declares_ends_the_override(app: Tenure) -> None:
    app.cron("daily", "@daily")(report)
    app.schedules.declare()
    app.schedules.put("daily", task="daily", cron="@hourly")
    app.schedules.put("daily", task="daily", cron="@daily")

    assert app.schedules.get("daily").declared


def test_code_that_declares_what_is_stored_by_hand_does_not_take_it_over(app: Tenure) -> None:
    app.cron("daily", "@daily")(report)
    app.schedules.put("daily", task="daily", cron="@hourly")

    app.schedules.declare()

    assert app.schedules.get("daily").overridden
    assert app.schedules.get("daily").definition.triggers[0].cron == "@hourly"


def test_code_that_declares_nothing_of_a_name_is_not_followed(app: Tenure) -> None:
    app.cron("daily", "@daily")(report)
    app.schedules.put("by.hand", task="daily", cron="@daily")

    with pytest.raises(Conflict, match="not declared"):
        app.schedules.follow_code("by.hand")


def test_revisions_say_what_a_schedule_was_by_whom_and_why(app: Tenure) -> None:
    app.cron("daily", "@daily")(report)
    app.schedules.declare()
    app.schedules.pause("daily", by="eve", reason="too loud")
    app.schedules.resume("daily", by="eve")
    app.schedules.put("daily", task="daily", cron="@hourly")

    found = app.schedules.revisions("daily")

    assert [(one.number, one.verb, one.by, one.reason) for one in found] == [
        (4, "put", "", ""),
        (3, "resume", "eve", ""),
        (2, "pause", "eve", "too loud"),
        (1, "put", "code", ""),
    ]
    assert [one.definition.triggers[0].cron for one in found if one.definition] == ["@hourly", "@daily"]


def test_who_changes_a_schedule_is_who_runs_the_process_where_nobody_is_named(app: Tenure) -> None:
    app.task("daily")(lambda: None)
    app.schedules.put("daily", task="daily", cron="@daily")
    app.schedules.pause("daily", reason="audit")
    app.schedules.resume("daily", by="ada")
    app.tenants.disable_scheduling("default", reason="migration")

    said = [(one.verb, one.by) for one in app.schedules.revisions("daily")]
    assert said[:2] == [("resume", "ada"), ("pause", whoami())]
    assert app.tenants.scheduling("default").by == whoami()
