"""The script that fires judges every plan itself: what does not fit the trigger as it stands changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tenure.lease.ids import fire_id
from tenure.lease.ledger import Ledger
from tenure.lease.ledgers import Ledgers
from tenure.lease.tasks import Task
from tenure.scheduler.definition import Definition
from tenure.scheduler.plan import month
from tenure.scheduler.scheduler import Due, Scheduler
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.trigger import Trigger
from tenure.scripts import Call
from tenure.scripts.errors import BadInput, NotFound, StalePlan, TenureError
from tenure.testing import START

from .given import Store

MINUTE = 60_000
FIRST = START + 40_000
NOW = FIRST + 10 * MINUTE
KEY = "reports.daily"
FIRE = {"outcome": "fired", "reason": "", "delay": "", "pairs": 0}
SKIP = {"outcome": "skipped", "reason": "coalesced", "id": "", "delay": "", "pairs": 0}
ORDER = ("outcome", "reason", "month", "first", "last", "count", "id", "delay", "pairs")


def item(first: int, last: int | None = None, **given: Any) -> list[Any]:
    """One step as the script takes it: a fire when it has an id."""
    whole = {
        **(FIRE if "id" in given else SKIP),
        "month": month(first),
        "first": first,
        "last": first if last is None else last,
        "count": 1 if last is None else 2,
        **given,
    }
    return [whole[name] for name in ORDER]


@pytest.fixture
def due(ledger: Ledger, ledgers: Ledgers) -> Call[Any]:
    """The call that fires a trigger ten minutes late: ten instants are coalesced into the eleventh."""
    Schedules(ledger).put(KEY, Task(KEY, print), [Trigger("default", "0 * * * * ?")])
    return plan_at(ledger, ledgers, NOW)


def plan_at(ledger: Ledger, ledgers: Ledgers, now: int) -> Call[Any]:
    ask: Call[Any] = Call("triggers_due", ledger.keys.home, {"skip": 0, "limit": 1}, list)
    at, _, _, _, resumed, _calendars, _changed, row = ledger.at(now).scripts.run(ask)
    trigger = Due.read(int(at), int(resumed), row, {})
    call = Scheduler(ledgers, "one")._fire_call(ledger, trigger, Definition.unpacked(trigger.packed))
    return replace(call, parse=list)


Change = Callable[[Call[Any]], Call[Any]]


def args(**changed: Any) -> Change:
    return lambda call: replace(call, args={**call.args, **changed})


def items(*given: list[Any]) -> Change:
    return lambda call: replace(call, rest=[part for one in given for part in one])


REFUSED: dict[str, tuple[Change, type[TenureError], str]] = {
    "another schedule": (args(job_key="reports.weekly"), NotFound, "reports.weekly is not stored"),
    "another trigger": (args(trigger="other"), StalePlan, "with next fire none"),
    "another revision": (args(revision="2"), StalePlan, f"at revision 1 with next fire {FIRST}"),
    "another next fire": (args(planned=FIRST - 1), StalePlan, f"the plan was for 1 and {FIRST - 1}"),
    "another gate": (args(resumed=1), StalePlan, "at revision 1"),
    "another calendar": (args(calendar="1"), StalePlan, "calendar none of .* has changed"),
    "a plan of long ago": (args(made=NOW - 10_001), StalePlan, f"made at {NOW - 10_001}"),
    "an instant before the plan": (
        items(item(FIRST - 1, id="J1")),
        BadInput,
        f"{FIRST - 1} is not after {FIRST - 1}",
    ),
    "an instant twice": (
        items(item(FIRST), item(FIRST, id="J1")),
        BadInput,
        f"{FIRST} is not after {FIRST}",
    ),
    "an instant inside what is passed over": (
        items(item(FIRST, NOW - MINUTE), item(NOW - 2 * MINUTE, id="J1")),
        BadInput,
        "is not after",
    ),
    "an instant that is not due": (
        items(item(FIRST), item(NOW + 1, id="J1")),
        StalePlan,
        f"up to {NOW + 1} refused",
    ),
    "what is passed over before its time": (items(item(FIRST, NOW + 1)), StalePlan, "not due"),
    "a next fire that is not later": (args(following=NOW), BadInput, "the next one not later"),
    "a next fire before": (args(following=NOW - 1), BadInput, "the next one not later"),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_a_plan_that_does_not_fit_is_refused_before_anything_is_written(
    ledger: Ledger, due: Call[Any], store: Store, wrong: str
) -> None:
    change, error, words = REFUSED[wrong]

    with store.unchanged(), pytest.raises(error, match=words):
        ledger.at(NOW).scripts.run(change(due))


def test_a_trigger_that_is_not_due_moves_nowhere(ledger: Ledger, due: Call[Any], store: Store) -> None:
    early = items()(args(made=FIRST - 1, following=FIRST)(due))

    with store.unchanged(), pytest.raises(StalePlan, match="not due"):
        ledger.at(FIRST - 1).scripts.run(early)


def test_a_paused_schedule_fires_nothing_whatever_was_planned(
    ledger: Ledger, due: Call[Any], store: Store
) -> None:
    schedule = ledger.keys("schedule", job_key=KEY)
    store.redis.hset(schedule, "paused", f"{NOW}\nme\n")

    with store.unchanged(), pytest.raises(BadInput):
        ledger.at(NOW).scripts.run(due)

    store.redis.hdel(schedule, "paused")


def test_a_plan_is_good_for_ten_seconds(ledger: Ledger, due: Call[Any]) -> None:
    made, *_ = ledger.at(NOW + 10_000).scripts.run(due)

    assert made == b"1"


def test_a_fire_is_one_job_and_leaves_no_pace_behind(ledger: Ledger, due: Call[Any], store: Store) -> None:
    made, news, earliest, version = ledger.at(NOW).scripts.run(due)

    schedule = store.redis.hkeys(ledger.keys("schedule", job_key=KEY))
    assert (made, len(news), int(earliest)) == (b"1", 1, NOW + MINUTE)
    assert int(version) >= int(news[0][2])
    assert not [name for name in schedule if name.startswith(b"pace:")]


def test_the_same_fire_sent_again_is_no_mistake_and_changes_nothing(
    ledger: Ledger, due: Call[Any], store: Store
) -> None:
    later = ledger.at(NOW + 1)
    _, _, earliest, version = later.scripts.run(due)

    with store.unchanged():
        again = later.scripts.run(due)

    assert again == [b"0", [], earliest, version]


def test_a_fire_sent_again_after_a_later_one_is_stale(
    ledger: Ledger, ledgers: Ledgers, due: Call[Any], store: Store
) -> None:
    ledger.at(NOW).scripts.run(due)
    ledger.at(NOW + MINUTE).scripts.run(plan_at(ledger, ledgers, NOW + MINUTE))

    with store.unchanged(), pytest.raises(StalePlan):
        ledger.at(NOW + MINUTE).scripts.run(due)


def test_what_is_only_passed_over_is_stale_when_it_is_sent_again(
    ledger: Ledger, due: Call[Any], store: Store
) -> None:
    passed = items(item(FIRST, NOW))(due)
    made, news, earliest, _ = ledger.at(NOW).scripts.run(passed)
    assert (made, news, int(earliest)) == (b"0", [], NOW + MINUTE)

    with store.unchanged(), pytest.raises(StalePlan):
        ledger.at(NOW).scripts.run(passed)


@pytest.mark.parametrize(("last_delay", "kept"), [("1000", b"%d" % (NOW + 2_000)), ("", None)])
def test_a_pace_is_kept_for_the_next_call_unless_the_trigger_has_caught_up(
    ledger: Ledger, due: Call[Any], store: Store, last_delay: str, kept: bytes | None
) -> None:
    ids = [fire_id("acme", KEY, "default", instant) for instant in (FIRST, NOW)]
    first = item(FIRST, id=ids[0], outcome="misfired", reason="fire_all", delay="0")
    call = args(pace=1_000)(items(first, item(NOW, id=ids[1], delay=last_delay))(due))

    assert ledger.at(NOW).scripts.run(call)[0] == b"2"

    assert store.redis.hget(ledger.keys("schedule", job_key=KEY), "pace:default") == kept
    due_at = [view.run_at for view in ledger.get_many(ids)]
    assert due_at == [NOW, NOW + 1_000 if last_delay else NOW]
